"""One open store file: rows as records, every read-then-write as one immediate transaction, in turns."""

from __future__ import annotations

import _thread
import errno
import os
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, overload

from swarm_hook_core.json_text import dumps, loads
from swarm_hook_core.lookup.glance import as_text, connect_read_only, is_busy
from swarm_hook_core.process import host_id
from swarm_hook_core.state import DEFAULT_STORE, clones_dir, make_private, open_private, refuse_link, store_path
from swarm_hook_core.untrusted_text import LONGEST, bounded
from swarm_mcp import contributions
from swarm_mcp.domain import Record
from swarm_mcp.errors import StoreUnavailable, SwarmError
from swarm_mcp.store import driver as drivers
from swarm_mcp.store.driver import is_current

TYPE_CHECKING = False


# Taking turns at the store: one transaction at a time, and a fair wait for it.
#
# SQLite's own waiting asks again after 1 to 100 ms: the longest waiter asks least often, and is starved by newcomers
# (for seconds, with 32 processes). Here processes that found the store busy stand in line for a lock on its folder,
# which the system hands on in order of arrival. The process whose turn it is writes as often as it likes for a few
# milliseconds, since SQLite's cache is good until another process writes; then it goes to the end of the line. The line
# is a courtesy: if it is held up or cannot be had, every process asks for itself, only less often.

TURN = 0.003  # with 32 processes each has one within 0.15 s
# Before the turn is over the next in line is woken, which may take as long: no process has the store meanwhile.
NOTICE = 0.001
FIRST_PAUSE = 0.0001  # between the tries of the process with the turn
PAUSE = 0.004  # without a line
PATIENCE = 0.4  # in line: longer than a moving line takes, since a try out of turn takes time from others
STRAY_PAUSE = 0.08  # between the tries of those in line, should the line not move


def is_waited_for(folder: str) -> bool:
    """Return True if a process stands in the line of this folder. Costs 6 us."""
    try:
        import fcntl

        handle = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    except (ImportError, OSError):  # no such locks on this system: there is no line
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:  # the lock is held: a process waits
        return error.errno in (errno.EWOULDBLOCK, errno.EACCES)
    finally:
        os.close(handle)
    return False


def pause() -> None:
    """Wait a moment before the next try, each time another."""
    time.sleep(FIRST_PAUSE + _some(PAUSE))


class Line:
    """A place in the line of those that want to write, taken by a thread that waits for its turn.

    The lock is on the folder: on the file itself it would clash with SQLite's own (on macOS), and a
    file of its own would lie about for ever.
    """

    def __init__(self, folder: str, patience: float = PATIENCE):
        self.patience = patience  # until the next try, should it not be our turn before
        self.turn, self.done = _thread.allocate_lock(), _thread.allocate_lock()
        self.turn.acquire()  # held until it is our turn
        self.done.acquire()  # held until we have the store, or give up
        self.first = False
        self.folder = -1
        try:
            self.folder = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
            _thread.start_new_thread(self._stand, ())
        except (OSError, RuntimeError):
            self._close()

    def pause(self) -> None:
        """Wait before the next try: until it is our turn, and briefly from then on."""
        if self.first:
            time.sleep(_some(2 * FIRST_PAUSE))
        elif self.folder < 0:
            pause()
        else:
            self.first = self.turn.acquire(timeout=self.patience)
            self.patience = STRAY_PAUSE / 2 + _some(STRAY_PAUSE)

    def leave(self) -> None:
        """Wait no more, having got the store or given up: our turn ends soon, and does not come if it has not yet."""
        self.done.release()

    def _stand(self) -> None:
        try:
            import fcntl

            fcntl.flock(self.folder, fcntl.LOCK_EX)
        except (ImportError, OSError):  # no such locks on this system: there is no line
            return self._close()
        self.turn.release()
        self.done.acquire()
        if self.first:
            time.sleep(TURN - NOTICE)  # the others leave the store to us until then
        self._close()

    def _close(self) -> None:
        folder, self.folder = self.folder, -1
        if folder >= 0:
            os.close(folder)


def _some(seconds: float) -> float:
    return seconds * os.urandom(1)[0] / 255  # importing `random` would take 5 ms


R = TypeVar("R", bound=Record)

