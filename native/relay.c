/* Hands a hook's payload to the session's checker, and prints its answer (docs/architecture.md, "A check").
 *
 *     swarm_relay RELEASE CLIENT EVENT COMMAND...   the payload on standard input; COMMAND is the hook as a process
 *
 * A checker is found by the client that started this hook: <state folder>/checkers/<pid>-<start>. Where none answers,
 * COMMAND is executed with the same payload. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>
#ifdef __APPLE__
#include <sys/sysctl.h>
#define MSG_NOSIGNAL 0
#endif

#define LONGEST_ANSWER (16 * 1024 * 1024)
#define ANCESTORS 8   /* processes between a client and its hook, and the client */
#define BEGIN_MS 50   /* for a busy checker to begin */
#define CHECK_MS 2200 /* for an answer before a tool: a check may wait two seconds for another session's write */
#define EVENT_MS 1000 /* at any other event */

extern char **environ;

static char **command; /* the hook as a process of its own */
static char *payload;
static size_t length, room;
static char folder[4096]; /* of the checkers */

static int64_t now_ns(clockid_t clock) {
    struct timespec now;
    return clock_gettime(clock, &now) ? 0 : now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

#ifdef __APPLE__
static int64_t steady_ns(void) { return (int64_t)clock_gettime_nsec_np(CLOCK_UPTIME_RAW); }
#else
static int64_t steady_ns(void) { return now_ns(CLOCK_MONOTONIC); }
#endif

static bool write_all(int handle, const char *data, size_t count) {
    while (count) {
        ssize_t done = write(handle, data, count);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return false;
        data += done;
        count -= (size_t)done;
    }
    return true;
}

/* Make the payload the standard input once more. A child writes it: no copy of a user's text lies on a disk. */
static bool put_back(void) {
    int ends[2];
    if (pipe(ends) != 0)
        return false;
    pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        write_all(ends[1], payload, length);
        _exit(0);
    }
    close(ends[1]);
    return child > 0 && dup2(ends[0], 0) == 0 && (!ends[0] || close(ends[0]) == 0);
}

/* Note why no checker has answered, for `swarm-mcp doctor`: only where checkers have made the file. */
static void note(const char *why) {
    char path[sizeof folder + 16], line[256];
    snprintf(path, sizeof path, "%s/alone", folder);
    int count = snprintf(line, sizeof line, "%lld %s\n", (long long)time(NULL), why);
    int handle = *folder ? open(path, O_WRONLY | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC) : -1;
    if (handle >= 0 && lseek(handle, 0, SEEK_END) < 65536)
        write_all(handle, line, (size_t)count);
}

/* Execute the hook as a process. A call that cannot be handed over passes: hooks fail open. */
_Noreturn static void run_alone(const char *why, int64_t tried_ns) {
    char began[32];
    if (tried_ns) { /* the checker may have left traces of this call: they are not left twice */
        snprintf(began, sizeof began, "%lld", (long long)tried_ns);
        setenv("SWARM_TRIED_NS", began, 1);
    }
    note(why);
    if (put_back())
        execv(command[0], command);
    _exit(0);
}

static void read_payload(void) {
    for (;;) {
        if (length == room && !(payload = realloc(payload, room = room ? room * 2 : 65536)))
            _exit(0); /* nor would Python find memory for it */
        ssize_t got = read(0, payload + length, room - length);
        if (got < 0 && (errno == EINTR || (errno == EAGAIN && poll(&(struct pollfd){.events = POLLIN}, 1, -1) > 0)))
            continue;
        if (got <= 0)
            return;
        length += (size_t)got;
    }
}

