"""Sessions that take part."""

from __future__ import annotations

from swarm_mcp.domain.record import Record

RUN_RUNTIME = "run"  # of the session of a run before its child has reported one of its own
DETACHED = "detached"  # of a session that is there for its locks alone, without any process: it goes with the last
REMOTE = "team"  # the runtime of sessions on other machines; only their own machine can end them
SYSTEM = "system"  # the sender of messages that no session wrote
STALE_SECONDS = 30  # without a heartbeat, where that is all there is of a session


class Session(Record):
    """One session that takes part (a row of ``instances`` with its columns of ``swarm_sessions``).

    scope          the folder whose sessions see each other
    directory      the folder in which it works; `root` is the git root over it
    file_root      the folder from which relative file names count
    pid            of its client, else of the process that registered it
    registered_at  Unix seconds, as are `heartbeat` and `lease_until`
    adopted        1 if only heartbeats prove it alive (the contract's sessions without a lease)
    runtime        the kind of client; this column and those after it are empty until a hook reports the session
    client_pid     with `client_start` the process whose end is the session's end; `other_clients` have it open too
    last_seen      Unix seconds of its last sign of life
    """

    __slots__ = ()

    id: str
    scope: str
    directory: str
    root: str
    file_root: str
    pid: int
    label: str | None
    registered_at: int
    heartbeat: int
    adopted: int
    lease_until: int | None
    runtime: str | None
    session_id: str | None
    host: str | None
    client_pid: int | None
    client_start: str | None
    other_clients: str | None
    terminal_pid: int | None
    terminal_start: str | None
    state: str | None
    last_seen: int | None
    lease_seconds: int | None


def onlooker(identity: str, scope: str = "") -> Session:
    """Return an onlooker of `identity` (empty without one) at `scope`, in the shape of a session."""
    return Session(id="", label=f"identity:{identity}" if identity else None, scope=scope)


def nobody_in(folder: str, scope: str = "") -> Session:
    """Return a stand-in for a session: words mean to it the same as in `folder`."""
    return Session(id="", directory=folder, root=folder, file_root=folder, scope=scope, label=None)


def anywhere() -> Session:
    """Return a session in the shape in which absolute paths mean themselves."""
    return nobody_in("/", "/")