BUSY_SECONDS = 15.0
PATIENCE_SECONDS = 0.05
CONTRACT_VERSION = 1
# Prepared statements kept by a connection. pysqlite3 keeps the first so many for good, and prepares later ones again at
# each use, which takes several times as long as running them.
STATEMENTS = 256
_BESIDE = ("-wal", "-shm", "-journal")  # SQLite's own files: new ones have the mode of the store
_OTHERS = 0o077
_FILE, _FOLDER = 0o100000, 0o040000
# Closing a file drops the process's locks on it. So no thread opens a store while another makes it.
_making = _thread.allocate_lock()
_LABELS = {"label", "owner_label", "writer_label", "holder_label", "taken_label"}


class Transaction:
    """An open transaction: rows, changes, and the clock. Functions of the store take one as their first argument.

    `Database.writing` begins one that may change rows. A function that only reads is given the database itself, so that
    each statement sees the file as it is at that moment.
    """

    path: str
    driver: Any
    connection: Any
    read_only: bool
    here: str  # this machine since its last start, as rows name it
    after_commit: list[Callable[[], object]]  # called once the present transaction is committed
    tells: bool  # packages are told of each commit that has changed rows (``contributions``)
    changed: set[str]  # tables whose rows the present transaction has changed; an empty name is an unknown table
    granted: dict[tuple[str, str, int], str]  # session, file and fence -> lock: this process's latest grants
    taker: tuple[str, list[str]] = ("", [])  # a session that is taking the place of a dead holder, and the file's keys
    swept_at = 0  # when dead waiters were last removed, in Unix seconds
    keys_sought_at = 0  # when keys of other programs' locks were last worked out

    def _execute(self, sql: str, values: Sequence[object]) -> Any:
        raise NotImplementedError

    if TYPE_CHECKING:

        @overload
        def rows(self, sql: str, values: Sequence[object] = ()) -> list[Record]: ...

        @overload
        def rows(self, sql: str, values: Sequence[object], kind: type[R]) -> list[R]: ...

    def rows(self, sql: str, values: Sequence[object] = (), kind: type[Record] = Record) -> list[Any]:
        """Return all rows of a query, as records of this kind."""
        cursor = self._execute(sql, values)
        found = cursor.fetchall()
        if not found:
            return []
        names = [column[0] for column in cursor.description or ()]  # a pragma may have none
        for row in found:
            if bytes in map(type, row):  # text that another program stored as a blob
                found = [[as_text(value) if type(value) is bytes else value for value in one] for one in found]
                break
        if not _LABELS.isdisjoint(names):
            # Another program or an earlier release stored them at any length.
            labels = [place for place, name in enumerate(names) if name in _LABELS]
            if any(isinstance(row[place], str) and len(row[place]) > LONGEST for place in labels for row in found):
                found = [[_short(value) if at in labels else value for at, value in enumerate(row)] for row in found]
        return [kind(zip(names, row)) for row in found]

    if TYPE_CHECKING:

        @overload
        def row(self, sql: str, values: Sequence[object] = ()) -> Record | None: ...

        @overload
        def row(self, sql: str, values: Sequence[object], kind: type[R]) -> R | None: ...

    def row(self, sql: str, values: Sequence[object] = (), kind: type[Record] = Record) -> Any:
        """Return the first row of a query, or None."""
        found = self.rows(sql, values, kind)
        if found:
            return found[0]
        return None

    def column(self, sql: str, values: Sequence[object] = ()) -> list[Any]:
        """Return the first column of a query of numbers."""
        return [value for (value,) in self._execute(sql, values)]

    def change(self, sql: str, values: Sequence[object] = ()) -> int:
        """Run one statement inside `writing`; the number of rows it changed."""
        return int(self._execute(sql, values).rowcount)

    def insert(self, sql: str, values: Sequence[object]) -> int:
        """Run one INSERT inside `writing`; the number of the new row."""
        return int(self._execute(sql, values).lastrowid)

    def has(self, rows: str, *values: object) -> bool:
        """Return True if there is a row: `rows` is a table, or a table with its WHERE."""
        return bool(self.rows(f"SELECT 1 FROM {rows} LIMIT 1", values))

    def count(self, rows: str, *values: object) -> int:
        """Return the number of these rows; `rows` as for `has`."""
        return int(self.column(f"SELECT count(*) FROM {rows}", values)[0])

    def add_event(
        self,
        scope: str,
        kind: str,
        actor: str | None,
        subject: str | None,
        payload: dict[str, Any] | str | None,
        facts: dict[str, Any] | None = None,
    ) -> None:
        """Append a row to the audit trail, in the transaction of the change that it records.

        `kind` as in the contract, ``instance.registered`` for one; a text as `payload` is JSON. `facts`: what
        the contract's payload has no place for.
        """
        text = dumps(payload) if isinstance(payload, dict) else payload
        told = dumps(facts) if facts else None
        self.change(
            "INSERT INTO events (scope, type, actor, subject, payload, created_at, facts) VALUES (?, ?, ?, ?, ?, ?, ?)",
            (scope, kind, actor, subject, text, self.now(), told),
        )

    def events_so_far(self) -> int:
        """Return how many events this store has ever had; it never goes down."""
        row = self.row("SELECT seq FROM sqlite_sequence WHERE name = 'events'")
        if row:
            return int(row.seq)
        return 0

    def version(self) -> tuple[int, int]:
        """Return a value that differs after each commit of another process, and after the file was replaced."""
        number = self.rows("PRAGMA data_version")[0].data_version
        return id(self.connection), number

    def now(self) -> int:
        """Return Unix seconds."""
        return int(time.time())

    def now_ms(self) -> int:
        """Return Unix milliseconds, the unit of ``changed_at`` columns."""
        return int(time.time() * 1000)


