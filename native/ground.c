/* The places around a call: folders of the user's state, the file's path, and its repository. */
#include "swarm_check.h"

#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define DEEPEST 25  /* folders over a file: Python searches deeper ones in another order */

extern char **environ;

/* Names in the state folder that change nothing about a check before a write. A name ending in `*` stands for all that
 * begin so. Any other name may be a mark: a call is watched, words wait for a session, files are claimed. */
static const char *const quiet_names[] = {
    "traces",       "kept",       "kept-names", "ended",     "settled",  "heads",     "python",
    "python.*",     "faults*",    "command*",   "fetched",   "server",   "runs",      "running",
    "repositories", "swarm-*",    "worktrees",  "slots",     "work",     "loop",      "protected",
    "protection",   "undos",      "commits",    "crashes",   "edited",   "plugin",    "codex-hooks.json",
    "repeated-*",   "projects.json", "unread-*", "first-look", "watched-edits", "acting", NULL};

/* Parts of paths that may concern a protection (``rules._may_be_protected``), or files without versions. */
static const char *const odd_parts[] = {"swarm", "/.git/", "/node_modules/", "/.venv/", "/__pycache__/", NULL};
static const char *const odd_ends[] = {"settings.json",      "config.toml",   "config.yaml",      "hooks.json",
                                       "mcp.json",           "_marketplaces.json", "_plugins.json", "-enablement.json",
                                       "disabled-hooks", NULL};

int64_t now_ns(void) {
    struct timespec now;
    if (clock_gettime(CLOCK_REALTIME, &now) != 0)
        hand_over("no clock");
    return now.tv_sec * NS + now.tv_nsec;
}

/* Print a path; one that is too long goes to Python. */
void print_path(char *into, size_t room, const char *format, ...) {
    va_list values;
    va_start(values, format);
    int length = vsnprintf(into, room, format, values);
    va_end(values);
    if (length < 0 || (size_t)length >= room)
        hand_over("a long path");
}

/* Put the three texts together. */
void join(char *into, size_t room, const char *left, const char *between, const char *right) {
    print_path(into, room, "%s%s%s", left, between, right);
}

/* Tell if a text has only signs that mean the same in paths, in JSON, in journals and in the store. */
bool is_plain(const char *text, size_t length) {
    static const char others[] = "-_./+@,=%~ ()[]#!&$:";
    for (size_t place = 0; place < length; place++) {
        char sign = text[place];
        bool is_word = (sign >= 'a' && sign <= 'z') || (sign >= 'A' && sign <= 'Z') || (sign >= '0' && sign <= '9');
        if (!is_word && (!sign || !strchr(others, sign)))
            return false;
    }
    return true;
}

/* Tell if absolute `path` has no part that a system or Python would take out, and is not deep. */
bool is_normal(const char *path) {
    size_t length = strlen(path), slashes = 0;
    if (path[0] != '/' || length < 2 || path[length - 1] == '/' || path[length - 1] == ' ')
        return false;
    for (const char *at = path; (at = strchr(at, '/')) != NULL; at++, slashes++) {
        const char *name = at + 1;
        size_t dots = strspn(name, ".");
        if (*name == '/' || ((name[dots] == '/' || !name[dots]) && (dots == 1 || dots == 2)))
            return false;
    }
    return slashes <= DEEPEST && is_plain(path, length);
}

/* Return false if a part of `path` is a link, or cannot be looked at. *exists tells if all of it is there. */
bool has_no_links(const char *path, struct stat *found, bool *exists) {
    char part[PATH_BYTES];
    size_t length = strlen(path);
    *exists = false;
    for (size_t end = 1; end <= length; end++) {
        if (path[end] && path[end] != '/')
            continue;
        memcpy(part, path, end);
        part[end] = 0;
        if (lstat(part, found) != 0)
            return errno == ENOENT;
        if (S_ISLNK(found->st_mode))
            return false;
    }
    *exists = true;
    return true;
}

/* Tell if there is certainly nothing at `path`. */
bool is_missing(const char *path) {
    struct stat found;
    return lstat(path, &found) != 0 && errno == ENOENT;
}

/* The value of a variable that names a folder; NULL if it is not set, or empty. */
static const char *folder_in(const char *variable) {
    const char *value = getenv(variable);
    if (!value || !*value)
        return NULL;
    if (!is_normal(value))
        hand_over(variable);
    return value;
}

/* Put our folder of one kind into `into`, as ``state.user_folder`` does. */
static void user_folder(char *into, const char *variable, const char *base) {
    const char *given = folder_in(variable), *home = folder_in("HOME");
    if (given) {
        join(into, PATH_BYTES, given, "/", "swarm-mcp");
        return;
    }
    if (!home)
        hand_over("no home");
#ifdef __APPLE__
    (void)base;
    join(into, PATH_BYTES, home, "", "/Library/Application Support/swarm-mcp");
#else
    join(into, PATH_BYTES, home, base, "/swarm-mcp");
#endif
}

/* Settings in the environment are Python's, and so are the clients that run another client's hooks. */
static void check_environment(void) {
    static const char *const hosts[] = {"CURSOR_VERSION", "COPILOT_PROJECT_DIR", "GROK_HOOK_EVENT", NULL};
    for (char **variable = environ; *variable; variable++)
        if (!strncmp(*variable, "SWARM_", 6) && strncmp(*variable, "SWARM_DB_PATH=", 14) != 0 &&
            strncmp(*variable, "SWARM_UVX=", 10) != 0) /* that concerns fetching a release, and no check */
            hand_over("a setting in the environment");
    for (const char *const *host = hosts; *host; host++)
        if (getenv(*host))
            hand_over(*host);
}

