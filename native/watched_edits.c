/* The record of an edit beside locks of others: their files are compared at the session's next hook (watching/edits.py). */
#include "swarm_check.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EDIT_NS (59 * NS)      /* after an edit, in which a call leaves its record as it is */
#define RECORD_BYTES (256 * 1024)

static char record[RECORD_BYTES];
static size_t record_length; /* of the prepared one */

static void folder_of(char *into, size_t room, const struct ground *ground) {
    join(into, room, ground->state, "/", "watched-edits");
}

/* Tell if any session has such a record; then each session marks its own writes. */
bool is_watching(const struct ground *ground) {
    char folder[PATH_BYTES + 16];
    struct stat found;
    folder_of(folder, sizeof folder, ground);
    return stat(folder, &found) == 0 && S_ISDIR(found.st_mode);
}

static void path_of(char *into, size_t room, const struct call *call, const struct ground *ground) {
    char folder[PATH_BYTES + 16];
    folder_of(folder, sizeof folder, ground);
    join(into, room, folder, "/", call->session);
}

/* Return if the file of an entry of the record is as it was: ``[path, key, state, copy, reason]``. */
static void check_entry(const struct node *entry, const struct node *file) {
    char path[PATH_BYTES], state[200], now[200];
    struct stat found;
    const struct node *key = entry->first ? entry->first->next : NULL;
    if (entry->kind != JSON_LIST || !key || !key->next || entry->first->kind != JSON_TEXT || key->next->kind != JSON_TEXT)
        hand_over("an odd record");
    decoded(entry->first, path, sizeof path);
    decoded(key->next, state, sizeof state);
    bool exists = lstat(path, &found) == 0;
    if ((exists && !S_ISREG(found.st_mode)) || (!exists && errno != ENOENT))
        hand_over("a locked file that is no file");
    print_snapshot(now, sizeof now, exists ? &found : NULL, "");
    if (strncmp(state, now, strlen(now)) != 0 || file->raw.length != entry->first->raw.length ||
        memcmp(file->raw.at, entry->first->raw.at, file->raw.length) != 0)
        hand_over("a locked file has changed since the last edit");
}

/* Return if the session has no record, or all files of its record are as they were; the time of the record in *began_ns,
 * 0 without one. */
void check_record(const struct call *call, const struct ground *ground, int64_t *began_ns) {
    char path[PATH_BYTES + 32 + NAME_BYTES];
    size_t length;
    *began_ns = 0;
    path_of(path, sizeof path, call, ground);
    if (!read_file(path, record, sizeof record, &length))
        return;
    const struct node *facts = parse_json((struct text){record, length});
    const struct node *began = member_of(facts, "began"), *locks = member_of(facts, "locks");
    if (facts->kind != JSON_OBJECT || !began || began->kind != JSON_WHOLE || !locks || locks->kind != JSON_LIST)
        hand_over("an odd record");
    *began_ns = strtoll(began->raw.at, NULL, 10);
    for (const struct node *lock = locks->first; lock; lock = lock->next) {
        const struct node *file = member_of(lock, "file"), *entries = member_of(lock, "entries");
        const struct node *until = member_of(lock, "until");
        if (!file || file->kind != JSON_TEXT || !entries || !entries->first || entries->first->next || !until ||
            *until->raw.at != 'n' || member_of(lock, "pattern"))
            hand_over("a record of more than files");
        check_entry(entries->first, file);
    }
}

/* Return if the record of a session that now calls something else stays as it is. */
void check_record_young(const struct call *call, const struct ground *ground) {
    int64_t began_ns;
    check_record(call, ground, &began_ns);
    if (began_ns && now_ns() > began_ns + EDIT_NS)
        hand_over("an old record of an edit");
}

/* Return if there is nothing to do for an edit without locks of others near: no record of its own, nor old ones. */
static void check_no_record(const struct ground *ground, int64_t began_ns) {
    char folder[PATH_BYTES + 16], path[2 * PATH_BYTES];
    struct stat found;
    struct dirent *entry;
    bool is_empty = true;
    if (began_ns)
        hand_over("a record that ends");
    folder_of(folder, sizeof folder, ground);
    DIR *records = opendir(folder);
    if (!records)
        return;
    while ((entry = readdir(records)) != NULL) {
        if (entry->d_name[0] == '.')
            continue;
        is_empty = false;
        join(path, sizeof path, folder, "/", entry->d_name);
        if (lstat(path, &found) != 0 || time_of(found.st_mtim) < now_ns() - DAY_NS + 60 * NS)
            hand_over("an old record of a session");
    }
    closedir(records);
    if (is_empty)
        hand_over("an empty folder of records");
}

