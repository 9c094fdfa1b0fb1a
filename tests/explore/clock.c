/* Preloaded: the clock, sleep, random bytes, threads and semaphores of explored processes; their beginning and end. */
#include "schedule.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/select.h>
#include <sys/time.h>

enum { CALL_SAY = 21, CLIENTS = 8000000 };
static const int64_t SECOND = 1000000000;

void explore_released(void);

static bool is_virtual(void) { return world && world->is_virtual; }

static int64_t virtual_time(clockid_t kind) {
    switch (kind) {
    case CLOCK_REALTIME:
    case CLOCK_REALTIME_COARSE:
        return EPOCH + world->now + world->offset;
    case CLOCK_PROCESS_CPUTIME_ID:
    case CLOCK_THREAD_CPUTIME_ID:
        return world->now / 1000;
    default:
        return UPTIME + world->now;
    }
}

static int64_t read_clock(clockid_t kind) {
    /* A loop that only waits for a time gets there. The first import of a module reads the clock, too. */
    if (me != NOBODY && ++world->reads > FREE_READS)
        world->now += READ_NS;
    return virtual_time(kind);
}

static int64_t nanoseconds(const struct timespec *time) { return time->tv_sec * SECOND + time->tv_nsec; }

/* Return by the machine's own clock the end of a wait that ends at `end` by the virtual clock. */
static struct timespec real_end(clockid_t kind, const struct timespec *end) {
    if (!is_virtual())
        return *end;
    struct timespec now;
    syscall(SYS_clock_gettime, kind, &now);
    int64_t rest = nanoseconds(end) - virtual_time(kind);
    int64_t at = nanoseconds(&now) + (rest > 0 ? rest : 0);
    return (struct timespec){at / SECOND, at % SECOND};
}

int clock_gettime(clockid_t kind, struct timespec *found) {
    if (!is_virtual())
        return (int)syscall(SYS_clock_gettime, kind, found);
    int64_t now = read_clock(kind);
    *found = (struct timespec){now / SECOND, now % SECOND};
    return 0;
}

int gettimeofday(struct timeval *found, void *zone) {
    (void)zone;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    *found = (struct timeval){now.tv_sec, now.tv_nsec / 1000};
    return 0;
}

time_t time(time_t *found) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (found)
        *found = now.tv_sec;
    return now.tv_sec;
}

int clock_nanosleep(clockid_t kind, int flags, const struct timespec *wanted, struct timespec *left) {
    if (me == NOBODY) { /* it reads the virtual clock, but waits in real time */
        struct timespec end = flags & TIMER_ABSTIME ? real_end(kind, wanted) : *wanted;
        return syscall(SYS_clock_nanosleep, kind, flags, &end, left) ? errno : 0;
    }
    int64_t given = nanoseconds(wanted);
    if (flags & TIMER_ABSTIME)
        given -= read_clock(kind);
    sleep_until(world->now + (given > 0 ? given : 0));
    return 0;
}

int nanosleep(const struct timespec *wanted, struct timespec *left) {
    int error = clock_nanosleep(CLOCK_MONOTONIC, 0, wanted, left);
    if (error)
        errno = error;
    return error ? -1 : 0;
}

int usleep(useconds_t wanted) {
    struct timespec time = {wanted / 1000000, wanted % 1000000 * 1000};
    return nanosleep(&time, NULL);
}

int select(int count, fd_set *reads, fd_set *writes, fd_set *others, struct timeval *wanted) {
    if (me != NOBODY && !count && wanted) {
        sleep_until(world->now + wanted->tv_sec * SECOND + wanted->tv_usec * 1000);
        return 0;
    }
    static int (*real)(int, fd_set *, fd_set *, fd_set *, struct timeval *);
    if (!real)
        real = (int (*)(int, fd_set *, fd_set *, fd_set *, struct timeval *))dlsym(RTLD_NEXT, "select");
    return real(count, reads, writes, others, wanted);
}

ssize_t getrandom(void *data, size_t size, unsigned flags) {
    if (me == NOBODY)
        return syscall(SYS_getrandom, data, size, flags);
    for (size_t i = 0; i < size; i++)
        ((unsigned char *)data)[i] = (unsigned char)(drawn(&world->tasks[me].random) >> 24);
    return (ssize_t)size;
}

