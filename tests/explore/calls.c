/* Preloaded into each explored process: calls that other processes can see stop here, and the clock is the world's.
 *
 * A call counts as seen if its file lies below `world->root`. Times of such files are the world's, too.
 */
#include "schedule.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <dirent.h>

enum { SEEN_DESCRIPTORS = 1024, MONTH = 30 * 86400 };
static char names[SEEN_DESCRIPTORS][200]; /* of open files that others can see */
static bool is_locked[SEEN_DESCRIPTORS];

static const char *const CALLS[] = {"open", "read", "write", "close", "rename", "link", "unlink", "mkdir", "rmdir", "stat",
    "access", "list", "fsync", "truncate", "lock", "unlock", "try lock", "utime", "chmod", "clock", "sleep", "say", "symlink"};
enum { OPEN, READ, WRITE, CLOSE, RENAME, LINK, UNLINK, MKDIR, RMDIR, STAT, ACCESS, LIST, FSYNC, TRUNCATE, LOCK, UNLOCK,
    TRY_LOCK, UTIME, CHMOD, CLOCK, SLEEP, SAY, SYMLINK };
static const int ON_WRITE[] = {ENOSPC, EIO, EINTR, 0}, ON_READ[] = {EIO, EINTR, 0}, ON_CREATE[] = {ENOSPC, EINTR, 0},
    ON_NAME[] = {ENOSPC, EIO, 0}, ON_SYNC[] = {EIO, ENOSPC, 0}, ON_LOCK[] = {EINTR, 0};

struct world *world;
__thread int me = NOBODY;

const char *explore_call(int number) { return CALLS[number]; }

