/* The states that the session's last writes have left (swarm_hook_core/traces/seen.py, `note_what_was_left`). */
#include "swarm_check.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define TAIL_BYTES 8192      /* at the end of the journal, which are searched */
#define HASHED_BYTES (1 << 20) /* of a file; larger ones have no digest */
#define MOST_WRITES 64

static char own[JOURNAL_BYTES];
static size_t own_length;

static bool is_text(struct text text, const char *wanted) {
    return text.length == strlen(wanted) && !memcmp(text.at, wanted, text.length);
}

/* Take the next word of a head off `rest`; an empty word is no word. */
static bool take_word(struct text *rest, struct text *word, bool is_last) {
    const char *blank = memchr(rest->at, ' ', rest->length);
    if ((blank == NULL) != is_last)
        return false;
    word->at = rest->at;
    word->length = blank ? (size_t)(blank - rest->at) : rest->length;
    size_t taken = word->length + (blank ? 1 : 0);
    rest->at += taken;
    rest->length -= taken;
    return true;
}

/* Parse a line; false for a torn one. An odd number goes to Python, which knows more forms of them. */
bool parse_entry(struct text line, struct entry *entry) {
    const char *key = memchr(line.at, 0, line.length);
    if (!key)
        return false;
    struct text head = {line.at, (size_t)(key - line.at)}, rest = {key + 1, line.length - (size_t)(key - line.at) - 1};
    struct text number;
    if (!take_word(&head, &number, false) || !take_word(&head, &entry->kind, false) ||
        !take_word(&head, &entry->agent, false) || !take_word(&head, &entry->tool, true))
        return false;
    if (!number.length || number.length > 19)
        hand_over("an odd number in a journal");
    entry->at_ns = 0;
    for (size_t place = 0; place < number.length; place++) {
        if (number.at[place] < '0' || number.at[place] > '9')
            hand_over("an odd number in a journal");
        if (entry->at_ns > (INT64_MAX - 9) / 10)
            hand_over("an odd number in a journal");
        entry->at_ns = entry->at_ns * 10 + (number.at[place] - '0');
    }
    const char *text = memchr(rest.at, 0, rest.length);
    entry->key = (struct text){rest.at, text ? (size_t)(text - rest.at) : rest.length};
    entry->text = (struct text){"", 0};
    if (text)
        entry->text = (struct text){text + 1, rest.length - entry->key.length - 1};
    return true;
}

static bool contains(struct text text, const char *part) {
    return memmem(text.at, text.length, part, strlen(part)) != NULL;
}

/* Take the last line off `rest`; false if there is none left. */
bool take_last_line(struct text *rest, struct text *line) {
    if (!rest->at)
        return false;
    size_t begin = rest->length;
    while (begin && rest->at[begin - 1] != '\n')
        begin--;
    *line = (struct text){rest->at + begin, rest->length - begin};
    if (begin)
        rest->length = begin - 1;
    else
        rest->at = NULL;
    return true;
}

static void hash_file(const char *path, const struct stat *seen, char digest[17]) {
    static unsigned char data[HASHED_BYTES + 1];
    struct stat before, after;
    int handle = open_resolved(path);
    size_t length = 0;
    if (handle < 0 || fstat(handle, &before) != 0)
        hand_over("an unreadable file");
    while (length < sizeof data) {
        ssize_t got = read(handle, data + length, sizeof data - length);
        if (got < 0)
            hand_over("an unreadable file");
        if (got == 0)
            break;
        length += (size_t)got;
    }
    if (fstat(handle, &after) != 0 || after.st_ctim.tv_sec != seen->st_ctim.tv_sec ||
        after.st_ctim.tv_nsec != seen->st_ctim.tv_nsec || after.st_ino != seen->st_ino ||
        (size_t)after.st_size != length || (size_t)seen->st_size != length)
        hand_over("a file that is being written");
    close(handle);
    digest_of(digest, data, length);
}

