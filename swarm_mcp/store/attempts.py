"""What a session tried when it was refused: all that a denial's event needs for the decision to be understood later."""

from __future__ import annotations

from swarm_hook_core.paths import NO_CASE, contains, key_of
from swarm_mcp.store.lock_request import LockRequest
from swarm_mcp.store.record import record

MOST_NAMED = 20  # of the files of one request


@record
class Attempt:
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


def facts(store, instance: dict, lock: dict, attempt: Attempt) -> dict:
    """What the event says beyond who holds: ``{path, rule, session, cwd, ...}``; nothing that is not known.

    `lock` is a row of ``LockRows``, or a waiter that goes first.
    """
    path = attempt.path or lock["file"]
    session = store.row("SELECT runtime, session_id FROM swarm_sessions WHERE instance_id = ?", (instance["id"],))
    told: dict = {"path": path, "path_key": key_of(path), "rule": rule(lock, path), "cwd": attempt.cwd}
    told.update(fence=lock.get("fence"), mode=lock.get("mode"), agent=lock.get("agent"), ttl=lock.get("ttl"))
    told.update(pattern=lock.get("pattern"), base=lock.get("base"), repository=lock.get("repository"))
    told.update(ticket=lock.get("ticket"), seen_fence=attempt.fence)
    told.update(denied_agent=attempt.agent, wanted_mode=attempt.mode, wanted=list(attempt.wanted))
    if session:
        told["session"] = [session["runtime"], session["session_id"]]
    if attempt.fence == lock.get("fence"):
        told["seen_fence"] = None
    return {name: value for name, value in told.items() if value}


def rule(lock: dict, path: str) -> str:
    """Through what a lock holds `path`: ``file``, ``folder``, ``pattern``, ``repository`` or ``queue``.

    ``inside``: it does not; it is on something below, which keeps the whole of `path` from being locked.
    """
    if lock.get("ticket"):
        return "queue"
    if lock.get("pattern"):
        return "pattern"
    from swarm_hook_core.lookup import plain

    file, key = plain(lock["file"]), lock.get("path_key") or key_of(lock["file"])
    own = key_of(path)
    if file == path or key == own:
        return "file"
    if contains(file, path) or contains(key, own) or contains(key.removeprefix(NO_CASE), own.removeprefix(NO_CASE)):
        return "folder"
    if contains(path, file) or contains(own, key):
        return "inside"
    return "repository" if lock.get("repository") else "file"