#define REAL(type, name) \
    static type (*real_##name)(); \
    if (!real_##name) \
        real_##name = (type (*)())dlsym(RTLD_NEXT, #name)

static bool is_seen(const char *path) {
    return world && world->root_length && path && !strncmp(path, world->root, (size_t)world->root_length);
}
static const char *below(const char *path) { return path + world->root_length; }
static bool is_seen_descriptor(int fd) { return fd >= 0 && fd < SEEN_DESCRIPTORS && names[fd][0]; }
static bool is_virtual(void) { return world && world->is_virtual; }
static bool is_store(const char *path) { return strstr(path, ".db") != NULL; }

static void touch(int folder, const char *path) {
    if (!is_virtual())
        return;
    int64_t at = (EPOCH + world->now + world->offset) / TICK_NS * TICK_NS;
    struct timespec times[2] = {{at / 1000000000, at % 1000000000}, {at / 1000000000, at % 1000000000}};
    int saved = errno;
    syscall(SYS_utimensat, folder, path, times, 0);
    errno = saved;
}

static void touch_parent(const char *path) {
    char parent[512];
    const char *slash = strrchr(path, '/');
    if (slash && (size_t)(slash - path) < sizeof parent && !is_store(path)) {
        memcpy(parent, path, (size_t)(slash - path));
        parent[slash - path] = 0;
        touch(AT_FDCWD, parent);
    }
}

static void mend_times(struct stat *found) {
    if (!is_virtual())
        return;
    if (llabs(found->st_mtim.tv_sec - EPOCH / 1000000000) > MONTH) { /* by the machine's own clock */
        found->st_mtim.tv_sec = EPOCH / 1000000000 - 3600;
        found->st_mtim.tv_nsec = 0;
    }
    found->st_ctim = found->st_mtim;
}

static void ready(enum state state, uint64_t semaphore) {
    for (int i = 0; i < TASKS; i++)
        if (world->tasks[i].state == (int32_t)state && (!semaphore || world->tasks[i].semaphore == semaphore))
            world->tasks[i].state = READY;
}
void explore_released(void) { ready(AT_LOCK, 0); }

/* The common shape: stop before a call on a path that is seen; fail it if that was decided. */
#define AT(seen, call, path, errors) \
    if (me != NOBODY && (seen)) { \
        int error_ = stop(call, path, errors); \
        if (error_) { \
            errno = error_; \
            return -1; \
        } \
    }

static int opened(int fd, const char *path, int flags) {
    if (fd >= 0 && fd < SEEN_DESCRIPTORS) {
        names[fd][0] = 0;
        is_locked[fd] = false;
        if (is_seen(path)) {
            snprintf(names[fd], sizeof names[fd], "%s", below(path));
            if (flags & O_TRUNC)
                touch(fd, NULL);
        }
    }
    return fd;
}

static int open_at(int folder, const char *path, int flags, mode_t mode) {
    REAL(int, openat64);
    char whole[512];
    if (path && path[0] != '/' && is_seen_descriptor(folder) && me != NOBODY) {
        snprintf(whole, sizeof whole, "%s%s/%s", world->root, names[folder], path);
    } else {
        snprintf(whole, sizeof whole, "%s", path ? path : "");
    }
    bool is_new = is_virtual() && (flags & O_CREAT) && is_seen(whole) && syscall(SYS_faccessat, AT_FDCWD, whole, F_OK, 0);
    AT(is_seen(whole), OPEN, below(whole), flags & O_CREAT ? ON_CREATE : ON_READ)
    int fd = opened(real_openat64(folder, path, flags, mode), whole, flags);
    if (is_new && fd >= 0) {
        touch(fd, NULL);
        touch_parent(whole);
    }
    return fd;
}
#define OPENING(name, before, ...) \
    int name(__VA_ARGS__) { \
        va_list more; \
        va_start(more, flags); \
        mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0; \
        va_end(more); \
        return open_at(before, path, flags, mode); \
    }
OPENING(open, AT_FDCWD, const char *path, int flags, ...)
OPENING(open64, AT_FDCWD, const char *path, int flags, ...)
OPENING(openat, folder, int folder, const char *path, int flags, ...)
OPENING(openat64, folder, int folder, const char *path, int flags, ...)

int close(int fd) {
    REAL(int, close);
    if (is_seen_descriptor(fd)) {
        names[fd][0] = 0;
        int found = real_close(fd);
        if (me != NOBODY)
            explore_released();
        return found;
    }
    return real_close(fd);
}

ssize_t read(int fd, void *data, size_t size) {
    REAL(ssize_t, read);
    AT(is_seen_descriptor(fd), READ, names[fd], ON_READ)
    return real_read(fd, data, size);
}

ssize_t write(int fd, const void *data, size_t size) {
    REAL(ssize_t, write);
    bool seen = is_seen_descriptor(fd);
    if (me != NOBODY && seen) {
        int error = stop(WRITE, names[fd], ON_WRITE);
        if (error == A_PART) {
            size = (size + 1) / 2;
        } else if (error) {
            errno = error;
            return -1;
        }
    }
    ssize_t done = real_write(fd, data, size);
    if (seen)
        touch(fd, NULL);
    return done;
}

ssize_t pwrite64(int fd, const void *data, size_t size, off_t at) {
    REAL(ssize_t, pwrite64);
    int error = me != NOBODY && is_seen_descriptor(fd) ? stop(WRITE, names[fd], ON_WRITE) : 0;
    if (error > 0) {
        errno = error;
        return -1;
    }
    return real_pwrite64(fd, data, error ? (size + 1) / 2 : size, at);
}

int ftruncate64(int fd, off_t size) {
    REAL(int, ftruncate64);
    AT(is_seen_descriptor(fd), TRUNCATE, names[fd], ON_NAME)
    int found = real_ftruncate64(fd, size);
    if (is_seen_descriptor(fd) && !is_store(names[fd]))
        touch(fd, NULL);
    return found;
}
int ftruncate(int fd, off_t size) { return ftruncate64(fd, size); }

static void name_synced(char *path, size_t size, const char *name) {
    snprintf(path, size, "%.*s.synced.%s", world->root_length - 1, world->root, strrchr(name, '/') + 1);
}

/* Keep what a file of the store holds now, beside the ground: a power cut leaves at least that. */
static void keep_synced(int fd) {
    REAL(ssize_t, pread64);
    char path[512];
    static char data[1 << 20];
    name_synced(path, sizeof path, names[fd]);
    ssize_t size = real_pread64(fd, data, sizeof data, 0);
    int copy = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (copy >= 0 && size >= 0)
        (void)!syscall(SYS_write, copy, data, (size_t)size);
    syscall(SYS_close, copy);
}

int fsync(int fd) {
    REAL(int, fsync);
    AT(is_seen_descriptor(fd), FSYNC, names[fd], ON_SYNC)
    if (!is_seen_descriptor(fd))
        return real_fsync(fd);
    if (world->has_power_cuts && is_store(names[fd]))
        keep_synced(fd);
    return 0; /* the folder is in memory */
}
int fdatasync(int fd) { return fsync(fd); }

static int with_two(int call, const char *from, const char *to, int (*real)(const char *, const char *)) {
    AT(is_seen(to), call, below(to), ON_NAME)
    int found = real(from, to);
    if (!found && is_seen(to)) {
        touch_parent(from);
        touch_parent(to);
    }
    return found;
}
#define TWO(name, call) \
    int name(const char *from, const char *to) { \
        REAL(int, name); \
        return with_two(call, from, to, real_##name); \
    }
TWO(rename, RENAME)
TWO(link, LINK)
TWO(symlink, SYMLINK)

static int with_one(int call, const char *path, int (*real)(const char *), const int *errors) {
    AT(is_seen(path), call, below(path), errors)
    int found = real(path);
    if (!found && is_seen(path)) {
        touch_parent(path);
        if (call == UNLINK && world->has_power_cuts && is_store(path)) {
            char synced[512];
            name_synced(synced, sizeof synced, path);
            syscall(SYS_unlinkat, AT_FDCWD, synced, 0);
        }
    }
    return found;
}
#define ONE(name, call) \
    int name(const char *path) { \
        REAL(int, name); \
        return with_one(call, path, real_##name, NULL); \
    }
ONE(unlink, UNLINK)
ONE(rmdir, RMDIR)

int unlinkat(int folder, const char *path, int flags) {
    REAL(int, unlinkat);
    AT(is_seen(path) || is_seen_descriptor(folder), flags & AT_REMOVEDIR ? RMDIR : UNLINK, path, NULL)
    int found = real_unlinkat(folder, path, flags);
    if (!found && is_seen(path))
        touch_parent(path);
    return found;
}

int mkdir(const char *path, mode_t mode) {
    REAL(int, mkdir);
    AT(is_seen(path), MKDIR, below(path), ON_NAME)
    int found = real_mkdir(path, mode);
    if (!found && is_seen(path)) {
        touch(AT_FDCWD, path);
        touch_parent(path);
    }
    return found;
}

int access(const char *path, int mode) {
    REAL(int, access);
    AT(is_seen(path), ACCESS, below(path), NULL)
    return real_access(path, mode);
}

DIR *opendir(const char *path) {
    static DIR *(*real_opendir)(const char *);
    if (!real_opendir)
        real_opendir = (DIR * (*)(const char *)) dlsym(RTLD_NEXT, "opendir");
    if (me != NOBODY && is_seen(path))
        stop(LIST, below(path), NULL);
    return real_opendir(path);
}

#define STATS(name, type) \
    int name(const char *path, struct type *found) { \
        REAL(int, name); \
        AT(is_seen(path), STAT, below(path), NULL) \
        int result = real_##name(path, found); \
        if (!result && is_seen(path)) \
            mend_times((struct stat *)found); \
        return result; \
    }
STATS(stat, stat)
STATS(stat64, stat64)
STATS(lstat, stat)
STATS(lstat64, stat64)
#define FSTATS(name, type) \
    int name(int fd, struct type *found) { \
        REAL(int, name); \
        int result = real_##name(fd, found); \
        if (!result && is_seen_descriptor(fd)) \
            mend_times((struct stat *)found); \
        return result; \
    }
FSTATS(fstat, stat)
FSTATS(fstat64, stat64)
#define STATS_AT(name, type) \
    int name(int folder, const char *path, struct type *found, int flags) { \
        REAL(int, name); \
        bool seen = is_seen(path) || (is_seen_descriptor(folder) && path[0] != '/'); \
        AT(seen, STAT, path[0] == '/' ? below(path) : path, NULL) \
        int result = real_##name(folder, path, found, flags); \
        if (!result && seen) \
            mend_times((struct stat *)found); \
        return result; \
    }
STATS_AT(fstatat, stat)
STATS_AT(fstatat64, stat64)

int utimensat(int folder, const char *path, const struct timespec times[2], int flags) {
    REAL(int, utimensat);
    AT(is_seen(path), UTIME, below(path), NULL)
    if (!times && is_seen(path)) {
        touch(folder, path);
        return 0;
    }
    return real_utimensat(folder, path, times, flags);
}

int chmod(const char *path, mode_t mode) {
    REAL(int, chmod);
    AT(is_seen(path), CHMOD, below(path), NULL)
    return real_chmod(path, mode);
}

int flock(int fd, int how) {
    REAL(int, flock);
    if (me == NOBODY || !is_seen_descriptor(fd))
        return real_flock(fd, how);
    int error = stop(how & LOCK_UN ? UNLOCK : how & LOCK_NB ? TRY_LOCK : LOCK, names[fd], how & LOCK_UN ? NULL : ON_LOCK);
    if (error) {
        errno = error;
        return -1;
    }
    while (true) {
        int found = real_flock(fd, how & LOCK_UN ? how : how | LOCK_NB);
        if (how & LOCK_UN)
            explore_released();
        if (!found || how & LOCK_NB || errno != EWOULDBLOCK)
            return found;
        give_way(AT_LOCK);
    }
}

static int file_control(int fd, int command, void *argument) {
    REAL(int, fcntl64);
    if (me != NOBODY && is_seen_descriptor(fd) && (command == F_SETLK || command == F_SETLKW)) {
        bool ends = ((struct flock *)argument)->l_type == F_UNLCK;
        int error = stop(ends ? UNLOCK : TRY_LOCK, names[fd], NULL);
        if (error) {
            errno = error;
            return -1;
        }
        int found = real_fcntl64(fd, F_SETLK, argument);
        if (ends)
            explore_released();
        return found;
    }
    int found = real_fcntl64(fd, command, argument);
    if ((command == F_DUPFD || command == F_DUPFD_CLOEXEC) && found >= 0 && found < SEEN_DESCRIPTORS)
        snprintf(names[found], sizeof names[found], "%s", is_seen_descriptor(fd) ? names[fd] : "");
    return found;
}
#define CONTROLLING(name) \
    int name(int fd, int command, ...) { \
        va_list more; \
        va_start(more, command); \
        void *argument = va_arg(more, void *); \
        va_end(more); \
        return file_control(fd, command, argument); \
    }
CONTROLLING(fcntl)
CONTROLLING(fcntl64)
