/* The call in a payload: its session, its tool, and the files or the command that it names. */
#include "swarm_check.h"

#include <string.h>

static void copy_text(char *into, size_t room, struct text text) {
    if (text.length >= room)
        hand_over("a long text");
    memcpy(into, text.at, text.length);
    into[text.length] = 0;
}

/* Return the plain text of a member; one that is missing, odd or spelled with escapes sends the call to Python. */
static struct text plain_member(const struct node *object, const char *name) {
    const struct node *member = member_of(object, name);
    if (!member || member->kind != JSON_TEXT || member->has_escapes || !is_plain(member->raw.at, member->raw.length))
        hand_over("a member is missing or odd");
    return member->raw;
}

static void refuse(const struct node *object, const char *const *names) {
    for (; *names; names++)
        if (member_of(object, *names))
            hand_over(*names);
}

/* Add the file `spelled`, counted from the call's folder, to the call. */
static void add_target(struct call *call, struct text spelled, enum how how) {
    char text[PATH_BYTES];
    if (!spelled.length || !is_plain(spelled.at, spelled.length) || spelled.at[0] == ' ' ||
        spelled.at[spelled.length - 1] == ' ')
        hand_over("an odd path");
    if (call->count == MOST_TARGETS)
        hand_over("many files");
    struct target *target = &call->targets[call->count++];
    copy_text(text, sizeof text, spelled);
    if (text[0] == '/')
        join(target->path, sizeof target->path, text, "", "");
    else
        join(target->path, sizeof target->path, call->folder, "/", text);
    target->how = how;
    for (size_t place = 0; place + 1 < call->count; place++)
        if (!strcmp(call->targets[place].path, target->path))
            hand_over("a file twice");
}

static bool begins(struct text text, const char *start) {
    size_t length = strlen(start);
    return text.length >= length && memcmp(text.at, start, length) == 0;
}

static struct text after(struct text text, size_t length) { return (struct text){text.at + length, text.length - length}; }

/* Read the line of a patch that begins at `text`, a mark of three stars; return false at the patch's end. */
static bool read_mark(struct call *call, struct text text) {
    static const char end[] = "*** End Patch", add[] = "*** Add File: ", update[] = "*** Update File: ";
    const char *line_end = memchr(text.at, '\n', text.length);
    struct text line = {text.at, line_end ? (size_t)(line_end - text.at) : text.length};
    if (begins(line, end)) {
        if (line.length != sizeof end - 1 || text.length - line.length > 1)
            hand_over("text behind a patch");
        return false;
    }
    if (begins(line, add))
        add_target(call, after(line, sizeof add - 1), REPLACE);
    else if (begins(line, update))
        add_target(call, after(line, sizeof update - 1), EDIT);
    else if (!begins(line, "*** End of File") || !call->count)
        hand_over("another header");
    return true;
}

/* Read a patch: its envelope, and headers of files that are added or changed. */
static void read_patch(struct call *call, const struct node *command) {
    static const char begin[] = "*** Begin Patch\n";
    static char room[PAYLOAD_BYTES];
    struct text text = decoded(command, room, sizeof room);
    if (!begins(text, begin))
        hand_over("no patch");
    text = after(text, sizeof begin - 1);
    for (;;) {
        const char *stars = memmem(text.at, text.length, "***", 3);
        if (!stars)
            hand_over("a patch without an end");
        char before = stars[-1]; /* the envelope's first line is before it */
        text = after(text, (size_t)(stars - text.at));
        if (before == '\n') {
            if (!read_mark(call, text))
                break;
        } else if (before <= ' ' || before > '~') {
            hand_over("a mark behind blanks");
        }
        text = after(text, 3);
    }
    if (!call->count)
        hand_over("a patch without files");
}

/* Read a call of Claude Code's tools for files. */
static bool read_edit(struct call *call) {
    static const char *const of_file[] = {"notebook_path", "path", "file", "filepath", NULL};
    static const char *const of_notebook[] = {"file_path", "path", "file", "filepath", NULL};
    bool is_notebook = !strcmp(call->tool, "NotebookEdit"), is_write = !strcmp(call->tool, "Write");
    if (!is_notebook && !is_write && strcmp(call->tool, "Edit") != 0 && strcmp(call->tool, "MultiEdit") != 0)
        return false;
    refuse(call->input, is_notebook ? of_notebook : of_file);
    add_target(call, plain_member(call->input, is_notebook ? "notebook_path" : "file_path"), is_write ? REPLACE : EDIT);
    return true;
}

void parse_call(struct text payload, struct call *call) {
    /* Members that Python reads as well, and that few calls have. */
    static const char *const odd[] = {"agent_id",    "agent",         "client_tool", "input_is_cut",
                                      "takes_input", "tool_response", "error",       NULL};
    const struct node *outer = parse_json(payload);
    if (outer->kind != JSON_OBJECT)
        hand_over("no object");
    refuse(outer, odd);
    struct text session = plain_member(outer, "session_id");
    copy_text(call->session, 65, session);
    if (!*call->session || strspn(call->session, ID_SIGNS) != session.length)
        hand_over("an odd session");
    copy_text(call->folder, sizeof call->folder, plain_member(outer, "cwd"));
    copy_text(call->tool, sizeof call->tool, plain_member(outer, "tool_name"));
    if (!*call->tool || strspn(call->tool, ID_SIGNS "_") != strlen(call->tool))
        hand_over("an odd tool");
    call->input = member_of(outer, "tool_input");
    call->id = member_of(outer, "tool_use_id");
    if (!call->input || call->input->kind != JSON_OBJECT)
        hand_over("no input");
    if (call->id && call->id->kind != JSON_TEXT)
        hand_over("an odd id");

    const struct node *command = member_of(call->input, "command");
    bool is_text = command && command->kind == JSON_TEXT;
    if (!strcmp(call->tool, "Bash") && is_text) {
        call->command = command;
    } else if (!strcmp(call->runtime, "codex") && !strcmp(call->tool, "apply_patch")) {
        if (!is_text || call->input->first->next)
            hand_over("no patch alone");
        read_patch(call, command);
    } else if (strcmp(call->runtime, "claude-code") != 0 || !read_edit(call)) {
        hand_over("another tool");
    }
}