/* Find the folder of the checkers, as swarm_hook_core/state.py does; false where only Python can tell. */
static bool find_folder(void) {
    const char *given = getenv("SWARM_STATE_DIR"), *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    const char *base = given && *given ? given : state && *state ? state : home, *below = "/swarm-mcp";
    if (base == given)
        below = "";
    else if (base == home)
#ifdef __APPLE__
        below = "/Library/Application Support/swarm-mcp";
#else
        below = "/.local/state/swarm-mcp";
#endif
    size_t count = base ? strlen(base) : 0;
    if (!count || base[0] != '/' || base[count - 1] == ' ' || count > sizeof folder - 64)
        return false;
    return snprintf(folder, sizeof folder, "%s%s/checkers", base, below) > 0;
}

/* Find the parent of a process, and its start as swarm_hook_core/process.py names it. */
static bool find_parent(pid_t pid, pid_t *parent, char *start, size_t count) {
#ifdef __linux__
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    int handle = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = handle < 0 ? -1 : read(handle, text, sizeof text - 1);
    if (handle >= 0)
        close(handle);
    if (got <= 0)
        return false;
    text[got] = 0;
    char *field = strrchr(text, ')'), *rest;
    if (!field || !(field = strtok_r(field + 1, " ", &rest)))
        return false;
    for (int number = 1; (field = strtok_r(NULL, " ", &rest)); number++) {
        if (number == 1)
            *parent = (pid_t)atoi(field);
        if (number == 19)
            return snprintf(start, count, "%s", field) > 0;
    }
    return false;
#else
    struct kinfo_proc found;
    size_t size = sizeof found;
    int name[] = {CTL_KERN, KERN_PROC, KERN_PROC_PID, pid};
    if (sysctl(name, 4, &found, &size, NULL, 0) != 0 || !size)
        return false;
    *parent = found.kp_eproc.e_ppid;
    return snprintf(start, count, "%lld", (long long)found.kp_proc.p_starttime.tv_sec) > 0;
#endif
}

/* Tell if the process at the other end is a server that this client has started: whoever put a socket of his own in the
 * place of a checker's is none. */
