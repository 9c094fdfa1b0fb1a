"""What is locked, and by whom: the questions of a check, and what it is told.

    LockReader ─┬─ sqlite.StoreReader     asks the store's file; the only SQL outside of the coordinator
                └─ command.CommandReader  asks the coordinator's command, where the store is no local file

`Peers` puts the questions for one session, and leaves out the locks of sessions that have gone.
"""

GLOB = "glob:"  # before the key of the folder that all a pattern covers is in: what such a lock is stored under
BATCH = 400  # keys in one question; old releases of SQLite take 999 values
NEAR = 200  # locks near a call that are watched or named at most
AUTO = "auto"  # the mode of a lock that nobody asked for: a write took it, and it ends with the turn
ASKED = "request_lock"  # asks the holder for its lock, and is refused nothing
REQUESTS = ("lock_file", "steal_lock", "hold", ASKED)  # these ask for a lock; every other refused tool was to write
SOME_AGENT = "*"  # one of the session's agents, or none, where nobody says which: none of them is kept from another


class Held:
    """One lock, as the decision needs it.

    file          as it is stored, absolute; of a pattern its folder and the pattern
    names         the keys it was found by, its own key (``paths.key_of``) last
    instance_id, label, agent   who holds it: session, and which of its agents (empty for the session itself)
    note, mode    why, and how (``shared``, `AUTO` or anything else)
    since, expected_end         Unix seconds; 0 and None where not known
    pattern, base the pattern, None for none, and the key of the folder that it counts from
    fence         growing number of the grant
    lease         as ``clock.left`` takes it, None for none
    evidence      by which ``liveness`` tells whether the holder has gone: its columns by name; None where nothing tells
    elsewhere     the locked file of another work tree that `file` is the same as, empty for an ordinary lock
    path_key, repository        what it is stored under, in the file and in its repository; None where it is not
    """

    __slots__ = (
        "file", "names", "instance_id", "label", "agent", "note", "mode", "since", "expected_end", "pattern", "base",
        "fence", "lease", "evidence", "elsewhere", "path_key", "repository",
    )  # fmt: skip

    def __init__(
        self, file, instance_id, label="", note="", since=0, *, names=(), agent="", mode=None, expected_end=None,
        pattern=None, base=None, fence=None, lease: tuple = (None,) * 4, evidence=None, path_key=None, repository=None,
    ):  # fmt: skip
        # Rows may come from anywhere; whether a file is held must not hang on how its note reads.
        self.file = file
        self.names = names or (file,)
        self.instance_id = instance_id
        self.label = label if isinstance(label, str) else ""
        self.agent = agent if isinstance(agent, str) else ""
        self.note = note if isinstance(note, str) else ""
        self.mode = mode
        self.since = since if isinstance(since, (int, float)) else 0
        self.expected_end = expected_end
        self.pattern = pattern
        self.base = base
        self.fence = fence
        self.lease = lease if isinstance(lease[0], (int, float)) else None
        self.evidence = evidence
        self.elsewhere = ""
        self.path_key = path_key
        self.repository = repository


class Session:
    """What the decision needs to know of the session that wants to write."""

    __slots__ = ("instance_id", "label", "directory", "root", "file_root", "mounts")

    def __init__(self, instance_id, label="", directory="", root="", file_root=""):
        self.mounts: list = []  # other paths of `root`, where that folder is mounted more than once
        self.instance_id = instance_id
        self.label = label or ""
        self.directory = directory
        self.root = root
        self.file_root = file_root


