"""Locks, places in the line for them, and records of refused or harmed sessions."""

from __future__ import annotations

from swarm_mcp.domain.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

EXCLUSIVE, SHARED = "exclusive", "shared"
MODES = (EXCLUSIVE, SHARED)  # modes that a request may have
AUTO = "auto"  # no row: a session has the file for its turn (``turn_locks``)
MUTEX_PREFIX = "/__swarm/"  # of names that are no files
# Columns of `Lock` about its session: its name and the evidence that it is there.
OF_THE_HOLDER = ("owner_label", "owner_id", "heartbeat", "last_seen")


class Lock(Record):
    """One lock (a row of ``context``) with the evidence about its holder.

    file          as listings show it: an absolute path, or the folder and the pattern in one
    content       the holder's note
    created_at    Unix seconds, as is `expected_end`
    path_key      the path's key; for a pattern the key of the folder that holds all covered files
    mode          ``shared``, `AUTO`, or empty for exclusive
    agent         the subagent that holds it; empty for the session with all its agents
    pattern       as it was given, relative to `base`, the key of a folder; empty for a path
    ttl           seconds of its lease, if it has one; `renewed`, `booted`, `wall_until` tell its beginning (``clock``)
    fence         the number of the grant
    repository    its name in its repository, if it holds in every work tree of that
    machine       of a replica's row the machine on which it was taken; empty for a lock taken on this one
    team_fence    the number of the grant among all machines, once their server has confirmed it
    takes         grants of other machines that were taken for it by force, until they know: ``number:fence`` each
    owner_label   the label of the session that holds it; `owner_id` is empty if that is not registered any more
    """

    __slots__ = ()

    id: str
    scope: str
    instance_id: str
    file: str
    type: str
    content: str
    task_id: str | None
    created_at: int
    path_key: str | None
    mode: str | None
    agent: str | None
    pattern: str | None
    base: str | None
    ttl: float | None
    renewed: float | None
    booted: str | None
    wall_until: float | None
    expected_end: int | None
    fence: int | None
    repository: str | None
    machine: str | None
    team_fence: int | None
    takes: str | None
    owner_label: str | None
    owner_id: str | None
    heartbeat: int | None
    last_seen: int | None


def number_elsewhere(lock_id: str) -> str:
    """Return the number that a lock of another machine has on the server: the end of its row's id."""
    return lock_id.rpartition("-")[2]


class Waiter(Record):
    """A place in the line for locks: the waiter, its wanted `reaches`, since and until when (``clock.now``).

    `machine` as of a lock; `team_ticket`: the place in the line of all machines, if it has one.
    """

    __slots__ = ()

    ticket: int
    instance_id: str
    agent: str
    scope: str
    host: str
    pid: int
    start: str
    mode: str
    wants: str
    since: float
    until: float | None
    fence: int
    seen: float | None
    machine: str | None
    team_ticket: int | None
    reaches: tuple[Any, ...]
    owner_label: str | None
    owner_id: str | None


class Denial(Record):
    """A refusal that its session is still to be told about, once the file is free.

    `times`: of a storm, the number of refusals at the last notice to its holder or to a person. `label`,
    `holder_label`: of the two sessions, if they were asked for.
    """

    __slots__ = ()

    instance_id: str
    path_key: str
    scope: str
    file: str
    holder_id: str
    tool: str | None
    denied_at: int
    path: str | None
    times: int | None
    label: str | None
    holder_label: str | None


class Breach(Record):
    """A locked file that changed under its holder, or was restored; `kept` is where the content before is."""

    __slots__ = ()

    id: int
    scope: str
    file: str
    path_key: str
    writer_id: str | None
    writer_label: str | None
    holder_id: str
    tool: str | None
    command: str | None
    kind: str
    kept: str | None
    altered_at: int


class Lapse(Record):
    """A lock that lapsed under its holder; the ``taken_`` columns name the session that was given the same since."""

    __slots__ = ()

    instance_id: str
    file: str
    agent: str
    path_key: str | None
    pattern: str | None
    base: str | None
    fence: int | None
    lapsed_at: int
    taken_fence: int | None
    taken_by: str | None
    taken_label: str | None
    message_id: int | None


def is_mutex(file: str) -> bool:
    """Return True if a lock's name is no file's."""
    return file.startswith(MUTEX_PREFIX)


def keeps_out(lock: Lock, instance_id: str, agent: str, mode: str) -> bool:
    """Return True if `lock` keeps this holder from a lock in `mode` that meets it.

    A session's locks are its agents' too; a lock of one of its agents keeps out the rest of the session.
    """
    own_agent = lock.agent or ""
    if lock.instance_id == instance_id and own_agent in ("", agent):
        return False
    return not (mode == SHARED and lock.mode == SHARED)


def granted(lock: Lock) -> dict[str, Any]:
    """Return a lock just taken, as answers show it: ``{file, id, fence, mode}`` and all further facts."""
    shown = {"file": lock.file, "id": lock.id, "fence": lock.fence, "mode": lock.mode or EXCLUSIVE}
    names = ("ttl", "expected_end", "agent", "pattern", "task_id", "repository")
    return {**shown, **{name: lock[name] for name in names if lock.get(name)}}
