/* The journals of other sessions: does any of them concern the file of the call?
 *
 * Python parses commands that ran unread (``unread``) if they may have written the file: those that name it, and those
 * that stand for many files. A file in the folder `settled` says up to which byte of a journal Python has parsed the
 * latter, and lists the files that they wrote. */
#include "swarm_check.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define RECENT_NS (3 * NS)     /* Python looks back two seconds for folders that are being cleared */
#define ASIDE_NS (130 * NS)    /* Python looks back 120 seconds for commits with hooks */
#define SETTLED_BYTES (64 * 1024)

static char journal[JOURNAL_BYTES];

/* The kinds of entries that concern only the file that they name. */
static const char *const kinds[] = {"session", "wrote", "saw",   "part",  "met",     "told",  "merged", "is",
                                    "over",    "will",  "wont",  "spares", "back",   "moved", "runs",   "commits",
                                    "stash",   "far",   "fence", "along", "heard",   "before", "kept",   "lives",
                                    NULL};
/* Those of them that tell of a write, by which the file may hold another's change. */
static const char *const writes[] = {"wrote", "will", "wont", NULL};

/* Marks of a command that may write files which it does not name; as ``unread._STAND_FOR_MANY``. */
static const char *const wide[] = {"*",     "?",   "[",   "{",    "$",      "`",      "find ",
                                   "xargs", "cp ", "mv ", "tar ", "unzip ", "rsync ", NULL};

/* Programs that only look, unless the command goes on; as ``unread._LOOK`` and ``unread._GO_ON``. */
static const char *const looks[] = {"cat",  "head",  "tail", "nl",         "less",     "more",    "ls",
                                    "wc",   "grep",  "egrep", "fgrep",     "rg",       "pwd",     "stat",
                                    "file", "diff",  "jq",   "git status", "git diff", "git log", "git show",
                                    "git blame", NULL};
static const char *const goes_on[] = {">", ";", "|", "&", "\\n", "$", "`", "--output", NULL};

/* A file of the call by its keys, as entries and commands name it. */
struct wanted {
    char keys[2][PATH_BYTES + 8];
    char names[2][PATH_BYTES + 8];
    enum how how;
    bool is_named;       /* in the journal that is read */
    struct known known;  /* the session's own newest write of it */
};

static struct wanted all_wanted[MOST_TARGETS];
static size_t wanted_count;
static int64_t present_ns; /* the time of this look */

/* The part of a journal whose wide commands Python has parsed. */
struct settled {
    long long bytes;
    size_t length;
    char text[SETTLED_BYTES];
};

static bool contains(struct text text, const char *part) {
    return memmem(text.at, text.length, part, strlen(part)) != NULL;
}

static bool contains_any(struct text text, const char *const *parts) {
    for (; *parts; parts++)
        if (contains(text, *parts))
            return true;
    return false;
}

static bool is_one_of(const char *at, size_t length, const char *const *words) {
    for (; *words; words++)
        if (strlen(*words) == length && !memcmp(*words, at, length))
            return true;
    return false;
}

/* Tell if `data` has the key behind a NUL, and a NUL or a line's end behind the key. */
static bool names_key(struct text data, const char *key) {
    size_t length = strlen(key);
    for (const char *at = data.at, *end = data.at + data.length;
         (at = memmem(at, (size_t)(end - at), key, length)) != NULL; at++)
        if (at > data.at && !at[-1] && at + length < end && (!at[length] || at[length] == '\n'))
            return true;
    return false;
}

/* The command of an entry `ran`: the text behind its last NUL. */
static struct text command_of(struct text line) {
    size_t begin = line.length;
    while (begin && line.at[begin - 1])
        begin--;
    return (struct text){line.at + begin, line.length - begin};
}

static size_t word_length(const char *at, const char *end) {
    const char *blank = memchr(at, ' ', (size_t)(end - at));
    return blank ? (size_t)(blank - at) : (size_t)(end - at);
}

/* Tell if a command plainly only looks (``unread.looks_only``). */
bool looks_only(struct text command) {
    const char *end = command.at + command.length;
    size_t length = word_length(command.at, end);
    if (length == 3 && !memcmp(command.at, "git", 3) && length < command.length)
        length += 1 + word_length(command.at + 4, end);
    return is_one_of(command.at, length, looks) && !contains_any(command, goes_on);
}