class Database(Transaction):
    """The store's file, open: every read-then-write is one immediate transaction.

    One to write with creates or migrates the file when needed. A read-only one works in a sandbox that
    cannot write the file's folder, and answers as an empty store where there is no file yet.
    """

    def __init__(
        self,
        path: str | None = None,
        read_only: bool = False,
        busy_seconds: float = BUSY_SECONDS,
        tells: bool = True,
    ):
        self.path = path or store_path()
        self.folder = os.path.dirname(self.path)
        self.read_only = read_only
        self.tells = tells
        self.busy_seconds = busy_seconds
        self.turn_ends = 0.0  # until then it may write without asking for waiting processes, by ``time.monotonic``
        self.after_commit = []
        self.changed = set()
        self.counted = 0  # changes of the connection, as far as `changed` has their tables
        self.last = ""  # statement
        self.driver = drivers.load()
        self.here = host_id()
        self.granted = {}
        # The environment is asked once: a lock and unlock would ask it seven times.
        self._clones = clones_dir()
        self._opened: tuple[int, int] | None = None
        self._prepared: set[str] = set()
        self._is_missing = False  # there is no file, and the connection is to a stand-in for it
        self.connection = self._open()

    def writing(self, before_waiting: Callable[[], object] | None = None) -> Turn:
        """Return a transaction that holds the write lock from its beginning, so that nothing read in it is stale.

        `before_waiting` is called if another process has the store, and may raise to make waiting needless.
        """
        return Turn(self, before_waiting)

    def shares_locks(self) -> bool:
        """Return True if a clone on this machine shares its locks with other machines. Costs one look at the disk."""
        return os.access(self._clones, os.F_OK)

    def hurried(self) -> _Hurry:
        """Give up soon, inside the block, while another process is writing: for work that is not urgent."""
        return _Hurry(self)

    def refresh(self) -> None:
        """Open the file anew where it was removed or replaced since. Costs 3 us where it was not.

        Every transaction and every read outside of one does so first. The connection is also made anew when it
        has more statements to remember than it can.
        """
        if _identity(self.path) != self._opened or len(self._prepared) > STATEMENTS:
            stale = self.connection
            self.connection = self._open()
            self._prepared.clear()
            stale.close()

    def close(self) -> None:
        """Close the file. Safe to call twice."""
        self.connection.close()

    # ----------------------------------------------------------------- opening

    def _execute(self, sql: str, values: Sequence[object]) -> Any:
        if not self.connection.in_transaction:
            self.refresh()
        self._prepared.add(sql)
        try:
            if self.connection.total_changes != self.counted:
                self.note_change()
            self.last = sql
            return self.connection.execute(sql, values)
        except UnicodeEncodeError:
            raise SwarmError("text that is not valid UTF-8 cannot be stored") from None
        except (self.driver.Error, OverflowError) as error:
            if is_busy(error):
                return self.insist_on(sql, pause, values)
            if self._is_missing and self._has_added(error):
                return self._execute(sql, values)
            raise self._unavailable(error) from error

    def _has_added(self, error: BaseException) -> bool:
        from swarm_mcp.store.schema import add_missing

        return add_missing(self.connection, str(error))

    def note_change(self) -> None:
        """Note the table of the last statement, if that has changed rows. With RETURNING it does so at its end only."""
        changes = self.connection.total_changes
        if changes != self.counted:
            self.counted = changes
            table = _tables.get(self.last)
            if table is None:
                table = _tables[self.last] = _changed_table(self.last)
            self.changed.add(table)

    def try_to(self, sql: str) -> bool:
        """Run a statement; return False if another process has the store."""
        if not self.connection.in_transaction:
            self.refresh()
        try:
            self.connection.execute(sql)
        except self.driver.Error as error:
            if is_busy(error):
                return False
            raise self._unavailable(error) from error
        return True

    def insist_on(self, sql: str, wait: Callable[[], object], values: Sequence[object] = ()) -> Any:
        """Run a statement that found the store busy, after each `wait()`, for at most `busy_seconds`."""
        end = time.monotonic() + self.busy_seconds
        while True:
            wait()
            try:
                return self.connection.execute(sql, values)
            except self.driver.Error as error:
                if not is_busy(error) or time.monotonic() > end:
                    raise self._unavailable(error) from error

    def _unavailable(self, error: BaseException) -> StoreUnavailable:
        why = str(error)
        if is_busy(error):
            why = f"somebody else was writing to it for {self.busy_seconds:g} s"
        return StoreUnavailable(f"the store {self.path} cannot be used: {why}")

    def _open(self) -> Any:
        try:
            refuse_link(self.path)
        except OSError as error:
            raise StoreUnavailable(f"the store {error}") from None
        if os.path.exists(self.path) and not os.path.isfile(self.path):  # to open a pipe would wait for its writer
            raise StoreUnavailable(f"the store {self.path} is no file")
        # Looked at first: should it be replaced meanwhile, `refresh` finds that this is not the one.
        file = _identity(self.path)
        self._is_missing = False
        if self.read_only:
            connection = self._open_to_read()
        else:
            connection = self._open_to_write()
        self._opened = file or (None if self.read_only else _identity(self.path))
        return connection

    def _open_to_read(self) -> Any:
        try:
            if not os.path.exists(self.path):
                self._is_missing = True
                return self.driver.connect(":memory:", isolation_level=None)
            connection = connect_read_only(self.driver, self.path, self.busy_seconds)
            self._refuse_newer(connection)
            if is_current(connection):
                return connection
            connection.close()
        except self.driver.Error as error:
            raise self._unavailable(error) from error
        # Made by another implementation: our tables have to be added once, if the folder allows it.
        if os.access(self.path, os.W_OK):
            self._open_to_write().close()
            return connect_read_only(self.driver, self.path, self.busy_seconds)
        raise StoreUnavailable(f"the store {self.path} was made by another program and cannot be upgraded from here")

    def _open_to_write(self) -> Any:
        try:
            _make_private(self.path)
            connection = self._connect()
        except (OSError, self.driver.Error) as error:
            raise self._unavailable(error) from error
        try:
            self._refuse_newer(connection)
            if not is_current(connection):
                from swarm_mcp.store.schema import create

                create(connection, self.driver)
                connection.close()
                connection = self._connect()  # the old one remembers how to make tables: see STATEMENTS
            self._tune(connection)
            return connection
        except self.driver.Error as error:
            connection.close()
            raise self._unavailable(error) from error

    def _connect(self) -> Any:
        connection = self.driver.connect(
            self.path,
            timeout=self.busy_seconds,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=STATEMENTS,
        )
        connection.text_factory = as_text
        return connection

    def _tune(self, connection: Any) -> None:
        (journal,) = connection.execute("PRAGMA journal_mode").fetchone()  # reads the file, so it may have to wait
        if journal == "wal":
            # A commit survives any kill of processes. The last commits before a power cut may be lost, and with them
            # every session that they were about. Nothing is torn: checkpoints sync. With a rollback journal this
            # setting could tear the file, so that journal keeps the default, FULL.
            connection.execute("PRAGMA synchronous = NORMAL")
            # Four times SQLite's own pages: each time, commits wait for the disk. No more, since a reader looks through
            # the log by tables of 4,062 pages, and the first of these costs it nothing.
            connection.execute("PRAGMA wal_autocheckpoint = 4000")
        connection.execute("PRAGMA busy_timeout = 0")  # from here on waiting is ours: see `transaction`

    def _refuse_newer(self, connection: Any) -> None:
        (found,) = connection.execute("PRAGMA user_version").fetchone()
        if found > CONTRACT_VERSION:
            connection.close()
            raise StoreUnavailable(
                f"the store {self.path} is of version {found}, newer than this swarm-mcp understands"
                f" ({CONTRACT_VERSION}); upgrade swarm-mcp"
            )