static bool is_server_of(int handle, pid_t client) {
    char start[32];
    pid_t pid = 0;
#ifdef __linux__
    char path[64], words[4096];
    struct ucred peer;
    socklen_t size = sizeof peer;
    if (getsockopt(handle, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 || peer.uid != geteuid())
        return false;
    pid = peer.pid;
    snprintf(path, sizeof path, "/proc/%d/cmdline", (int)pid);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = file < 0 ? -1 : read(file, words, sizeof words - 1);
    if (file >= 0)
        close(file);
    words[got < 0 ? 0 : got] = 0;
    if (got <= 0 || !(memmem(words, (size_t)got, "\0serve", 7) || memmem(words, (size_t)got, "\0acp", 5)))
        return false;
#else
    uid_t user;
    gid_t group;
    socklen_t size = sizeof pid;
    if (getpeereid(handle, &user, &group) != 0 || user != geteuid() ||
        getsockopt(handle, 0, 2 /* LOCAL_PEERPID */, &pid, &size) != 0)
        return false;
#endif
    for (int hop = 0; hop < ANCESTORS && pid > 1; hop++) {
        if (pid == client)
            return true;
        if (!find_parent(pid, &pid, start, sizeof start))
            return false;
    }
    return false;
}

/* Connect to the checker of the nearest ancestor that has one; -1 if there is none. Never wait. */
static int connected(void) {
    int there = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct stat found;
    if (there < 0 || fstat(there, &found) != 0 || found.st_uid != geteuid() || (found.st_mode & 077))
        return -1;
    pid_t pid = getppid(), over = 0;
    char start[32];
    for (int hop = 0; hop < ANCESTORS && pid > 1 && find_parent(pid, &over, start, sizeof start); hop++, pid = over) {
        struct sockaddr_un name = {.sun_family = AF_UNIX};
#ifdef __linux__
        int count = snprintf(name.sun_path, sizeof name.sun_path, "/proc/self/fd/%d/%d-%s", there, (int)pid, start);
#else
        int count = snprintf(name.sun_path, sizeof name.sun_path, "%s/%d-%s", folder, (int)pid, start);
#endif
        int handle = socket(AF_UNIX, SOCK_STREAM, 0);
        if (handle < 0 || count >= (int)sizeof name.sun_path)
            return -1;
        fcntl(handle, F_SETFD, FD_CLOEXEC);
        fcntl(handle, F_SETFL, O_NONBLOCK);
        if (connect(handle, (struct sockaddr *)&name, sizeof name) == 0 && is_server_of(handle, pid))
            return handle;
        close(handle);
    }
    return -1;
}

/* Send (`is_sent`) or receive `count` bytes; the count that is missing at an end, or once the time is over. */
static size_t move_all(int handle, char *data, size_t count, bool is_sent, int64_t end_ns) {
    struct pollfd one = {.fd = handle, .events = is_sent ? POLLOUT : POLLIN};
    while (count) {
        int64_t left_ms = (end_ns - steady_ns() + 999999) / 1000000;
        if (left_ms <= 0 || (poll(&one, 1, (int)left_ms) <= 0 && errno != EINTR))
            break;
        ssize_t done = is_sent ? send(handle, data, count, MSG_NOSIGNAL) : recv(handle, data, count, 0);
        if (done == 0 || (done < 0 && errno != EINTR && errno != EAGAIN))
            break;
        data += done > 0 ? done : 0;
        count -= done > 0 ? (size_t)done : 0;
    }
    return count;
}

/* Add one word of the head, with the NUL behind it. */
static void add(char **head, size_t *count, const char *word) {
    size_t more = strlen(word) + 1;
    char *grown = realloc(*head, *count + more);
    if (!grown)
        run_alone("no memory", 0);
    memcpy(grown + *count, word, more);
    *head = grown;
    *count += more;
}

/* Return the head of a request: words that end with a NUL each, then the environment. */
static char *head_of(char **words, int64_t end_ns, size_t *count) {
    char *head = NULL, text[64], here[4096];
    for (int place = 1; place < 4; place++)
        add(&head, count, words[place]);
    snprintf(text, sizeof text, "%d", (int)getppid());
    add(&head, count, text);
    snprintf(text, sizeof text, "%lld", (long long)end_ns);
    add(&head, count, text);
    add(&head, count, getcwd(here, sizeof here) ? here : "");
    for (char **variable = environ; *variable; variable++)
        add(&head, count, *variable);
    return head;
}

int main(int count, char **words) {
    char begun, sizes[32], *answer;
    unsigned status, answer_length;
    size_t head_length = 0;
    if (count < 5)
        return 0; /* no hook: nothing is said */
    command = words + 4;
    read_payload(); /* a client may take its time over it */
    int64_t limit_ms = strcmp(words[3], "pre_tool_use") ? EVENT_MS : CHECK_MS;
    int64_t end_ns = steady_ns() + limit_ms * 1000000, tried_ns = now_ns(CLOCK_REALTIME);
    int checker = find_folder() ? connected() : -1;
    if (checker < 0)
        run_alone("none", 0);
    if (move_all(checker, &begun, 1, false, steady_ns() + BEGIN_MS * 1000000))
        run_alone("busy", 0);
    char *head = head_of(words, end_ns, &head_length);
    snprintf(sizes, sizeof sizes, "%08zx%08zx", head_length, length);
    if (move_all(checker, sizes, 16, true, end_ns) || move_all(checker, head, head_length, true, end_ns) ||
        move_all(checker, payload, length, true, end_ns))
        run_alone("not taken", tried_ns);
    sizes[10] = 0;
    if (move_all(checker, sizes, 10, false, end_ns) || sscanf(sizes, "%2x%8x", &status, &answer_length) != 2 ||
        answer_length > LONGEST_ANSWER || !(answer = malloc(answer_length + 1)) ||
        move_all(checker, answer, answer_length, false, end_ns))
        run_alone("not answered", tried_ns);
    write_all(1, answer, answer_length);
    return (int)status;
}
