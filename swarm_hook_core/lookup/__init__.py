"""Locks and their holders, as a check asks for them.

    FirstLook ─┬─ glance.StoreGlance ─┐            the session, its news, if there is any lock: most checks end there
               └─ LockReader ─┬─ sqlite.StoreReader     asks the store's file; the only SQL outside of the coordinator
                              └─ registration.CommandReader   asks the coordinator's command: its store is elsewhere

`Peers` puts the questions for one session, and leaves out the locks of sessions that have gone.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from swarm_hook_core.clock import left
from swarm_hook_core.paths import above
from swarm_hook_core.process import ancestors, client_process, departed, gone, host_id, served_by, start_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_hook_core.traces.turn_files import TurnFiles

GLOB = "glob:"  # the prefix of a pattern's key; the rest is the key of the folder that all covered paths are in
BATCH = 400  # keys in one question; old releases of SQLite take 999 values
NEAR = 200  # locks near a call that are watched or named at most
AUTO = "auto"  # the mode of a file that a session has for its turn
ASKED = "request_lock"  # asks the holder for its lock, and is refused nothing
REQUESTS = ("lock_file", "steal_lock", "hold", ASKED)  # these ask for a lock; every other refused tool was to write
TERMINAL, HOLD = "terminal", "hold"  # runtimes of a person's terminal, and of a command that holds a lock
SOME_AGENT = "*"  # an unknown agent of the session, or the session itself: it is kept from no lock of its own session


class Session:
    """The session that wants to write."""

    __slots__ = ("instance_id", "label", "directory", "root", "file_root", "mounts")

    def __init__(
        self,
        instance_id: str,
        label: str | None = "",
        directory: str = "",
        root: str = "",
        file_root: str = "",
    ):
        self.mounts: list[str] = []  # other paths of `root`, where that folder is mounted more than once
        self.instance_id = instance_id
        self.label = label or ""
        self.directory = directory
        self.root = root
        self.file_root = file_root


class Held:
    """One lock, as the decision needs it.

    file          as it is stored, absolute; of a pattern its folder and the pattern
    names         the keys it was found by, its own key (``paths.key_of``) last
    instance_id, label, agent   the holder: session, and its agent (empty for the session itself)
    note, mode    the holder's words, and the kind (``shared``, `AUTO` or anything else)
    since, expected_end         Unix seconds; 0 and None if not known
    pattern, base the pattern or None, and the key of the folder that it counts from
    fence         growing number of the grant
    lease         as ``clock.left`` takes it, or None
    evidence      columns by name from which ``process`` concludes that the holder has gone; may be None
    kin           words for the holder if it is the main thread, or an agent, of the session that asks; mostly empty
    elsewhere     the locked file of another work tree that `file` is the same as, empty for an ordinary lock
    path_key, repository        its key in the store, by file and by repository; may be None
    """

    __slots__ = (
        "file", "names", "instance_id", "label", "agent", "note", "mode", "since", "expected_end", "pattern", "base",
        "fence", "lease", "evidence", "elsewhere", "path_key", "repository", "kin",
    )  # fmt: skip

    def __init__(
        self, file: str, instance_id: str, label: object = "", note: object = "", since: object = 0, *,
        names: Iterable[str] = (), agent: object = "", mode: str | None = None,
        expected_end: float | None = None, pattern: str | None = None, base: str | None = None,
        fence: int | None = None, lease: tuple[Any, ...] = (None,) * 4, evidence: Any = None,
        path_key: str | None = None, repository: str | None = None,
    ):  # fmt: skip
        # Rows may come from other programs. An odd note must not hide a lock.
        self.file = file
        self.names: tuple[str, ...] = tuple(names) or (file,)
        self.instance_id = instance_id
        if isinstance(label, str):
            self.label = label
        else:
            self.label = ""
        if isinstance(agent, str):
            self.agent = agent
        else:
            self.agent = ""
        if isinstance(note, str):
            self.note = note
        else:
            self.note = ""
        self.mode = mode
        if isinstance(since, (int, float)):
            self.since = since
        else:
            self.since = 0
        self.expected_end = expected_end
        self.pattern = pattern
        self.base = base
        self.fence = fence
        self.lease: tuple[Any, ...] | None = None
        if isinstance(lease[0], (int, float)):
            self.lease = lease
        self.evidence = evidence
        self.elsewhere = ""
        self.kin = ""
        self.path_key = path_key
        self.repository = repository

    @property
    def mark(self) -> tuple[str, str, str]:
        """The lock's identity: several locks may share a file."""
        return self.file, self.instance_id, self.agent


