"""The first look at the store: the session, its news, and if there is any lock at all.

Most checks meet no lock, and end here. The interpreter's own ``_sqlite3`` serves: it only reads here, and a reader
neither writes nor checkpoints, so the write-ahead-log defect of releases before 3.51.3 cannot bite.
"""

from __future__ import annotations

import os
import sys
import time
from _operator import methodcaller  # as `operator` shows it, without the rest of that module
from collections.abc import Callable
from typing import Any

from swarm_hook_core import process
from swarm_hook_core.lookup import FirstLook, Session
from swarm_hook_core.state import read_private, state_dir, write_private

# Messages that a session has not read, but for those that its next hook tells whole.
UNREAD = (
    "FROM messages m WHERE m.scope = (SELECT scope FROM instances WHERE id = ?) AND m.recipient = ? AND m.read = 0"
    " AND NOT EXISTS (SELECT 1 FROM swarm_notices n WHERE n.message_id = m.id)"
)
BUSY_SECONDS = 0.12  # for a store that another process has locked; a check may ask again: see ``glance``
MOST_ROOTS = 200  # folders of sessions that are compared with one's own folder, which may have another path there


def sqlite_driver() -> Any:
    """Return the C module under the interpreter's ``sqlite3``, but a loaded one of ``pysqlite3``.

    Two copies of SQLite on one file in one process undo each other's locks, and cut the log's index that both map.
    """
    if "pysqlite3._sqlite3" in sys.modules:
        return sys.modules["pysqlite3._sqlite3"]
    import _sqlite3

    return _sqlite3


def is_busy(error: BaseException) -> bool:
    """Return True if the store only asks to be tried again. Python before 3.11 has just the words to tell that by."""
    text = str(error)
    return "locked" in text or text == "locking protocol"


# Text as stored: bytes that are not UTF-8 survive as surrogates. In C, since it is called for each text of a row.
as_text = methodcaller("decode", "utf-8", "surrogateescape")


def connect_read_only(driver: Any, path: str, busy_seconds: float) -> Any:
    """Return a read-only connection to `path`, also from a sandbox that cannot write its folder.

    A write-ahead log needs its index file or leave and room to create it. Where that cannot be had and
    no log is pending, the file itself is complete and can be read as it stands.
    """
    uri = "file:" + path.replace("%", "%25").replace("?", "%3f").replace("#", "%23") + "?mode=ro"
    # The garbage collector, which may run in any thread, has to be able to close it.
    options = {"uri": True, "timeout": busy_seconds, "isolation_level": None, "check_same_thread": False}
    connection = driver.connect(uri, **options)
    try:
        connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
    except driver.OperationalError as error:
        connection.close()
        if is_busy(error):
            raise
        if _pending(path + "-journal"):
            # A writer died in the middle of a commit. Opening the file to write takes that back.
            connection = driver.connect(uri.replace("?mode=ro", "?mode=rw"), uri=True, timeout=busy_seconds)
            try:
                connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
            finally:
                connection.close()
        elif _pending(path + "-wal"):
            raise
        else:
            uri += "&immutable=1"
        connection = driver.connect(uri, **options)
    connection.text_factory = as_text
    return connection


class _Kept:
    """A checker's connection to the store at `path`, from call to call. `mark`: `_mark` of the store's files.

    `answers` to questions, as of the `version` of the store's data.
    """

    def __init__(self, path: str, connection: Any):
        self.path = path
        self.connection = connection
        self.mark = _mark(path)
        self.version = -1
        self.answers: dict[object, list[Any]] = {}


MOST_ANSWERS, LONGEST_ANSWER = 8, 200  # that are kept; locks in one
_kept: _Kept | None = None


def _mark(path: str) -> tuple[int, int, int]:
    """Return device and inode of the store, and the inode of its log: other numbers, and others have replaced it."""
    found = os.stat(path)
    try:
        log = os.stat(path + "-wal").st_ino
    except FileNotFoundError:  # there is no log
        log = 0
    return (found.st_dev, found.st_ino, log)


def _kept_connection(driver: Any, path: str) -> Any:
    """Return a read-only connection to `path` that stays open for the checker's next calls, or None.

    None where the store can only be read as a file that nobody changes.
    """
    global _kept
    if _kept is not None and _kept.path == path:
        return _kept.connection
    forget_connection()
    if not os.access(os.path.dirname(path), os.W_OK):
        return None
    _kept = _Kept(path, connect_read_only(driver, path, BUSY_SECONDS))
    return _kept.connection


