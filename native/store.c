/* Questions to the store: SQLite, read-only, in one transaction. */
#include "swarm_check.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "sqlite3.h"

static sqlite3 *store;

/* Prepare a statement with texts for its parameters ?1, ?2, ... An older or foreign store lacks tables or columns. */
static sqlite3_stmt *prepared(const char *sql, const char *const *texts) {
    sqlite3_stmt *statement;
    if (sqlite3_prepare_v2(store, sql, -1, &statement, NULL) != SQLITE_OK)
        hand_over(sqlite3_errmsg(store));
    for (int place = 1; *texts; texts++, place++)
        if (sqlite3_bind_text(statement, place, *texts, -1, SQLITE_STATIC) != SQLITE_OK)
            hand_over("a text cannot be bound");
    return statement;
}

/* Tell if there is a further row. */
static bool has_row(sqlite3_stmt *statement) {
    int answer = sqlite3_step(statement);
    if (answer != SQLITE_ROW && answer != SQLITE_DONE)
        hand_over("the store is busy, or has a fault");
    return answer == SQLITE_ROW;
}

static bool finds(const char *sql, const char *const *texts) {
    sqlite3_stmt *statement = prepared(sql, texts);
    bool found = has_row(statement);
    sqlite3_finalize(statement);
    return found;
}

/* Copy a text column. A store may hold any type: only plain texts are understood. */
static void copy_column(char *into, size_t room, sqlite3_stmt *row, int column) {
    const char *text = (const char *)sqlite3_column_text(row, column);
    size_t length = (size_t)sqlite3_column_bytes(row, column);
    if (sqlite3_column_type(row, column) != SQLITE_TEXT || length >= room || !is_plain(text, length))
        hand_over("an odd value in the store");
    memcpy(into, text, length);
    into[length] = 0;
}

static void open_store(const char *path) {
    /* The path is plain, but `%` and `#` mean something in an address, `?` is not plain. */
    char address[3 * PATH_BYTES] = "file:";
    size_t length = strlen(address);
    for (; *path; path++)
        length += (size_t)snprintf(address + length, 4, *path == '%' || *path == '#' ? "%%%02X" : "%c", *path);
    strcpy(address + length, "?mode=ro");
    sqlite3_config(SQLITE_CONFIG_SINGLETHREAD);
    if (sqlite3_open_v2(address, &store, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX, NULL) != SQLITE_OK)
        hand_over("the store cannot be opened");
    sqlite3_busy_timeout(store, 0);
    if (sqlite3_exec(store, "BEGIN", NULL, NULL, NULL) != SQLITE_OK)
        hand_over("no transaction");
    sqlite3_stmt *version = prepared("PRAGMA user_version", (const char *const[]){NULL});
    if (!has_row(version) || sqlite3_column_int(version, 0) != 1)
        hand_over("another version of the store");
    sqlite3_finalize(version);
}

struct session {
    char id[NAME_BYTES];
    char folder[PATH_BYTES];
    char root[PATH_BYTES];
    char file_root[PATH_BYTES];
};

static void find_session(const struct call *call, struct session *session) {
    sqlite3_stmt *row = prepared("SELECT i.id, i.directory, i.root, i.file_root FROM swarm_sessions s"
                                 " JOIN instances i ON i.id = s.instance_id WHERE s.runtime = ?1 AND s.session_id = ?2",
                                 (const char *const[]){call->runtime, call->session, NULL});
    if (!has_row(row))
        hand_over("a session that the store does not know");
    copy_column(session->id, sizeof session->id, row, 0);
    copy_column(session->folder, sizeof session->folder, row, 1);
    copy_column(session->root, sizeof session->root, row, 2);
    copy_column(session->file_root, sizeof session->file_root, row, 3);
    sqlite3_finalize(row);
}

/* The fence: a session that began where `.git` is a file. */
static void check_root(const struct session *session) {
    char git[PATH_BYTES + 8];
    struct stat found;
    join(git, sizeof git, session->root, "", "/.git");
    if (*session->root && stat(git, &found) == 0 && S_ISREG(found.st_mode))
        hand_over("a session in a linked work tree");
}

/* Words and leases of the session itself. */
static void check_news(const char *id) {
    const char *const own[] = {id, NULL};
    if (finds("SELECT 1 FROM swarm_notices WHERE instance_id = ?1 LIMIT 1", own))
        hand_over("news for the session");
    if (finds("SELECT 1 FROM messages m WHERE m.scope = (SELECT scope FROM instances WHERE id = ?1) AND m.recipient = ?1"
              " AND m.read = 0 AND NOT EXISTS (SELECT 1 FROM swarm_notices n WHERE n.message_id = m.id) LIMIT 1",
              own))
        hand_over("mail for the session");
    if (finds("SELECT 1 FROM context WHERE type = 'lock' AND ttl IS NOT NULL AND mode IS NOT 'auto' AND instance_id = ?1"
              " LIMIT 1",
              own))
        hand_over("a lease of the session");
}

