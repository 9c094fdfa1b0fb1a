/* The session's own journal, and the folder of all journals of the repository (swarm_hook_core/traces/journal.py). */
#include "swarm_check.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LIMIT_BYTES (256 * 1024 - TEXT_BYTES)  /* of a journal; Python puts a longer one aside */

static char entries[TEXT_BYTES]; /* of this call, still to be appended */
static size_t entries_length;

static void print_entry(const char *format, ...) {
    va_list values;
    va_start(values, format);
    int length = vsnprintf(entries + entries_length, sizeof entries - entries_length, format, values);
    va_end(values);
    if (length < 0 || (size_t)length >= sizeof entries - entries_length)
        hand_over("many entries");
    entries_length += (size_t)length;
}

/* Collect an entry; `key` and `text` are plain, an empty `text` is left out. */
void add_entry(int64_t at_ns, const char *kind, const struct call *call, const char *key, const char *text) {
    print_entry("%lld %s - %s%c%s", (long long)at_ns, kind, call->tool, 0, key);
    if (*text)
        print_entry("%c%s", 0, text);
    print_entry("\n");
}

/* Collect an entry about a file: one for each of its keys. */
void add_entries_of(int64_t at_ns, const char *kind, const struct call *call, const char *path, const char *text) {
    add_entry(at_ns, kind, call, path, text);
    if (IGNORES_CASE) {
        char key[PATH_BYTES + 8];
        lower_key(key, sizeof key, path);
        add_entry(at_ns, kind, call, key, text);
    }
}

/* The state of a file, as ``traces.state_of``. */
void state_of(char *into, size_t room, const char *path) {
    struct stat found;
    if (lstat(path, &found) != 0) {
        snprintf(into, room, "-");
        return;
    }
    snprintf(into, room, "%lld %llu %lld", (long long)(found.st_ctim.tv_sec * NS + found.st_ctim.tv_nsec),
             (unsigned long long)found.st_ino, (long long)found.st_size);
}

/* Put the end of the session's last call in front, if the hook after that call has left its mark. */
static void note_end(const struct call *call, const struct ground *ground) {
    char mark[PATH_BYTES + 32];
    struct stat found;
    print_path(mark, sizeof mark, "%s/ended/%ld", ground->state, (long)getppid());
    if (stat(mark, &found) != 0 || unlink(mark) != 0)
        return; /* no such hook, or another call has noted it */
    size_t collected = entries_length;
    add_entry(found.st_mtim.tv_sec * NS + found.st_mtim.tv_nsec, "over", call, call->folder, "");
    static char last[TEXT_BYTES];
    size_t length = entries_length - collected;
    memcpy(last, entries + collected, length);
    memmove(entries + length, entries, collected);
    memcpy(entries, last, length);
}

/* Put a new journal's first line in front: its session, and a folder of its place. */
static void begin_journal(const struct call *call, const struct ground *ground) {
    char first[PATH_BYTES + 3 * NAME_BYTES], folder[PATH_BYTES + 8];
    int length = snprintf(first, sizeof first, "%lld session - %s%c%s%c%s\n", (long long)now_ns(), call->runtime, 0,
                          call->session, 0, ground->top);
    if (length < 0 || entries_length + (size_t)length >= sizeof entries)
        hand_over("many entries");
    memmove(entries + length, entries, entries_length);
    memcpy(entries, first, (size_t)length);
    entries_length += (size_t)length;
    join(folder, sizeof folder, ground->state, "/", "ended");
    make_private(folder);
}

/* Append the collected entries to the session's own journal. */
void append_entries(const struct call *call, const struct ground *ground) {
    static const int flags = O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    struct stat found;
    if (!entries_length)
        return;
    int handle = open(ground->journal, flags, 0600);
    if (handle < 0 && errno == ENOENT) {
        make_private(ground->folder);
        handle = open(ground->journal, flags, 0600);
    }
    if (handle < 0 || fstat(handle, &found) != 0 || !S_ISREG(found.st_mode) || found.st_uid != geteuid())
        hand_over("no journal of this session");
    if (found.st_size > LIMIT_BYTES)
        hand_over("a long journal");
    note_end(call, ground);
    if (!found.st_size)
        begin_journal(call, ground);
    /* A new line: a full disk may have torn the last one. */
    if (entries_length == sizeof entries)
        hand_over("many entries");
    memmove(entries + 1, entries, entries_length);
    entries[0] = '\n';
    ssize_t done = write(handle, entries, entries_length + 1);
    if (done < 0 || (size_t)done != entries_length + 1)
        hand_over("a full disk");
    entries_length = 0;
    close(handle);
}

/* Tell if another session has a journal in the place. */
bool has_company(const struct ground *ground) {
    char own_part[sizeof ground->name + 8], agents[sizeof ground->name + 8];
    print_path(own_part, sizeof own_part, "%s.1", ground->name);
    print_path(agents, sizeof agents, "%s.agents", ground->name);
    DIR *folder = opendir(ground->folder);
    if (!folder && errno == ENOENT)
        return false; /* no session has written here yet */
    if (!folder)
        hand_over("no journals");
    bool found = false;
    struct dirent *entry;
    errno = 0;
    while ((entry = readdir(folder)) != NULL) {
        const char *name = entry->d_name;
        if (!strcmp(name, agents))
            hand_over("agents of the session");
        if (strcmp(name, ".") && strcmp(name, "..") && strcmp(name, ground->name) && strcmp(name, own_part) &&
            !(strlen(name) > 7 && !strcmp(name + strlen(name) - 7, ".agents")))
            found = true;
    }
    if (errno)
        hand_over("the journals cannot be listed");
    closedir(folder);
    return found;
}
