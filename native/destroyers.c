/* Marks in a command's text for which Python looks closer: as ``check.company`` and ``check.rules`` have them. */
#include "swarm_check.h"

#include <string.h>

#define APART ";|&()`'\"\n\t{}= "
#define MOST_WORDS 1000

static const char *const programs[] = {"rm",   "mv",  "cp",   "tee",  "truncate", "rsync", "unlink", "shred",
                                       "dd",   "install", "ln", "curl", "wget",    "tar",   "unzip",  "patch",
                                       "sponge", "split", "sort", "trash", NULL};
static const char *const in_place[] = {"sed", "perl", "ruby", "gawk", "awk", NULL};
static const char *const in_place_options[] = {"-i", "--in-place", "-pi", "-ni", NULL};
static const char *const inside[] = {"write_text", "write_bytes", "unlink",  "rmtree", "os.remove", "os.rename",
                                     "os.replace", "shutil.",     "'w'",     "\"w\"",  "'wb'",      "\"wb\"",
                                     "writeFile",  "rmSync",      "File.write", "-delete", "-exec", "-fprint",
                                     "*** Begin Patch", NULL};
/* Verbs of git that neither lose nor take along a change: of ``glance.HARMLESS`` those that ``plain`` knows. */
static const char *const harmless[] = {"status", "log", "diff", "show", "rev-parse", "ls-files", "branch", "remote", NULL};

static const char *const of_protection[] = {
    "swarm",       "SWARM_",      "hookspath",   "hooksPath", ".git/hooks",         ".git/config",   "settings.json",
    "config.toml", "config.yaml", "hooks.json",  "mcp.json",  "_marketplaces.json", "_plugins.json", "-enablement.json",
    "disabled-hooks", "rm ",      "mv ",         "delete",    "rmtree",             "rm\t",          "rename",
    "remove",      "unlink",      NULL};

static bool contains_any(const char *text, const char *const *marks) {
    for (; *marks; marks++)
        if (strstr(text, *marks))
            return true;
    return false;
}

/* Tell if the text of a command may concern a file that keeps sessions apart, or removes anything. */
bool speaks_of_protection(const char *text) { return contains_any(text, of_protection); }

/* Tell if a command's text may replace or remove a file, or sweep one up. More often true than in Python. */
bool may_destroy(const char *text) {
    static char parted[PAYLOAD_BYTES];
    const char *words[MOST_WORDS + 1];
    size_t count = 0;
    bool edits = false, has_option = false;
    if (contains_any(text, inside))
        return true;
    join(parted, sizeof parted, text, "", "");
    for (char *rest = parted, *word; (word = strtok_r(rest, APART, &rest)) != NULL;) {
        if (count == MOST_WORDS)
            return true;
        words[count++] = word;
    }
    words[count] = NULL;
    for (size_t place = 0; place < count; place++) {
        const char *slash = strrchr(words[place], '/'), *name = slash ? slash + 1 : words[place];
        const char *next = words[place + 1];
        if (is_listed(name, programs))
            return true;
        edits = edits || is_listed(name, in_place);
        for (const char *const *option = in_place_options; *option; option++)
            has_option = has_option || !strncmp(words[place], *option, strlen(*option));
        if (strcmp(name, "git") != 0)
            continue;
        if (next && !strcmp(next, "--no-pager"))
            next = words[place + 2];
        bool is_list = next && !strcmp(next, "stash") && words[place + 2] && !strcmp(words[place + 2], "list");
        if (!next || (!is_list && !is_listed(next, harmless)))
            return true;
    }
    return edits && has_option;
}
