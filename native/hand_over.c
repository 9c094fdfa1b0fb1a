/* The payload, and the way to the check in Python. */
#include "swarm_check.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef DEADLINE_SECONDS
#define DEADLINE_SECONDS 1 /* a file system may hang */
#endif

static char payload[PAYLOAD_BYTES];
static size_t payload_length;
static bool is_whole;  /* the payload was read to its end */
static char **check;   /* the command of the check in Python */

void set_check(char **command) { check = command; }

static bool write_all(int handle, const char *data, size_t length) {
    while (length) {
        ssize_t done = write(handle, data, length);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return false;
        data += done;
        length -= (size_t)done;
    }
    return true;
}

/* Write the payload, and the part of it that was not read yet. */
static bool write_payload(int handle) {
    static char rest[64 * 1024];
    if (!write_all(handle, payload, payload_length))
        return false;
    while (!is_whole) {
        ssize_t got = read(0, rest, sizeof rest);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return true;
        if (!write_all(handle, rest, (size_t)got))
            return false;
    }
    return true;
}

/* Make the payload the standard input once more, by a file in memory. */
static bool put_into_memory(void) {
#ifdef __linux__
    int handle = memfd_create("payload", MFD_CLOEXEC);
    if (handle < 0)
        return false;
    bool is_put = write_payload(handle) && lseek(handle, 0, SEEK_SET) == 0 && dup2(handle, 0) == 0;
    close(handle);
    return is_put;
#else
    return false;
#endif
}

/* The same by a child that writes into a pipe: no copy of a user's text lies on a disk. */
static bool put_into_pipe(void) {
    int ends[2];
    if (pipe(ends) != 0)
        return false;
    pid_t child = fork();
    if (child < 0)
        return false;
    if (child == 0) {
        close(ends[0]);
        write_payload(ends[1]);
        _exit(0);
    }
    close(ends[1]);
    bool is_put = dup2(ends[0], 0) == 0;
    close(ends[0]);
    return is_put;
}

/* Execute the check in Python. A call that cannot be handed over passes: the hooks fail open. */
_Noreturn void hand_over(const char *why) {
    alarm(0);
#ifdef SWARM_EXPLAIN
    (void)!write(2, why, strlen(why));
    (void)!write(2, "\n", 1);
#else
    (void)why;
#endif
    /* Memory may be short, or files limited in size. What is still to be read would be lost in a first attempt. */
    if ((is_whole && put_into_memory()) || put_into_pipe())
        execv(check[0], check);
    _exit(0);
}

static void is_late(int signal_number) {
    (void)signal_number;
    hand_over("late");
}

/* Hand over if this program is not done in time. */
void set_deadline(void) {
    struct sigaction action;
    sigset_t late;
    memset(&action, 0, sizeof action);
    action.sa_handler = is_late;
    action.sa_flags = SA_NODEFER; /* the signal is not blocked in the check */
    sigaction(SIGALRM, &action, NULL);
    sigemptyset(&late);
    sigaddset(&late, SIGALRM);
    sigprocmask(SIG_UNBLOCK, &late, NULL); /* a client may have blocked it */
    alarm(DEADLINE_SECONDS);
}

void read_payload(struct text *found) {
    signal(SIGXFSZ, SIG_IGN); /* as in Python: a write over the limit of file sizes is an error, and does not kill */
    while (payload_length < sizeof payload) {
        ssize_t got = read(0, payload + payload_length, sizeof payload - payload_length);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            hand_over("standard input cannot be read");
        if (got == 0) {
            is_whole = true;
            break;
        }
        payload_length += (size_t)got;
    }
    if (!is_whole)
        hand_over("a long payload");
    found->at = payload;
    found->length = payload_length;
}
