"""Tables, columns and indexes; the upgrade of an older or foreign file, and a look at the inside of one.

The contract's part is shared with other implementations: names, defaults, unique indexes and ``user_version`` 1 are
theirs as much as ours. We add nullable columns (of ``context`` from ``path_key`` on, and ``facts``), tables of our own
(``swarm_*``) and indexes; other implementations ignore them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from swarm_hook_core.lookup.sqlite import NAME_OF_FILE
from swarm_mcp import contributions
from swarm_mcp.store.driver import OUR_VERSION, is_current, load, version, wal_is_safe

# Half of SQLite's own size: a commit writes whole pages, ten of them for a lock. A quarter would have no room in an
# index for the longest of paths.
PAGE_BYTES = 2048

TABLES = {
    "instances": """
        id TEXT PRIMARY KEY, scope TEXT NOT NULL DEFAULT '', directory TEXT NOT NULL,
        root TEXT NOT NULL DEFAULT '', file_root TEXT NOT NULL DEFAULT '', pid INTEGER NOT NULL, label TEXT,
        registered_at INTEGER NOT NULL DEFAULT (unixepoch()), heartbeat INTEGER NOT NULL DEFAULT (unixepoch()),
        adopted INTEGER NOT NULL DEFAULT 1, lease_until INTEGER""",
    "messages": """
        id INTEGER PRIMARY KEY AUTOINCREMENT, scope TEXT NOT NULL DEFAULT '', sender TEXT NOT NULL,
        recipient TEXT, content TEXT NOT NULL, created_at INTEGER NOT NULL DEFAULT (unixepoch()),
        read INTEGER NOT NULL DEFAULT 0""",
    "tasks": """
        id TEXT PRIMARY KEY, scope TEXT NOT NULL DEFAULT '', type TEXT NOT NULL, title TEXT NOT NULL,
        description TEXT, requester TEXT NOT NULL, assignee TEXT, status TEXT NOT NULL DEFAULT 'open',
        files TEXT, result TEXT, created_at INTEGER NOT NULL DEFAULT (unixepoch()),
        updated_at INTEGER NOT NULL DEFAULT (unixepoch()), changed_at INTEGER NOT NULL DEFAULT 0,
        priority INTEGER NOT NULL DEFAULT 0, depends_on TEXT, idempotency_key TEXT, parent_task_id TEXT,
        review_of_task_id TEXT, fixes_task_id TEXT, progress_summary TEXT, progress_updated_at INTEGER,
        blocked_reason TEXT, expected_next_update_at INTEGER,
        tracker_required INTEGER NOT NULL DEFAULT 0, tracker_provider TEXT""",
    "context": """
        id TEXT PRIMARY KEY, scope TEXT NOT NULL DEFAULT '', instance_id TEXT NOT NULL, file TEXT NOT NULL,
        type TEXT NOT NULL, content TEXT NOT NULL, task_id TEXT,
        created_at INTEGER NOT NULL DEFAULT (unixepoch()), path_key TEXT, mode TEXT, agent TEXT, pattern TEXT,
        base TEXT, ttl REAL, renewed REAL, booted TEXT, wall_until REAL, expected_end INTEGER, fence INTEGER,
        repository TEXT, warned INTEGER, machine TEXT, team_fence INTEGER, takes TEXT""",
    "events": """
        id INTEGER PRIMARY KEY AUTOINCREMENT, scope TEXT NOT NULL, type TEXT NOT NULL, actor TEXT, subject TEXT,
        payload TEXT, created_at INTEGER NOT NULL DEFAULT (unixepoch()), facts TEXT""",
    "kv": """
        scope TEXT NOT NULL DEFAULT '', key TEXT NOT NULL, value TEXT NOT NULL, owner_identity TEXT,
        updated_at INTEGER NOT NULL DEFAULT (unixepoch()), PRIMARY KEY (scope, key)""",
    "kv_scope_updates": "scope TEXT PRIMARY KEY, changed_at INTEGER NOT NULL",
    "ui_commands": """
        id INTEGER PRIMARY KEY AUTOINCREMENT, scope TEXT NOT NULL, created_by TEXT, kind TEXT NOT NULL,
        payload TEXT NOT NULL,
        status TEXT NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'running', 'done', 'failed')),
        claimed_by TEXT, result TEXT, error TEXT, created_at INTEGER NOT NULL DEFAULT (unixepoch()),
        started_at INTEGER, completed_at INTEGER,
        CHECK (status = 'pending' OR claimed_by IS NOT NULL),
        CHECK (status <> 'pending' OR started_at IS NULL),
        CHECK (status NOT IN ('done', 'failed') OR completed_at IS NOT NULL)""",
    # Ours: the runtime session of an instance, and the proof of its end: its client, the last that spoke, and the
    # others that have it open too, on the same host (``pid:start pid:start``).
    "swarm_sessions": """
        runtime TEXT NOT NULL, session_id TEXT NOT NULL, instance_id TEXT NOT NULL UNIQUE, host TEXT,
        client_pid INTEGER, client_start TEXT, state TEXT NOT NULL, last_seen INTEGER NOT NULL,
        lease_seconds INTEGER NOT NULL, terminal_pid INTEGER, terminal_start TEXT, other_clients TEXT,
        PRIMARY KEY (runtime, session_id)""",
    # A message on its way: taken by this process, not yet answered with. Once answered it is `read`.
    "swarm_deliveries": """
        message_id INTEGER PRIMARY KEY, host TEXT NOT NULL, pid INTEGER NOT NULL, start TEXT NOT NULL,
        taken_at INTEGER NOT NULL""",
    # Sessions that were kept from a file, to be told when it is free.
    "swarm_denials": """
        instance_id TEXT NOT NULL, path_key TEXT NOT NULL, scope TEXT NOT NULL, file TEXT NOT NULL,
        holder_id TEXT NOT NULL, tool TEXT, denied_at INTEGER NOT NULL, path TEXT, times INTEGER,
        PRIMARY KEY (instance_id, path_key)""",
    # Locked files that changed during another session's call, and the place of the earlier content.
    "swarm_alterations": """
        id INTEGER PRIMARY KEY AUTOINCREMENT, scope TEXT NOT NULL, file TEXT NOT NULL, path_key TEXT NOT NULL,
        writer_id TEXT, writer_label TEXT, holder_id TEXT NOT NULL, tool TEXT, command TEXT, kind TEXT NOT NULL,
        kept TEXT, altered_at INTEGER NOT NULL""",
    # Waiters for locks, first come, first served: a request for several is one row with several wants.
    "swarm_waiters": """
        ticket INTEGER PRIMARY KEY AUTOINCREMENT, instance_id TEXT NOT NULL, agent TEXT NOT NULL DEFAULT '',
        scope TEXT NOT NULL, host TEXT NOT NULL, pid INTEGER NOT NULL, start TEXT NOT NULL, mode TEXT NOT NULL,
        wants TEXT NOT NULL, since REAL NOT NULL, until REAL, fence INTEGER NOT NULL DEFAULT 0, seen REAL,
        machine TEXT, team_ticket INTEGER""",
    # Messages that a session's next hook tells its model; `file` if the file's present holder is worth naming.
    "swarm_notices": "message_id INTEGER PRIMARY KEY, instance_id TEXT NOT NULL, file TEXT",
    # Locks that lapsed under their holders, and the sessions that were given the same since.
    "swarm_lapses": """
        instance_id TEXT NOT NULL, file TEXT NOT NULL, agent TEXT NOT NULL DEFAULT '', path_key TEXT, pattern TEXT,
        base TEXT, fence INTEGER, lapsed_at INTEGER NOT NULL, taken_fence INTEGER, taken_by TEXT, taken_label TEXT,
        message_id INTEGER, PRIMARY KEY (instance_id, file, agent)""",
    # The number of the last grant.
    "swarm_fence": "last INTEGER NOT NULL",
    # Children that agent command lines were started as, and their supervisors (``runs``).
    "swarm_runs": """
        id TEXT PRIMARY KEY, scope TEXT NOT NULL, task_id TEXT, instance_id TEXT NOT NULL, requester TEXT,
        harness TEXT NOT NULL, model TEXT, cwd TEXT NOT NULL, state TEXT NOT NULL, control TEXT, session_id TEXT,
        session_params TEXT, record TEXT, host TEXT, supervisor_pid INTEGER, supervisor_start TEXT,
        child_pid INTEGER, child_start TEXT, client_pid INTEGER, client_start TEXT, cost_usd REAL, usage TEXT,
        result TEXT, started_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, ended_at INTEGER""",
    # What workers ask a person about their tasks.
    "swarm_questions": """
        id INTEGER PRIMARY KEY, task_id TEXT NOT NULL, asked_by TEXT NOT NULL, question TEXT NOT NULL,
        asked_at INTEGER NOT NULL, answer TEXT, answered_at INTEGER, told_at INTEGER""",
    # When each kind of housekeeping was last done, and how far it came.
    "swarm_upkeep": "what TEXT PRIMARY KEY, done_at INTEGER NOT NULL, place TEXT",
    "swarm_schema": "version INTEGER NOT NULL",
}

INDEXES = {
    "messages_scope_recipient_read_idx": "messages(scope, recipient, read, id)",
    "messages_created_at_idx": "messages(created_at)",
    "instances_scope_idx": "instances(scope)",
    "instances_heartbeat_idx": "instances(heartbeat)",
    "tasks_scope_status_idx": "tasks(scope, status)",
    "tasks_scope_assignee_idx": "tasks(scope, assignee)",
    "tasks_scope_changed_at_idx": "tasks(scope, changed_at)",
    "tasks_scope_review_of_task_id_idx": "tasks(scope, review_of_task_id) WHERE review_of_task_id IS NOT NULL",
    "tasks_scope_fixes_task_id_idx": "tasks(scope, fixes_task_id) WHERE fixes_task_id IS NOT NULL",
    "tasks_scope_expected_next_update_idx": (
        "tasks(scope, expected_next_update_at) WHERE expected_next_update_at IS NOT NULL"
    ),
    "context_task_lock_idx": "context(scope, instance_id, task_id) WHERE type = 'lock' AND task_id IS NOT NULL",
    "events_scope_id_idx": "events(scope, id)",
    "events_created_at_idx": "events(created_at)",
    "ui_commands_scope_status_id_idx": "ui_commands(scope, status, id)",
    # Ours: a check finds a lock by key, by spelling, or by last name where it has no key.
    "swarm_lock_key_idx": "context(path_key) WHERE type = 'lock'",
    # Most locks are spelled as their key is, and have no entry in this one.
    "swarm_lock_spelling_idx": "context(file) WHERE type = 'lock' AND path_key IS NOT file",
    # Folders and patterns: they may meet a pattern that does not fit their names.
    "swarm_lock_folder_idx": "context(path_key) WHERE type = 'lock' AND base IS NOT NULL",
    "swarm_lock_name_idx": f"context({NAME_OF_FILE}) WHERE type = 'lock' AND path_key IS NULL",
    "swarm_lock_holder_idx": "context(instance_id) WHERE type = 'lock'",
    "swarm_denial_key_idx": "swarm_denials(path_key)",
    "swarm_alteration_key_idx": "swarm_alterations(path_key, id)",
    "swarm_alteration_time_idx": "swarm_alterations(altered_at)",
    "swarm_run_task_idx": "swarm_runs(task_id, started_at) WHERE task_id IS NOT NULL",
    "swarm_question_task_idx": "swarm_questions(task_id)",
    "swarm_question_open_idx": "swarm_questions(id) WHERE answer IS NULL",
    "swarm_run_time_idx": "swarm_runs(started_at)",
    # Ours: listings in pages, each from a place in its order. Those of tasks are of an expression that only their walks
    # have: no other question is to take them where it has an index of its own.
    "swarm_run_page_idx": "swarm_runs(scope, started_at)",
    "swarm_instance_page_idx": "instances(scope, registered_at)",
    "swarm_task_page_idx": "tasks(scope || '', priority DESC, created_at, id)",
    "swarm_task_status_idx": "tasks(scope || '', status, priority DESC, created_at, id)",
    "swarm_task_age_idx": "tasks(scope || '', created_at)",
    "swarm_kv_owner_idx": "kv(scope, key, owner_identity)",
    "swarm_run_live_idx": "swarm_runs(instance_id) WHERE state <> 'ended'",
    "swarm_run_ended_idx": "swarm_runs(ended_at) WHERE ended_at IS NOT NULL",
    # Ours: locks that may lapse, those that hold in every work tree of a repository.
    "swarm_lock_lease_idx": "context(instance_id, ttl) WHERE type = 'lock' AND ttl IS NOT NULL",
    # When something is due about a lease: a warning, then its end.
    "swarm_lock_due_idx": "context(booted, renewed + ttl * 0.8) WHERE type = 'lock' AND ttl IS NOT NULL",
    "swarm_notice_idx": "swarm_notices(instance_id)",
    "swarm_lock_agent_idx": "context(agent) WHERE type = 'lock' AND agent IS NOT NULL",
    # Locks that were confirmed for all machines, of this machine and of others.
    "swarm_lock_team_idx": "context(team_fence) WHERE type = 'lock' AND team_fence IS NOT NULL",
    "swarm_lock_repository_idx": "context(repository) WHERE type = 'lock' AND repository IS NOT NULL",
    # Ours: rows that fall due, so that housekeeping never reads a whole table.
    "swarm_denial_time_idx": "swarm_denials(denied_at)",
    "swarm_kv_key_idx": "kv(key, scope)",
    "swarm_legacy_idx": "context(id) WHERE type <> 'lock'",
    # Ours: the next task to claim, the ended ones of a day ago, the dependents of one that ends. Requester and assignee
    # stand at the end, so that the walk past strangers' tasks does not read the rows.
    "swarm_task_queue_idx": "tasks(scope, priority DESC, created_at, id, requester, assignee) WHERE status = 'open'",
    "swarm_task_type_idx": (
        "tasks(scope, type, priority DESC, created_at, id, requester, assignee) WHERE status = 'open'"
    ),
    "swarm_task_held_idx": (
        "tasks(scope, assignee, priority DESC, created_at, id) WHERE status IN ('claimed', 'in_progress')"
    ),
    "swarm_task_waiting_idx": (
        "tasks(scope, status, assignee, depends_on) WHERE status IN ('blocked', 'approval_required')"
    ),
    "swarm_task_ended_idx": "tasks(updated_at) WHERE status IN ('done', 'failed', 'cancelled')",
}

# Of earlier releases; they cost each lock an entry more.
# The contract's own is of the columns of `context_lock_idx`, and only locks are looked up by them.
FORMER_INDEXES = ("swarm_lock_file_idx", "context_scope_file_idx")

UNIQUE_INDEXES = {
    "context_lock_idx": "context(scope, file) WHERE type = 'lock'",
    "tasks_idempotency_key_idx": "tasks(scope, idempotency_key) WHERE idempotency_key IS NOT NULL",
}


def create(connection: Any, driver: Any) -> None:
    """Bring the file behind `connection` up to date, all or nothing; harmless when run at once by many."""
    _set_journal(connection, driver)
    connection.execute("BEGIN IMMEDIATE")
    try:
        if not connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone():
            _fill(connection)
        elif not is_current(connection):  # another process may have been first
            from sqlite_utils import Database

            _build(Database(connection, execute_plugins=False))
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _set_journal(connection: Any, driver: Any) -> None:
    if wal_is_safe(version(driver)):
        wanted = "WAL"
    else:
        wanted = "DELETE"
    connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")  # of a new file
    connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
    try:
        connection.execute(f"PRAGMA journal_mode = {wanted}")
    except driver.OperationalError:
        # Another process has the file open: it keeps its mode; `doctor` reports that.
        return


def _fill(connection: Any) -> None:
    """Give an empty file the whole schema, without sqlite-utils: loading that takes ten times as long."""
    for name, columns in all_tables().items():
        connection.execute(f"CREATE TABLE {name} ({columns})")
    for name, target in all_indexes().items():
        connection.execute(f"CREATE INDEX {name} ON {target}")
    for name, target in UNIQUE_INDEXES.items():
        connection.execute(f"CREATE UNIQUE INDEX {name} ON {target}")
    connection.execute("INSERT INTO swarm_fence (last) VALUES (0)")
    connection.execute("INSERT INTO swarm_schema (version) VALUES (?)", (OUR_VERSION,))
    connection.execute("PRAGMA user_version = 1")


def add_missing(connection: Any, error: str) -> bool:
    """Add the table that SQLite has missed, as its `error` says; return False if it is none of ours.

    This is for the stand-in of a store without a file: a command reads a few tables, and making all takes longer.
    """
    complaint, _, name = error.partition(": ")
    tables = TABLES if name in TABLES else all_tables()
    if complaint != "no such table" or name not in tables:
        return False
    connection.execute(f"CREATE TABLE {name} ({tables[name]})")
    indexes = INDEXES if tables is TABLES else all_indexes()
    for index, target in {**indexes, **UNIQUE_INDEXES}.items():
        if target.startswith(f"{name}("):
            connection.execute(f"CREATE INDEX {index} ON {target}")
    if name == "swarm_fence":
        connection.execute("INSERT INTO swarm_fence (last) VALUES (0)")
    return True


def _build(database: Any) -> None:
    existing = set(database.table_names())
    for name, columns in all_tables().items():
        if name in existing:
            _add_columns(database[name], columns)
        else:
            database.execute(f"CREATE TABLE {name} ({columns})")
    if "scope" not in database["kv"].columns_dict:
        _key_by_scope(database)
    for name in FORMER_INDEXES:
        database.execute(f"DROP INDEX IF EXISTS {name}")
    for name, target in all_indexes().items():
        database.execute(f"CREATE INDEX IF NOT EXISTS {name} ON {target}")
    # Files older than the unique indexes may have two locks on a file, or a task key twice: the first one has it.
    rival = "EXISTS (SELECT 1 FROM {0} first WHERE first.scope = {0}.scope AND first.rowid < {0}.rowid AND {1})"
    same_file = "first.type = 'lock' AND first.file = context.file"
    same_key = "first.idempotency_key = tasks.idempotency_key"
    if "context_lock_idx" not in {index.name for index in database["context"].indexes}:
        database.execute(f"DELETE FROM context WHERE type = 'lock' AND {rival.format('context', same_file)}")
    if "tasks_idempotency_key_idx" not in {index.name for index in database["tasks"].indexes}:
        duplicate = f"idempotency_key IS NOT NULL AND {rival.format('tasks', same_key)}"
        database.execute(f"UPDATE tasks SET idempotency_key = NULL WHERE {duplicate}")
    for name, target in UNIQUE_INDEXES.items():
        database.execute(f"CREATE UNIQUE INDEX IF NOT EXISTS {name} ON {target}")
    for column in ("scope", "root", "file_root"):
        database.execute(f"UPDATE instances SET {column} = directory WHERE {column} = ''")
    database.execute("UPDATE tasks SET changed_at = updated_at * 1000 WHERE changed_at = 0")
    database.execute(
        "INSERT OR IGNORE INTO kv_scope_updates (scope, changed_at)"
        " SELECT scope, max(updated_at) * 1000 FROM kv GROUP BY scope"
    )
    if not database["swarm_fence"].count:
        database["swarm_fence"].insert({"last": 0})
    database["swarm_schema"].delete_where()
    database["swarm_schema"].insert({"version": OUR_VERSION})
    database.execute("PRAGMA user_version = 1")


def all_tables() -> dict[str, str]:
    """Return the tables of all packages: name -> columns."""
    return {**TABLES, **contributions.table("TABLES")}


def all_indexes() -> dict[str, str]:
    """Return the indexes of all packages, but unique ones: name -> table and columns."""
    return {**INDEXES, **contributions.table("INDEXES")}


def _differences(database: Any) -> list[str]:
    """Return what a store lacks of this release's schema, in words; `database` is sqlite-utils' view of it."""
    wanted = _in_memory()
    _build(wanted)
    found = []
    present = set(database.table_names())
    for table in wanted.tables:
        if table.name not in present:
            found.append(f"there is no table {table.name}")
            continue
        columns, indexes = database[table.name].columns_dict, {index.name for index in database[table.name].indexes}
        found += [f"{table.name} has no column {column}" for column in table.columns_dict if column not in columns]
        missing = {index.name for index in table.indexes if index.origin == "c"} - indexes
        found += [f"there is no index {index}" for index in sorted(missing)]
    return found


def _in_memory() -> Any:
    """Return an empty database, by sqlite-utils and the SQLite that serves the store."""
    from sqlite_utils import Database

    return Database(load().connect(":memory:", isolation_level=None), execute_plugins=False)


def _add_columns(table: Any, columns: str) -> None:
    """Give a table of an older or foreign file the columns that it lacks, as far as SQLite can add them."""
    wanted = _in_memory()
    wanted.execute(f"CREATE TABLE wanted ({columns})")
    present = table.columns_dict
    for column in wanted["wanted"].columns:
        default = column.default_value
        can_be_added = not column.notnull or (default is not None and "unixepoch" not in default)
        of_key = column.is_pk or (table.name, column.name) == ("kv", "scope")  # see `_key_by_scope`
        if can_be_added and not of_key and column.name not in present:
            rules = " NOT NULL" * column.notnull + (f" DEFAULT {default}" if default is not None else "")
            table.db.execute(f"ALTER TABLE {table.name} ADD COLUMN {column.name} {column.type}{rules}")


def _key_by_scope(database: Any) -> None:
    """An old ``kv`` knew no scopes: its rows move to scope '', keeping value, owner and time."""
    database.execute("ALTER TABLE kv RENAME TO kv_without_scope")
    database.execute(f"CREATE TABLE kv ({TABLES['kv']})")
    database.execute(
        "INSERT INTO kv (scope, key, value, owner_identity, updated_at)"
        " SELECT '', key, value, owner_identity, updated_at FROM kv_without_scope"
    )
    database["kv_without_scope"].drop()


# The inside of a file: its pages, and its tables, columns and indexes beside those of this release.


MOST_NAMED = 3


class Inside(NamedTuple):
    """The result of a look at a store's file.

    damage       SQLite's words about damaged pages, a few; empty for a sound file
    differences  tables, columns and indexes that the file lacks, in words
    """

    damage: list[str]
    differences: list[str]

    @property
    def words(self) -> str:
        """Return both in one line, empty if all is well."""
        more = len(self.differences) - MOST_NAMED
        rest = [f"and {more} more"] if more > 0 else []
        return "; ".join([*self.damage, *self.differences[:MOST_NAMED], *rest])


def inside(store: Any) -> Inside | None:
    """Look at the file of an open store; None if sqlite-utils cannot be loaded. Reads every page of the file.

    Raises StoreUnavailable if it cannot be read.
    """
    try:
        from sqlite_utils import Database
    except Exception:  # a broken library
        return None
    database = Database(store.database.connection, execute_plugins=False)
    damage = [str(row["quick_check"]) for row in database.query(f"PRAGMA quick_check({MOST_NAMED})")]
    if damage == ["ok"]:
        damage = []
    return Inside(damage, _differences(database))
