"""Reading the coordinator's store inside the hook process, read-only, through indexes.

The interpreter's own ``_sqlite3`` serves: it only reads here, and a reader neither writes nor
checkpoints, so the write-ahead-log defect of releases before 3.51.3 cannot bite.
"""

import os
import sys

# What tells whether a session has gone (``liveness.departed``), of instances as `i`, swarm_sessions as `s`.
COLUMNS = (
    "s.host, s.client_pid, s.client_start, s.terminal_pid, s.terminal_start, s.state, s.last_seen, s.lease_seconds,"
    " i.adopted, i.heartbeat, i.lease_until, s.other_clients, s.runtime"
)
# What ours can say of a lock beyond the contract, of context as `c`.
LOCK_COLUMNS = "c.mode, c.agent, c.pattern, c.base, c.fence, c.expected_end, c.ttl, c.renewed, c.booted, c.wall_until"
NO_COLUMNS = ", ".join(["NULL"] * 10)  # the same, of a file that another program or release has made
EARLIER_COLUMNS = COLUMNS.replace("s.other_clients", "NULL")  # in files in which a session has one client
BUSY_SECONDS = 0.12
ALIAS_LIMIT = 64
BATCH = 400  # keys in one query; old releases take 999 values

# The last component of a lock's path, lower-cased; the schema has an index on exactly this text.
NAME_OF_FILE = "lower(replace(file, rtrim(file, replace(file, '/', '')), ''))"


# Only what tells whether a pattern is met: of the many that are not, nothing more need be read.
_PATTERN = "rowid, pattern, base, path_key"
GLOB = "glob:"  # before the key of the folder that all a pattern covers is in: what such a lock is stored under


class Held:
    """One lock, as the decision needs it.

    `names` are the keys it was found by; `since` is in Unix seconds, 0 where it is not known. `agent`: the one of
    its session's agents that holds it, empty for the session; `pattern` counts from the folder with key `base`;
    `expected_end` in Unix seconds, None for unknown; `lease` as ``clock.left`` takes it, None for none. `elsewhere`:
    the locked file of another work tree that `file` is the same as, empty for an ordinary lock.
    """

    __slots__ = (
        "file", "names", "instance_id", "label", "note", "since", "evidence", "mode", "agent", "pattern", "base",
        "fence", "expected_end", "lease", "elsewhere",
    )  # fmt: skip

    def __init__(self, file, instance_id, label, note, since, evidence=None, names=(), more=()):
        # Rows may come from anywhere; whether a file is held must not hang on how its note reads.
        self.file = file
        self.names = names or (file,)
        self.instance_id = instance_id
        self.label = label if isinstance(label, str) else ""
        self.note = note if isinstance(note, str) else ""
        self.since = since if isinstance(since, (int, float)) else 0
        self.evidence = evidence
        # Columns of ours that another program has filled are as good as empty where they hold what we never write.
        self.mode, agent, self.pattern, self.base, self.fence, self.expected_end, *lease = more or (None,) * 10
        self.agent = agent if isinstance(agent, str) else ""
        self.lease = lease if isinstance(lease[0], (int, float)) else None
        self.elsewhere = ""


class Session:
    """What the decision needs to know of the session that wants to write."""

    __slots__ = ("instance_id", "label", "directory", "root", "file_root")

    def __init__(self, instance_id, label="", directory="", root="", file_root=""):
        self.instance_id = instance_id
        self.label = label or ""
        self.directory = directory
        self.root = root
        self.file_root = file_root


class without_functools:
    """While SQLite's C module loads, stand in for ``functools``, which it wants one name of.

    Saves 5 ms of the 6 that ``import _sqlite3`` costs. The stand-in is withdrawn at once, so that
    later imports get the real module.
    """

    def __enter__(self):
        self.installed = None
        if "functools" in sys.modules:
            return
        try:
            from _functools import _lru_cache_wrapper
        except ImportError:
            return

        class StandIn:
            @staticmethod
            def lru_cache(size):
                return lambda function: _lru_cache_wrapper(function, size, False, tuple)

        self.installed = sys.modules["functools"] = StandIn  # type: ignore[assignment]

    def __exit__(self, *_exception):
        if self.installed is not None and sys.modules.get("functools") is self.installed:
            del sys.modules["functools"]