def forget_connection(if_replaced: bool = False) -> None:
    """Close the connection that a checker keeps. `if_replaced`: only if the store's files are others by now."""
    global _kept
    kept = _kept
    if kept is None:
        return
    try:
        if if_replaced and _mark(kept.path) == kept.mark:
            return
    except OSError:
        pass  # the store has gone
    _kept = None
    kept.connection.close()


def _pending(log: str) -> bool:
    try:
        return os.path.getsize(log) > 0
    except OSError:  # there is no such file
        return False


class StoreGlance(FirstLook):
    """The first answers of the store's file, by `driver` (default: the interpreter's). Raises the driver's errors.

    Missing tables and columns count as empty: another program made the file, or it is only being made. A reader that
    `waits` has a busy store's answers later, if they decide on a write; others do without them sooner.

    connection  one to the file that this process has open already, to be read by; it stays open
    """

    def __init__(self, path: str, driver: Any = None, waits: bool = False, connection: Any = None):
        self.driver = driver or sqlite_driver()
        self.path = path
        self.waits = waits
        self._wait: Wait | None = None
        self._has_connected_anew = False
        if connection is None and process.is_answering():
            connection = self._insist(lambda: _kept_connection(self.driver, path))
        self._is_shared = connection is not None
        self.connection = connection or self._insist(lambda: connect_read_only(self.driver, path, BUSY_SECONDS))
        self.connection.row_factory = self.driver.Row

    def close(self) -> None:
        """Let go of the file now, not when the garbage collector comes by."""
        if not self._is_shared:
            self.connection.close()
        del self.connection

    def __del__(self) -> None:
        try:
            if self._is_shared:
                return
            self.connection.close()  # Python 3.13 complains of one that is left to the garbage collector
        except (AttributeError, TypeError):
            return  # it was never opened, or the interpreter is going down

    # ----------------------------------------------------------------------------------------- sessions

    def session(self, runtime: str, session_id: str) -> Session | None:
        found = self._rows_if_known(
            "SELECT i.id, i.label, i.directory, i.root, i.file_root FROM swarm_sessions s"
            " JOIN instances i ON i.id = s.instance_id WHERE s.runtime = ? AND s.session_id = ?",
            (runtime, session_id),
        )
        self.is_ours = self.is_ours and found is not None
        if found:
            return Session(*found[0])
        return None

    def other_mounts(self, root: str) -> list[str]:
        rows = self._rows_if_known(f"SELECT DISTINCT root FROM instances LIMIT {MOST_ROOTS}") or ()
        others = [other for (other,) in rows if isinstance(other, str) and other not in ("", root)]
        if not root or not others:
            return []
        try:
            own = os.stat(root)
        except (OSError, ValueError):  # the folder has gone
            return []
        return [other for other in others if _is_folder(other, own)]

    def has_news(self, instance_id: str) -> bool:
        return bool(self._rows_if_known("SELECT 1 FROM swarm_notices WHERE instance_id = ? LIMIT 1", (instance_id,)))

    def newest_mail(self, instance_id: str) -> int:
        found = self._rows_if_known(f"SELECT m.id {UNREAD} ORDER BY m.id DESC LIMIT 1", (instance_id, instance_id))
        if found:
            return int(found[0][0])
        return 0

    def leases_and_news(self, instance_id: str) -> tuple[list[Any], bool]:
        sql = (
            "SELECT ttl, renewed, booted, wall_until FROM context WHERE type = 'lock' AND ttl IS NOT NULL"
            " AND instance_id = ?"
        )
        leases = self._rows_if_known(sql, (instance_id,)) or []
        return leases, self.has_news(instance_id)

    # -------------------------------------------------------------------------------------------- locks

    def shared_trees(self) -> list[tuple[Any, ...]]:
        sql = (
            "SELECT t.top, t.repository, r.fresh_until, r.booted, r.said_at, r.state FROM swarm_team_trees t"
            " LEFT JOIN swarm_team_repositories r ON r.id = t.repository ORDER BY t.top"
        )
        return [tuple(row) for row in self._rows_if_known(sql) or ()]

    def others_hold(self, own_id: str) -> bool:
        # Two steps into an index, however many locks there are. A lock of one of this session's agents keeps the others
        # out.
        any_lock = "SELECT 1 FROM context WHERE type = 'lock' AND instance_id"
        if any(self._rows_if_known(f"{any_lock} {other} ? LIMIT 1", (own_id,)) for other in ("<", ">")):
            return True
        sql = f"{any_lock} = ? AND agent IS NOT NULL LIMIT 1"
        return bool(own_id and self._rows_if_known(sql, (own_id,)))

    # ------------------------------------------------------------------------------------------- the file

    def _ask(self, sql: str, values: Any = ()) -> list[Any]:
        rows: list[Any] = self._insist(lambda: self.connection.execute(sql, values).fetchall())
        return rows

    def _unless_changed(self, question: object, find: Callable[[], list[Any]]) -> list[Any]:
        """Return ``find()``, the answer to a question; a checker asks the store again once others have changed it."""
        kept = _kept
        if kept is None or kept.connection is not self.connection:
            return find()
        version = self._ask("PRAGMA data_version")[0][0]
        if kept.version != version or len(kept.answers) > MOST_ANSWERS:
            kept.version = version
            kept.answers.clear()
        found = kept.answers.get(question)
        if found is None:
            found = find()
            if len(found) <= LONGEST_ANSWER:
                kept.answers[question] = found
        return list(found)

    def _insist(self, question: Callable[[], Any]) -> Any:
        """Return the result of ``question()``; a reader that waits asks again while the store is busy."""
        while True:
            try:
                return question()
            except self.driver.DatabaseError as error:
                if self._connects_anew(error):
                    continue
                if not self.waits or not is_busy(error):
                    raise
                if self._wait is None:
                    self._wait = Wait(self.path)
                if not self._wait.goes_on():
                    raise

    def _connects_anew(self, error: Exception) -> bool:
        """Return True if a question is to be asked once more: a change of the file has spoilt the kept connection."""
        is_kept = _kept is not None and _kept.connection is getattr(self, "connection", None)
        if not is_kept or self._has_connected_anew or is_busy(error) or "no such" in str(error):
            return False
        self._has_connected_anew = True
        forget_connection()
        connection = _kept_connection(self.driver, self.path)
        if connection is None:
            return False
        self.connection = connection
        self.connection.row_factory = self.driver.Row
        return True

    def _rows_if_known(self, sql: str, values: Any = ()) -> list[Any] | None:
        """Return the rows of a query; None in a file that has no such table or column."""
        try:
            return self._ask(sql, values)
        except self.driver.OperationalError as error:
            if "no such" not in str(error):
                raise
        return None