class LockReader:
    """The questions that a check asks, answered as if there were nothing. Keys are those of ``paths``.

    An answer may raise whatever keeps it from being given; who asks fails open.
    """

    is_ours = True  # whether our coordinator has made the store, which then knows sessions

    def session(self, runtime: str, session_id: str):
        """Return the Session that a client's hooks have registered under this id, or None."""
        return None

    def other_mounts(self, root: str) -> list:
        """Return the paths by which other sessions know the folder `root`, where it is mounted more than once."""
        return []

    def holder(self, runtime: str, session_id: str):
        """Return ``(instance id, label, evidence)`` of a client's session, as a `Held` has them; None for none."""
        return None

    def purpose_of(self, instance_id: str) -> str:
        """Return what a session works on: the title of its task, else the note of its newest lock; may be empty."""
        return ""

    def others_hold(self, own_id: str) -> bool:
        """Tell whether anybody but this session, or one of its agents, has a lock at all. Cheap."""
        return False

    def has_news(self, instance_id: str) -> bool:
        """Tell whether a session is to be told something of its locks."""
        return False

    def newest_mail(self, instance_id: str) -> int:
        """Return the number of a session's newest unread message, 0 for none; what `has_news` is about is none."""
        return 0

    def unread_mail(self, instance_id: str, after: int, limit: int) -> list:
        """Return its unread messages with higher numbers, ``(sender, its label or None, text)``, the oldest first."""
        return []

    def locks_on(self, keys: list[str]) -> list[Held]:
        """Return locks on the very paths with these keys, whoever holds them, in whatever scope."""
        return []

    def patterns_over(self, keys: list[str]) -> list[Held]:
        """Return locks on patterns that cover any of the paths with these keys; `names` says which."""
        return []

    def worktree_locks_over(self, keys: list[str]) -> list[Held]:
        """Return locks of other work trees that hold here too, on the paths with these keys."""
        return []

    def locks_under(self, folders: list[str], own_id: str, limit: int, own_agent: str = "") -> list[Held]:
        """Return locks of others on files and folders below these (spellings or keys), at most `limit` for each."""
        return []

    def names_in(self, folders: list[str], own_id: str) -> "set[str] | None":
        """Return the names in the folders with these keys, without letter case, at or below which others have locks.

        None where that cannot be told: where there are patterns, or locks that may be known by other keys.
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

    def was_denied(self, instance_id: str, held: Held, since: float, path: str = "") -> bool:
        """Tell whether a write by this session that this lock refused is noted, after `since` (Unix seconds).

        With `path` only where it was that one which it would have written. A refused request for the lock is no write.
        """
        return False

    def team_trees(self) -> list:
        """Return each work tree on this machine that has joined a team, and how fresh what is known of it is.

        ``(top, what the team calls its repository, fresh until, in which start of the machine, last heard of)``: by
        ``clock.now``, as ``clock.boot`` has it, and in Unix seconds; None for what is not known.
        """
        return []

    def leases_and_news(self, instance_id: str) -> tuple:
        """Return a session's own leases, as ``clock.left`` takes them, and whether there is news for it."""
        return [], False

    def holds_as(self, instance_id: str, agent: str) -> bool:
        """Tell whether this agent of a session holds anything of its own."""
        return False


