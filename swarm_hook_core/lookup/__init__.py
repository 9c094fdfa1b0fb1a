"""Locks and their holders, as a check asks for them.

    glance.StoreGlance ───┐               the session, its news, and whether there is any lock: most checks end there
    locks.LockReader ─┬─ sqlite.StoreReader     asks the store's file; the only SQL outside of the coordinator
                      └─ command.CommandReader  asks the coordinator's command, if the store is no local file

``locks.Peers`` puts the questions for one session, and leaves out the locks of sessions that have gone.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_hook_core.lookup.locks import Held, LockReader, Peers, ascii_lower, plain, storable

__all__ = [
    "ASKED", "AUTO", "BATCH", "GLOB", "HOLD", "NEAR", "REQUESTS", "SOME_AGENT", "TERMINAL", "Held",
    "LockReader", "Peers", "Session", "ascii_lower", "plain", "storable",
]  # fmt: skip

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


def __getattr__(name: str) -> object:
    """Return a name of ``locks``: most checks meet no lock, and do without that module."""
    if name not in __all__:
        raise AttributeError(name)
    from swarm_hook_core.lookup import locks

    found = globals()[name] = getattr(locks, name)
    return found