/* Collect the present state of the file at `path`, as ``watching.snapshot.full`` prints it; keep its content. */
static void note_left(const struct call *call, const struct ground *ground, const char *path) {
    struct stat found;
    char text[160], digest[17] = "";
    int64_t at_ns = now_ns();
    keep_look(ground, path, at_ns);
    if (lstat(path, &found) != 0) {
        add_entries_of(at_ns, "is", call, path, "0 0 0 0 0 ");
        return;
    }
    if (!S_ISREG(found.st_mode))
        hand_over("an own write that is no ordinary file");
    if (found.st_size <= HASHED_BYTES)
        hash_file(path, &found, digest);
    snprintf(text, sizeof text, "%u %lld %lld %lld %llu %s", (unsigned)found.st_mode, (long long)found.st_size,
             (long long)time_of(found.st_mtim),
             (long long)time_of(found.st_ctim), (unsigned long long)found.st_ino, digest);
    add_entries_of(at_ns, "is", call, path, text);
}

/* Note the file of a write without a result, if the call is over or has changed the file. */
static void note_write(const struct call *call, const struct ground *ground, const struct entry *entry, int64_t last_ns) {
    char path[PATH_BYTES], state[160];
    struct stat found;
    bool exists;
    if (entry->key.length >= sizeof path)
        hand_over("a long path in the journal");
    memcpy(path, entry->key.at, entry->key.length);
    path[entry->key.length] = 0;
    if (strlen(path) != entry->key.length || !is_normal(path) || !has_no_links(path, &found, &exists) ||
        strstr(path, "/node_modules/") || strstr(path, "/.venv/") || strstr(path, "/__pycache__/") ||
        strstr(path, "/.git/") || !is_in_place(ground, path))
        hand_over("an odd path in the journal");
    state_of(state, sizeof state, path);
    bool is_over = is_text(entry->agent, "-") && entry->at_ns <= last_ns;
    if (is_over || !is_text(entry->text, state))
        note_left(call, ground, path);
}

/* Collect the states of the session's last writes, the newest first. */
static void note_writes(const struct call *call, const struct ground *ground, struct text tail) {
    static struct text noted[MOST_WRITES];
    size_t count = 0;
    int64_t last_ns = now_ns() - NS;
    struct text line;
    while (take_last_line(&tail, &line)) {
        struct entry entry;
        if ((!contains(line, " wrote ") && !contains(line, " is ")) || !parse_entry(line, &entry))
            continue;
        bool is_noted = false;
        for (size_t place = 0; place < count && !is_noted; place++)
            is_noted = noted[place].length == entry.key.length &&
                       !memcmp(noted[place].at, entry.key.at, entry.key.length);
        if (is_noted)
            continue;
        if (count == MOST_WRITES)
            hand_over("many writes");
        /* Python leaves out an entry that it cannot decode. */
        if (!is_plain(entry.key.at, entry.key.length))
            hand_over("an odd key in the journal");
        noted[count++] = entry.key;
        if (is_text(entry.kind, "wrote") && entry.key.length && entry.key.at[0] == '/')
            note_write(call, ground, &entry, last_ns);
    }
}

/* Tell if the newest entry of the session itself is a command of an earlier call. */
static bool has_open_command(struct text tail) {
    int64_t last_ns = now_ns() - NS;
    struct text line;
    while (take_last_line(&tail, &line)) {
        const char *key = memchr(line.at, 0, line.length);
        struct text head = {line.at, key ? (size_t)(key - line.at) : line.length}, words[4];
        if (!take_word(&head, &words[0], false) || !take_word(&head, &words[1], false) ||
            !take_word(&head, &words[2], false) || !take_word(&head, &words[3], true))
            continue;
        struct entry entry;
        if (!is_text(words[2], "-") || !words[0].length || words[0].at[0] < '0' || words[0].at[0] > '9')
            continue;
        if (!parse_entry(line, &entry))
            hand_over("a torn line in the journal");
        return (is_text(entry.kind, "ran") || is_text(entry.kind, "runs")) && entry.at_ns <= last_ns;
    }
    return false;
}

