/* The world that all explored processes share, and the passing of the token: only its holder runs. */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PROCESSES = 4, TASKS = 16, STEPS = 30000, DECISIONS = 512, SAID = 32768, NOBODY = -1 };
enum state { FREE, READY, ASLEEP, AT_LOCK, AT_SEMAPHORE, DONE };
enum action { GO_ON, SWITCH, KILL, FAIL, JUMP, PAUSE, SHORT };
enum event { NO_EVENT, ALL_DONE, KILLED, DEADLOCK, TOO_LONG, STUCK, DIED };
enum { STEP_NS = 20000, READ_NS = 1000, FREE_READS = 500, TICK_NS = 4000000, CALL_WRITE = 2, A_PART = -1 };
/* Calls that change something: write, rename, link, unlink, fsync, truncate, unlock, utime, say (`CALLS` in calls.c). */
enum { OUTSIDE = 8 }; /* so many times as often is a process killed, or fails, outside of the store as in it */
enum { CHANGES = 1 << 2 | 1 << 4 | 1 << 5 | 1 << 6 | 1 << 12 | 1 << 13 | 1 << 15 | 1 << 17 | 1 << 21 };
#define EPOCH 1900000000000000000ll /* the virtual time of day at the beginning (ns) */
/* The time since the machine's start: 10 years, later than on real machines. A wait until a time of this clock that
 * goes by a real one would never end, on all machines alike. */
#define UPTIME 315360000000000000ll

/* A thread that is scheduled: one for each process, and those that it starts. */
struct task {
    uint32_t word; /* grows with each turn, over all schedules: a wait that a signal interrupts compares it again */
    int32_t state, process, number;
    uint32_t is_midway; /* it may have its interpreter's lock: other threads of it cannot run */
    int64_t wakes_at, paused;
    uint64_t semaphore, random;
};

/* What was decided, other than to go on, at the `number`-th stop of a task. */
struct decision {
    int32_t task, number, action, value;
};

struct step {
    int32_t task, number, call, action, value, result, process;
    int64_t now;
    char path[100];
};

struct world {
    uint32_t word, event, event_process, is_virtual;
    int32_t token, reads, has_power_cuts, limit_seconds;
    int64_t now, offset;
    uint64_t random;
    uint32_t chances[SHORT + 1]; /* of each action at a stop, of 65,536 */
    int32_t left[SHORT + 1];     /* of each action in this schedule */
    int32_t is_replay, decisions, steps, root_length;
    struct task tasks[TASKS];
    struct decision decided[DECISIONS];
    char root[256], job[4096], said[SAID];
    struct step log[STEPS];
};

extern struct world *world;
extern __thread int me; /* the task of this thread, or NOBODY */