static void check_command(struct text line, int64_t at_ns, long long place, const struct settled *settled) {
    int64_t age_ns = present_ns - at_ns;
    if (age_ns > DAY_NS + 60 * NS || looks_only(command_of(line)))
        return;
    if (age_ns < RECENT_NS)
        hand_over("a command of another just now");
    for (size_t which = 0; which < 2 * wanted_count; which++)
        if (contains(line, all_wanted[which / 2].names[which % 2]))
            hand_over("a command of another that names the file");
    if (contains_any(line, wide) && place >= settled->bytes)
        hand_over("a command of another that may write any file");
}

/* The time in front of an entry. */
static bool read_time(struct text line, int64_t *at_ns, size_t *length) {
    *at_ns = 0;
    for (*length = 0; *length < line.length && *length < 19; ++*length) {
        char sign = line.at[*length];
        if (sign < '0' || sign > '9')
            break;
        if (*at_ns > (INT64_MAX - 9) / 10)
            return false;
        *at_ns = *at_ns * 10 + (sign - '0');
    }
    return *length > 0 && *length < line.length && line.at[*length] == ' ';
}

/* Return if the session has seen the write of an entry that names a file of the call. */
static void check_named(struct text line, int64_t at_ns, bool is_write) {
    const char *key = memchr(line.at, 0, line.length);
    struct text rest = {key + 1, line.length - (size_t)(key - line.at) - 1}, text = {"", 0};
    const char *end = memchr(rest.at, 0, rest.length);
    if (end) {
        text = (struct text){end + 1, rest.length - (size_t)(end - rest.at) - 1};
        rest.length = (size_t)(end - rest.at);
    }
    for (size_t place = 0; place < wanted_count; place++) {
        const struct wanted *wanted = &all_wanted[place];
        if (!wanted->is_named || strlen(wanted->keys[0]) != rest.length || memcmp(wanted->keys[0], rest.at, rest.length))
            continue;
        bool is_alike = text.length == strlen(wanted->known.state) && !memcmp(text.at, wanted->known.state, text.length);
        if (wanted->how != EDIT || (is_write && (at_ns > wanted->known.at_ns || is_alike)))
            hand_over("a write of another that the session has not seen");
    }
}

static void check_line(struct text line, long long place, const struct settled *settled) {
    int64_t at_ns;
    size_t length;
    if (!line.length)
        return;
    if (!memchr(line.at, 0, line.length) || !read_time(line, &at_ns, &length))
        hand_over("a torn line in a journal");
    const char *kind = line.at + length + 1;
    size_t kind_length = word_length(kind, line.at + line.length);
    if (is_one_of(kind, kind_length, kinds)) {
        if (is_one_of(kind, kind_length, (const char *const[]){"far", NULL}))
            hand_over("a write on another machine");
        check_named(line, at_ns, is_one_of(kind, kind_length, writes));
        return;
    }
    int64_t age_ns = present_ns - at_ns;
    if (kind_length == 3 && !memcmp(kind, "ran", 3)) {
        check_command(line, at_ns, place, settled);
    } else if (kind_length == 6 && !memcmp(kind, "clears", 6)) {
        if (age_ns < RECENT_NS)
            hand_over("a folder that is being cleared");
    } else if (kind_length == 5 && !memcmp(kind, "aside", 5)) {
        if (age_ns < ASIDE_NS)
            hand_over("a commit with hooks");
    } else {
        hand_over("an unknown kind of entry");
    }
}

/* Read the first line of a journal: its time names the file in `settled`, its text a folder of the place. */
static void read_first_line(const struct ground *ground, struct text data, struct settled *settled) {
    size_t blank = data.length && data.at[0] == '\n' ? 1 : 0, length;
    struct text line = {data.at + blank, data.length - blank};
    const char *end = memchr(line.at, '\n', line.length);
    int64_t at_ns;
    if (!end)
        hand_over("a journal without a line");
    line.length = (size_t)(end - line.at);
    if (!read_time(line, &at_ns, &length) || line.length - length < 9 || memcmp(line.at + length, " session ", 9) != 0)
        hand_over("a journal without its first line");
    struct text top = command_of(line);
    if (top.length && (top.length != strlen(ground->top) || memcmp(top.at, ground->top, top.length) != 0)) {
        char folder[PATH_BYTES];
        struct stat theirs, ours;
        if (top.length >= sizeof folder || !is_plain(top.at, top.length))
            hand_over("a journal of an odd folder");
        memcpy(folder, top.at, top.length);
        folder[top.length] = 0;
        if (stat(ground->top, &ours) != 0)
            hand_over("the folder has gone");
        if (stat(folder, &theirs) == 0 && ours.st_dev == theirs.st_dev && ours.st_ino == theirs.st_ino)
            hand_over("a folder with two paths");
    }
    char path[PATH_BYTES];
    print_path(path, sizeof path, "%s/settled/%s/%lld", ground->state, ground->place, (long long)at_ns);
    settled->bytes = 0;
    if (!read_file(path, settled->text, sizeof settled->text, &settled->length))
        return;
    for (size_t at = 0; at < settled->length && settled->text[at] != '\n'; at++) {
        if (at > 9 || settled->text[at] < '0' || settled->text[at] > '9')
            hand_over("an odd file of settled commands");
        settled->bytes = settled->bytes * 10 + (settled->text[at] - '0');
    }
}