class FirstLook:
    """The first questions of a check, answered as for an empty store. An answer may raise any error."""

    is_ours = True  # True if our coordinator has made the store, which then knows sessions

    def session(self, runtime: str, session_id: str) -> Session | None:
        """Return the Session that a client's hooks have registered under this id, or None."""
        return None

    def other_mounts(self, root: str) -> list[str]:
        """Return the paths by which other sessions know the folder `root`, if it is mounted more than once."""
        return []

    def others_hold(self, own_id: str) -> bool:
        """Return True if any other session, or agent of this one, has a lock at all. Cheap."""
        return False

    def has_news(self, instance_id: str) -> bool:
        """Return True if there is news of its locks for a session."""
        return False

    def newest_mail(self, instance_id: str) -> int:
        """Return the number of a session's newest unread message, or 0; `has_news` is about other messages."""
        return 0

    def leases_and_news(self, instance_id: str) -> tuple[list[Any], bool]:
        """Return a session's own leases, as ``clock.left`` takes them, and True if there is news for it."""
        return [], False

    def shared_trees(self) -> list[tuple[Any, ...]]:
        """Return the work trees here that share their locks with other machines, and how fresh those locks are here.

        ``(top, the shared name of the repository, fresh until, start of the machine, last heard of, state)``: by
        ``clock.now``, as ``clock.boot`` returns it, in Unix seconds, and in a word; unknown values are None.
        """
        return []


class LockReader(FirstLook):
    """All questions of a check, answered as for an empty store. Keys are those of ``paths``. The caller fails open."""

    def holder(self, runtime: str, session_id: str) -> tuple[str, str, Any] | None:
        """Return ``(instance id, label, evidence)`` of a client's session, as a `Held` has them, or None."""
        return None

    def other_sessions(self, runtime: str, session_id: str, since: float) -> list[Any]:
        """Return a row for each session seen after `since`: ``id``, ``label``, ``root``, ``registered_at``, evidence.

        The evidence is that of ``process``. Without the session of this client's id, and those that only an MCP server
        has registered.
        """
        return []

    def purpose_of(self, instance_id: str) -> str:
        """Return the work of a session: the title of its task, else the note of its newest lock; may be empty."""
        return ""

    def unread_mail(self, instance_id: str, after: int, limit: int) -> list[tuple[str, str | None, str]]:
        """Return its unread messages with higher numbers, ``(sender, its label or None, text)``, the oldest first."""
        return []

    def locks_on(self, keys: list[str]) -> list[Held]:
        """Return locks on the very paths with these keys, of all holders and scopes."""
        return []

    def patterns_over(self, keys: list[str]) -> list[Held]:
        """Return locks on patterns that cover any of the paths with these keys, as listed in `names`."""
        return []

    def worktree_locks_over(self, keys: list[str]) -> list[Held]:
        """Return locks of other work trees that hold here too, on the paths with these keys."""
        return []

    def locks_under(self, folders: list[str], own_id: str, limit: int, own_agent: str = "") -> list[Held]:
        """Return locks of others on files and folders below these (spellings or keys), at most `limit` for each."""
        return []

    def names_in(self, folders: list[str], own_id: str) -> set[str] | None:
        """Return the names in the folders with these keys, without letter case, at or below which others have locks.

        None if that is not known: there are patterns, or locks with other possible keys.
        """
        return None

    def patterns_near(self, folders: list[str], own_id: str) -> list[Held]:
        """Return locks of others on patterns that may cover something below any of the folders with these keys."""
        return []

    def worktree_locks_under(self, folders: list[str], own_id: str, limit: int) -> list[Held]:
        """Return locks of other work trees that hold here too, below folders with these keys: at most `limit` each."""
        return []

    def waiting_for(self, path: str) -> int:
        """Return how many wait for a lock on absolute `path`, on something over it or below."""
        return 0

    def was_denied(self, instance_id: str, held: Held, since: float, path: str = "", tool: str = "") -> bool:
        """Return True if the record has a write by this session that this lock denied after `since` (Unix seconds).

        With `path`, only a write of that path counts; with `tool`, only one by it. A denied request for the lock is no
        write.
        """
        return False

    def holds_as(self, instance_id: str, agent: str) -> bool:
        """Return True if this agent of a session has a lock of its own."""
        return False


