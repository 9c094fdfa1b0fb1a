"""What is locked, and by whom: the questions of a check, and what it is told.

    LockReader ─┬─ sqlite.StoreReader     asks the store's file; the only SQL outside of the coordinator
                └─ command.CommandReader  asks the coordinator's command, where the store is no local file

`peers.Peers` puts the questions for one session, and leaves out the locks of sessions that have gone.
"""

GLOB = "glob:"  # before the key of the folder that all a pattern covers is in: what such a lock is stored under
BATCH = 400  # keys in one question; old releases of SQLite take 999 values


class Held:
    """One lock, as the decision needs it.

    file          as it is stored, absolute; of a pattern its folder and the pattern
    names         the keys it was found by, its own key (``paths.key_of``) last
    instance_id, label, agent   who holds it: session, and which of its agents (empty for the session itself)
    note, mode    why, and how (``shared`` or anything else)
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
        pattern=None, base=None, fence=None, lease=(None,) * 4, evidence=None, path_key=None, repository=None,
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

    __slots__ = ("instance_id", "label", "directory", "root", "file_root")

    def __init__(self, instance_id, label="", directory="", root="", file_root=""):
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
        """The Session that a client's hooks have registered under this id, or None."""
        return None

    def others_hold(self, own_id: str) -> bool:
        """Whether anybody but this session, or one of its agents, has a lock at all. Cheap."""
        return False

    def has_news(self) -> bool:
        """Whether any session is to be told something."""
        return False

    def locks_on(self, keys: list[str]) -> list[Held]:
        """Locks on the very paths with these keys, whoever holds them, in whatever scope."""
        return []

    def patterns_over(self, keys: list[str]) -> list[Held]:
        """Locks on patterns that cover any of the paths with these keys; `names` says which."""
        return []

    def worktree_locks_over(self, keys: list[str]) -> list[Held]:
        """Locks of other work trees that hold here too, on the paths with these keys."""
        return []

    def locks_under(self, folders: list[str], own_id: str, limit: int, own_agent: str = "") -> list[Held]:
        """Locks of others on files and folders below these (spellings or keys), at most `limit` for each."""
        return []

    def patterns_near(self, folders: list[str], own_id: str) -> list[Held]:
        """Locks of others on patterns that may cover something below any of the folders with these keys."""
        return []

    def worktree_locks_under(self, folders: list[str], own_id: str, limit: int) -> list[Held]:
        """Locks of other work trees that hold here too, below the folders with these keys, at most `limit` for each."""
        return []

    def waiting_for(self, path: str) -> int:
        """How many wait for a lock on absolute `path`, on something over it or below."""
        return 0

    def was_denied(self, instance_id: str, held: Held, since: float, path: str = "") -> bool:
        """Whether it is noted that this lock kept this session from its file after `since` (Unix seconds).

        With `path` only where it was that one which it would have written.
        """
        return False

    def leases_and_news(self, instance_id: str) -> tuple:
        """What is due for a session itself: its leases, as ``clock.left`` takes them, and whether there is news."""
        return [], False

    def holds_as(self, instance_id: str, agent: str) -> bool:
        """Whether this agent of a session holds anything of its own."""
        return False


def storable(text: str) -> bool:
    """Whether a store can hold `text`. A file name that is not UTF-8 it cannot, so nobody locks one."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def plain(file: str) -> str:
    """A lock's file as it was asked for: several that share one stand under spellings of it, with ``/./`` in them."""
    while "/./" in file:  # one for each that shares it
        file = file.replace("/./", "/")
    return file


def ascii_lower(name: str) -> str:
    """Lower case as SQLite's ``lower`` has it: A to Z only."""
    return name.encode("utf-8", "surrogatepass").lower().decode("utf-8", "surrogatepass")
