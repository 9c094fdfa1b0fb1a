/* A whole file that is replaced: is all of it the session's own, by its journal and versions (persons/owners.py)? */
#include "swarm_check.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define AFTER_NS (2 * NS)         /* after a call's end: a formatter that the client runs */
#define SLACK_NS INT64_C(20000000)
#define MOST_CALLS 8192
#define CONTENT_OR_STATE 07777    /* permissions of a version; all of them 0: there was no file */

/* One call of the session in its journal, or the end of all calls. */
struct begun {
    int64_t at_ns;
    bool may_write;
};

static struct begun calls[MOST_CALLS];
static size_t call_count;

static bool is_kind(const struct entry *entry, const char *const *kinds) {
    char kind[16];
    if (entry->kind.length >= sizeof kind)
        return false;
    memcpy(kind, entry->kind.at, entry->kind.length);
    kind[entry->kind.length] = 0;
    return is_listed(kind, kinds);
}

/* List the calls in the journal in order of time. Entries of agents go to Python. */
static void list_calls(struct text own) {
    static const char *const begins[] = {"ran", "runs", "wrote", "will", "clears", NULL};
    static const char *const ends[] = {"over", NULL};
    struct entry entry;
    int64_t last_ns = 0;
    call_count = 0;
    for (const char *at = own.at, *end = own.at + own.length; at < end;) {
        const char *close = memchr(at, '\n', (size_t)(end - at));
        struct text line = {at, (size_t)((close ? close : end) - at)};
        at += line.length + 1;
        if (!line.length)
            continue;
        if (!parse_entry(line, &entry))
            hand_over("a torn line in the journal");
        bool is_call = is_kind(&entry, begins);
        if (!is_call && !is_kind(&entry, ends))
            continue;
        if (entry.agent.length != 1 || *entry.agent.at != '-' || call_count == MOST_CALLS)
            hand_over("agents, or many calls");
        bool only_looks = entry.kind.length == 3 && looks_only(entry.text);
        struct begun call = {entry.at_ns, is_call && !only_looks};
        if (is_call && call.at_ns - SLACK_NS > last_ns)
            call.at_ns -= SLACK_NS;
        else if (is_call)
            call.at_ns = last_ns;
        last_ns = call.at_ns;
        size_t place = call_count++;
        for (; place && calls[place - 1].at_ns > call.at_ns; place--)
            calls[place] = calls[place - 1];
        calls[place] = call;
    }
}

/* Tell if a call of the session may have made a change at that time (``owners._Calls.cover``). */
static bool is_during_call(int64_t changed_ns) {
    size_t count = 0;
    while (count < call_count && calls[count].at_ns <= changed_ns)
        count++;
    if (!count)
        return false;
    if (calls[count - 1].may_write)
        return true;
    return count > 1 && calls[count - 2].may_write && changed_ns <= calls[count - 1].at_ns + AFTER_NS;
}

/* Tell if a call of the session had made the content of the version with its entry at `at_ns`. */
static bool was_own(struct text own, const char *path, int64_t at_ns) {
    static const char *const kinds[] = {"wrote", "is", NULL};
    struct text line;
    struct entry entry;
    while (take_last_line(&own, &line)) {
        if (!parse_entry(line, &entry) || entry.at_ns != at_ns || entry.key.length != strlen(path) ||
            memcmp(entry.key.at, path, entry.key.length) != 0 || !is_kind(&entry, kinds))
            continue;
        char text[160], *word = text, *end;
        if (entry.text.length >= sizeof text)
            return false;
        memcpy(text, entry.text.at, entry.text.length);
        text[entry.text.length] = 0;
        for (int words = entry.kind.length == 2 ? 3 : 0; words; words--) {
            word = strchr(word, ' ');
            if (!word)
                return false;
            word++;
        }
        int64_t changed_ns = strtoll(word, &end, 10);
        return end != word && *end == ' ' && is_during_call(changed_ns);
    }
    return false;
}

/* Tell if all versions of the file that the session has kept are without a file, or the session's own content. */
static bool are_versions_own(const struct ground *ground, struct text own, const char *path) {
    char first[2 * PATH_BYTES], whole[2 * PATH_BYTES];
    struct stat found;
    version_path(first, sizeof first, ground, ground->name, path);
    char *name = strrchr(first, '/') + 1;
    size_t length = strlen(name);
    name[-1] = 0;
    DIR *folder = opendir(first);
    if (!folder)
        return false;
    struct dirent *entry;
    bool are_own = true;
    errno = 0;
    while (are_own && (entry = readdir(folder)) != NULL) {
        if (strncmp(entry->d_name, name, length) != 0)
            continue;
        const char *mark = entry->d_name + length;
        join(whole, sizeof whole, first, "/", entry->d_name);
        if (lstat(whole, &found) != 0 || (*mark && (mark[0] != '%' || !strchr("wial", mark[1]))))
            are_own = !*mark || mark[0] != '%'; /* of another file, whose name begins so; or gone */
        else if ((found.st_mode & CONTENT_OR_STATE) != 0)
            are_own = was_own(own, path, *mark ? strtoll(mark + 2, NULL, 10) : time_of(found.st_mtim));
    }
    if (errno)
        are_own = false;
    closedir(folder);
    return are_own;
}

static bool has_written(struct text own, const char *path) {
    static const char *const kinds[] = {"wrote", NULL};
    struct text line;
    struct entry entry;
    while (take_last_line(&own, &line))
        if (parse_entry(line, &entry) && entry.key.length == strlen(path) &&
            !memcmp(entry.key.at, path, entry.key.length) && is_kind(&entry, kinds))
            return true;
    return false;
}

/* Tell if a person has saved the file in an editor that reports it (``versions.by_persons``). */
static bool has_saves(const struct ground *ground, const char *path) {
    char first[2 * PATH_BYTES];
    version_path(first, sizeof first, ground, "person.undo", path);
    char *name = strrchr(first, '/') + 1;
    name[-1] = 0;
    DIR *folder = opendir(first);
    if (!folder)
        return false;
    struct dirent *entry;
    bool found = false;
    while (!found && (entry = readdir(folder)) != NULL)
        found = !strncmp(entry->d_name, name, strlen(name));
    closedir(folder);
    return found;
}

/* Return if replacing the file at `path` loses nothing but the session's own text. */
void check_replaced(const struct ground *ground, const char *path) {
    struct stat found;
    if (lstat(path, &found) != 0 || found.st_size == 0)
        return;
    struct text own = own_entries();
    if (!has_written(own, path) || has_saves(ground, path))
        hand_over("a whole file is replaced, which may hold a person's work");
    list_calls(own);
    if (!is_during_call(time_of(found.st_ctim)) || !are_versions_own(ground, own, path))
        hand_over("a whole file is replaced, which may hold a person's lines");
}