/* Print the edit in a few words: the tool and its first file, from the call's folder. */
static void print_edit(struct print *print, const struct call *call) {
    char words[2 * PATH_BYTES], name[2 * PATH_BYTES] = "", more[40] = "";
    const char *file = call->targets[0].path;
    size_t common = 0; /* the length of the last folder that both are in */
    for (size_t at = 0;; at++) {
        bool ends = (!file[at] || file[at] == '/') && (!call->folder[at] || call->folder[at] == '/');
        common = ends ? at : common;
        if (!file[at] || file[at] != call->folder[at])
            break;
    }
    for (const char *up = call->folder + common; *up; up++)
        if (*up == '/')
            strcat(name, "../");
    join(words, sizeof words, name, "", file + common + 1);
    if (call->count > 1)
        snprintf(more, sizeof more, " and %zu more", call->count - 1);
    char whole[2 * PATH_BYTES];
    print_path(whole, sizeof whole, "%s %s%s", call->tool, words, more);
    if (strlen(whole) > 200)
        whole[200] = 0;
    print_string(print, (struct text){whole, strlen(whole)}, false);
}

static void print_member(struct print *print, const char *name, const char *text) {
    print_words(print, name);
    print_string(print, (struct text){text, strlen(text)}, false);
}

static void print_lock(struct print *print, const struct ground *ground, const struct lock *lock) {
    char state[200], copy[2 * PATH_BYTES] = "";
    const char *why = "";
    struct stat found;
    bool exists;
    if (!is_normal(lock->file) || !has_no_links(lock->file, &found, &exists) || !is_in_place(ground, lock->file))
        hand_over("a lock on an odd path");
    if (exists) {
        keep_locked(ground, lock->file, state, sizeof state, copy, sizeof copy);
    } else {
        print_snapshot(state, sizeof state, NULL, "");
        why = "there was no such file";
    }
    print_member(print, "{\"file\": ", lock->file);
    print_member(print, ", \"key\": ", lock->file);
    print_member(print, ", \"holder\": ", lock->holder);
    print_member(print, ", \"agent\": ", lock->agent);
    print_member(print, ", \"label\": ", lock->label);
    print_member(print, ", \"note\": ", lock->note);
    print_member(print, ", \"entries\": [[", lock->file);
    print_member(print, ", ", lock->file);
    print_member(print, ", ", state);
    print_member(print, ", ", copy);
    print_member(print, ", ", why);
    print_words(print, "]], \"until\": null}");
}

/* Prepare the record of an edit that goes ahead beside these locks, if there are any: it is left once the edit is noted. */
void prepare_record(const struct call *call, const struct ground *ground, const struct locks *locks, int64_t began_ns) {
    struct print print = {record, sizeof record, 0};
    char number[32];
    record_length = 0;
    if (!locks->count) {
        check_no_record(ground, began_ns);
        return;
    }
    print_member(&print, "{\"runtime\": ", call->runtime);
    print_member(&print, ", \"tool\": ", call->tool);
    print_words(&print, ", \"command\": ");
    print_edit(&print, call);
    print_words(&print, ", \"id\": ");
    print_string(&print, call->id ? call->id->raw : (struct text){"", 0}, true);
    snprintf(number, sizeof number, "%lld", (long long)now_ns());
    print_words(&print, ", \"began\": ");
    print_words(&print, number);
    print_words(&print, ", \"edit\": true, \"locks\": [");
    for (size_t place = 0; place < locks->count; place++) {
        if (place)
            print_words(&print, ", ");
        print_lock(&print, ground, &locks->near[place]);
    }
    print_words(&print, "]}");
    record_length = print.length;
}

/* Leave the record that was prepared. */
void leave_record(const struct call *call, const struct ground *ground) {
    char path[PATH_BYTES + 32 + NAME_BYTES], folder[PATH_BYTES + 16], scratch[2 * PATH_BYTES];
    if (!record_length)
        return;
    folder_of(folder, sizeof folder, ground);
    make_private(folder);
    path_of(path, sizeof path, call, ground);
    print_path(scratch, sizeof scratch, "%s.%ld.tmp", path, (long)getpid());
    int handle = open(scratch, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
    bool is_written = handle >= 0 && write(handle, record, record_length) == (ssize_t)record_length;
    if (!is_written || close(handle) != 0 || rename(scratch, path) != 0) {
        unlink(scratch);
        hand_over("a record cannot be left");
    }
}