class Turn:
    """``with database.writing() as tx:`` commits at the end, rolls back on any exception."""

    __slots__ = ("database", "before_waiting")

    def __init__(self, database: Database, before_waiting: Callable[[], object] | None = None):
        self.database = database
        self.before_waiting = before_waiting

    def __enter__(self) -> Transaction:
        database = self.database
        now = time.monotonic()
        is_over = now >= database.turn_ends
        if is_over:
            database.turn_ends = now + TURN
        if (is_over and is_waited_for(database.folder)) or not database.try_to("BEGIN IMMEDIATE"):
            if self.before_waiting:
                self.before_waiting()
            line = Line(database.folder, min(PATIENCE, database.busy_seconds))
            try:
                database.insist_on("BEGIN IMMEDIATE", line.pause)
            finally:
                line.leave()
            database.turn_ends = time.monotonic() + TURN
        database.changed = set()
        database.counted = database.connection.total_changes
        return database

    def __exit__(self, kind: type[BaseException] | None, _error: object, _trace: object) -> None:
        database = self.database
        try:
            database.note_change()
            changed = database.changed
            # With a rollback journal readers keep a commit waiting; the transaction stays whole meanwhile.
            if kind is None and not database.try_to("COMMIT"):
                database.insist_on("COMMIT", pause)
        finally:
            after, database.after_commit = database.after_commit, []
            if database.connection.in_transaction:
                database.connection.execute("ROLLBACK")
        if kind is None:
            for action in after:
                action()
            if database.tells and changed and database.shares_locks():
                contributions.tell_committed(database, changed)


