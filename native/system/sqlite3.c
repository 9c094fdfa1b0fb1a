/* SQLite's functions from the system's library; see sqlite3.h. */
#include "../swarm_check.h"

#include <dlfcn.h>

#include "sqlite3.h"

#ifdef __APPLE__
#define LIBRARY "/usr/lib/libsqlite3.dylib"
#else
#define LIBRARY "libsqlite3.so.0"
#endif

static struct sqlite_library library;

int has_system_sqlite(void) {
    if (library.step)
        return true;
    void *opened = dlopen(LIBRARY, RTLD_LAZY | RTLD_LOCAL);
    if (!opened)
        return false;
    struct sqlite_library found;
#define FIND(type, name, parameters) \
    *(void **)&found.name = dlsym(opened, "sqlite3_" #name); \
    if (!found.name) \
        return false;
    SQLITE_CALLS(FIND)
    library = found;
    return true;
}

const struct sqlite_library *system_sqlite(void) {
    if (!has_system_sqlite())
        hand_over("there is no " LIBRARY);
    return &library;
}
