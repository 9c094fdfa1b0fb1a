"""The session that a command acts as, agent's or person's, and the one that a reference names."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from itertools import islice
from typing import Any, Protocol

from swarm_hook_core.environment import DEFAULT_LEASE_SECONDS, first_set, identity, is_on
from swarm_hook_core.lookup import HOLD
from swarm_hook_core.process import SERVER_RUNTIME, ancestors, start_time
from swarm_hook_core.state import DEFAULT_STORE, store_path
from swarm_hook_core.untrusted_text import token
from swarm_mcp.answers.people import known_shortly, veiled
from swarm_mcp.domain import DETACHED, REMOTE, Session, new_id
from swarm_mcp.errors import PersonOnly, SwarmError, UnknownInstance, UsageError
from swarm_mcp.folders import current_scope, here
from swarm_mcp.runtimes import SESSION_ID_VARIABLES, SHELL_VARIABLES
from swarm_mcp.store import Store
from swarm_mcp.store.messages import name_of

TYPE_CHECKING = False


# The agent in whose shell a command runs, known by its client's variables and by the processes above it.

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
    for open_there in store.instances.of_processes(list(ancestors())):
        rows = [row for row in open_there if row.runtime not in NO_AGENTS]
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
        return any(row.id == one.id for rows in store.instances.of_processes(list(ancestors())) for one in rows)
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


if TYPE_CHECKING:

    class Given(Protocol):
        """The options of a command line."""

        def value(self, name: str) -> Any: ...

        def given(self, name: str) -> bool: ...


OWN_ID = "SWARM_MCP_INSTANCE_ID"
NOT_REGISTERED = (
    "this person's shell is not registered yet: its first lock, send or claim registers it; --as ID speaks for another"
    " session"
)
MOST_LOOKED_AT = 1000  # sessions of a scope with a name to compare
MOST_NAMED = 50  # sessions of a scope in the message about an ambiguous reference


def find_acting_session(store: Store, args: Given, reads: bool = False) -> Session:
    """Return the session that a command acts as.

    The first of these: with ``--person`` the person's (`session_of_person`); ``--as``; ``SWARM_MCP_INSTANCE_ID``; the
    session that owns this shell; the session of the client that this process descends from; the registered shell of
    this terminal or script; elsewhere, the command that holds locks around this one, or the only session of the scope
    if it may be around this process (`may_be_around`). Raises UnknownInstance. Raises PersonOnly if an agent's shell
    names another live session, unless the command only `reads`.
    """
    if args.given("--person") and not reads:
        found = session_of_person(store, args)
        if found is None:
            raise UnknownInstance(NOT_REGISTERED)
        return found
    scope = current_scope(args.value("--scope"))
    if args.value("--as"):
        return _named(store, scope, args.value("--as"), "" if reads else "--as")
    return session_of_caller(store, scope, reads)


def session_of_caller(store: Store, scope: str, reads: bool = False) -> Session:
    """Return the session that a command without ``--as`` acts as; see `find_acting_session`."""
    reference = os.environ.get(OWN_ID, "").strip()
    if reference:
        return _named(store, scope, reference, "" if reads else OWN_ID)
    row, others = _caller(store, scope)
    if row is None:
        raise UnknownInstance(_no_session(store, scope, others))
    return row


def _caller(store: Store, scope: str) -> tuple[Session | None, list[Session] | None]:
    """Return the session of this process; else the sessions of the scope's agents, or None at a person's terminal."""
    around = agents_around(store)
    row = _owner(store, around)
    if row is None and _at_terminal() and not around:
        return None, None
    row = row or hold_session_around(store)
    if row:
        return row, []
    agents = (row for _, row in store.instances.walk(scope) if row.runtime not in NO_AGENTS)
    rows = list(islice(agents, MOST_NAMED + 1))
    if len(rows) == 1 and may_be_around(rows[0], around):
        return rows[0], []
    return None, rows


def _no_session(store: Store, scope: str, rows: list[Session] | None) -> str:
    """Return the error of a process that no session of `rows`, those of `_caller`, certainly runs."""
    if rows is None:
        return NOT_REGISTERED
    if not rows:
        return f"no session is registered in scope {scope}: swarm-mcp register makes one, --as ID names one elsewhere"
    names = _names(store, rows)
    if all(row.runtime for row in rows) and is_persons(store, scope):
        return f"no agent runs this command, so it is a person's; --as ID speaks for a session of {scope}: {names}"
    if len(rows) == 1:
        return f"nothing shows that {names} runs this command: say with --as, or {OWN_ID}, which session this is"
    number = str(len(rows))
    if len(rows) > MOST_NAMED:
        number = f"more than {MOST_NAMED}"
    return f"{number} sessions share scope {scope}; say with --as which one this is: {names}"


def _named(store: Store, scope: str, reference: str, how: str) -> Session:
    """Return the session named by `reference`, for a command that acts as it. `how` says where the name was given.

    Raises UnknownInstance for a session elsewhere: nothing here can act for it. Raises PersonOnly if an agent names
    another session. A command that changes nothing passes an empty `how`.
    """
    row = session_named(store, scope, reference)
    if row.runtime == REMOTE:
        raise UnknownInstance(f"{name_of(row)} works on another machine: only there can be acted as it")
    if how:
        require_own(store, row, how)
    return row


def acting_session(store: Store, args: Given) -> Session:
    """Return the session that a command acts as if a person may give it.

    The order is that of `find_acting_session`; ``--person`` is a person's shell (`require_persons`). A shell that is
    not registered yet is registered then, as a gateway: it lives as long as the shell does and follows the shell into
    another folder. A script beside agents has one too: the process that leads its terminal session. Raises
    UnknownInstance in an agent's own shell, and for a script without any client's session in its scope.
    """
    if args.given("--person"):
        require_persons(store, args)
        return _shell(store, args)
    named = args.value("--as") or os.environ.get(OWN_ID, "").strip()
    try:
        found = find_acting_session(store, args)
    except UnknownInstance:
        if named or not _has_shell(store, args):
            raise
        return _shell(store, args)
    is_own_shell = not named and found.runtime == TERMINAL
    if is_own_shell and found.directory != here():
        return _shell(store, args)
    return found


def dispatching_session(store: Store, args: Given) -> Session:
    """The instance that hands out work: as `acting_session`, and where no agent is around this command, its own shell.

    A script, a timer and a CI job have no terminal, and may start a worker as they may `run` an agent. Raises
    UnknownInstance.
    """
    named = args.value("--as") or os.environ.get(OWN_ID, "").strip()
    is_script = not named and not is_marked() and surrounding_session(store) is None
    try:
        found = acting_session(store, args)
    except UnknownInstance:
        if not is_script:
            raise
        return _shell(store, args)
    if is_script and found.runtime != TERMINAL and "mode:gateway" not in (found.label or "").split():
        return _shell(store, args)  # it happens to be the only session here, and has no part in this command
    return found


def lock_holder(store: Store, args: Given) -> Session:
    """The instance that a command locks for: with ``--detach`` a new one that lives as long as its leases.

    Else as ``acting_session``. Raises UsageError, UnknownInstance.
    """
    if not args.given("--detach"):
        return acting_session(store, args)
    if not args.given("--ttl"):
        raise UsageError("--detach wants --ttl SECONDS: without a process only a lease ends the lock")
    if args.value("--as") or args.value("--agent") or args.given("--person"):
        raise UsageError("--detach is for nobody's session: leave out --as, --person and --agent")
    from swarm_mcp.store.sessions import Registration

    who, me = identity("MCP"), agent_session_around(store)
    words = [*([f"identity:{who}"] if who else []), DETACHED, f"origin:{TERMINAL}"]
    words += [f"{MAKER}:{me.id}"] if me else []
    return store.instances.register(
        Registration(
            here(),
            label=" ".join(words),
            scope=current_scope(args.value("--scope")),
            runtime=DETACHED,
            session_id=new_id(),
        )
    )


def is_person(store: Store) -> bool:
    """Return True if a person gives this command: at a terminal, and not in an agent's shell."""
    return _at_terminal() and not agents_around(store)


