/* Versions: the content of a file before a write, and the inputs of writes, kept as swarm_hook_core/traces does. */
#include "swarm_check.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define VERSION_BYTES (1024 * 1024)  /* of a file; nothing is kept of a larger one */
#define LONGEST_NAME 160             /* bytes of a name */
#define NEAR_NS (NS / 10)            /* a file that changes later after the check of a write is looked at */
#define INPUT_BYTES (256 * 1024)     /* of a tool's input; a larger one is not kept, which Python notes */
#define INPUTS_BYTES (1024 * 1024)   /* of the inputs of a session, before they are begun anew */

enum { NO_FILE = 0, NOT_KEPT = 0200, CONTENT = 0400, HALF = 0600 }; /* permissions that stand for a state */

/* Put the path of the first version that the journal `owner` has of the file at `path` into `into`, as
 * ``traces.version_path``. */
void version_path(char *into, size_t room, const struct ground *ground, const char *owner, const char *path) {
    char name[3 * PATH_BYTES];
    size_t length = 0;
    for (const char *sign = path; *sign; sign++) {
        if (*sign == '/' || *sign == '%') {
            memcpy(name + length, *sign == '/' ? "%2F" : "%25", 3);
            length += 3;
        } else {
            name[length++] = *sign;
        }
    }
    name[length] = 0;
    if (length > LONGEST_NAME || IGNORES_CASE) {
        const char *mark = length > LONGEST_NAME ? "%t" : "%c";
        length = length > LONGEST_NAME ? LONGEST_NAME : length;
        size_t whole = strlen(path);
        print_path(name + length, 32, "%s%08x%08x", mark, (unsigned)checksum(path, whole, false),
                 (unsigned)checksum(path, whole, true));
    }
    print_path(into, room, "%s/kept/%s/%s/%s", ground->state, ground->place, owner, name);
}

int64_t time_of(struct timespec time) { return time.tv_sec * NS + time.tv_nsec; }

static struct timespec time_at(int64_t at_ns) { return (struct timespec){(time_t)(at_ns / NS), (long)(at_ns % NS)}; }

static int64_t copy_by_hand(int reading, int writing, int64_t size) {
    static char piece[128 * 1024];
    int64_t copied = 0;
    while (copied < size) {
        int64_t left = size - copied;
        ssize_t got = read(reading, piece, left < (int64_t)sizeof piece ? (size_t)left : sizeof piece);
        if (got < 0)
            return -1;
        if (got == 0)
            break;
        for (ssize_t put = 0; put < got;) {
            ssize_t done = write(writing, piece + put, (size_t)(got - put));
            if (done <= 0)
                return -1;
            put += done;
        }
        copied += got;
    }
    return copied;
}

static int64_t copy(int reading, int writing, int64_t size) {
    int64_t copied = 0;
#ifdef __linux__
    while (copied < size) {
        ssize_t done = copy_file_range(reading, NULL, writing, NULL, (size_t)(size - copied), 0);
        if (done <= 0)
            break; /* another file system, or an older kernel */
        copied += done;
    }
#endif
    if (copied < size) {
        int64_t rest = copy_by_hand(reading, writing, size - copied);
        copied = rest < 0 ? -1 : copied + rest;
    }
    return copied;
}

/* Copy one open file into the other; return the permissions of the version, -1 after a fault. */
static int copied(int reading, int writing) {
    struct stat before, after;
    if (fstat(reading, &before) != 0)
        return -1;
    if (!S_ISREG(before.st_mode) || before.st_size > VERSION_BYTES)
        return NOT_KEPT; /* another file by now */
    int64_t size = copy(reading, writing, before.st_size);
    if (size < 0 || fstat(reading, &after) != 0)
        return -1;
    if (size != before.st_size || after.st_size != before.st_size || time_of(after.st_ctim) != time_of(before.st_ctim))
        return ftruncate(writing, 0) == 0 ? NOT_KEPT : -1;
    return CONTENT | (int)(before.st_mode & 0177);
}

/* Open the file at `path` for its copy; -1 and the state if it cannot be kept. */
static int open_source(const char *path, int *state) {
    struct stat found;
    *state = NOT_KEPT;
    if (lstat(path, &found) == 0) {
        if (!S_ISREG(found.st_mode) || found.st_size > VERSION_BYTES)
            return -1;
        int reading = open_resolved(path);
        if (reading >= 0)
            return reading;
    }
    if (errno == ENOENT || errno == ENOTDIR || errno == ELOOP)
        *state = NO_FILE; /* ELOOP: a link has taken a folder's place */
    return -1;
}

