/* The session's own files, kept before a command that may write any of them (swarm_hook_core/traces/versions/own_files). */
#include "swarm_check.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_NAMES 400          /* versions of the session that are looked through */
#define MOST_COPIES 20          /* files that are kept before one command */
#define TICK_NS INT64_C(20000000) /* the file times of a kernel lag behind its clock by up to a tick */
#define CONTENT 0400            /* the permission of a version with a content */

struct version {
    char name[256];
    char path[PATH_BYTES]; /* of its file */
    int64_t at_ns;
};

static struct version newest[MOST_NAMES]; /* of each file, in the order of the files' first names */
static size_t file_count;

/* Split the mark and the time off a version's name; return the mark, 0 for a first version. */
static char take_mark(char *name, int64_t *at_ns) {
    char *mark = NULL;
    for (char *at = name; (at = strchr(at, '%')) != NULL; at++)
        if (at[1] && strchr("wialm", at[1]) && at[2] >= '0' && at[2] <= '9') {
            if (mark)
                hand_over("a version with two marks");
            mark = at;
        }
    if (!mark)
        return 0;
    char letter = mark[1], *end;
    *at_ns = strtoll(mark + 2, &end, 10);
    if ((*end && *end != '-') || end - mark > 21)
        hand_over("an odd version");
    *mark = 0;
    return letter;
}

/* Put the path that a first version's name stands for into `path`; false if the name holds none. */
static bool read_path(const char *name, char *path, size_t room) {
    size_t length = 0;
    for (const char *at = name; *at; at++) {
        if (length + 1 >= room)
            hand_over("a long path of a version");
        if (*at != '%') {
            path[length++] = *at;
            continue;
        }
        bool is_slash = !strncmp(at, "%2F", 3);
        if (!is_slash && strncmp(at, "%25", 3) != 0)
            return false;
        path[length++] = is_slash ? '/' : '%';
        at += 2;
    }
    path[length] = 0;
    return path[0] == '/';
}

/* Look at one name in the folder of the session's versions; false if it cannot hold the path of its file. */
static bool take_name(const char *folder, const char *name) {
    struct version version;
    char first[256], whole[2 * PATH_BYTES];
    struct stat found;
    if (strlen(name) >= sizeof version.name)
        hand_over("a long name of a version");
    strcpy(version.name, name);
    strcpy(first, name);
    version.at_ns = 0;
    char mark = take_mark(first, &version.at_ns);
    if (mark == 'l' || mark == 'm')
        return true;
    if (!read_path(first, version.path, sizeof version.path))
        return !strstr(name, "%t");
    if (!version.at_ns) {
        join(whole, sizeof whole, folder, "/", name);
        if (lstat(whole, &found) != 0)
            hand_over("a version has gone");
        version.at_ns = time_of(found.st_mtim);
    }
    size_t place = 0;
    while (place < file_count && strcmp(newest[place].path, version.path) != 0)
        place++;
    if (place == file_count)
        newest[file_count++] = version;
    else if (version.at_ns > newest[place].at_ns ||
             (version.at_ns == newest[place].at_ns && strcmp(name, newest[place].name) > 0))
        newest[place] = version;
    return true;
}

static bool differs(const char *folder, const struct version *version) {
    char copy[2 * PATH_BYTES];
    struct stat found;
    if (lstat(version->path, &found) == 0)
        return time_of(found.st_ctim) > version->at_ns - TICK_NS;
    join(copy, sizeof copy, folder, "/", version->name);
    if (lstat(copy, &found) != 0)
        hand_over("a version has gone");
    return (found.st_mode & CONTENT) != 0;
}

/* List the newest version of each file; false if they are too many, or one does not tell its file. */
static bool list_versions(const char *folder, DIR *open_folder) {
    size_t count = 0;
    bool are_known = true;
    struct dirent *entry;
    file_count = 0;
    errno = 0;
    while ((entry = readdir(open_folder)) != NULL) {
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
            continue;
        if (++count > MOST_NAMES)
            return false;
        are_known = are_known && take_name(folder, entry->d_name);
        errno = 0;
    }
    if (errno)
        hand_over("versions cannot be listed");
    return are_known;
}

/* Keep the session's files that have changed since their newest version, and collect entries of that. */
void keep_own_files(const struct call *call, const struct ground *ground, int64_t at_ns) {
    char folder[2 * PATH_BYTES], state[160];
    size_t changed[MOST_COPIES], count = 0;
    print_path(folder, sizeof folder, "%s/kept/%s/%s", ground->state, ground->place, ground->name);
    DIR *open_folder = opendir(folder);
    if (!open_folder && errno == ENOENT)
        return; /* the session has written no file here */
    if (!open_folder)
        hand_over("versions cannot be listed");
    bool are_known = list_versions(folder, open_folder);
    closedir(open_folder);
    if (!are_known)
        return;
    for (size_t place = 0; place < file_count; place++) {
        if (!differs(folder, &newest[place]))
            continue;
        if (count == MOST_COPIES)
            return;
        changed[count++] = place;
    }
    for (size_t place = 0; place < count; place++) {
        const char *path = newest[changed[place]].path;
        struct stat found;
        bool exists;
        if (!is_normal(path) || !has_no_links(path, &found, &exists) || (exists && !S_ISREG(found.st_mode)) ||
            !is_in_place(ground, path))
            hand_over("an odd file of this session");
        keep_before(ground, path, at_ns, true, false);
        state_of(state, sizeof state, path);
        add_entries_of(at_ns, "before", call, path, state);
    }
    add_entry(at_ns, "kept", call, call->folder, "");
}
