/* The parts of swarm_check, a first look at a tool call in front of the check in Python.
 *
 * The program has two answers. It exits with 0 in silence: nothing is in the way, and the traces of the call are left as
 * Python leaves them. Or it executes the check in Python with the payload as it came (`hand_over`). A part that meets
 * anything it does not fully understand hands over; it never guesses, never denies and never speaks. */
#ifndef SWARM_CHECK_H
#define SWARM_CHECK_H

#define _GNU_SOURCE
#define _DARWIN_C_SOURCE
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

/* The number of the traces, locks and state files that this program knows; swarm_hook_core/first_look.py has the same.
 * It grows with each change of them: another number in a hook's command sends every call to Python. */
#define CONTRACT 3

#define PAYLOAD_BYTES (1 << 20)  /* of a payload; a longer one goes to Python */
#define JOURNAL_BYTES (1 << 20)  /* of the journals of one session in one place */
#define PATH_BYTES 3072          /* of a path, the end included */
#define NAME_BYTES 80            /* of a session's id and of a tool, the end included */
#define MOST_TARGETS 8           /* files of one call */
#define TEXT_BYTES (64 * 1024)   /* of the entries that one call appends at once */
#define DAY_NS (86400 * NS)
#define NS INT64_C(1000000000)
#define ID_SIGNS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-"

#if defined(__APPLE__) || defined(SWARM_IGNORES_CASE)
#define IGNORES_CASE true  /* as swarm_hook_core/traces/__init__.py has it */
#else
#define IGNORES_CASE false
#endif

#ifdef __APPLE__
#define st_atim st_atimespec
#define st_ctim st_ctimespec
#define st_mtim st_mtimespec
#endif

struct text {
    const char *at;
    size_t length;
};

enum how { EDIT, REPLACE };  /* as in swarm_hook_core/__init__.py */

enum json_kind { JSON_OBJECT, JSON_LIST, JSON_TEXT, JSON_WHOLE, JSON_FRACTION, JSON_WORD };

/* One value of a JSON document. */
struct node {
    enum json_kind kind;
    struct text raw;   /* as it stands in the document; of a text without its quotes */
    struct text name;  /* of a member: its name, without escapes */
    bool has_escapes;  /* of a text */
    struct node *first, *next;  /* the first value inside, and the next one beside it */
};

/* A text that is being printed into `at`, with a NUL behind it. */
struct print {
    char *at;
    size_t room, length;
};

/* A file that a call writes. */
struct target {
    char path[PATH_BYTES]; /* absolute, normal and without links once `find_ground` has returned */
    enum how how;
    bool exists;
};

/* One call of a tool that names the files that it writes, or of a shell. */
struct call {
    const char *runtime;
    char session[NAME_BYTES];
    char tool[NAME_BYTES];
    char folder[PATH_BYTES];      /* the payload's cwd */
    const struct node *input;     /* the tool's input */
    const struct node *id;        /* the client's id of the call; may be NULL */
    const struct node *command;   /* of a shell; else NULL */
    struct target targets[MOST_TARGETS];
    size_t count;                 /* of the targets */
};

/* The places around a call. */
struct ground {
    char state[PATH_BYTES];    /* the state folder */
    char store[PATH_BYTES];    /* the store's file */
    char top[PATH_BYTES];      /* the top of the work tree around the call's folder and its files */
    char place[64];            /* the name of the journals' folder of that repository */
    char folder[PATH_BYTES];   /* that folder */
    char journal[PATH_BYTES];  /* the session's own journal */
    char name[2 * NAME_BYTES]; /* its file name */
};

/* hand_over.c */
_Noreturn void hand_over(const char *why);
void read_payload(struct text *payload);
void set_check(char **command);
void set_deadline(void);

/* json.c */
const struct node *parse_json(struct text text);
const struct node *member_of(const struct node *object, const char *name);
struct text decoded(const struct node *node, char *into, size_t room);
void print_part(struct print *print, const char *text, size_t length);
void print_words(struct print *print, const char *words);
void print_string(struct print *print, struct text text, bool has_escapes);
void print_json(struct print *print, const struct node *node, bool is_sorted);

/* payload.c */
void parse_call(struct text payload, struct call *call);

/* ground.c */
void find_ground(struct call *call, struct ground *ground);
bool is_plain(const char *text, size_t length);
bool is_normal(const char *path);
bool is_in_place(const struct ground *ground, const char *path);
bool has_no_links(const char *path, struct stat *found, bool *exists);
bool is_missing(const char *path);
void join(char *into, size_t room, const char *left, const char *between, const char *right);
void print_path(char *into, size_t room, const char *format, ...) __attribute__((format(printf, 3, 4)));
int64_t now_ns(void);
void lower_key(char *into, size_t room, const char *path);