/* The journal's first line names the folder of its place: it must be the one of this call. */
static void check_first_line(const struct ground *ground, struct text data) {
    const char *start = memmem(data.at, data.length, " session ", 9);
    if (!start)
        return; /* as Python: the entries stay as they are */
    const char *end = memchr(start, '\n', (size_t)(data.at + data.length - start));
    const char *begin = start;
    while (begin > data.at && begin[-1] != '\n')
        begin--;
    struct entry entry;
    struct text line = {begin, (size_t)((end ? end : data.at + data.length) - begin)};
    if (!parse_entry(line, &entry) || (entry.text.length && !is_text(entry.text, ground->top)))
        hand_over("a journal of another folder");
}

/* Read the session's own journal, the older part first; none is an empty one. */
void read_own(const struct ground *ground) {
    char older[PATH_BYTES + 8];
    size_t length = 0, more = 0;
    join(older, sizeof older, ground->journal, ".1", "");
    read_file(older, own, sizeof own, &length);
    read_file(ground->journal, own + length, sizeof own - length, &more);
    own_length = length + more;
    struct text data = {own, own_length};
    check_first_line(ground, data);
    if (contains(data, " aside "))
        hand_over("a commit with hooks");
    if (memmem(own, own_length, "\0wrote\n", 7))
        hand_over("a withdrawn write");
}

/* Return the session's own journal, once it is read. */
struct text own_entries(void) { return (struct text){own, own_length}; }

/* Collect what the session's own last calls have left. */
void note_own_files(const struct call *call, const struct ground *ground) {
    struct text tail = {own, own_length};
    if (own_length > TAIL_BYTES)
        tail = (struct text){own + own_length - TAIL_BYTES, TAIL_BYTES};
    note_writes(call, ground, tail);
    if (has_open_command(tail))
        add_entry(now_ns(), "over", call, call->folder, "");
}

/* Tell if the file at `path` is as the text of an entry `is` says, by its times. */
static bool is_as_left(const char *path, struct text text) {
    char now[160];
    struct stat found;
    if (lstat(path, &found) != 0)
        snprintf(now, sizeof now, "0 0 0 0 0 ");
    else
        snprintf(now, sizeof now, "%u %lld %lld %lld %llu ", (unsigned)found.st_mode, (long long)found.st_size,
                 (long long)time_of(found.st_mtim), (long long)time_of(found.st_ctim), (unsigned long long)found.st_ino);
    return text.length >= strlen(now) && !memcmp(text.at, now, strlen(now));
}

/* Return the session's newest write of the file at `path`, if the session has seen all that was written before it
 * (``seen.has_seen``); else one of time 0. */
struct known known_write(const char *path) {
    struct known known = {0, ""};
    struct text rest = {own, own_length}, line, left = {NULL, 0};
    struct entry entry;
    char state[160];
    int64_t left_ns = 0;
    if (IGNORES_CASE || contains(rest, " merged "))
        return known;
    state_of(state, sizeof state, path);
    while (take_last_line(&rest, &line)) {
        if (!contains(line, path) || !parse_entry(line, &entry) || !is_text(entry.key, path))
            continue;
        if (is_text(entry.kind, "is") && !left.at) {
            left = entry.text;
            left_ns = entry.at_ns;
        }
        if (is_text(entry.kind, "saw") || is_text(entry.tool, "swarm:undo"))
            return known; /* Python knows more of looks and of undos */
        if (!is_text(entry.kind, "wrote") || is_text(entry.text, state))
            continue; /* a write that was not made */
        bool is_left = !left.at || left_ns < entry.at_ns || is_as_left(path, left);
        if (!is_left || entry.text.length >= sizeof known.state)
            return known;
        memcpy(known.state, entry.text.at, entry.text.length);
        known.at_ns = entry.at_ns;
        return known;
    }
    return known;
}