/* Each explored process has a client of its own. */
pid_t getppid(void) {
    if (me == NOBODY)
        return (pid_t)syscall(SYS_getppid);
    return CLIENTS + world->tasks[me].process;
}

/* Its deadline is of real time. */
unsigned alarm(unsigned seconds) {
    static unsigned (*real)(unsigned);
    if (!real)
        real = (unsigned (*)(unsigned))dlsym(RTLD_NEXT, "alarm");
    return me == NOBODY ? real(seconds) : 0;
}

/* ----------------------------------------------------------------------- threads and what they wait for */

struct start {
    void *(*run)(void *);
    void *given;
    int task;
};

static void end_task(void) {
    int task = me, number = ++world->tasks[me].number;
    world->tasks[task].state = DONE;
    world->tasks[task].is_midway = 0;
    me = NOBODY;
    pass_on(task, number);
}

static void *run_thread(void *given) {
    struct start start = *(struct start *)given;
    free(given);
    me = start.task;
    await_token();
    void *found = start.run(start.given);
    if (me != NOBODY)
        end_task();
    return found;
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *given) {
    static int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    if (!real)
        real = (int (*)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *))dlsym(RTLD_NEXT, "pthread_create");
    if (me == NOBODY)
        return real(thread, attributes, run, given);
    for (int i = PROCESSES; i < TASKS; i++)
        if (world->tasks[i].state == FREE || world->tasks[i].state == DONE) {
            struct start *start = malloc(sizeof *start);
            *start = (struct start){run, given, i};
            struct task *task = &world->tasks[i];
            task->process = world->tasks[me].process;
            task->random = world->tasks[me].random + (uint64_t)i;
            task->state = READY;
            return real(thread, attributes, run_thread, start);
        }
    return EAGAIN;
}

static int wait_semaphore(sem_t *semaphore, int64_t until) {
    while (sem_trywait(semaphore) != 0) {
        if (world->now >= until) {
            errno = ETIMEDOUT;
            return -1;
        }
        world->tasks[me].semaphore = (uint64_t)(uintptr_t)semaphore;
        world->tasks[me].wakes_at = until;
        give_way(AT_SEMAPHORE);
    }
    return 0;
}