def is_persons(store: Store, scope: str) -> bool:
    """Return True if this process is a person's: no agent's client is above it, with or without a terminal.

    Without a terminal that is certain only where the clients of all sessions of the scope can be seen from here.
    """
    if is_marked() or agents_around(store):
        return False
    return _at_terminal() or not unseen_clients(store, scope)


def require_persons(store: Store, args: Given) -> None:
    """Let a person go on who says ``--person``. Raises PersonOnly for an agent, UsageError beside ``--as``.

    A script must be certain to be below no client, or be declared as trusted (``SWARM_MCP_ALLOW_SPAWN``).
    """
    if args.value("--as"):
        raise UsageError("--as and --person exclude each other")
    scope = current_scope(args.value("--scope"))
    if is_persons(store, scope):
        return
    if is_marked() or agents_around(store):
        note_attempt(store, scope, "--person")
        raise PersonOnly("--person is for persons: an agent acts as its own session alone, without --person")
    names = _names(store, unseen_clients(store, scope))
    raise PersonOnly(
        f"--person is for persons, and this may be a command of {names}, whose client cannot be seen from here: type it"
        " at a terminal (a script of yours may set SWARM_MCP_ALLOW_SPAWN=1)"
    )


def session_of_person(store: Store, args: Given) -> Session | None:
    """Return the session around a command with ``--person``: its shell's, or that of a command with locks; or None.

    Raises PersonOnly and UsageError as `require_persons`.
    """
    require_persons(store, args)
    return surrounding_session(store)