static void check_journal(const struct ground *ground, const char *path) {
    static struct settled settled;
    size_t length;
    if (!read_file(path, journal, sizeof journal, &length) || !length)
        return; /* removed just now, or only being made: then it has no entry about the file */
    struct text data = {journal, length};
    read_first_line(ground, data, &settled);
    struct text settled_keys = {settled.text, settled.length};
    for (size_t place = 0; place < wanted_count; place++) {
        struct wanted *wanted = &all_wanted[place];
        wanted->is_named = names_key(data, wanted->keys[0]);
        if (names_key(data, wanted->keys[1]))
            hand_over("an entry of another where letter case does not count");
        if (names_key(settled_keys, wanted->keys[0]) || names_key(settled_keys, wanted->keys[1]))
            hand_over("a settled command of another wrote the file");
    }
    for (size_t begin = 0; begin < length;) {
        const char *end = memchr(journal + begin, '\n', length - begin);
        size_t line_end = end ? (size_t)(end - journal) : length;
        check_line((struct text){journal + begin, line_end - begin}, (long long)begin, &settled);
        begin = line_end + 1;
    }
}

/* Return if no session has moved HEAD since this session was told of it (``head.is_news``). */
void check_head(const struct ground *ground) {
    char moved[2 * PATH_BYTES], noted[2 * PATH_BYTES];
    struct stat move, note;
    unsigned mark = (unsigned)checksum(ground->top, strlen(ground->top), false);
    print_path(moved, sizeof moved, "%s/heads/%s/moved.%08x", ground->state, ground->place, mark);
    print_path(noted, sizeof noted, "%s/heads/%s/%s.%08x", ground->state, ground->place, ground->name, mark);
    if (stat(moved, &move) != 0 || stat(noted, &note) != 0) {
        if (errno != ENOENT)
            hand_over("notes about HEAD cannot be read");
        return; /* nobody has moved it, or the session knows no HEAD yet */
    }
    if (note.st_mtim.tv_sec < move.st_mtim.tv_sec ||
        (note.st_mtim.tv_sec == move.st_mtim.tv_sec && note.st_mtim.tv_nsec <= move.st_mtim.tv_nsec))
        hand_over("a session has moved HEAD");
}

static void want(const struct call *call) {
    for (wanted_count = 0; wanted_count < call->count; wanted_count++) {
        struct wanted *wanted = &all_wanted[wanted_count];
        const struct target *target = &call->targets[wanted_count];
        join(wanted->keys[0], sizeof wanted->keys[0], target->path, "", "");
        lower_key(wanted->keys[1], sizeof wanted->keys[1], target->path);
        for (int which = 0; which < 2; which++)
            strcpy(wanted->names[which], strrchr(wanted->keys[which], '/') + 1);
        wanted->how = target->how;
        wanted->known = known_write(target->path);
    }
}

/* Return if no journal of another session concerns the call's files, and no session has moved HEAD. */
void look_at_others(const struct call *call, const struct ground *ground) {
    char path[2 * PATH_BYTES];
    present_ns = now_ns();
    want(call);
    check_head(ground);
    DIR *folder = opendir(ground->folder);
    if (!folder)
        hand_over("no journals");
    struct dirent *entry;
    errno = 0;
    while ((entry = readdir(folder)) != NULL) {
        const char *name = entry->d_name;
        size_t length = strlen(name), own = strlen(ground->name);
        bool is_own = !strncmp(name, ground->name, own) && (!name[own] || !strcmp(name + own, ".1"));
        if (is_own || !strcmp(name, ".") || !strcmp(name, ".."))
            continue;
        if (length > 7 && !strcmp(name + length - 7, ".agents"))
            continue;
        join(path, sizeof path, ground->folder, "/", name);
        check_journal(ground, path);
        errno = 0;
    }
    if (errno)
        hand_over("the journals cannot be listed");
    closedir(folder);
}