def _is_folder(path: str, found: Any) -> bool:
    """Return True if the folder at `path` is the one that `found`, a result of `os.stat`, describes."""
    try:
        return os.path.samestat(os.stat(path), found)
    except (OSError, ValueError):  # the folder has gone
        return False


# The wait of a check for a store that another process has locked, as a commit or the end of a command may.
#
# Loaded only once a check has met that. It is over soon, within a few times that the disk takes for the write. A check
# that gave up before would let a write pass that is to be denied. A store that stays locked is broken, and every write
# would wait for it: after one check has waited in vain, the next ones do not, for a while.

# of a check's waits together, of the 5 s that clients wait for it: some ten times the time of a slow disk
SECONDS = 1.0
IN_VAIN_SECONDS = 30  # without waits after a check has waited in vain
PAUSE = 0.01  # between two looks, beside SQLite's own wait

# store -> when this process last waited for it in vain: the state folder may not be writable
_in_vain: dict[str, float] = {}


class Wait:
    """The wait of one check for the store at `path`, which has just been found busy, for all such moments together."""

    def __init__(self, path: str):
        self.path = path
        if _was_in_vain(path):
            self.end = 0.0
        else:
            self.end = time.monotonic() + SECONDS

    def goes_on(self) -> bool:
        """Pause, and return True to ask once more; after too long a wait, keep later checks from waiting."""
        if time.monotonic() < self.end:
            time.sleep(PAUSE)
            return True
        if self.end:
            _note_in_vain(self.path)
        return False


def _note_file() -> str:
    return os.path.join(state_dir(), "busy")


def _was_in_vain(path: str) -> bool:
    now = time.monotonic()
    if now - _in_vain.get(path, now - IN_VAIN_SECONDS) < IN_VAIN_SECONDS:
        return True
    try:
        age = time.time() - os.stat(_note_file()).st_mtime
        noted = read_private(_note_file(), 16384).decode("utf-8", "surrogateescape")
        return 0 <= age < IN_VAIN_SECONDS and noted == path
    except OSError:  # no check has waited in vain
        return False


def _note_in_vain(path: str) -> None:
    _in_vain[path] = time.monotonic()
    try:
        write_private(_note_file(), path)
    except OSError:
        return  # each process finds out by itself then