def _has_shell(store: Store, args: Given) -> bool:
    """Return True if a shell may be registered for this command: at a terminal, or for a person's script.

    A script without a client's session in its scope gets the contract's answer instead.
    """
    if is_person(store):
        return True
    scope = current_scope(args.value("--scope"))
    rows = [row for _, row in islice(store.instances.walk(scope), MOST_NAMED) if row.runtime not in NO_AGENTS]
    return bool(rows) and all(row.runtime for row in rows) and is_persons(store, scope)


def is_unattended(store: Store, instance: Session) -> bool:
    """Return True if `instance` is the shell of a script, with no person in front of it."""
    return instance.runtime == TERMINAL and not is_person(store)


def _at_terminal() -> bool:
    """Return True if a person types here, or if the environment is declared as trusted as one."""
    if is_marked():
        return False
    if is_on("SWARM_MCP_ALLOW_SPAWN"):
        return True
    return any(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr))


def _shell(store: Store, args: Given) -> Session:
    """The instance of the shell that leads this terminal session; renewed, or made."""
    from swarm_mcp.store.sessions import Registration

    pid, started = _leader()
    can_be_seen = started not in ("", "-")
    who = identity("MCP")
    if who:
        words = [f"identity:{who}"]
    else:
        words = []
    row = store.instances.register(
        Registration(
            here(),
            label=" ".join([*words, "mode:gateway", f"origin:{TERMINAL}"]),
            scope=current_scope(args.value("--scope")),
            runtime=TERMINAL,
            session_id=_shell_name(store),
            client=(pid, started) if can_be_seen else (0, ""),
            lease_seconds=0 if can_be_seen else DEFAULT_LEASE_SECONDS,
        )
    )
    return store.instances.live(row.id) or row


def _leader() -> tuple[int, str]:
    """Pid and start time of the process that leads this terminal session: the shell."""
    pid = 0
    if hasattr(os, "getsid"):
        pid = os.getsid(0)
        # The parent gives each command a session of its own; the locks must outlive this command.
        if pid == os.getpid():
            pid = os.getsid(os.getppid())
    pid = pid or os.getppid()
    return pid, start_time(pid)


def _shell_name(store: Store) -> str:
    pid, started = _leader()
    return f"{pid}-{started}-{store.here}"


def terminal_session(store: Store) -> Session | None:
    """Return the session of this terminal's own shell, or None for an unregistered shell or an agent's shell."""
    if is_marked():
        return None
    rows = store.instances.of_session_id(_shell_name(store))
    return next((row for row in rows if row.runtime == TERMINAL), None)


def hold_session_around(store: Store) -> Session | None:
    """Return the session of the command that holds locks while this process, its child, runs; or None."""
    above = store.instances.of_processes(list(ancestors()))
    return next((row for rows in above for row in rows if row.runtime == HOLD), None)


def surrounding_session(store: Store) -> Session | None:
    """Return the owner of this process: an agent's session, a terminal's shell, a lock-holding command; or None."""
    return _owner(store, agents_around(store)) or hold_session_around(store)


def _owner(store: Store, around: list[Session]) -> Session | None:
    """Return the session of the client above this process, one of `around`; without a client, its terminal's shell."""
    if not around:
        return terminal_session(store)
    if len(around) == 1:
        return around[0]
    return None


def session_named(store: Store, scope: str, reference: str) -> Session:
    """Return the session in the scope that `reference` names, in any form that our texts use.

    The forms are: an id, also as ``instance ID`` or ``NAME (id ID)``; the whole id that the client uses; a unique
    beginning of the instance id; the name; a part of the label. Raises UnknownInstance.
    """
    reference = _without_words(reference)
    exact = store.instances.live(reference)
    if exact:
        return exact
    of_client = [row for row in store.instances.of_session_id(reference) if row.scope == scope]
    if len(of_client) == 1:
        return of_client[0]
    rows = store.instances.alike(scope, reference)
    # A part of a name matches nothing
    if " " not in reference:
        called = []
    else:
        called = [row for _, row in islice(store.instances.walk(scope), MOST_LOOKED_AT) if name_of(row) == reference]
    for what, matches in (
        ("is how several ids begin", [row for row in rows if row.id.startswith(reference)]),
        ("is the name of several", called),
        ("is in several labels", [row for row in rows if reference in (row.label or "")]),
    ):
        if len(matches) == 1:
            return matches[0]
        if matches:
            raise UnknownInstance(f"{reference[:60]!r} {what}: {_names(store, matches)}")
    others = [row for _, row in islice(store.instances.walk(scope), MOST_NAMED + 1)]
    if others:
        there = f"; there are {_names(store, others)}"
    else:
        there = ""
    raise UnknownInstance(f"no session of this scope has {reference[:60]!r} for its id or in its label{there}")


