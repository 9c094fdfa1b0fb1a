"""The agent in whose shell a command runs, known by its client's variables and by the processes above it."""

from __future__ import annotations

import os
from itertools import islice

from swarm_hook_core.environment import first_set
from swarm_hook_core.labels import token
from swarm_hook_core.liveness import SERVER_RUNTIME
from swarm_hook_core.lookup.process_holders import RUNTIME as HOLD
from swarm_hook_core.process import ancestors, start_time
from swarm_mcp.answers.views import name_of
from swarm_mcp.domain.session import DETACHED, REMOTE, Session
from swarm_mcp.errors import PersonOnly, SwarmError
from swarm_mcp.runtimes import SESSION_ID_VARIABLES, SHELL_VARIABLES
from swarm_mcp.store import Store

TERMINAL = "terminal"  # the runtime and origin of a person's shell
NO_AGENTS = (TERMINAL, HOLD, DETACHED, REMOTE)  # registered, but no agent's session, or none of this machine
MAKER = "by"  # the word of a detached holder's label that names the session of the shell that made it
# Runtimes whose shells do not name the client's session.
_UNNAMED = ("gemini", "cline", "pi", "acp")
MOST_CLIENTS = 1000  # sessions of a scope whose clients are looked for


def is_marked() -> bool:
    """Return True if a client's variables say that this is an agent's shell."""
    return any(os.environ.get(name, "").strip() for name in SHELL_VARIABLES)


def agents_around(store: Store) -> list[Session]:
    """Return the sessions of the nearest client above this process. It is several if the session of this shell is
    unclear.

    A variable chooses among the sessions of one client. It is believed by itself only if no client is above this
    process, as in another pid namespace: any command can set a variable.
    """
    named = _named_by_variables(store)
    served: list[Session] = []
    for pid in ancestors():
        rows = [row for row in store.instances.of_client(pid, start_time(pid)) if row.runtime not in NO_AGENTS]
        # One client may have been started in the other's shell: then the nearer one is meant.
        found = [row for row in rows if row.id in named] or [row for row in rows if row.runtime != SERVER_RUNTIME]
        if found:
            return found
        served = served or rows
    return list(named.values())[:1] or served


def agent_session_around(store: Store) -> Session | None:
    """Return the session of the agent that runs this process, or None."""
    found = agents_around(store)
    if len(found) == 1:
        return found[0]
    return None


def may_be_around(row: Session, around: list[Session]) -> bool:
    """Return True if the only session of a scope, `row`, may be the one that runs this process.

    around  the sessions of the client above it (`agents_around`)

    In an agent's shell it is one of its client, if no variable names another one. A process without a client above it
    is a person's. It acts as no client's session, only as one that `register` has made.
    """
    if around:
        return any(row.id == one.id for one in around)
    if row.runtime is None:
        return True
    marked = {runtime for name, runtime in SHELL_VARIABLES.items() if os.environ.get(name, "").strip()}
    return not first_set(*SESSION_ID_VARIABLES) and row.runtime in marked


def unseen_clients(store: Store, scope: str) -> list[Session]:
    """Return sessions of the scope that may run this process although their clients are not seen above it.

    Their clients run in another pid namespace, as in a container, or no hook could tell their process.
    """
    rows = (row for _, row in islice(store.instances.walk(scope), MOST_CLIENTS))
    agents = [row for row in rows if row.runtime is not None and row.runtime not in NO_AGENTS]
    return [row for row in agents if row.host != store.here or not row.client_pid]


def _named_by_variables(store: Store) -> dict[str, Session]:
    told = [os.environ.get(variable, "").strip() for variable in SESSION_ID_VARIABLES]
    named = {}
    for session_id in (*told, os.path.basename(os.environ.get("HARNESS_SESSION", "").rstrip("/"))):
        for row in store.instances.of_session_id(session_id) if session_id else ():
            named[row.id] = row
    return named


def is_own(store: Store, row: Session) -> bool:
    """Return True if a command here may act as the live session `row`.

    A person may act as any session. An agent's shell may act as its own session, as one around the command itself, and
    as a detached holder or a session for a script that this very agent has made.
    """
    around = agents_around(store)
    if not around and not is_marked():
        return True
    if any(row.id == one.id for one in around) and (len(around) == 1 or row.runtime in _UNNAMED):
        return True
    if row.runtime == DETACHED:
        return token(row.label or "", MAKER) in [one.id for one in around]
    if row.runtime == HOLD:
        return any(row.id == one.id for pid in ancestors() for one in store.instances.of_client(pid, start_time(pid)))
    return not store.instances.is_session(row.id) and _is_maker(store, row, mark_of_shell(store))


def require_own(store: Store, row: Session, how: str) -> None:
    """Raise PersonOnly, and write the attempt down, unless `is_own`. `how` has named the session: ``--as``."""
    if is_own(store, row):
        return
    who = name_of(row)
    note_attempt(store, row.scope, f"{how} {who}")
    raise PersonOnly(
        f"{how} names {who}, another live session: from an agent's shell a command acts as the agent's own session"
        " alone. request-lock asks it for a file; only a person can act for it, in a terminal of their own"
    )


def require_same_client(store: Store, row: Session) -> None:
    """Raise PersonOnly, and record the attempt, if an agent of another client names the session `row`.

    For calls by hooks: their client is above them, and may have several sessions open.
    """
    around = agents_around(store)
    if around and not any(row.id == one.id for one in around) and store.instances.live(row.id):
        note_attempt(store, row.scope, f"--session-id {name_of(row)}")
        raise PersonOnly(f"--session-id names {name_of(row)}, a live session of another client")


def note_attempt(store: Store, scope: str, deed: str) -> None:
    """Record that the agent of this shell tried `deed`, a command for persons."""
    me = agent_session_around(store)
    try:
        store.protection.attempted(scope, me.id if me else None, deed)
    except SwarmError:
        return  # the refusal must not depend on a store that can be written


def mark_of_shell(store: Store) -> str:
    """Return a mark of this agent's shell: its session, or its client's name for that. Empty outside of agents."""
    me = agent_session_around(store)
    if me:
        return me.id
    return first_set(*SESSION_ID_VARIABLES)


def _is_maker(store: Store, row: Session, mark: str) -> bool:
    """Return True if `row` was registered by `register` in the agent's shell with this mark, within the last day."""
    from swarm_mcp.store.activity import payload_of  # commands that hooks start need not load it

    made = [one for one in store.activity.of_sessions([row.id]) if one.type == "instance.registered"]
    return bool(mark and made) and payload_of(made[-1]).get("by") == mark