/* private.c */
void make_private(const char *folder);
int open_resolved(const char *path);
bool read_file(const char *path, char *into, size_t room, size_t *length);

/* shell.c */
#define MOST_SHOWN 8
/* A file that a command certainly shows, as spelled: whole, or from its first to its last line, or its last lines. */
struct shown {
    const char *file;
    bool is_whole, is_last;
    long first, last;
};
struct look {
    struct shown shown[MOST_SHOWN];
    size_t count;
    bool runs; /* the project's tests */
};
bool look_at_command(const char *text, struct look *look);
bool is_listed(const char *text, const char *const *list);

/* looks.c */
void note_looks(const struct call *call, const struct ground *ground, const struct look *look);

/* command.c */
void judge_command(const struct call *call, const struct ground *ground);

/* destroyers.c */
bool may_destroy(const char *text);
bool speaks_of_protection(const char *text);

/* elsewhere.c */
bool may_lead_elsewhere(const char *text, const struct call *call, const struct ground *ground);

/* own_files.c */
void keep_own_files(const struct call *call, const struct ground *ground, int64_t at_ns);

/* store.c */
#define MOST_LOCKS 16 /* of others in one checkout */
struct lock {
    char file[PATH_BYTES];
    char holder[NAME_BYTES], agent[NAME_BYTES];
    char label[512], note[1024];
};
struct locks {
    bool any;       /* there is a lock, if only of the session itself */
    bool of_others; /* of another session, or of an agent of this one */
    bool are_near;  /* of others, in this checkout or on a folder over it */
    char session[NAME_BYTES]; /* the session's id in the store */
    bool wants_near; /* set by the caller: those in this checkout are listed */
    struct lock near[MOST_LOCKS];
    size_t count;
};
void ask_store(const struct call *call, const struct ground *ground, struct locks *locks);

/* near_locks.c */
struct sqlite3;
void list_near_locks(struct sqlite3 *store, const char *id, const char *top, struct locks *locks);

/* locked_copies.c */
void print_snapshot(char *into, size_t room, const struct stat *found, const char *digest);
void keep_locked(const struct ground *ground, const char *path, char *state, size_t state_room, char *copy, size_t room);

/* watched_edits.c */
bool is_watching(const struct ground *ground);
void check_record(const struct call *call, const struct ground *ground, int64_t *began_ns);
void check_record_young(const struct call *call, const struct ground *ground);
void prepare_record(const struct call *call, const struct ground *ground, const struct locks *locks, int64_t began_ns);
void leave_record(const struct call *call, const struct ground *ground);

/* marks.c */
void mark_own(const struct call *call, const struct ground *ground, const char *session);

/* journal.c */
bool has_company(const struct ground *ground);
void append_entries(const struct call *call, const struct ground *ground);
void add_entry(int64_t at_ns, const char *kind, const struct call *call, const char *key, const char *text);
void add_entries_of(int64_t at_ns, const char *kind, const struct call *call, const char *path, const char *text);
void state_of(char *into, size_t room, const char *path);

/* own_writes.c */
struct known {
    int64_t at_ns;
    char state[80]; /* of the file before the write */
};
/* One entry: the words of its head, its key and its text. */
struct entry {
    int64_t at_ns;
    struct text kind, agent, tool, key, text;
};
void read_own(const struct ground *ground);
struct text own_entries(void);
bool parse_entry(struct text line, struct entry *entry);
bool take_last_line(struct text *rest, struct text *line);
struct known known_write(const char *path);

/* own_text.c */
void check_replaced(const struct ground *ground, const char *path);
void note_own_files(const struct call *call, const struct ground *ground);

/* others.c */
bool looks_only(struct text command);
void check_head(const struct ground *ground);
void look_at_others(const struct call *call, const struct ground *ground);

/* version.c */
int64_t time_of(struct timespec time);
void version_path(char *into, size_t room, const struct ground *ground, const char *owner, const char *path);
int create_version(const struct ground *ground, const char *target);
void finish_version(int writing, const char *target, int64_t at_ns, int state);
void keep_before(const struct ground *ground, const char *path, int64_t at_ns, bool keeps_each, bool is_known);
void keep_look(const struct ground *ground, const char *path, int64_t at_ns);
void keep_input(const struct call *call, const struct ground *ground, int64_t first_ns, int64_t last_ns);

/* digest.c */
void digest_of(char into[17], const unsigned char *data, size_t length);
uint32_t checksum(const char *text, size_t length, bool backwards);

#endif
