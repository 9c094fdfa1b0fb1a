/* Locks of others in the call's checkout, as a record of an edit names them. */
#include "swarm_check.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sqlite3.h"

/* The start of the process, as the system counts it; false if there is none, or it has ended. */
static bool has_started(long pid, const char *start) {
    char path[64], stat[4096];
    snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    int handle = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = handle < 0 ? -1 : read(handle, stat, sizeof stat - 1);
    if (handle >= 0)
        close(handle);
    if (length <= 0)
        return false;
    stat[length] = 0;
    char *field = strrchr(stat, ')');
    if (!field || field[1] != ' ' || strchr("ZX", field[2]))
        return false;
    field += 2;
    for (int count = 0; count < 19; count++) {
        field = strchr(field, ' ');
        if (!field)
            return false;
        field++;
    }
    return !strncmp(field, start, strlen(start)) && field[strlen(start)] == ' ';
}

/* Tell if the host of a session is this machine since its last start. */
static bool is_this_boot(const char *host) {
    char boot[80];
    int handle = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t length = handle < 0 ? -1 : read(handle, boot, sizeof boot - 1);
    if (handle >= 0)
        close(handle);
    if (length <= 1)
        return false;
    boot[length] = 0;
    boot[strcspn(boot, " \n")] = 0;
    const char *part = strchr(host, '/');
    return part && !strncmp(part + 1, boot, strlen(boot)) && part[1 + strlen(boot)] == '/';
}

/* Tell if the process in these columns certainly runs (``process.gone``); none at all is no proof of its end. */
static bool runs(sqlite3_stmt *row, int pid_column, const char *host) {
    long pid = (long)sqlite3_column_int64(row, pid_column);
    const char *start = (const char *)sqlite3_column_text(row, pid_column + 1);
    if (!*host || !pid || !start || !*start)
        return true;
    return is_this_boot(host) && has_started(pid, start);
}

static const char *text_of(sqlite3_stmt *row, int column) {
    const unsigned char *text = sqlite3_column_text(row, column);
    return text ? (const char *)text : "";
}

/* Return if the lock's session certainly lives, and has hooks. */
static void check_holder(sqlite3_stmt *row) {
    const char *host = text_of(row, 7), *runtime = text_of(row, 16), *agent = text_of(row, 4);
    double now = (double)now_ns() / 1e9, seen = sqlite3_column_double(row, 13), lease = sqlite3_column_double(row, 14);
    if (sqlite3_column_type(row, 13) == SQLITE_NULL || (lease > 0 && seen + lease < now + 2))
        hand_over("a lock of a session that may have gone");
    if (!runs(row, 8, host) || (!strcmp(text_of(row, 12), "idle") && !runs(row, 10, host)))
        hand_over("a lock of a client that may have gone");
    if (!strcmp(runtime, "hold") || !strcmp(runtime, "terminal") || !strcmp(runtime, "mcp") || !strncmp(agent, "hold:", 5))
        hand_over("a lock of a holder without hooks");
    if (sqlite3_column_type(row, 6) != SQLITE_NULL || sqlite3_column_type(row, 15) != SQLITE_NULL)
        hand_over("a lease, or a pattern");
}

/* Copy a text of the row; NULL is an empty one. */
static void copy_text(char *into, size_t room, sqlite3_stmt *row, int column) {
    const char *text = text_of(row, column);
    int type = sqlite3_column_type(row, column);
    if (type != SQLITE_TEXT && type != SQLITE_NULL)
        hand_over("an odd value in the store");
    if (strlen(text) >= room)
        hand_over("a long text in the store");
    for (const char *sign = text; *sign; sign++)
        if (*sign < ' ' || *sign > '~')
            hand_over("a text in the store that is not ASCII");
    strcpy(into, text);
}

/* Collapse the blanks of a note, as Python does, and cut it. */
static void shorten(char *note) {
    char *into = note;
    for (const char *at = note; *at; at++)
        if (*at != ' ' || (into != note && into[-1] != ' '))
            *into++ = *at;
    if (into != note && into[-1] == ' ')
        into--;
    *into = 0;
    if (strlen(note) > 200)
        note[200] = 0;
}

/* List the locks of others below `top`, in the order of ``sqlite.StoreReader.locks_under``. */
void list_near_locks(sqlite3 *store, const char *id, const char *top, struct locks *locks) {
    static const char sql[] =
        "SELECT c.file, c.path_key, c.instance_id, i.label, c.agent, c.content, c.ttl, s.host, s.client_pid, s.client_start,"
        " s.terminal_pid, s.terminal_start, s.state, s.last_seen, s.lease_seconds, c.pattern, s.runtime"
        " FROM context c CROSS JOIN instances i ON i.id = c.instance_id"
        " LEFT JOIN swarm_sessions s ON s.instance_id = c.instance_id"
        " WHERE c.type = 'lock' AND c.path_key >= ?1 AND c.path_key < ?2"
        " AND (c.instance_id <> ?3 OR c.agent IS NOT NULL AND c.agent <> '') LIMIT 40";
    char begin[PATH_BYTES + 8], end[PATH_BYTES + 8];
    sqlite3_stmt *row;
    int answer;
    join(begin, sizeof begin, top, "/", "");
    join(end, sizeof end, top, "0", "");
    if (sqlite3_prepare_v2(store, sql, -1, &row, NULL) != SQLITE_OK ||
        sqlite3_bind_text(row, 1, begin, -1, SQLITE_STATIC) != SQLITE_OK ||
        sqlite3_bind_text(row, 2, end, -1, SQLITE_STATIC) != SQLITE_OK ||
        sqlite3_bind_text(row, 3, id, -1, SQLITE_STATIC) != SQLITE_OK)
        hand_over("an older store");
    for (locks->count = 0; (answer = sqlite3_step(row)) == SQLITE_ROW; locks->count++) {
        if (locks->count == MOST_LOCKS)
            hand_over("many locks");
        struct lock *lock = &locks->near[locks->count];
        if (!strcmp(text_of(row, 2), id))
            hand_over("a lock of an agent of the session");
        check_holder(row);
        copy_text(lock->file, sizeof lock->file, row, 0);
        copy_text(lock->holder, sizeof lock->holder, row, 2);
        copy_text(lock->label, sizeof lock->label, row, 3);
        copy_text(lock->agent, sizeof lock->agent, row, 4);
        copy_text(lock->note, sizeof lock->note, row, 5);
        shorten(lock->note);
        if (strcmp(lock->file, text_of(row, 1)) != 0)
            hand_over("a lock with another key");
    }
    if (answer != SQLITE_DONE)
        hand_over("the store is busy, or has a fault");
    sqlite3_finalize(row);
}