/* Another session may know the session's folder by another path, or its files lie elsewhere. */
static void check_mounts(const struct session *session) {
    struct stat own, other;
    bool exists;
    if (*session->file_root && (strcmp(session->file_root, session->folder) != 0 || !is_normal(session->folder) ||
                                !has_no_links(session->folder, &own, &exists)))
        hand_over("files of the session lie elsewhere");
    if (!*session->root || stat(session->root, &own) != 0)
        return;
    sqlite3_stmt *roots = prepared("SELECT DISTINCT root FROM instances LIMIT 200", (const char *const[]){NULL});
    while (has_row(roots)) {
        char root[PATH_BYTES];
        copy_column(root, sizeof root, roots, 0);
        if (*root && strcmp(root, session->root) != 0 && stat(root, &other) == 0 && own.st_dev == other.st_dev &&
            own.st_ino == other.st_ino)
            hand_over("a folder with two paths");
    }
    sqlite3_finalize(roots);
}

static bool others_hold(const char *id) {
    const char *const own[] = {id, NULL};
    return finds("SELECT 1 FROM context WHERE type = 'lock' AND instance_id < ?1 LIMIT 1", own) ||
           finds("SELECT 1 FROM context WHERE type = 'lock' AND instance_id > ?1 LIMIT 1", own) ||
           finds("SELECT 1 FROM context WHERE type = 'lock' AND instance_id = ?1 AND agent IS NOT NULL LIMIT 1", own);
}

/* Locks that are found by more than their path. */
static void check_odd_locks(void) {
    static const char *const none[] = {NULL};
    if (finds("SELECT 1 FROM context WHERE type = 'lock' AND path_key >= 'glob:' AND path_key < 'glob;' LIMIT 1", none))
        hand_over("a lock on a pattern");
    if (finds("SELECT 1 FROM context WHERE type = 'lock' AND repository IS NOT NULL LIMIT 1", none))
        hand_over("a lock for all work trees");
    if (finds("SELECT 1 FROM context WHERE type = 'lock' AND path_key IS NULL LIMIT 1", none))
        hand_over("a lock without a key");
}

/* Tell if another has a lock on the file, or on a folder over it. */
static bool is_locked(const char *id, const char *path) {
    char key[PATH_BYTES], lower[PATH_BYTES + 8];
    join(key, sizeof key, path, "", "");
    for (char *slash = key + strlen(key); slash && slash != key; slash = strrchr(key, '/')) {
        *slash = 0;
        if (!*key)
            break;
        lower_key(lower, sizeof lower, key);
        const char *const keys[] = {key, lower, id, NULL};
        if (finds("SELECT 1 FROM context WHERE type = 'lock' AND path_key IN (?1, ?2)"
                  " AND NOT (instance_id = ?3 AND agent IS NULL) LIMIT 1",
                  keys) ||
            finds("SELECT 1 FROM context WHERE type = 'lock' AND path_key IS NOT file AND file IN (?1, ?2)"
                  " AND NOT (instance_id = ?3 AND agent IS NULL) LIMIT 1",
                  keys))
            return true;
    }
    return false;
}

/* Tell if another has a lock in this checkout, or on a folder over it. */
static bool are_near(const char *id, const char *top) {
    char lower[PATH_BYTES + 8], begin[PATH_BYTES + 16], end[PATH_BYTES + 16];
    lower_key(lower, sizeof lower, top);
    const char *const tops[] = {top, lower, NULL};
    for (const char *const *one = tops; *one; one++) {
        join(begin, sizeof begin, *one, "/", "");
        join(end, sizeof end, *one, "0", "");
        if (finds("SELECT 1 FROM context WHERE type = 'lock' AND path_key >= ?1 AND path_key < ?2"
                  " AND (instance_id <> ?3 OR agent IS NOT NULL) LIMIT 1",
                  (const char *const[]){begin, end, id, NULL}))
            return true;
    }
    return is_locked(id, top);
}

/* Return if no word for this session, and no lock of another on a file that it names, concerns the call. */
void ask_store(const struct call *call, const struct ground *ground, struct locks *locks) {
    static struct session session;
    open_store(ground->store);
    find_session(call, &session);
    check_root(&session);
    check_news(session.id);
    strcpy(locks->session, session.id);
    locks->of_others = others_hold(session.id);
    locks->any = locks->of_others || finds("SELECT 1 FROM context WHERE type = 'lock' LIMIT 1", (const char *const[]){NULL});
    if (locks->of_others) {
        check_mounts(&session);
        check_odd_locks();
        for (size_t place = 0; place < call->count; place++)
            if (is_locked(session.id, call->targets[place].path))
                hand_over("a lock of another");
        locks->are_near = are_near(session.id, ground->top);
        if (locks->are_near && locks->wants_near)
            list_near_locks(store, session.id, ground->top, locks);
    }
    sqlite3_close_v2(store);
}
