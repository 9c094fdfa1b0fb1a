/* The small private files and folders of the state (swarm_hook_core/state.py). */
#include "swarm_check.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* Create `folder` and the missing folders over it, closed to other users. */
void make_private(const char *folder) {
    char over[2 * PATH_BYTES];
    struct stat found;
    join(over, sizeof over, folder, "", "");
    char *slash = strrchr(over, '/');
    if (slash && slash != over) {
        *slash = 0;
        if (stat(over, &found) != 0 || !S_ISDIR(found.st_mode))
            make_private(over);
    }
    if (mkdir(folder, 0700) == 0) {
        if (chmod(folder, 0700) != 0)
            hand_over("a folder cannot be closed to others");
        return;
    }
    if (errno != EEXIST || lstat(folder, &found) != 0 || !S_ISDIR(found.st_mode) || found.st_uid != geteuid())
        hand_over("a folder cannot be made");
    if ((found.st_mode & 077) != 0 && strstr(slash ? slash + 1 : folder, "swarm"))
        hand_over("an open folder of ours");
}

#ifndef O_PATH
#define O_PATH O_RDONLY
#endif

/* Open the file at absolute `path` for reading, without following a link in any part of it (no_links.py); -1 and errno
 * as open(2), ENOTDIR or ELOOP for a link. */
int open_resolved(const char *path) {
    char rest[PATH_BYTES];
    join(rest, sizeof rest, path, "", "");
    int folder = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    char *name = rest + strspn(rest, "/");
    for (char *slash; folder >= 0 && (slash = strchr(name, '/')) != NULL; name = slash + 1 + strspn(slash + 1, "/")) {
        *slash = 0;
        int below = openat(folder, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), fault = errno;
        close(folder);
        folder = below;
        errno = fault;
    }
    if (folder < 0)
        return -1;
    int handle = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC), fault = errno;
    close(folder);
    errno = fault;
    return handle;
}

/* Read an ordinary file of this user, whole; false if it is missing. */
bool read_file(const char *path, char *into, size_t room, size_t *length) {
    int handle = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat found;
    *length = 0;
    if (handle < 0) {
        if (errno == ENOENT)
            return false;
        hand_over("a file of ours cannot be opened");
    }
    if (fstat(handle, &found) != 0 || !S_ISREG(found.st_mode) || found.st_uid != geteuid())
        hand_over("no ordinary file of this user");
    for (;;) {
        if (*length == room)
            hand_over("a long file");
        ssize_t got = read(handle, into + *length, room - *length);
        if (got < 0)
            hand_over("a file of ours cannot be read");
        if (got == 0)
            break;
        *length += (size_t)got;
    }
    close(handle);
    return true;
}
