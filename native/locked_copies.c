/* The contents of locked files, kept before another's call may change them (swarm_hook_core/traces/versions/locked.py). */
#include "swarm_check.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HASHED_BYTES (1024 * 1024) /* of a file; a larger one goes to Python */
#define TICK_NS (2 * NS)           /* the coarsest time stamps of any file system */
#define LOCKED "locked.files"      /* the folder of the copies, beside those of the sessions */

static unsigned char data[HASHED_BYTES + 1];

/* A copy: its file name's facts. */
struct facts {
    unsigned long long inode;
    unsigned mode;
    char digest[17];
};

/* Print the state of a file as ``str(Snapshot)``; `digest` may be empty. */
void print_snapshot(char *into, size_t room, const struct stat *found, const char *digest) {
    if (!found)
        snprintf(into, room, "0 0 0 0 0 ");
    else
        snprintf(into, room, "%u %lld %lld %lld %llu %s", (unsigned)found->st_mode, (long long)found->st_size,
                 (long long)time_of(found->st_mtim), (long long)time_of(found->st_ctim),
                 (unsigned long long)found->st_ino, digest);
}

/* Read the file at `path`, which is as `seen`; return its length. */
static size_t read_whole(const char *path, const struct stat *seen) {
    struct stat after;
    size_t length = 0;
    int handle = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (handle < 0)
        hand_over("a locked file cannot be read");
    for (ssize_t got; length < sizeof data && (got = read(handle, data + length, sizeof data - length)) != 0;) {
        if (got < 0)
            hand_over("a locked file cannot be read");
        length += (size_t)got;
    }
    if (fstat(handle, &after) != 0 || time_of(after.st_ctim) != time_of(seen->st_ctim) || after.st_ino != seen->st_ino ||
        (size_t)after.st_size != length || (size_t)seen->st_size != length)
        hand_over("a locked file that is being written");
    close(handle);
    return length;
}

/* Read the facts at the end of a copy's name, behind the file's `first` name; false for another name. */
static bool read_facts(const char *name, const char *first, struct facts *facts) {
    size_t length = strlen(first);
    char *end;
    if (strncmp(name, first, length) != 0 || strncmp(name + length, "%l", 2) != 0)
        return false;
    strtoll(name + length + 2, &end, 10);
    if (*end != '-')
        return false;
    facts->inode = strtoull(end + 1, &end, 10);
    if (*end != '-')
        return false;
    facts->mode = (unsigned)strtoul(end + 1, &end, 8);
    if (*end != '-' || strlen(end + 1) != 16)
        return false;
    strcpy(facts->digest, end + 1);
    return true;
}

/* Return the mtime of a copy; 0 if it is gone, half, or no copy of a file of that size. */
static int64_t mtime_of(const char *copy, const struct stat *seen) {
    struct stat found;
    if (lstat(copy, &found) != 0 || !S_ISREG(found.st_mode) || (found.st_mode & 0600) != 0400 ||
        found.st_size != seen->st_size)
        return 0;
    return time_of(found.st_mtim);
}

/* Find a copy of the file in the folder of `first`. With a `digest`, one with that content; else one that is younger than
 * the file's last change, and put its digest into `digest`. */
static bool find_copy(const char *first, const struct stat *seen, char digest[17], char *copy, size_t room) {
    char folder[2 * PATH_BYTES];
    struct facts facts;
    struct dirent *entry;
    bool is_found = false;
    join(folder, sizeof folder, first, "", "");
    char *name = strrchr(folder, '/') + 1;
    name[-1] = 0;
    DIR *copies = opendir(folder);
    if (!copies && errno == ENOENT)
        return false;
    if (!copies)
        hand_over("copies cannot be listed");
    int64_t changed_ns = time_of(seen->st_mtim) > time_of(seen->st_ctim) ? time_of(seen->st_mtim) : time_of(seen->st_ctim);
    while (!is_found && (entry = readdir(copies)) != NULL) {
        if (!read_facts(entry->d_name, name, &facts) || facts.inode != seen->st_ino ||
            facts.mode != (seen->st_mode & 07777))
            continue;
        join(copy, room, folder, "/", entry->d_name);
        int64_t mtime_ns = mtime_of(copy, seen);
        is_found = *digest ? mtime_ns && !strcmp(facts.digest, digest) : mtime_ns > changed_ns + TICK_NS;
        if (is_found)
            strcpy(digest, facts.digest);
    }
    closedir(copies);
    return is_found;
}

/* Keep the content of the locked file at `path`; print its state into `state`, and the path of the copy into `copy`. */
void keep_locked(const struct ground *ground, const char *path, char *state, size_t state_room, char *copy, size_t room) {
    char first[2 * PATH_BYTES], digest[17] = "";
    struct stat seen;
    if (lstat(path, &seen) != 0 || !S_ISREG(seen.st_mode) || seen.st_size > HASHED_BYTES)
        hand_over("a locked file that is large, or no file");
    version_path(first, sizeof first, ground, LOCKED, path);
    if (strstr(first, "%t"))
        hand_over("a locked file with a long path");
    if (!find_copy(first, &seen, digest, copy, room)) {
        size_t length = read_whole(path, &seen);
        digest_of(digest, data, length);
        if (find_copy(first, &seen, digest, copy, room)) {
            if (utimensat(AT_FDCWD, copy, NULL, 0) != 0)
                hand_over("the time of a copy cannot be set");
        } else {
            int64_t at_ns = now_ns();
            print_path(copy, room, "%s%%l%lld-%llu-%o-%s", first, (long long)at_ns, (unsigned long long)seen.st_ino,
                       (unsigned)(seen.st_mode & 07777), digest);
            int writing = create_version(ground, copy);
            if (writing < 0)
                hand_over("a copy with the same time");
            bool is_written = write(writing, data, length) == (ssize_t)length;
            finish_version(writing, copy, at_ns, is_written ? (int)(0400 | (seen.st_mode & 0177)) : -1);
        }
    }
    print_snapshot(state, state_room, &seen, digest);
}
