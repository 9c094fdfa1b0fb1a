/* A fuzz target: the parts of swarm_check that read bytes of others, with the payload or a journal from the fuzzer.
 *
 * The first byte of an input chooses the part, the rest are its bytes. Three signs stand for texts that differ from run
 * to run: 1 for the work tree, 2 for the present time, 3 for a time half an hour ago; 4 stands for a NUL. `native/fuzz/fuzz.py` builds and
 * feeds it: by libFuzzer, or by its own mutations where the compiler has no libFuzzer. `hand_over` ends a run. */
#include "../journal.c" /* its collected entries are emptied between two runs, as are the values of json.c */
#include "../json.c"

#include <setjmp.h>
#include <stdlib.h>

#define MOST 65536 /* bytes of an input */

static jmp_buf start;
static DIR *listed; /* the folder that is being listed: `hand_over` leaves it open */
static int first_handle;
static char base[64], work[96], own_journal[PATH_BYTES], other_journal[PATH_BYTES], kept[PATH_BYTES];
static struct ground ground;
static struct call call;

DIR *__real_opendir(const char *path);
int __real_closedir(DIR *folder);
DIR *__wrap_opendir(const char *path);
int __wrap_closedir(DIR *folder);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* SQLite is not the target's: no other session has a lock. */
void ask_store(const struct call *one, const struct ground *two, struct locks *found) {
    (void)one;
    (void)two;
    memset(found, 0, sizeof *found);
}

_Noreturn void hand_over(const char *why) {
    (void)why;
    longjmp(start, 1);
}

/* By the linker's option --wrap. */
DIR *__wrap_opendir(const char *path) { return listed = __real_opendir(path); }

int __wrap_closedir(DIR *folder) {
    listed = NULL;
    return __real_closedir(folder);
}

static void make(const char *path) {
    if (mkdir(path, 0700) != 0 && errno != EEXIST)
        abort();
}

static void put(const char *path, const char *text, size_t length) {
    int handle = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (handle < 0 || write(handle, text, length) != (ssize_t)length)
        abort();
    close(handle);
}

static void put_in(const char *folder, const char *name, const char *text) {
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    put(path, text, strlen(text));
}

/* Make a home with a store and a work tree, once. */
static void prepare(void) {
    static const char *const folders[] = {"/home",        "/home/.local", "/home/.local/state", "/home/.local/state/swarm-mcp",
                                          "/home/.local/state/swarm-mcp/traces", "/home/.local/state/swarm-mcp/kept",
                                          "/home/.local/state/swarm-mcp/settled", "/home/.swarm-mcp", "/work", "/work/.git",
                                          "/work/sub",    NULL};
    char path[PATH_BYTES];
    const char *temporary = getenv("TMPDIR");
    struct stat git;
    snprintf(base, sizeof base, "%s/swarm-fuzz-XXXXXX", temporary && strlen(temporary) < 40 ? temporary : "/tmp");
    if (!mkdtemp(base))
        abort();
    for (const char *const *folder = folders; *folder; folder++) {
        snprintf(path, sizeof path, "%s%s", base, *folder);
        make(path);
    }
    snprintf(path, sizeof path, "%s/home", base);
    setenv("HOME", path, 1);
    unsetenv("XDG_STATE_HOME");
    unsetenv("XDG_CONFIG_HOME");
    unsetenv("SWARM_DB_PATH");
    put_in(path, ".swarm-mcp/swarm.db", "x");
    snprintf(work, sizeof work, "%s/work", base);
    put_in(work, "notes.md", "notes\n");
    put_in(work, "sub/deep.md", "deep\n");
    snprintf(path, sizeof path, "%s/.git", work);
    if (stat(path, &git) != 0)
        abort();
    call.runtime = "claude-code";
    strcpy(call.session, "11111111-1111-4111-8111-111111111111");
    strcpy(call.tool, "Edit");
    snprintf(call.folder, sizeof call.folder, "%s", work);
    snprintf(call.targets[0].path, sizeof call.targets[0].path, "%s/sub/deep.md", work);
    call.count = 1;
    snprintf(ground.state, sizeof ground.state, "%s/home/.local/state/swarm-mcp", base);
    snprintf(ground.top, sizeof ground.top, "%s", work);
    snprintf(ground.place, sizeof ground.place, "%llx.%llx", (unsigned long long)git.st_dev, (unsigned long long)git.st_ino);
    snprintf(ground.name, sizeof ground.name, "%s.%s", call.runtime, call.session);
    char state[PATH_BYTES];
    snprintf(state, sizeof state, "%s", ground.state);
    snprintf(path, sizeof path, "%s/traces/%s", state, ground.place);
    make(path);
    snprintf(own_journal, sizeof own_journal, "%.2048s/%s", path, ground.name);
    snprintf(other_journal, sizeof other_journal, "%.2048s/codex.22222222", path);
    snprintf(ground.journal, sizeof ground.journal, "%s", own_journal);
    snprintf(ground.folder, sizeof ground.folder, "%s", path);
    snprintf(path, sizeof path, "%s/kept/%s", state, ground.place);
    make(path);
    snprintf(kept, sizeof kept, "%.2048s/%s", path, ground.name);
    make(kept);
    snprintf(path, sizeof path, "%s/settled/%s", state, ground.place);
    make(path);
    first_handle = dup(0);
    if (first_handle < 0)
        first_handle = 3;
    close(first_handle);
}