def _without_words(reference: str) -> str:
    """The id in ``instance ID``, ``NAME (instance ID)`` or ``NAME (id ID)``; `reference` itself where it is neither."""
    told = reference.strip().strip("`")
    if told.endswith(")"):
        inner = told[:-1].rpartition("(")[2]
    else:
        inner = told
    word, _, given = inner.strip().partition(" ")
    if word in ("instance", "id") and given and " " not in given.strip():
        return given.strip()
    return told


def viewer_identity(store: Store, args: Given) -> str:
    """Return the identity of a listing's reader: the acting session's, or the onlooker's; empty without one."""
    row = None
    if args.value("--as") or os.environ.get(OWN_ID, "").strip():
        try:
            row = find_acting_session(store, args, reads=True)
        except UnknownInstance:  # the reader is this shell then
            return onlooker_identity(store)
    else:
        row, _ = _caller(store, current_scope(args.value("--scope")))
        if row is None and _at_terminal():
            return onlooker_identity(store)
    return token(row.label or "", "identity") if row else identity("MCP")


def onlooker_identity(store: Store) -> str:
    """Return the identity of the session around this process, or the environment's; empty without one."""
    row = surrounding_session(store)
    if row:
        return token(row.label or "", "identity")
    return identity("MCP")


def _names(store: Store, rows: list[Session]) -> str:
    seen = veiled(rows[:MOST_NAMED], onlooker_identity(store))
    if len(rows) > MOST_NAMED:
        more = " and others"
    else:
        more = ""
    return ", ".join(map(known_shortly, seen)) + more


def may_dispatch(session: Session) -> bool:
    """Return True if a session may start other sessions and give work to them."""
    return is_on("SWARM_MCP_ALLOW_SPAWN") or "mode:gateway" in (session.label or "").split()


# Commands that weaken the protection of others are for persons, and refused to agents.

MOST_SCOPES, MOST_SESSIONS = 100, 100  # that are looked through for an agent at work
# Where settings and state usually lie, from a home folder.
USUAL = (".config/swarm-mcp", ".local/state/swarm-mcp", "Library/Application Support/swarm-mcp")


def require_person(deed: str, effect: str, touches: str = "") -> None:
    """Let a person go on with `deed`, a command with this `effect` on others. Raises PersonOnly.

    An agent is known by the variables of its shell and by the processes above, as the store knows its client. A command
    can name another store for itself, so the one at the usual place is asked as well, unless `touches`, the changed
    folder, lies elsewhere. Without `touches` it changes files of other people (clients', a repository's).

    Without a terminal a caller does not count as a person while agents are at work, unless the environment is to be
    trusted like a terminal (``SWARM_MCP_ALLOW_SPAWN``).
    """
    is_agent, at_work = is_marked(), False
    for path in _stores(touches):
        try:
            with Store(path) as store:
                is_agent = is_agent or bool(agents_around(store))
                if is_agent:
                    note_attempt(store, current_scope(), deed)
                    break
                at_work = at_work or (not is_person(store) and _is_agent_at_work(store))
        except SwarmError:
            continue  # a store that cannot be read knows no agent; the shell's variables still count
    if is_agent:
        raise PersonOnly(
            f"`{deed}` {effect}: an agent may not do that. A person can, in a terminal of their own, outside of any"
            " agent's shell"
        )
    if at_work:
        raise PersonOnly(
            f"`{deed}` {effect}, and agents are at work: only a person may do that, at a terminal (a script of yours"
            " may set SWARM_MCP_ALLOW_SPAWN=1)"
        )


def _stores(touches: str) -> Iterator[str]:
    """The stores that may know an agent around this process, as far as they are there."""
    found = [store_path()]
    homes = [os.path.expanduser("~"), *([_home_of_user()] if touches else [])]
    real = ""
    if touches:
        real = os.path.realpath(touches)
    for home in homes:
        places = [os.path.realpath(os.path.join(home, place)) for place in USUAL]
        if not touches or any(real == place or real.startswith(place + os.sep) for place in places):
            found.append(os.path.join(home, DEFAULT_STORE.removeprefix("~/")))
    return (path for path in dict.fromkeys(found) if os.path.isfile(path))


def _home_of_user() -> str:
    """Return the home folder from the system, not from the environment."""
    try:
        import pwd

        return pwd.getpwuid(os.getuid()).pw_dir
    except (ImportError, KeyError):  # not on Unix, or an unknown user
        return os.path.expanduser("~")


def _is_agent_at_work(store: Store) -> bool:
    return any(
        row.runtime not in NO_AGENTS
        for scope in store.instances.scopes(MOST_SCOPES)
        for _, row in islice(store.instances.walk(scope), MOST_SESSIONS)
    )
