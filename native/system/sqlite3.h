/* The part of SQLite's interface that swarm_check uses, taken from the system's library while the program runs.
 *
 * For a program that is compiled at installation, where SQLite's own source is not at hand. A machine without the
 * library has the check in Python run. */
#ifndef SWARM_SYSTEM_SQLITE_H
#define SWARM_SYSTEM_SQLITE_H

#include <stdint.h>

#define SQLITE_OK 0
#define SQLITE_TEXT 3
#define SQLITE_NULL 5
#define SQLITE_ROW 100
#define SQLITE_DONE 101
#define SQLITE_STATIC ((void (*)(void *))0)
#define SQLITE_CONFIG_SINGLETHREAD 1
#define SQLITE_OPEN_READONLY 0x1
#define SQLITE_OPEN_URI 0x40
#define SQLITE_OPEN_NOMUTEX 0x8000

typedef struct sqlite3 sqlite3;
typedef struct sqlite3_stmt sqlite3_stmt;

/* Each function: the type of its result, its name without the prefix, its parameters. */
#define SQLITE_CALLS(CALL) \
    CALL(int, config, (int, ...)) \
    CALL(int, open_v2, (const char *, sqlite3 **, int, const char *)) \
    CALL(int, close_v2, (sqlite3 *)) \
    CALL(int, busy_timeout, (sqlite3 *, int)) \
    CALL(int, exec, (sqlite3 *, const char *, int (*)(void *, int, char **, char **), void *, char **)) \
    CALL(const char *, errmsg, (sqlite3 *)) \
    CALL(int, prepare_v2, (sqlite3 *, const char *, int, sqlite3_stmt **, const char **)) \
    CALL(int, bind_text, (sqlite3_stmt *, int, const char *, int, void (*)(void *))) \
    CALL(int, step, (sqlite3_stmt *)) \
    CALL(int, finalize, (sqlite3_stmt *)) \
    CALL(int, column_bytes, (sqlite3_stmt *, int)) \
    CALL(double, column_double, (sqlite3_stmt *, int)) \
    CALL(int, column_int, (sqlite3_stmt *, int)) \
    CALL(int64_t, column_int64, (sqlite3_stmt *, int)) \
    CALL(const unsigned char *, column_text, (sqlite3_stmt *, int)) \
    CALL(int, column_type, (sqlite3_stmt *, int))

#define AS_MEMBER(type, name, parameters) type(*name) parameters;
struct sqlite_library {
    SQLITE_CALLS(AS_MEMBER)
};

/* The library, loaded by the first call. Hands over if it is missing. */
const struct sqlite_library *system_sqlite(void);
/* True if the library is there, with all of these functions. */
int has_system_sqlite(void);

#define sqlite3_config system_sqlite()->config
#define sqlite3_open_v2 system_sqlite()->open_v2
#define sqlite3_close_v2 system_sqlite()->close_v2
#define sqlite3_busy_timeout system_sqlite()->busy_timeout
#define sqlite3_exec system_sqlite()->exec
#define sqlite3_errmsg system_sqlite()->errmsg
#define sqlite3_prepare_v2 system_sqlite()->prepare_v2
#define sqlite3_bind_text system_sqlite()->bind_text
#define sqlite3_step system_sqlite()->step
#define sqlite3_finalize system_sqlite()->finalize
#define sqlite3_column_bytes system_sqlite()->column_bytes
#define sqlite3_column_double system_sqlite()->column_double
#define sqlite3_column_int system_sqlite()->column_int
#define sqlite3_column_int64 system_sqlite()->column_int64
#define sqlite3_column_text system_sqlite()->column_text
#define sqlite3_column_type system_sqlite()->column_type

#endif