def sqlite_driver():
    """The C module under the interpreter's ``sqlite3``."""
    with without_functools():
        import _sqlite3
    return _sqlite3


def as_text(raw: bytes) -> str:
    """Text as stored; bytes that are not UTF-8 survive as surrogates instead of failing the query."""
    return raw.decode("utf-8", "surrogateescape")


def ascii_lower(name: str) -> str:
    """Lower case as SQLite's ``lower`` has it: A to Z only."""
    return name.encode("utf-8", "surrogatepass").lower().decode("utf-8", "surrogatepass")


def storable(text: str) -> bool:
    """Whether a store can hold `text`. A file name that is not UTF-8 it cannot, so nobody locks one."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def connect_read_only(driver, path: str, busy_seconds: float):
    """A read-only connection to `path`, also from a sandbox that cannot write its folder.

    A write-ahead log needs its index file or leave and room to create it. Where that cannot be had and
    no log is pending, the file itself is complete and can be read as it stands.
    """
    uri = "file:" + path.replace("%", "%25").replace("?", "%3f").replace("#", "%23") + "?mode=ro"
    connection = driver.connect(uri, uri=True, timeout=busy_seconds, isolation_level=None)
    try:
        connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
    except driver.OperationalError as error:
        connection.close()
        if "locked" in str(error) or "busy" in str(error):
            raise
        if _pending(path + "-journal"):
            # A writer died in the middle of a commit; whoever opens the file to write takes that back.
            _roll_back(driver, uri, busy_seconds)
        elif _pending(path + "-wal"):
            raise
        else:
            uri += "&immutable=1"
        connection = driver.connect(uri, uri=True, timeout=busy_seconds, isolation_level=None)
    connection.text_factory = as_text
    return connection


def _pending(log: str) -> bool:
    try:
        return os.path.getsize(log) > 0
    except OSError:
        return False


def _roll_back(driver, uri: str, busy_seconds: float) -> None:
    connection = driver.connect(uri.replace("?mode=ro", "?mode=rw"), uri=True, timeout=busy_seconds)
    try:
        connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
    finally:
        connection.close()


class StoreReader:
    """The questions a check asks, by `driver` (default: the interpreter's). Raises its errors; callers fail open."""

    def __init__(self, path: str, driver=None):
        self.driver = driver or sqlite_driver()
        self.connection = connect_read_only(self.driver, path, BUSY_SECONDS)
        self.is_ours = True
        self._lock_columns = LOCK_COLUMNS
        self._evidence = COLUMNS

    def __del__(self):
        try:
            self.connection.close()  # Python 3.13 complains of one that is left to the garbage collector
        except Exception:
            return

    def session(self, runtime: str, session_id: str):
        """The Session registered under this id, or None.

        A file of another implementation has no table of ours: it knows no session, and `is_ours`
        turns false.
        """
        try:
            row = self.connection.execute(
                "SELECT i.id, i.label, i.directory, i.root, i.file_root FROM swarm_sessions s"
                " JOIN instances i ON i.id = s.instance_id WHERE s.runtime = ? AND s.session_id = ?",
                (runtime, session_id),
            ).fetchone()
        except self.driver.OperationalError as error:
            if "no such" not in str(error):
                raise
            self.is_ours = False
            return None
        return Session(*row) if row else None

    def locks_on(self, keys: list[str]) -> list[Held]:
        """Locks stored under any of `keys`, whoever holds them, in whatever scope."""
        keys = [key for key in keys if storable(key)]
        found: list[Held] = []
        for start in range(0, len(keys), BATCH):
            some = keys[start : start + BATCH]
            marks = ",".join("?" * len(some))
            rows = self._locks(f"c.path_key IN ({marks})", some) + self._locks(f"c.file IN ({marks})", some)
            found += [held_of(row, row[:2]) for row in rows + self._aliased(some)]
        return found

    def patterns_over(self, keys: list[str]) -> list[Held]:
        """Locks on patterns that cover any of these paths, given by their keys; `names` says which."""
        if not self._has_patterns():
            return []
        from swarm_hook_core.lookup.pattern_locks import covering, stored_under

        found = covering(self._patterns(stored_under([key for key in keys if storable(key)])), keys)
        return [held_of(row, (*found[row[-1]], row[1])) for row in self._by_rowid(list(found))]

    def patterns_near(self, folders: list[str], own_id: str) -> list[Held]:
        """Locks of others on patterns that may cover something below any of these folders, given by their keys."""
        if not self._has_patterns():
            return []
        from swarm_hook_core.lookup.pattern_locks import stored_under
        from swarm_hook_core.pattern_match import Cover

        folders = [folder for folder in folders if storable(folder)]
        found = self._patterns([*stored_under(folders), *(GLOB + folder for folder in folders)])
        for folder in folders:
            low = GLOB + folder.rstrip("/")
            found += self._some_patterns("path_key > ? AND path_key < ?", [low + "/", low + "0"])
        rows = self._by_rowid(list(dict.fromkeys(row[0] for row in found)))
        near = [held_of(row, ()) for row in rows if row[2] != own_id or row[7] is not None]
        return [held for held in near if (cover := Cover(held)) and any(map(cover.leads_to, folders))]

    def _has_patterns(self) -> bool:
        return bool(self._some_patterns("path_key >= ? AND path_key < ? LIMIT 1", [GLOB, GLOB[:-1] + ";"], "1"))

    def _patterns(self, path_keys: list[str]) -> list[tuple]:
        found: list[tuple] = []
        for start in range(0, len(path_keys), BATCH):
            some = path_keys[start : start + BATCH]
            found += self._some_patterns(f"path_key IN ({','.join('?' * len(some))})", some)
        return found

    def _some_patterns(self, condition: str, values: list[str], columns: str = _PATTERN) -> list[tuple]:
        sql = f"SELECT {columns} FROM context WHERE type = 'lock' AND {condition}"
        return self.connection.execute(sql, values).fetchall()

    def _by_rowid(self, ids: list[int]) -> list[tuple]:
        rows: list[tuple] = []
        for start in range(0, len(ids), BATCH):
            some = ids[start : start + BATCH]
            rows += self._locks(f"c.rowid IN ({','.join('?' * len(some))})", some)
        return rows

    def logical_over(self, keys: list[str]) -> list[Held]:
        """Locks of other work trees that hold here too, on the paths with these keys."""
        if not self._has_logical():
            return []
        from swarm_hook_core.lookup.worktree_locks import over

        return over(self, keys)

    def logical_under(self, folders: list[str], own_id: str, limit: int) -> list[Held]:
        """The same of others than one session, below any of these folders, at most `limit` for each."""
        if not self._has_logical():
            return []
        from swarm_hook_core.lookup.worktree_locks import under

        return under(self, folders, own_id, limit)

    def repository_locks(self, condition: str, values: list[str], limit: int = -1) -> list[tuple]:
        """``(row, name)`` of locks that hold in every work tree of a repository; rows as `held_of` takes them."""
        rows = self._some_locks(f"c.repository IS NOT NULL AND {condition}", values, limit, ", c.repository")
        return [(row[:-1], row[-1]) for row in rows]

    def _has_logical(self) -> bool:
        """Whether there is any lock of that kind: one step into an index that has nothing else."""
        sql = "SELECT 1 FROM context WHERE type = 'lock' AND repository IS NOT NULL LIMIT 1"
        try:
            return self.connection.execute(sql).fetchone() is not None
        except self.driver.OperationalError as error:
            if "no such" not in str(error):
                raise
            return False  # a file of another program, or of an earlier release

    def others_hold(self, own_id: str) -> bool:
        """Whether anybody but this session has a lock. Two steps into an index, however many there are.

        Nobody has one in a file that is only being made, or holds something else.
        """
        try:
            for other in ("<", ">"):
                sql = f"SELECT 1 FROM context WHERE type = 'lock' AND instance_id {other} ? LIMIT 1"
                if self.connection.execute(sql, (own_id,)).fetchone():
                    return True
            # What one of this session's agents holds keeps the others out.
            sql = "SELECT 1 FROM context WHERE type = 'lock' AND instance_id = ? AND agent IS NOT NULL LIMIT 1"
            if own_id and self.connection.execute(sql, (own_id,)).fetchone():
                return True
        except self.driver.OperationalError as error:
            if "no such" not in str(error):
                raise
        return False

    def locks_under(self, folders: list[str], own_id: str, limit: int, own_agent: str = "") -> list[Held]:
        """Locks of others on what lies below any of these folders (spellings or keys), at most `limit` for each.

        Rows that another implementation stored without a key are found by their spelling alone. Patterns are not
        among them: see `patterns_near`.
        """
        found: dict = {}
        for folder in folders:
            if not storable(folder):
                continue
            # All texts that go on with a slash: "0" comes after it.
            values = [own_id, folder.rstrip("/") + "/", folder.rstrip("/") + "0"]
            rows = self._keyed_under(values, own_agent, limit)
            # The plus keeps SQLite from the index of keys, where every row without one would be read.
            unkeyed = "c.instance_id <> ? AND +c.path_key IS NULL AND c.file >= ? AND c.file < ?"
            for row in rows + self._locks(unkeyed, values, limit):
                found[row[:3]] = held_of(row, row[:2] if row[1] else row[:1])
        return list(found.values())

    def _keyed_under(self, values: list[str], own_agent: str, limit: int) -> list[tuple]:
        own_id, low, high = values
        condition = "c.path_key >= ? AND c.path_key < ? AND "
        if self._lock_columns is LOCK_COLUMNS:
            try:  # what another agent of one's own session holds is another's
                others = "(c.instance_id <> ? OR c.agent IS NOT NULL AND c.agent <> ?)"
                return self._some_locks(condition + others, [low, high, own_id, own_agent], limit)
            except self.driver.OperationalError as error:
                if "no such column" not in str(error):
                    raise
            self._lock_columns = NO_COLUMNS
        return self._some_locks(condition + "c.instance_id <> ?", [low, high, own_id], limit)

    def was_denied(self, instance_id: str, held: Held, since: float, path: str = "") -> bool:
        """Whether it is noted that this lock kept this session from its file after `since` (Unix seconds).

        With `path` only where it was that one which it would have written.
        """
        try:
            row = self.connection.execute(
                "SELECT 1 FROM swarm_denials WHERE instance_id = ? AND path_key IN (?, ?) AND holder_id = ?"
                " AND denied_at > ? AND (path IS NULL OR ? IN ('', path))",
                (instance_id, held.names[0], held.names[-1], held.instance_id, since, path),
            ).fetchone()
        except self.driver.OperationalError as error:
            if "no such" not in str(error):
                raise
            return False  # a store of another implementation, or of an earlier release
        return row is not None

    def waiting_for(self, path: str) -> int:
        """How many wait for a lock on absolute `path`, on something over it or below. For who has been denied."""
        try:
            sql = "SELECT wants, until, host, pid, start FROM swarm_waiters ORDER BY ticket LIMIT 1000"
            rows = self.connection.execute(sql).fetchall()
        except self.driver.OperationalError as error:
            if "no such" not in str(error):
                raise
            rows = []  # a store of another implementation, or of an earlier release
        if not rows:
            return 0
        from swarm_hook_core.lookup.waiters import count

        return count(rows, path)

    def leases_and_news(self, instance_id: str) -> tuple[list[tuple], bool]:
        """What is due for this session itself: its leases, as ``clock.left`` takes them, and whether there is news."""
        try:
            leases = self.connection.execute(
                "SELECT ttl, renewed, booted, wall_until FROM context WHERE type = 'lock' AND ttl IS NOT NULL"
                " AND instance_id = ?",
                (instance_id,),
            ).fetchall()
            sql = "SELECT 1 FROM swarm_notices WHERE instance_id = ? LIMIT 1"
            return leases, self.connection.execute(sql, (instance_id,)).fetchone() is not None
        except self.driver.OperationalError as error:
            if "no such" not in str(error):
                raise
        return [], False

    def has_news(self) -> bool:
        """Whether any session is to be told something."""
        try:
            return self.connection.execute("SELECT 1 FROM swarm_notices LIMIT 1").fetchone() is not None
        except self.driver.OperationalError as error:
            if "no such" not in str(error):
                raise
        return False

    def holds_as(self, instance_id: str, agent: str) -> bool:
        """Whether this agent of a session holds anything of its own."""
        try:
            sql = "SELECT 1 FROM context WHERE type = 'lock' AND instance_id = ? AND agent = ? LIMIT 1"
            return self.connection.execute(sql, (instance_id, agent)).fetchone() is not None
        except self.driver.OperationalError as error:
            if "no such" not in str(error):
                raise
        return False

    def _aliased(self, keys: list[str]) -> list[tuple]:
        """Locks that another implementation stored under a path with links still in it, with their key."""
        expression = NAME_OF_FILE.replace("file", "c.file")
        rows: list[tuple] = []
        # One by one: for several names at once SQLite takes the other index, and reads every row without a key.
        for name in {ascii_lower(os.path.basename(key)) for key in keys}:
            rows += self._locks(f"c.path_key IS NULL AND {expression} = ?", [name], ALIAS_LIMIT - len(rows))
            if len(rows) == ALIAS_LIMIT:
                break
        if not rows:
            return rows
        from swarm_hook_core.paths import LONGEST, key_of

        if len(rows) == ALIAS_LIMIT:
            from swarm_hook_core import faults

            # Each costs a look at the disk. `swarm-mcp` gives such rows a key whenever it writes.
            faults.record("store", "pre_tool_use", f"more than {ALIAS_LIMIT} locks without a key share one name")
        known = [row for row in rows if isinstance(row[0], str) and "\0" not in row[0] and len(row[0]) <= LONGEST]
        keyed = [(row[0], key_of(row[0]), *row[2:]) for row in known]
        return [row for row in keyed if row[1] in keys]

    def _locks(self, condition: str, values: list[str], limit: int = -1) -> list[tuple]:
        try:
            return self._some_locks(condition, values, limit)
        except self.driver.OperationalError as error:
            if "no such column" not in str(error) or self._lock_columns is not LOCK_COLUMNS:
                raise
        self._lock_columns = NO_COLUMNS  # an earlier release's file, until the coordinator next writes to it
        return self._some_locks(condition, values, limit)

    def _some_locks(self, condition: str, values: list[str], limit: int, more: str = "") -> list[tuple]:
        # CROSS JOIN keeps the lock index outermost, whatever the planner believes of table sizes.
        sql = (
            "SELECT c.file, c.path_key, c.instance_id, i.label, c.content, c.created_at,"
            f" {self._lock_columns}, {self._evidence}, c.rowid{more}"
            " FROM context c CROSS JOIN instances i ON i.id = c.instance_id"
            " LEFT JOIN swarm_sessions s ON s.instance_id = c.instance_id"
            f" WHERE c.type = 'lock' AND {condition} LIMIT {limit}"
        )
        try:
            return self.connection.execute(sql, values).fetchall()
        except self.driver.OperationalError as error:
            if "other_clients" not in str(error) or self._evidence is EARLIER_COLUMNS:
                raise
        self._evidence = EARLIER_COLUMNS  # an earlier release's file, until the coordinator next writes to it
        return self._some_locks(condition, values, limit, more)


def plain(file: str) -> str:
    """A lock's file as it was asked for: several that share one stand under spellings of it, with ``/./`` in them."""
    while "/./" in file:  # one for each that shares it
        file = file.replace("/./", "/")
    return file


def held_of(row: tuple, names: tuple) -> Held:
    """The Held of a row of ``StoreReader._locks``."""
    file = plain(row[0]) if isinstance(row[0], str) else row[0]
    return Held(file, *row[2:6], row[16:-1], names, row[6:16])