#define REAL_WAIT(name, type, ...) \
    static int (*real_##name) type; \
    if (!real_##name) \
        real_##name = (int (*) type)dlsym(RTLD_NEXT, #name); \
    if (me == NOBODY) \
        return real_##name(__VA_ARGS__);

int sem_wait(sem_t *semaphore) {
    REAL_WAIT(sem_wait, (sem_t *), semaphore)
    return wait_semaphore(semaphore, INT64_MAX);
}

int sem_clockwait(sem_t *semaphore, clockid_t kind, const struct timespec *end) {
    struct timespec real = me == NOBODY ? real_end(kind, end) : *end;
    REAL_WAIT(sem_clockwait, (sem_t *, clockid_t, const struct timespec *), semaphore, kind, &real)
    return wait_semaphore(semaphore, world->now + nanoseconds(end) - read_clock(kind));
}

int sem_timedwait(sem_t *semaphore, const struct timespec *end) {
    struct timespec real = me == NOBODY ? real_end(CLOCK_REALTIME, end) : *end;
    REAL_WAIT(sem_timedwait, (sem_t *, const struct timespec *), semaphore, &real)
    return sem_clockwait(semaphore, CLOCK_REALTIME, end);
}

int sem_post(sem_t *semaphore) {
    static int (*real)(sem_t *);
    if (!real)
        real = (int (*)(sem_t *))dlsym(RTLD_NEXT, "sem_post");
    int found = real(semaphore);
    if (me != NOBODY)
        for (int i = 0; i < TASKS; i++)
            if (world->tasks[i].state == AT_SEMAPHORE && world->tasks[i].semaphore == (uint64_t)(uintptr_t)semaphore
                && world->tasks[i].process == world->tasks[me].process)
                world->tasks[i].state = READY;
    return found;
}

/* --------------------------------------------------------------------------- beginning and end, for Python */

/* Map the world in the file at `path`. Return its address. */
void *explore_open(const char *path) {
    int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC | O_CREAT, 0600);
    if (fd < 0 || syscall(SYS_ftruncate, fd, sizeof(struct world)) != 0)
        return NULL;
    void *found = mmap(NULL, sizeof(struct world), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    syscall(SYS_close, fd);
    if (found != MAP_FAILED)
        world = found;
    return found == MAP_FAILED ? NULL : found;
}

/* Make the world ready for one schedule of so many processes. Chances, `left` and decisions are put in afterwards. */
void explore_reset(int processes, uint64_t seed) {
    for (int i = 0; i < TASKS; i++)
        memset(&world->tasks[i].state, 0, sizeof(struct task) - offsetof(struct task, state));
    world->said[0] = 0;
    world->steps = world->decisions = world->is_replay = 0;
    world->now = world->offset = world->reads = 0;
    world->random = seed * 0x9e3779b97f4a7c15ull + 1;
    world->event = NO_EVENT;
    world->token = NOBODY;
    for (int i = 0; i < processes; i++) {
        struct task *task = &world->tasks[i];
        task->state = READY;
        task->process = i;
        task->random = seed * 31 + (uint64_t)i;
    }
}

/* Wait for this process's first turn. */
void explore_begin(int process) {
    me = process;
    await_token();
}

/* End this life, and wait for the first turn of the next. Python's lock is free meanwhile: a thread of this life may
 * be left, and one that waited for that lock would read the clock as often as the machine is slow. */
void explore_again(void) {
    int process = me;
    end_task();
    explore_begin(process);
}

/* Add a line to the words of all processes. They outlive this one. */
void explore_say(const char *line) {
    int task = me;
    stop(CALL_SAY, line, NULL);
    size_t length = strlen(world->said);
    snprintf(world->said + length, SAID - length, "%d %lld %s\n", world->tasks[task].process, (long long)world->now, line);
}

/* Return a digest of the schedule's steps. What of a name may be of a pid or an inode's number counts for nothing. */
uint64_t explore_digest(void) {
    uint64_t digest = 0;
    for (int i = 0; i < world->steps; i++) {
        const struct step *step = &world->log[i];
        const int64_t facts[] = {step->task, step->number, step->call, step->action, step->value, step->now};
        for (size_t place = 0; place < sizeof facts / sizeof *facts; place++) {
            digest ^= (uint64_t)facts[place];
            digest = drawn(&digest);
        }
        for (const char *letter = step->path; *letter; letter++)
            if (!strchr("0123456789abcdef", *letter)) {
                digest ^= (uint64_t)(unsigned char)*letter;
                digest = drawn(&digest);
            }
    }
    return digest;
}

int64_t explore_now(void) { return world->now; }
int64_t explore_paused(void) { return world->tasks[me].paused; }

/* Return the pid of a child that has ended by itself, and is not reaped; else 0. */
static pid_t ended_child(void) {
    siginfo_t found;
    found.si_pid = 0;
    waitid(P_ALL, 0, &found, WEXITED | WNOHANG | WNOWAIT);
    return found.si_pid;
}

/* Let the processes go on until something happens that the server has to see to. Return the event. */
int explore_drive(void) {
    world->event = NO_EVENT;
    pass_on(0, 0);
    int64_t tries = 0;
    while (true) {
        uint32_t seen = __atomic_load_n(&world->word, __ATOMIC_SEQ_CST);
        uint32_t event = __atomic_load_n(&world->event, __ATOMIC_SEQ_CST);
        if (event != NO_EVENT)
            return (int)event;
        struct timespec second = {1, 0};
        if (syscall(SYS_futex, &world->word, FUTEX_WAIT, seen, &second, NULL, 0) == 0 || errno != ETIMEDOUT)
            continue;
        pid_t ended = ended_child();
        if (ended) {
            world->event_process = (uint32_t)ended;
            return DIED;
        }
        if (++tries >= world->limit_seconds)
            return STUCK;
    }
}

/* Note that a process has been killed and reaped. */
void explore_dead(int process) {
    for (int i = 0; i < TASKS; i++)
        if (world->tasks[i].state != FREE && world->tasks[i].process == process)
            world->tasks[i].state = DONE, world->tasks[i].is_midway = 0;
    explore_released();
}
