/* Other repositories with journals, and commands that may reach into them (swarm_hook_core/traces/elsewhere.py). */
#include "swarm_check.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define HEAD_BYTES 4096 /* at the beginning of a journal, that hold its first line */

/* Signs of names that are not literal or lead out of the folder, of patterns, and of another folder. */
static const char *const leads[] = {"..", "~", "$", "`", "cd", NULL};

/* Put the folder that the journal at `path` names into `folder`; a journal without one goes to Python. */
static void read_folder(const char *path, char *folder, size_t room) {
    char head[HEAD_BYTES + 1];
    int handle = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    ssize_t length = handle < 0 ? -1 : read(handle, head, HEAD_BYTES);
    if (length <= 0)
        hand_over("a journal elsewhere cannot be read");
    close(handle);
    head[length] = 0;
    const char *line = head + (head[0] == '\n'), *end = memchr(line, '\n', (size_t)(head + length - line));
    const char *key = end ? memchr(line, 0, (size_t)(end - line)) : NULL;
    const char *text = key ? memchr(key + 1, 0, (size_t)(end - key - 1)) : NULL;
    if (!text || !strstr(line, " session ") || (size_t)(end - text) > room)
        hand_over("a journal elsewhere without a folder");
    memcpy(folder, text + 1, (size_t)(end - text - 1));
    folder[end - text - 1] = 0;
    if (!is_normal(folder))
        hand_over("a journal of an odd folder");
}

/* Tell if `text`, in lower case, may name the folder, which lies elsewhere. */
static bool may_name(const char *text, const struct call *call, const char *folder) {
    char probe[PATH_BYTES + 32], name[PATH_BYTES];
    struct stat found;
    size_t own = strlen(call->folder);
    if (!strncmp(folder, call->folder, own) && (folder[own] == '/' || !folder[own]))
        return true;
    join(probe, sizeof probe, folder, "", "/.git");
    if (lstat(probe, &found) == 0) {
        if (!S_ISDIR(found.st_mode))
            return true;
        join(probe, sizeof probe, folder, "", "/.git/worktrees");
        if (!is_missing(probe))
            return true; /* it has further folders */
    }
    join(name, sizeof name, strrchr(folder, '/') + 1, "", "");
    for (char *sign = name; *sign; sign++)
        *sign = (char)tolower((unsigned char)*sign);
    return strstr(text, name) != NULL;
}

static bool may_reach(const char *text, const struct call *call, const struct ground *ground, const char *place) {
    char path[2 * PATH_BYTES], folder[PATH_BYTES];
    struct dirent *entry;
    size_t own = strlen(ground->name);
    bool may = false;
    DIR *journals = opendir(place);
    if (!journals)
        hand_over("a folder of journals cannot be listed");
    while (!may && (entry = readdir(journals)) != NULL) {
        const char *name = entry->d_name;
        size_t length = strlen(name);
        bool is_own = !strncmp(name, ground->name, own) && (!name[own] || !strcmp(name + own, ".1"));
        if (is_own || name[0] == '.' || (length > 7 && !strcmp(name + length - 7, ".agents")))
            continue;
        join(path, sizeof path, place, "/", name);
        read_folder(path, folder, sizeof folder);
        may = may_name(text, call, folder);
    }
    closedir(journals);
    return may;
}

/* Tell if the command may reach another repository with journals of others. More often true than in Python. */
bool may_lead_elsewhere(const char *text, const struct call *call, const struct ground *ground) {
    static char lower[PAYLOAD_BYTES];
    char traces[PATH_BYTES + 8], place[2 * PATH_BYTES];
    size_t length = 0;
    bool may = false;
    for (const char *sign = text; *sign; sign++)
        if (!strchr("\\\"'", *sign))
            lower[length++] = (char)tolower((unsigned char)*sign);
    lower[length] = 0;
    join(traces, sizeof traces, ground->state, "", "/traces");
    DIR *folder = opendir(traces);
    if (!folder)
        return errno != ENOENT;
    struct dirent *entry;
    while (!may && (entry = readdir(folder)) != NULL) {
        if (entry->d_name[0] == '.' || !strcmp(entry->d_name, ground->place))
            continue;
        for (const char *const *mark = leads; *mark; mark++)
            may = may || strstr(lower, *mark);
        for (const char *slash = lower; !may && (slash = strchr(slash, '/')) != NULL; slash++)
            may = slash == lower || !(isalnum((unsigned char)slash[-1]) || strchr("_.-/", slash[-1]));
        join(place, sizeof place, traces, "/", entry->d_name);
        may = may || may_reach(lower, call, ground, place);
    }
    closedir(folder);
    return may;
}
