/* The looks of a command beside others, at files that it shows whole or in part (swarm_hook_core/traces/looks.py). */
#include "swarm_check.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LONGEST (4 * 1024 * 1024) /* bytes of a file: the lines of a larger one are not counted */
#define MOST_PARTS 40             /* of one file that are combined */

struct part {
    long first, last;
};

static struct part parts[MOST_PARTS + MOST_SHOWN];

/* Count the lines of the file, which is as `seen`. */
static long count_lines(const char *path, const struct stat *seen) {
    static char piece[64 * 1024];
    struct stat after;
    long lines = 0;
    off_t length = 0;
    char last = '\n';
    int handle = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (handle < 0)
        hand_over("a file that is shown cannot be read");
    for (ssize_t got; (got = read(handle, piece, sizeof piece)) != 0; length += got) {
        if (got < 0)
            hand_over("a file that is shown cannot be read");
        for (const char *at = piece; (at = memchr(at, '\n', (size_t)(piece + got - at))) != NULL; at++)
            lines++;
        last = piece[got - 1];
    }
    if (fstat(handle, &after) != 0 || time_of(after.st_ctim) != time_of(seen->st_ctim) || after.st_ino != seen->st_ino ||
        after.st_size != length || seen->st_size != length)
        hand_over("a file that is being written");
    close(handle);
    return lines + (last != '\n');
}

/* List the parts that the session was shown while the file was in this state, after the `count` ones of this call. */
static size_t list_parts(const char *path, const char *state, size_t count) {
    struct text rest = own_entries(), line;
    struct entry entry;
    size_t length = strlen(state), earlier = 0;
    while (take_last_line(&rest, &line)) {
        char text[240], *end;
        if (!memmem(line.at, line.length, " part ", 6) || !parse_entry(line, &entry) || entry.kind.length != 4 ||
            memcmp(entry.kind.at, "part", 4) != 0 || entry.key.length != strlen(path) ||
            memcmp(entry.key.at, path, entry.key.length) != 0)
            continue;
        if (entry.text.length >= sizeof text)
            hand_over("an odd part in the journal");
        memcpy(text, entry.text.at, entry.text.length);
        text[entry.text.length] = 0;
        if (strncmp(text, state, length) != 0 || text[length] != ' ' || earlier == MOST_PARTS)
            break;
        parts[count].first = strtol(text + length, &end, 10);
        parts[count].last = strtol(end, &end, 10);
        if (*end)
            hand_over("an odd part in the journal");
        count++;
        earlier++;
    }
    return count;
}

static int by_first(const void *left, const void *right) {
    const struct part *one = left, *other = right;
    return one->first < other->first ? -1 : one->first > other->first;
}

/* Tell if the parts leave no gap in a file of so many lines. */
static bool are_whole(size_t count, long lines) {
    long end = 0;
    qsort(parts, count, sizeof *parts, by_first);
    for (size_t place = 0; place < count && parts[place].first <= end + 1; place++)
        end = parts[place].last > end ? parts[place].last : end;
    return end >= lines;
}

/* Collect a look at some lines of a file. */
static void note_part(const struct call *call, const char *path, const struct shown *shown, const struct stat *found) {
    char state[160], text[240];
    if (found->st_size > LONGEST)
        return;
    state_of(state, sizeof state, path);
    long lines = count_lines(path, found);
    long first = shown->is_last ? lines - shown->last + 1 : shown->first, last = shown->is_last ? lines : shown->last;
    if (first <= 1 && last >= lines) {
        add_entries_of(now_ns(), "saw", call, path, state);
        return;
    }
    parts[0] = (struct part){first > 1 ? first : 1, last};
    snprintf(text, sizeof text, "%s %ld %ld", state, parts[0].first, parts[0].last);
    add_entries_of(now_ns(), "part", call, path, text);
    if (are_whole(list_parts(path, state, 1), lines))
        add_entries_of(now_ns(), "saw", call, path, state);
}

/* Collect a look at each file that the command shows. */
void note_looks(const struct call *call, const struct ground *ground, const struct look *look) {
    static char paths[MOST_SHOWN][PATH_BYTES];
    char state[160];
    struct stat found;
    bool exists;
    for (size_t place = 0; place < look->count; place++) {
        const struct shown *shown = &look->shown[place];
        char *path = paths[place];
        if (*shown->file == '/')
            join(path, PATH_BYTES, shown->file, "", "");
        else
            join(path, PATH_BYTES, call->folder, "/", shown->file);
        if (!is_normal(path) || !has_no_links(path, &found, &exists) || !is_in_place(ground, path) ||
            (exists && !S_ISREG(found.st_mode)))
            hand_over("an odd file is shown");
        for (size_t before = 0; before < place; before++)
            if (!shown->is_whole && !look->shown[before].is_whole && !strcmp(paths[before], path))
                hand_over("two parts of one file");
        state_of(state, sizeof state, path);
        if (shown->is_whole)
            add_entries_of(now_ns(), "saw", call, path, state);
        else if (exists)
            note_part(call, path, shown, &found);
    }
}