class Peers:
    """The locks of other live sessions than `own_id`, as `reader` (a ``LockReader``) finds them.

    A session without an id of its own could not be registered; locks of its client's MCP server are then not held
    against it. Locks of another of its agents than `own_agent` count as a peer's. `turn_files`: files that others
    have for their turns, or None.
    """

    def __init__(
        self, reader: LockReader, own_id: str, now: float, own_agent: str = "", turn_files: TurnFiles | None = None
    ):
        self.reader = reader
        self.turn_files = turn_files
        self.own_id = own_id
        self.own_agent = own_agent
        self.now = now
        self._gone: dict[str, bool] = {}  # instance -> True if it has gone

    def any(self) -> bool:
        """Return True if any other session has a lock at all; those of sessions that have gone still count."""
        return bool(self.turn_files is not None and self.turn_files.any()) or self.reader.others_hold(self.own_id)

    def on(self, keys: list[str], over: Iterable[str] = ()) -> list[Held]:
        """Return the Held locks under any of `keys` or `over`, and on patterns that cover a path with one of `keys`.

        `over` are the folders over those paths: a pattern that fits a folder does not hold the files in it.
        """
        if self.turn_files is not None:
            found = self.turn_files.on(keys)
        else:
            found = []
        found += self.reader.locks_on([*keys, *over]) + self.reader.patterns_over(keys)
        return self._live(found + self.reader.worktree_locks_over([*keys, *over]))

    def names_in(self, folders: list[str]) -> set[str] | None:
        """Return the names in these folders that are or may be locked, as `LockReader.names_in` does."""
        return self.reader.names_in(folders, self.own_id)

    def under(self, folders: list[str], limit: int = NEAR) -> list[Held]:
        """Return the Held locks of files and folders below any of these (spellings and keys, see ``paths``)."""
        return self.first_under(folders, limit)[0]

    def first_under(self, folders: list[str], limit: int) -> tuple[list[Held], bool]:
        """Return the locks that `under` finds, and True if there may be more."""
        found = self._rows_under(folders, limit)
        return self._live(found), len(found) >= limit

    def all_under(self, folders: list[str], limit: int) -> list[Held]:
        """Return the same locks, also of sessions that have gone: it costs much less."""
        return [held for held in self._rows_under(folders, limit) if self._is_peers(held)]

    def _rows_under(self, folders: list[str], limit: int) -> list[Held]:
        """Return what the store has, with locks of this session's agents: all count towards `limit`."""
        if self.turn_files is not None:
            found = self.turn_files.under(folders)
        else:
            found = []
        found += self.reader.locks_under(folders, self.own_id, limit, self.own_agent)
        return found + self.reader.worktree_locks_under(folders, self.own_id, limit)

    def patterns(self, folders: list[str]) -> list[Held]:
        """Return the Held locks on patterns that may cover something below any of these folders."""
        return self._live(self.reader.patterns_near(folders, self.own_id))

    def over(self, roots: list[str]) -> list[Held]:
        """Return the Held locks on any of these, and on the folders over them."""
        return self.on(roots, list(dict.fromkeys(key for root in roots for key in above(root))))

    def around(self, roots: list[str]) -> list[Held]:
        """Return `under`, `over` and `patterns`, each lock once."""
        return self.first_around(roots, NEAR)[0]

    def first_around(self, roots: list[str], limit: int) -> tuple[list[Held], bool]:
        """Return the locks that `around` finds, and True if there may be more under these folders."""
        found, more = self.first_under(roots, limit)
        found += self.over(roots) + self.patterns(roots)
        return list({held.mark: held for held in found}.values()), more

    def waiting_for(self, path: str) -> int:
        """Return how many wait for a lock on `path` already."""
        return self.reader.waiting_for(path)

    def was_denied(self, held: Held, path: str, seconds: float, tool: str) -> bool:
        """Return True if the last `seconds` have a record that this lock kept `tool` from writing `path` here."""
        return self.reader.was_denied(self.own_id, held, self.now - seconds, path, tool)

    def _live(self, found: list[Held]) -> list[Held]:
        rows = [held for held in found if self._is_peers(held)]
        if not rows:
            return rows
        return [held for held in rows if held.evidence is None or not self._is_void(held)]

    def _is_peers(self, held: Held) -> bool:
        if held.instance_id != self.own_id:
            return True
        return held.agent not in ("", self.own_agent) and self.own_agent != SOME_AGENT

    def _is_void(self, held: Held) -> bool:
        if self._has_gone(held) or self._has_lapsed(held):
            return True
        if (held.agent or "").startswith(HOLD_PREFIX) or held.evidence["runtime"] == HOLD:
            return has_ended(held.agent, host_id()) or runs_inside(held.agent, held.evidence)
        return False

    def _has_lapsed(self, held: Held) -> bool:
        if held.lease is None:
            return False

        remaining = left(held.lease, host_id(), self.now)
        return remaining is not None and remaining <= 0

    def _has_gone(self, held: Held) -> bool:
        if held.instance_id not in self._gone:
            here = host_id()
            gone = departed(held.evidence, self.now, here)
            if not gone and not self.own_id:
                gone = served_by(held.evidence, here, *client_process())
            self._gone[held.instance_id] = gone
        return self._gone[held.instance_id]