class _Hurry:
    __slots__ = ("database", "patience")

    def __init__(self, database: Database):
        self.database = database
        self.patience = database.busy_seconds

    def __enter__(self) -> None:
        self.database.busy_seconds = min(self.patience, PATIENCE_SECONDS)

    def __exit__(self, *_exception: object) -> None:
        self.database.busy_seconds = self.patience


_tables: dict[str, str] = {}  # statements that change rows -> their tables; there are as many as in the code


def _changed_table(sql: str) -> str:
    """Return the table that a statement changes; an empty text for a form of statement that is not known here."""
    words = [*sql.split(None, 5), "", "", ""]
    if words[0] == "INSERT" and "INTO" in words:
        return words[words.index("INTO") + 1].partition("(")[0]
    if words[:2] == ["DELETE", "FROM"]:
        return words[2]
    if words[0] == "UPDATE" and words[1] != "OR":
        return words[1]
    return ""


def object_in(text: object) -> dict[str, Any]:
    """Return the JSON object in a text column; empty if it holds anything else, as another program may have left."""
    try:
        value = loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):  # no JSON, or too deep
        return {}
    return value if isinstance(value, dict) else {}


def range_end(prefix: str) -> str:
    """Return the first text behind all that begin with `prefix`, by bytes: the end of their range in an index."""
    return prefix[:-1] + chr(ord(prefix[-1]) + 1)


def _short(value: object) -> object:
    if isinstance(value, str) and len(value) > LONGEST:
        return bounded(value)
    return value


def _identity(path: str) -> tuple[int, int] | None:
    """Return an identity of the file at `path`; None without a file."""
    try:
        found = os.lstat(path)
    except OSError:  # there is no file
        return None
    return found.st_dev, found.st_ino


def _make_private(path: str) -> None:
    """Make sure that there is a file at `path` that only this user can read. Raises OSError, for a link too."""
    folder = os.path.dirname(path)
    if not os.path.isdir(folder):
        make_private(folder)
    elif path == os.path.expanduser(DEFAULT_STORE):
        _close_to_others(folder, _FOLDER)  # any other folder that was there before is a person's own choice
    with _making:
        refuse_link(path)
        if not os.path.lexists(path):
            _create_empty(path)
    for end in ("", *_BESIDE):
        _close_to_others(path + end, _FILE)


def _create_empty(path: str) -> None:
    try:
        handle = open_private(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    except FileExistsError:  # another process was first
        return refuse_link(path)
    try:
        os.chmod(path, 0o600)  # the process's umask may have taken our own rights as well
    finally:
        os.close(handle)


def _close_to_others(path: str, kind: int) -> None:
    """Take other users' permissions away, where `path` is of this kind, no link, and ours."""
    try:
        found = os.lstat(path)
        ours = not hasattr(os, "getuid") or found.st_uid == os.getuid()
        if ours and found.st_mode & _OTHERS and found.st_mode & 0o170000 == kind:
            os.chmod(path, found.st_mode & 0o7777 & ~_OTHERS)
    except OSError:
        return  # not there, or a file system that keeps no permissions: it can be used all the same
