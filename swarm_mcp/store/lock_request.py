"""What somebody asks for when asking for locks, and what was tried when that, or a write, is refused."""

from __future__ import annotations

from swarm_hook_core.lookup import plain
from swarm_hook_core.paths import NO_CASE, contains, key_of
from swarm_mcp.domain.lock import EXCLUSIVE, MODES
from swarm_mcp.errors import SwarmError
from swarm_mcp.store.lock_reach import Reach, reach_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NamedTuple
else:
    from swarm_mcp.domain.record import NamedValues as NamedTuple

SHORTEST, LONGEST = 1.0, 30 * 86400.0  # seconds of a lease
LONGEST_NOTE = 2048  # bytes of a note or a reason, which every session that meets the lock is to read
MOST = 200  # locks in one request
MOST_NAMED = 20  # of the files of one request, in the record of its refusal


class LockRequest(NamedTuple):
    """Locks that are wanted together: all of them, or none.

    mode          ``exclusive`` or ``shared``
    agent         the subagent that is to hold them; empty for the session with all its agents
    ttl           seconds of the lease, counted from the holder's last sign of life; None for none
    expected_end  Unix seconds, for others to read; None where it is not known
    once          refuse also where this holder has one of them already
    logical       hold in every work tree of the same repository; so do all where that repository is set to it
    tool          what asks, for the record
    ticket        place in the queue (``swarm_waiters``); 0 for whoever does not wait
    """

    reaches: tuple[Reach, ...]
    note: str = ""
    mode: str = EXCLUSIVE
    agent: str = ""
    ttl: float | None = None
    expected_end: int | None = None
    task_id: str | None = None
    once: bool = False
    logical: bool = False
    tool: str = "lock_file"
    ticket: int = 0


def request(instance: dict, files: list[str] | tuple[str, ...], as_pattern: bool | None = None, **given) -> LockRequest:
    """The request of `instance` for `files` as it spells them; `given` as in `LockRequest`. Raises SwarmError."""
    if not files:
        raise SwarmError("a lock needs the path of a file")
    if len(files) > MOST:
        raise SwarmError(f"{len(files)} locks at once; {MOST} is the most (a folder, or a pattern, is one)")
    mode, ttl = given.get("mode") or EXCLUSIVE, given.get("ttl")
    if mode not in MODES:
        raise SwarmError(f"unknown mode {mode[:40]!r}; choose from {', '.join(MODES)}")
    checked_ttl(ttl)
    checked_note(given.get("note") or "")
    from swarm_mcp.store.worktree_locks import named

    asked = (named(reach_of(instance, file, as_pattern), bool(given.get("logical"))) for file in files)
    reaches = {reach.file: reach for reach in asked}
    return LockRequest(tuple(reaches.values()), **{**given, "mode": mode})


def checked_note(note: str) -> str:
    """`note`, or the reason for something about a lock, where it is short enough. Raises SwarmError."""
    size = len(note.encode("utf-8", "surrogatepass"))
    if size > LONGEST_NOTE:
        raise SwarmError(f"a note or a reason has at most {LONGEST_NOTE} bytes, not {size}: say the rest in a message")
    return note


def checked_ttl(ttl: float | None) -> float | None:
    """`ttl`, where a lease can last that long. Raises SwarmError."""
    if ttl is not None and not SHORTEST <= ttl <= LONGEST:
        raise SwarmError(f"a lease lasts from {SHORTEST:g} second to {LONGEST / 86400:g} days, not {ttl:g} s")
    return ttl


class Attempt(NamedTuple):
    """A write, or a request for locks, that was refused.

    tool    what would have written, or asked
    path    the absolute path as it would have been written, empty for not known
    cwd     the folder from which
    agent   the subagent that tried, empty for the session itself
    fence   of the lock that the hook saw in the way, None for not known
    mode    the kind of lock that was asked for, empty for a write
    wanted  the files of a request for several
    """

    tool: str
    path: str = ""
    cwd: str = ""
    agent: str = ""
    fence: int | None = None
    mode: str = ""
    wanted: tuple[str, ...] = ()


def of_request(instance: dict, wanted: LockRequest) -> Attempt:
    """The attempt of a session that asked for locks."""
    files = tuple(reach.file for reach in wanted.reaches)
    more = files[:MOST_NAMED] if len(files) > 1 else ()
    return Attempt(wanted.tool, files[0], instance["directory"], wanted.agent, None, wanted.mode, more)


def rule(lock: dict, path: str) -> str:
    """Through what a lock holds `path`: ``file``, ``folder``, ``pattern``, ``repository`` or ``queue``.

    ``inside``: it does not; it is on something below, which keeps the whole of `path` from being locked.
    """
    if lock.get("ticket"):
        return "queue"
    if lock.get("pattern"):
        return "pattern"
    file, key = plain(lock["file"]), lock.get("path_key") or key_of(lock["file"])
    own = key_of(path)
    if file == path or key == own:
        return "file"
    if contains(file, path) or contains(key, own) or contains(key.removeprefix(NO_CASE), own.removeprefix(NO_CASE)):
        return "folder"
    if contains(path, file) or contains(own, key):
        return "inside"
    return "repository" if lock.get("repository") else "file"