static bool is_quiet(const char *name) {
    for (const char *const *quiet = quiet_names; *quiet; quiet++) {
        size_t length = strlen(*quiet);
        bool is_start = (*quiet)[length - 1] == '*';
        if (is_start ? !strncmp(name, *quiet, length - 1) : !strcmp(name, *quiet))
            return true;
    }
    return false;
}

static void check_state(const char *state) {
    DIR *folder = opendir(state);
    if (!folder)
        hand_over("no state folder");
    struct dirent *entry;
    errno = 0;
    while ((entry = readdir(folder)) != NULL)
        if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..") && !is_quiet(entry->d_name))
            hand_over(entry->d_name);
    if (errno)
        hand_over("the state folder cannot be listed");
    closedir(folder);
}

static void find_store(struct ground *ground) {
    const char *chosen = folder_in("SWARM_DB_PATH"), *home = folder_in("HOME");
    struct stat found;
    bool exists;
    if (chosen)
        join(ground->store, sizeof ground->store, chosen, "", "");
    else if (home)
        join(ground->store, sizeof ground->store, home, "", "/.swarm-mcp/swarm.db");
    else
        hand_over("no home");
    if (chosen && !has_no_links(chosen, &found, &exists))
        hand_over("a link to the store");
    if (lstat(ground->store, &found) != 0 || !S_ISREG(found.st_mode) || found.st_uid != geteuid())
        hand_over("no store of this user");
}

/* Find the top of the work tree around `folder` and the stat of its `.git`; false if there is none. */
static bool find_top(const char *folder, char *top, struct stat *git) {
    char probe[PATH_BYTES + 8];
    struct stat link;
    strcpy(top, folder);
    for (;;) {
        join(probe, sizeof probe, top, "", "/.git");
        if (stat(probe, git) == 0)
            return lstat(probe, &link) == 0 && !S_ISLNK(link.st_mode);
        if (errno != ENOENT && errno != ENOTDIR)
            return false;
        if (lstat(probe, &link) == 0)
            return false; /* a link to nothing */
        char *slash = strrchr(top, '/');
        if (!slash || slash == top)
            return false;
        *slash = 0;
    }
}

static void name_place(char *into, size_t room, const struct stat *git) {
    print_path(into, room, "%llx.%llx", (unsigned long long)git->st_dev, (unsigned long long)git->st_ino);
}

/* Tell if the file at `path` lies in the repository of the call. */
bool is_in_place(const struct ground *ground, const char *path) {
    char top[PATH_BYTES], place[64];
    struct stat git;
    strcpy(top, path);
    char *slash = strrchr(top, '/');
    if (!slash || slash == top)
        return false;
    *slash = 0;
    char folder[PATH_BYTES];
    strcpy(folder, top);
    if (!find_top(folder, top, &git) || !S_ISDIR(git.st_mode))
        return false;
    name_place(place, sizeof place, &git);
    return !strcmp(place, ground->place);
}

/* Return if the file at `path` is under no protection, and has versions. */
static void check_path(const char *path, const struct ground *ground) {
    size_t length = strlen(path);
    for (const char *const *part = odd_parts; *part; part++)
        if (strstr(path, *part))
            hand_over("a path that may be protected, or has no versions");
    for (const char *const *end = odd_ends; *end; end++)
        if (length >= strlen(*end) && !strcmp(path + length - strlen(*end), *end))
            hand_over("a file of settings");
    if (!strncmp(path, ground->store, strlen(ground->store)))
        hand_over("the store");
}

/* The key of `path` where letter case does not count. */
void lower_key(char *into, size_t room, const char *path) {
    join(into, room, "nocase:", path, "");
    for (char *sign = into; *sign; sign++)
        if (*sign >= 'A' && *sign <= 'Z')
            *sign = (char)(*sign - 'A' + 'a');
}

/* Look at a file that the call writes. */
static void find_target(struct target *target, const struct ground *ground) {
    struct stat found;
    if (!is_normal(target->path) || !has_no_links(target->path, &found, &target->exists))
        hand_over("an odd path");
    if (target->exists && !S_ISREG(found.st_mode))
        hand_over("no ordinary file");
    check_path(target->path, ground);
    if (!is_in_place(ground, target->path))
        hand_over("a file in another repository");
}

void find_ground(struct call *call, struct ground *ground) {
    char config[PATH_BYTES], settings[PATH_BYTES];
    struct stat found, git;
    bool exists;
    check_environment();
    user_folder(ground->state, "XDG_STATE_HOME", "/.local/state");
    user_folder(config, "XDG_CONFIG_HOME", "/.config");
    join(settings, sizeof settings, config, "/", "config.json");
    if (!is_missing(settings))
        hand_over("a file of settings of this user");
    check_state(ground->state);
    find_store(ground);

    if (!is_normal(call->folder) || !has_no_links(call->folder, &found, &exists) || !exists || !S_ISDIR(found.st_mode))
        hand_over("an odd folder");
    if (!find_top(call->folder, ground->top, &git) || !S_ISDIR(git.st_mode))
        hand_over("no repository, or a linked work tree");
    name_place(ground->place, sizeof ground->place, &git);
    print_path(ground->name, sizeof ground->name, "%s.%s", call->runtime, call->session);
    print_path(ground->folder, sizeof ground->folder, "%s/traces/%s", ground->state, ground->place);
    join(ground->journal, sizeof ground->journal, ground->folder, "/", ground->name);
    for (size_t place = 0; place < call->count; place++)
        find_target(&call->targets[place], ground);
}