static uint64_t drawn(uint64_t *state) {
    uint64_t z = (*state += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

static void wake(uint32_t *word) {
    __atomic_add_fetch(word, 1, __ATOMIC_SEQ_CST);
    syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static void hand_to(int task) {
    __atomic_store_n(&world->token, task, __ATOMIC_SEQ_CST);
    wake(&world->tasks[task].word);
}

static void tell(enum event event, int process) {
    world->event_process = (uint32_t)process;
    __atomic_store_n(&world->event, event, __ATOMIC_SEQ_CST);
    wake(&world->word);
}

static void await_token(void) {
    struct task *own = &world->tasks[me];
    while (true) {
        uint32_t seen = __atomic_load_n(&own->word, __ATOMIC_SEQ_CST);
        if (__atomic_load_n(&world->token, __ATOMIC_SEQ_CST) == me)
            return;
        syscall(SYS_futex, &own->word, FUTEX_WAIT, seen, NULL, NULL, 0);
    }
}

static void end_sleep(void) {
    for (int i = 0; i < TASKS; i++) {
        struct task *one = &world->tasks[i];
        if ((one->state == ASLEEP || one->state == AT_SEMAPHORE) && one->wakes_at <= world->now)
            one->state = READY;
    }
}

static bool can_run(int task) {
    if (world->tasks[task].state != READY)
        return false;
    for (int i = 0; i < TASKS; i++)
        if (i != task && world->tasks[i].is_midway && world->tasks[i].process == world->tasks[task].process)
            return false;
    return true;
}

static int count_ready(int without) {
    int found = 0;
    for (int i = 0; i < TASKS; i++)
        found += i != without && can_run(i);
    return found;
}

static int nth_ready(int without, int nth) {
    for (int i = 0; i < TASKS; i++)
        if (i != without && can_run(i) && nth-- == 0)
            return i;
    return NOBODY;
}

static void note_decision(int task, int number, enum action action, int value) {
    if (!world->is_replay && world->decisions < DECISIONS)
        world->decided[world->decisions++] = (struct decision){task, number, action, value};
}

static struct decision *replayed(int task, int number) {
    for (int i = 0; i < world->decisions; i++)
        if (world->decided[i].task == task && world->decided[i].number == number)
            return &world->decided[i];
    return NULL;
}

/* Return the task to run after one that cannot go on; NOBODY if all are done, or wait for each other. */
static int next_task(int after, int number) {
    end_sleep();
    while (!count_ready(NOBODY)) { /* who wakes first may not run yet: another thread of its process is paused */
        int64_t first = INT64_MAX;
        for (int i = 0; i < TASKS; i++) {
            struct task *one = &world->tasks[i];
            if ((one->state == ASLEEP || one->state == AT_SEMAPHORE) && one->wakes_at < first)
                first = one->wakes_at;
        }
        if (first == INT64_MAX)
            return NOBODY;
        world->now = first;
        end_sleep();
    }
    int ready = count_ready(NOBODY), usual = nth_ready(NOBODY, 0);
    if (world->is_replay) {
        struct decision *decision = replayed(after, number);
        if (decision && decision->action == SWITCH && can_run(decision->value))
            return decision->value;
        return usual;
    }
    if (ready == 1)
        return usual;
    int chosen = nth_ready(NOBODY, (int)(drawn(&world->random) % (uint64_t)ready));
    if (chosen != usual)
        note_decision(after, number, SWITCH, chosen);
    return chosen;
}

static bool is_over(void) {
    for (int i = 0; i < TASKS; i++)
        if (world->tasks[i].state != FREE && world->tasks[i].state != DONE)
            return false;
    return true;
}

/* Pass the token on, from a task that ends or waits. */
static void pass_on(int after, int number) {
    int next = next_task(after, number);
    if (next != NOBODY) {
        hand_to(next);
        return;
    }
    world->token = NOBODY;
    tell(is_over() ? ALL_DONE : DEADLOCK, 0);
}

static void give_way(enum state state) {
    struct task *own = &world->tasks[me];
    int saved = errno;
    own->state = state;
    pass_on(me, ++own->number);
    await_token();
    own->state = READY;
    errno = saved;
}

static void sleep_until(int64_t at) {
    struct task *own = &world->tasks[me];
    own->wakes_at = at;
    give_way(ASLEEP);
}

static void end_by_kill(void) {
    struct task *own = &world->tasks[me];
    world->token = NOBODY;
    tell(KILLED, own->process);
    kill((pid_t)syscall(SYS_getpid), SIGKILL);
    while (true)
        pause();
}

static __thread bool is_full; /* the last write took a part: on a full disk the next one may fail */

static enum action chosen_action(int call, const char *path, const int *errors, int *value) {
    uint64_t draw = drawn(&world->random);
    for (enum action action = SWITCH; action <= SHORT; action++, draw = drawn(&world->random)) {
        uint32_t chance = world->chances[action];
        if ((action == KILL || action == FAIL) && !strstr(path, ".db"))
            chance *= OUTSIDE;
        if (action == FAIL && is_full && call == CALL_WRITE)
            chance = 1 << 15;
        if (world->left[action] <= 0 || (draw & 0xffff) >= chance)
            continue;
        if (action == KILL && !(CHANGES >> call & 1))
            continue; /* a kill before the next change is the same */
        if (action == SHORT && call != CALL_WRITE)
            continue;
        uint64_t more = draw >> 16;
        static const int pauses[] = {1, 5, 30, 100, 400, 1000}, jumps[] = {-70000, -3600, -5, 2, 700, 70000};
        if (action == SWITCH) {
            int others = count_ready(me);
            if (!others)
                continue;
            *value = nth_ready(me, (int)(more % (uint64_t)others));
        } else if (action == FAIL) {
            int count = 0;
            while (errors && errors[count])
                count++;
            if (!count)
                continue;
            *value = errors[more % (uint64_t)count];
        } else if (action == JUMP) {
            *value = jumps[more % 6];
        } else if (action == PAUSE) {
            *value = pauses[more % 6];
        } else if (action == KILL && world->has_power_cuts) {
            *value = 1 + (int)(more % 4); /* power fails; the bits say of two files what is left of them */
        }
        world->left[action]--;
        is_full = action == SHORT;
        return action;
    }
    is_full = false;
    return GO_ON;
}

/* Stop before a call that others can see. Return 0, the number of the error that the call has to fail with,
 * or A_PART for a write that takes a part of its data only, which is no failure. */
static int stop(int call, const char *path, const int *errors) {
    struct task *own = &world->tasks[me];
    int number = ++own->number, value = 0, saved = errno;
    enum action action = GO_ON;
    own->is_midway = 1;
    world->now += STEP_NS;
    world->reads = 0;
    end_sleep();
    if (world->is_replay) {
        struct decision *decision = replayed(me, number);
        if (decision && (decision->action != SHORT || call == CALL_WRITE)) { /* fewer decisions lead to other calls */
            action = (enum action)decision->action;
            value = decision->value;
        }
    } else {
        action = chosen_action(call, path, errors, &value);
        if (action != GO_ON)
            note_decision(me, number, action, value);
    }
    if (world->steps < STEPS) {
        struct step *step = &world->log[world->steps++];
        *step = (struct step){me, number, call, action, value, 0, own->process, world->now, ""};
        snprintf(step->path, sizeof step->path, "%s", path);
    } else {
        tell(TOO_LONG, own->process);
        while (true)
            pause();
    }
    if (action == SWITCH && can_run(value)) {
        hand_to(value);
        await_token();
    } else if (action == KILL) {
        end_by_kill();
    } else if (action == JUMP) {
        world->offset += value * 1000000000ll;
    } else if (action == PAUSE) {
        own->paused += value * 1000000ll;
        sleep_until(world->now + value * 1000000ll);
    }
    own->is_midway = 0;
    errno = saved;
    if (action == SHORT)
        return A_PART;
    return action == FAIL ? value : 0;
}
