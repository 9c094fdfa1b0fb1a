/* Marks of the session's own writes, while others compare files around their calls (watching/records.py). */
#include "swarm_check.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MARKS_BYTES (60 * 1024) /* of one session; Python drops old marks of more */

/* Put a key of the call into `key`, the same at its beginning and its end (``records.call_key``). */
static void key_of_call(const struct call *call, char key[17]) {
    static char room[2 * PAYLOAD_BYTES];
    struct print print = {room, sizeof room, 0};
    const char *const words[] = {call->runtime, call->session, call->tool, NULL};
    print_words(&print, "[");
    for (const char *const *word = words; *word; word++) {
        print_string(&print, (struct text){*word, strlen(*word)}, false);
        print_words(&print, ", ");
    }
    print_json(&print, call->input, true);
    print_words(&print, "]");
    digest_of(key, (const unsigned char *)room, print.length);
}

/* Mark that the session may write the call's files, or any file if the call names none. */
void mark_own(const struct call *call, const struct ground *ground, const char *session) {
    char folder[PATH_BYTES + 8], path[PATH_BYTES + NAME_BYTES], key[17], digest[17], text[MOST_TARGETS * 80];
    struct print print = {text, sizeof text, 0};
    struct stat found;
    int64_t at_ns = now_ns();
    if (!*session || strlen(session) > 64 || strspn(session, ID_SIGNS) != strlen(session))
        hand_over("an odd id in the store");
    key_of_call(call, key);
    for (size_t place = 0; place < call->count || !place; place++) {
        char line[80];
        const char *file = place < call->count ? call->targets[place].path : NULL;
        if (file)
            digest_of(digest, (const unsigned char *)file, strlen(file));
        snprintf(line, sizeof line, "%lld %s %s\n", (long long)at_ns, file ? digest : "*", key);
        print_words(&print, line);
    }
    join(folder, sizeof folder, ground->state, "/", "acting");
    make_private(folder);
    join(path, sizeof path, folder, "/", session);
    int handle = open(path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
    if (handle < 0 || fstat(handle, &found) != 0 || !S_ISREG(found.st_mode) || found.st_size > MARKS_BYTES ||
        write(handle, text, print.length) != (ssize_t)print.length)
        hand_over("a mark cannot be left");
    close(handle);
}