/* Create the version at path `target`, and its folder; -1 if there is such a version. */
int create_version(const struct ground *ground, const char *target) {
    static const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    char folder[2 * PATH_BYTES];
    int writing = open(target, flags, HALF);
    if (writing < 0 && errno == ENOENT) {
        join(folder, sizeof folder, ground->state, "/", "kept");
        make_private(folder);
        join(folder, sizeof folder, target, "", "");
        *strrchr(folder, '/') = 0;
        make_private(folder);
        writing = open(target, flags, HALF);
    }
    if (writing < 0 && errno != EEXIST)
        hand_over("a version cannot be made");
    return writing;
}

/* Give the version its time and permissions, and close it. */
void finish_version(int writing, const char *target, int64_t at_ns, int state) {
    struct timespec times[2] = {time_at(at_ns), time_at(at_ns)};
    if (state < 0 || futimens(writing, times) != 0 || fchmod(writing, (mode_t)state) != 0) {
        unlink(target);
        hand_over("a version cannot be written");
    }
    close(writing);
}

/* Keep the present content of the file at `path` as the version at path `target`, of time `at_ns`. */
static void keep(const struct ground *ground, const char *path, const char *target, int64_t at_ns) {
    int state, reading = open_source(path, &state), writing = create_version(ground, target);
    if (writing >= 0) {
        if (reading >= 0)
            state = copied(reading, writing);
        finish_version(writing, target, at_ns, state);
    }
    if (reading >= 0)
        close(reading);
}

static bool is_own(const char *path, int64_t last_ns) {
    struct stat found;
    if (lstat(path, &found) != 0)
        return true; /* missing: there is nothing to keep */
    return time_of(found.st_ctim) < last_ns + NEAR_NS;
}

/* Keep the content of the file before the session's first write of it; or if `keeps_each`, or another may have changed
 * the file since. `is_known`: the call's input tells the content after it; else the next write keeps a version. */
void keep_before(const struct ground *ground, const char *path, int64_t at_ns, bool keeps_each, bool is_known) {
    char first[2 * PATH_BYTES], later[2 * PATH_BYTES];
    struct stat found;
    int64_t begun_ns = at_ns;
    version_path(first, sizeof first, ground, ground->name, path);
    if (lstat(first, &found) != 0) {
        keep(ground, path, first, at_ns);
        if (is_known)
            return;
    } else {
        begun_ns = time_of(found.st_mtim);
        if (keeps_each || !is_known || !is_own(path, time_of(found.st_atim))) {
            print_path(later, sizeof later, "%s%%w%lld", first, (long long)at_ns);
            keep(ground, path, later, at_ns);
        }
    }
    struct timespec times[2] = {time_at(is_known ? at_ns : 0), time_at(begun_ns)};
    if (utimensat(AT_FDCWD, first, times, 0) != 0)
        hand_over("the time of a version cannot be set");
}

/* Keep the content that the session's own write has left. */
void keep_look(const struct ground *ground, const char *path, int64_t at_ns) {
    char first[2 * PATH_BYTES], target[2 * PATH_BYTES];
    version_path(first, sizeof first, ground, ground->name, path);
    print_path(target, sizeof target, "%s%%i%lld", first, (long long)at_ns);
    keep(ground, path, target, at_ns);
}

/* Keep the input of a write tool beside the versions, as ``Trail._keep_input``. The times are those of the call's first
 * and last entry. */
void keep_input(const struct call *call, const struct ground *ground, int64_t first_ns, int64_t last_ns) {
    static char room[INPUT_BYTES + 2 * PATH_BYTES];
    char path[2 * PATH_BYTES], older[2 * PATH_BYTES + 4];
    struct print print = {room, sizeof room, 0};
    struct stat found;
    print.length = (size_t)snprintf(room, sizeof room, "%lld %lld %s%c%s%c", (long long)first_ns, (long long)last_ns,
                                    call->tool, 0, call->folder, 0);
    size_t head = print.length;
    print_json(&print, call->input, false);
    if (print.length - head > INPUT_BYTES || strstr(room + head, "*** Move to:"))
        hand_over("a long input, or one that moves a file");
    print_words(&print, "\n");
    print_path(path, sizeof path, "%s/kept/%s/%s/%%inputs", ground->state, ground->place, ground->name);
    int handle = open(path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
    if (handle < 0 || fstat(handle, &found) != 0 || !S_ISREG(found.st_mode) ||
        write(handle, room, print.length) != (ssize_t)print.length)
        hand_over("an input cannot be kept");
    close(handle);
    join(older, sizeof older, path, "", ".1");
    if (found.st_size > INPUTS_BYTES && rename(path, older) != 0)
        hand_over("the inputs cannot be begun anew");
}
