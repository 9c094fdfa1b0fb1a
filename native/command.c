/* A command of the shell that only reads: it leaves an entry, or the looks at the files that it shows. */
#include "swarm_check.h"

#include <string.h>

#define LONGEST 1000 /* characters */

/* Words of commands that use or move HEAD; as ``check._OF_HEAD``. */
static const char *const of_head[] = {"commit", "checkout", "switch", "reset", "rebase", "merge",
                                      "pull",   "branch",   "push",   "stash", ".lock",  NULL};
/* Marks of a command that may lead to any lock; as ``opaque_calls.concerns``. */
static const char *const of_places[] = {"/", "~", "$", "..", "cd", "`", NULL};

static bool has_any(const char *text, const char *const *marks) {
    for (; *marks; marks++)
        if (strstr(text, *marks))
            return true;
    return false;
}

/* Return if no text in the input speaks of a protection. */
static void check_texts(const struct node *value) {
    static char text[PAYLOAD_BYTES];
    if (value->kind == JSON_TEXT) {
        decoded(value, text, sizeof text);
        if (speaks_of_protection(text))
            hand_over("a text that may concern a protection");
    }
    for (const struct node *inner = value->first; inner; inner = inner->next)
        check_texts(inner);
}

/* Leave the trace of a command of a session that is alone in the repository. */
static void judge_alone(const struct call *call, const struct ground *ground, const struct look *look,
                        const struct locks *locks, const char *text) {
    int64_t at_ns = now_ns();
    bool is_read = false; /* in Python, by its reader, for the locks of others */
    if (may_destroy(text) || may_lead_elsewhere(text, call, ground))
        hand_over("a command that may meet others");
    if (strstr(text, "git") && has_any(text, of_head))
        hand_over("a command about HEAD");
    if (locks->of_others) {
        is_read = has_any(text, of_places) || locks->count;
        if (look->runs || (!is_read && locks->are_near))
            hand_over("a command near a lock");
    }
    if (!is_read)
        keep_own_files(call, ground, at_ns);
    else
        at_ns = now_ns();
    if (!is_read || look->count)
        add_entry(at_ns, "ran", call, call->folder, text);
    append_entries(call, ground);
    if (has_company(ground)) { /* Python checks the call, and must not take it for an earlier one */
        if (!is_read || look->count)
            add_entry(at_ns, "wont", call, call->folder, "wrote");
        append_entries(call, ground);
        hand_over("another session has come");
    }
}

void judge_command(const struct call *call, const struct ground *ground) {
    static char text[LONGEST + 1];
    static struct look look;
    static struct locks locks;
    if (call->command->raw.length > LONGEST)
        hand_over("a long command");
    decoded(call->command, text, sizeof text);
    if (strpbrk(text, "\\\n") || !look_at_command(text, &look))
        hand_over("no plain command");
    check_texts(call->input);
    bool is_alone = !has_company(ground);
    locks.wants_near = is_alone && !has_any(text, of_places);
    ask_store(call, ground, &locks);
    if (!is_alone || locks.any) {
        check_record_young(call, ground);
        if (is_watching(ground))
            mark_own(call, ground, locks.session);
    }
    if (is_alone) {
        judge_alone(call, ground, &look, &locks, text);
        return;
    }
    if (look.runs && locks.of_others)
        hand_over("a command that Python knows more of");
    read_own(ground);
    note_own_files(call, ground);
    append_entries(call, ground);
    check_head(ground);
    if (look.runs) {
        int64_t at_ns = now_ns();
        keep_own_files(call, ground, at_ns);
        add_entry(at_ns, "runs", call, call->folder, "");
    }
    note_looks(call, ground, &look);
    append_entries(call, ground);
}