def storable(text: str) -> bool:
    """Return True if a store can hold `text`. It cannot hold a file name that is not UTF-8, so no lock has one."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:  # a lone surrogate
        return False
    return True


def plain(file: str) -> str:
    """Return a lock's file as it was asked for: those that share one stand under spellings of it, with ``/./``."""
    while "/./" in file:  # one for each that shares it
        file = file.replace("/./", "/")
    return file.removeprefix("./")  # a name that is no file


def ascii_lower(name: str) -> str:
    """Lower case as SQLite's ``lower`` has it: A to Z only."""
    return name.encode("utf-8", "surrogatepass").lower().decode("utf-8", "surrogatepass")


# Locks that one process holds: those of ``swarm-mcp hold``. They are void once it has ended.
#
# Inside a session such a process holds as one of its agents, with the process in the agent's name. Outside, it is a
# session of its own, of the runtime `HOLD`. Its child processes may write the locked files.

HOLD_PREFIX = "hold:"


def hold_agent(pid: int, started: str, here: str) -> str:
    """Return the agent name of a process that holds locks; `here` as ``process.host_id()``."""
    return f"{HOLD_PREFIX}{pid}:{started}:{_place(here)}"


def has_ended(agent: str | None, here: str) -> bool:
    """Return True if `agent` (may be None or empty) is a process that provably no longer runs."""
    pid, started, place = _parts(agent)
    return bool(pid) and place == _place(here) and gone(here, pid, started, here)


def runs_inside(agent: str | None, evidence: Any) -> bool:
    """Return True if the holder, known by its `agent` or ``process`` `evidence`, has started this process."""
    pid, started, _place = _parts(agent)
    if not pid and evidence and evidence["runtime"] == HOLD:
        pid, started = evidence["client_pid"], evidence["client_start"]
    return bool(pid) and pid in ancestors() and start_time(pid) == started


def _parts(agent: str | None) -> tuple[Any, ...]:
    """Return pid, start time and place of a process; ``(0, "", "")`` if `agent` is no process."""
    if not isinstance(agent, str) or not agent.startswith(HOLD_PREFIX):
        return 0, "", ""
    pid, _, rest = agent[len(HOLD_PREFIX) :].partition(":")
    started, _, place = rest.rpartition(":")
    if pid.isdigit():
        return (int(pid), started, place)
    return (0, "", "")


def _place(here: str) -> str:
    from binascii import crc32  # a module of its own, since few sessions need it

    return f"{crc32(here.encode('utf-8', 'replace')):08x}"