/* Copy the input with its signs replaced by their texts; return its length. */
static size_t fill_in(char *into, size_t room, const uint8_t *data, size_t size) {
    size_t length = 0;
    for (size_t place = 0; place < size && length + sizeof work + 1 < room; place++) {
        char number[32];
        const char *text = NULL;
        if (data[place] == 1)
            text = work;
        if (data[place] == 2 || data[place] == 3) {
            snprintf(number, sizeof number, "%lld", (long long)(now_ns() - (data[place] == 3 ? 1800 * NS : 0)));
            text = number;
        }
        if (text) {
            memcpy(into + length, text, strlen(text));
            length += strlen(text);
        } else {
            into[length++] = data[place] == 4 ? 0 : (char)data[place];
        }
    }
    return length;
}

static void empty_kept(void) {
    DIR *folder = opendir(kept);
    struct dirent *entry;
    if (!folder)
        return;
    while ((entry = readdir(folder)) != NULL)
        if (entry->d_name[0] != '.')
            unlinkat(dirfd(folder), entry->d_name, 0);
    closedir(folder);
}

static void close_all(void) {
    if (listed)
        closedir(listed);
    for (int handle = first_handle; handle < first_handle + 16; handle++)
        close(handle);
    entries_length = 0;
    node_count = 0;
}

/* Read a payload, and find the places around its call. */
static void look_at_payload(const char *text, size_t length, const char *runtime) {
    static struct call parsed;
    static struct ground found;
    memset(&parsed, 0, sizeof parsed);
    memset(&found, 0, sizeof found);
    parsed.runtime = runtime;
    char *exact = malloc(length ? length : 1); /* for the address sanitizer: nothing lies behind the last byte */
    if (!exact)
        abort();
    memcpy(exact, text, length);
    if (setjmp(start) == 0) {
        parse_call((struct text){exact, length}, &parsed);
        find_ground(&parsed, &found);
        if (!strcmp(parsed.session, call.session) && !strcmp(found.name, ground.name)) {
            if (parsed.command)
                judge_command(&parsed, &found);
            else
                keep_input(&parsed, &found, now_ns(), now_ns());
        }
    }
    free(exact);
    empty_kept();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static char text[MOST];
    static const char mine[] = "\n1 session - claude-code\0me\0\n", theirs[] = "\n1 session - codex\0them\0\n";
    if (!work[0])
        prepare();
    if (!size)
        return 0;
    size_t length = fill_in(text, sizeof text, data + 1, size - 1);
    switch (data[0] % 5) {
    case 0:
        look_at_payload(text, length, "claude-code");
        break;
    case 1:
        look_at_payload(text, length, "codex");
        break;
    case 2: /* another's journal */
        put(own_journal, mine, sizeof mine - 1);
        put(other_journal, text, length);
        if (setjmp(start) == 0) {
            read_own(&ground);
            look_at_others(&call, &ground);
        }
        break;
    case 3: /* the session's own journal */
        put(own_journal, text, length);
        put(other_journal, theirs, sizeof theirs - 1);
        if (setjmp(start) == 0) {
            read_own(&ground);
            known_write(call.targets[0].path);
            note_own_files(&call, &ground);
            append_entries(&call, &ground);
        }
        empty_kept();
        break;
    default: { /* the file of another's settled commands */
        char settled[PATH_BYTES];
        snprintf(settled, sizeof settled, "%.1024s/settled/%s/1", ground.state, ground.place);
        put(own_journal, mine, sizeof mine - 1);
        put(other_journal, theirs, sizeof theirs - 1);
        put(settled, text, length);
        if (setjmp(start) == 0) {
            read_own(&ground);
            look_at_others(&call, &ground);
        }
        unlink(settled);
    }
    }
    close_all();
    return 0;
}

#ifdef FUZZ_BY_HAND
/* Run the inputs on standard input, each after a line with its length. */
int main(void) {
    static uint8_t data[MOST];
    size_t length;
    while (scanf("%zu", &length) == 1 && getchar() == '\n' && length <= sizeof data)
        if (fread(data, 1, length, stdin) == length)
            LLVMFuzzerTestOneInput(data, length);
    char words[128];
    snprintf(words, sizeof words, "rm -rf %s", base);
    return work[0] ? system(words) : 0;
}
#endif
