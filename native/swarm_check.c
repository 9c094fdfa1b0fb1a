/* A first look at a tool call, in front of the check in Python.
 *
 *     swarm_check CONTRACT RUNTIME COMMAND...   the payload on standard input; COMMAND is the check in Python
 *     swarm_check --contract                    prints the number of its contract
 *
 * The order of the questions is the one of swarm_hook_core/check/rules.py for a call that names its files: the
 * environment and the state folder, the paths, locks and news in the store, the journals of the repository. A call
 * beside others is noted before their journals are read: of two calls at one moment at least one sees the other. */
#include "swarm_check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef SWARM_SYSTEM_SQLITE
#include "sqlite3.h"
#endif

static int64_t written_ns[MOST_TARGETS]; /* the times of the entries `wrote` */

/* Leave the traces of a write: the versions before it, its entries, its input. */
static void note_writes(const struct call *call, const struct ground *ground, bool is_beside_others) {
    char state[160];
    int64_t first_ns = 0, at_ns = 0;
    for (size_t place = 0; place < call->count; place++) {
        const char *path = call->targets[place].path;
        written_ns[place] = at_ns = now_ns();
        first_ns = place ? first_ns : at_ns;
        keep_before(ground, path, at_ns, is_beside_others, true);
        state_of(state, sizeof state, path);
        add_entries_of(at_ns, "wrote", call, path, state);
    }
    keep_input(call, ground, first_ns, at_ns);
    append_entries(call, ground);
}

/* Withdraw the noted writes: Python checks the call, and must not take them for earlier ones of the session. */
static void withdraw_writes(const struct call *call, const struct ground *ground) {
    for (size_t place = 0; place < call->count; place++)
        add_entries_of(written_ns[place], "wont", call, call->targets[place].path, "wrote");
    append_entries(call, ground);
}

/* Note the intended writes, before others' traces are looked at. */
static void note_intended(const struct call *call, const struct ground *ground) {
    char state[160];
    int64_t at_ns = now_ns();
    for (size_t place = 0; place < call->count; place++) {
        state_of(state, sizeof state, call->targets[place].path);
        add_entries_of(at_ns, "will", call, call->targets[place].path, state);
    }
    append_entries(call, ground);
}

/* Leave the traces of a write that nothing is in the way of, the last journals of others still to be read. */
static void pass_write(const struct call *call, const struct ground *ground) {
    if (!has_company(ground)) {
        note_writes(call, ground, false);
        if (has_company(ground)) {
            withdraw_writes(call, ground);
            hand_over("another session has come");
        }
        return;
    }
    note_own_files(call, ground);
    note_intended(call, ground);
    look_at_others(call, ground);
    note_writes(call, ground, true);
}

static void judge(struct text payload, struct call *call) {
    static struct ground ground;
    static struct locks locks;
    int64_t began_ns;
    parse_call(payload, call);
    find_ground(call, &ground);
    if (call->command) {
        judge_command(call, &ground);
        return;
    }
    read_own(&ground);
    for (size_t place = 0; place < call->count; place++)
        if (call->targets[place].how == REPLACE && call->targets[place].exists)
            check_replaced(&ground, call->targets[place].path);
    locks.wants_near = true;
    ask_store(call, &ground, &locks);
    if (locks.of_others) {
        check_record(call, &ground, &began_ns);
        prepare_record(call, &ground, &locks, began_ns);
    } else {
        check_record_young(call, &ground);
    }
    if (is_watching(&ground))
        mark_own(call, &ground, locks.session);
    pass_write(call, &ground);
    if (locks.of_others)
        leave_record(call, &ground);
}

int main(int count, char **words) {
    static struct call call;
    static struct text payload;
    if (count == 2 && !strcmp(words[1], "--contract")) {
#ifdef SWARM_SYSTEM_SQLITE
        if (!has_system_sqlite())
            return 1; /* the check in Python would run each time */
#endif
        printf("%d\n", CONTRACT);
        return 0;
    }
    if (count < 4)
        return 0; /* no hook: nothing is said */
    set_check(words + 3);
    if (atoi(words[1]) != CONTRACT) {
        execv(words[3], words + 3);
        return 0;
    }
    read_payload(&payload);
    set_deadline();
    call.runtime = words[2];
    judge(payload, &call);
    return 0;
}