class Peers:
    """What `reader` (a ``LockReader``) knows of the locks of others than `own_id` who have not gone.

    A session without an id of its own could not be registered. What its client's MCP server locked for
    it is then not held against it. What another of its agents holds than `own_agent` counts as a peer's.
    `claimed` (``traces.claimed``) knows what others have claimed for their turns, where anybody has.
    """

    def __init__(self, reader, own_id: str, now: float, own_agent: str = "", claimed=None):
        self.reader = reader
        self.claimed = claimed
        self.own_id = own_id
        self.own_agent = own_agent
        self.now = now
        self._gone: dict = {}  # instance -> whether it has

    def any(self) -> bool:
        """Tell whether anybody else has a lock at all; those of sessions that have gone still count."""
        return bool(self.claimed is not None and self.claimed.any()) or self.reader.others_hold(self.own_id)

    def on(self, keys, over=()) -> list:
        """Return the Held locks under any of `keys` or `over`, and on patterns that cover what has one of `keys`.

        `over`, the folders over those paths: a pattern that fits a folder does not hold what is in it.
        """
        # Claims first: one that becomes a lock goes when the lock is there.
        found = self.claimed.on(keys) if self.claimed is not None else []
        found += self.reader.locks_on([*keys, *over]) + self.reader.patterns_over(keys)
        return self._live(found + self.reader.worktree_locks_over([*keys, *over]))

    def names_in(self, folders) -> "set[str] | None":
        """Return the names in these folders that are or may be locked, as `LockReader.names_in` does."""
        return self.reader.names_in(folders, self.own_id)

    def under(self, folders, limit: int = NEAR) -> list:
        """Return the Held locks of files and folders below any of these (spellings and keys, see ``paths``)."""
        return self.first_under(folders, limit)[0]

    def first_under(self, folders, limit: int) -> tuple:
        """Return what `under` does, and whether that may not be all there is."""
        found = self.claimed.under(folders) if self.claimed is not None else []
        found += self.reader.locks_under(folders, self.own_id, limit, self.own_agent)
        found += self.reader.worktree_locks_under(folders, self.own_id, limit)
        return self._live(found), len(found) >= limit

    def patterns(self, folders) -> list:
        """Return the Held locks on patterns that may cover something below any of these folders."""
        return self._live(self.reader.patterns_near(folders, self.own_id))

    def over(self, roots) -> list:
        """Return the Held locks on any of these, and on the folders over them."""
        from swarm_hook_core.paths import above

        return self.on(roots, list(dict.fromkeys(key for root in roots for key in above(root))))

    def around(self, roots) -> list:
        """Return `under`, `over` and `patterns`, each lock once."""
        return self.first_around(roots, NEAR)[0]

    def first_around(self, roots, limit: int) -> tuple:
        """Return what `around` does, and whether that may not be all there is under these folders."""
        found, more = self.first_under(roots, limit)
        found += self.over(roots) + self.patterns(roots)
        return list({(held.file, held.instance_id, held.agent): held for held in found}.values()), more

    def waiting_for(self, path: str) -> int:
        """Return how many wait for a lock on `path` already."""
        return self.reader.waiting_for(path)

    def was_denied(self, held, path: str, seconds: float) -> bool:
        """Tell whether it was noted in the last `seconds` that this lock kept this session from writing `path`."""
        return self.reader.was_denied(self.own_id, held, self.now - seconds, path)

    def _live(self, found) -> list:
        rows = [held for held in found if self._is_peers(held)]
        if not rows:
            return rows
        return [held for held in rows if held.evidence is None or not self._is_void(held)]

    def _is_peers(self, held) -> bool:
        if held.instance_id != self.own_id:
            return True
        return held.agent not in ("", self.own_agent) and self.own_agent != SOME_AGENT

    def _is_void(self, held) -> bool:
        if self._has_gone(held) or self._has_lapsed(held):
            return True
        if (held.agent or "").startswith("hold:") or held.evidence["runtime"] == "hold":
            from swarm_hook_core.lookup.process_holders import has_ended, runs_inside
            from swarm_hook_core.process import host_id

            return has_ended(held.agent, host_id()) or runs_inside(held.agent, held.evidence)
        return False

    def _has_lapsed(self, held) -> bool:
        if held.lease is None:
            return False
        from swarm_hook_core.clock import left
        from swarm_hook_core.process import host_id

        return left(held.lease, host_id(), self.now) <= 0

    def _has_gone(self, held) -> bool:
        if held.instance_id not in self._gone:
            from swarm_hook_core.liveness import departed, served_by
            from swarm_hook_core.process import client_process, host_id

            here = host_id()
            gone = departed(held.evidence, self.now, here)
            if not gone and not self.own_id:
                gone = served_by(held.evidence, here, *client_process())
            self._gone[held.instance_id] = gone
        return self._gone[held.instance_id]


def storable(text: str) -> bool:
    """Tell whether a store can hold `text`. A file name that is not UTF-8 it cannot, so nobody locks one."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def plain(file: str) -> str:
    """Return a lock's file as it was asked for: those that share one stand under spellings of it, with ``/./``."""
    while "/./" in file:  # one for each that shares it
        file = file.replace("/./", "/")
    return file


def ascii_lower(name: str) -> str:
    """Lower case as SQLite's ``lower`` has it: A to Z only."""
    return name.encode("utf-8", "surrogatepass").lower().decode("utf-8", "surrogatepass")
