"""The sessions of a scope: they join, are listed, are told where they stand, and leave."""

from __future__ import annotations

import os
from typing import Any

from swarm_hook_core.untrusted_text import token
from swarm_mcp.answers.people import public_instance, registration, short, veiled
from swarm_mcp.answers.size import printed
from swarm_mcp.cli.arguments import (
    ABSOLUTE,
    ACTING,
    DOING,
    FOLDERS,
    INSTANCES,
    INTERNAL,
    JSON,
    PATIENCE,
    PLACE,
    RUNTIME,
    SESSION_ID,
    SESSIONS,
    Arguments,
    Option,
    Usage,
    Word,
    verb,
)
from swarm_mcp.cli.commands.reports import telling
from swarm_mcp.cli.output import answer, flush, listing, presence, refused, say, say_prose, show, state_of
from swarm_mcp.cli.words import PAGES, Reader, clause, printed_page, say_page
from swarm_mcp.domain import Session
from swarm_mcp.errors import SwarmError, UnknownInstance, UsageError
from swarm_mcp.folders import current_scope, here
from swarm_mcp.hooks.session_hooks import find_lowered, find_terminal
from swarm_mcp.sessions.acting import (
    find_acting_session,
    mark_of_shell,
    require_same_client,
    session_of_caller,
    viewer_identity,
)
from swarm_mcp.store import Store
from swarm_mcp.store.messages import name_of
from swarm_mcp.store.sessions import Registration
from swarm_mcp.store.user_interface import pane_in


@verb(
    Usage(
        Word(
            "DIRECTORY",
            "where the session works (or SWARM_MCP_DIRECTORY; default: here)",
            optional=True,
            source=FOLDERS,
        ),
        *PLACE,
        Option(
            "--scope DIR",
            "the folder of the sessions it coordinates with (default: the git root of DIRECTORY)",
            source=FOLDERS,
        ),
        Option("--lease-seconds N", "keep it for N seconds without a sign of life; without it, 60 seconds"),
        Option("--adopt-instance-id ID", "take over this instance", source=INSTANCES),
        JSON,
        Option("--runtime NAME", "the session's client, with --session-id: one instance for each", hidden=True),
        Option("--session-id ID", "the session's id there", hidden=True),
        Option("--state STATE", "working or idle", hidden=True),
        Option("--client PID:START", "the process whose end ends the session", hidden=True),
        Option("--source NAME", "of a session's start", hidden=True),
        Option("--pane ID", "the terminal pane it is in", hidden=True),
        Option("--turn-over NS", "the end of the turn before; automatic locks end with it", hidden=True),
        Option("--tell", "print the session's notices about its locks", hidden=True),
        PATIENCE,
    ),
    group=INTERNAL,
)
def register(args: Arguments) -> int:
    """register: make a session known, or renew it

    example: swarm-mcp register . --label "identity:work role:reviewer" --lease-seconds 3600
    """
    request = asked_for(
        args,
        lease_seconds=max(0, args.number("--lease-seconds")),
        adopt_id=args.value("--adopt-instance-id"),
        preassigned_id=os.environ.get("SWARM_MCP_INSTANCE_ID", "").strip(),
        runtime=args.value("--runtime"),
        session_id=args.value("--session-id"),
        state=args.value("--state"),
        client=args.process("--client"),
        pane=_pane(args),
        turn_over=_turn_over(args),
    )
    if bool(request.runtime) != bool(request.session_id):
        raise UsageError("--runtime and --session-id go together")
    with Store(busy_seconds=args.patience) as store:
        if not request.runtime:
            request.by = mark_of_shell(store)
        else:
            find_terminal(store.database, request, anew=bool(args.value("--source")))
        row = store.instances.register(request)
        shown = registration(row)
        if row.lease_until is not None:
            shown["heartbeat"] = row.heartbeat
        if args.value("--source"):
            from swarm_mcp.hooks.session_hooks import scope_summary  # not needed at the begin of a turn

            shown["summary"] = scope_summary(store.database, row)
        if args.given("--tell"):
            find_lowered(store.database, row)
        with telling(store, args.given("--tell") and row or None) as notices:
            if notices:
                shown["notices"] = notices
            if args.given("--tell") and store.notices.are_messages_unread(row):
                shown["has_mail"] = True
            return answer(args, shown, f"registered {row.id}", *notices)


def _turn_over(args: Arguments) -> int:
    """Return the end of the turn before, in nanoseconds; 0 if a client gives no number."""
    text = args.value("--turn-over")
    if not text.isdecimal():
        return 0
    return int(text)


def asked_for(args: Arguments, **more: Any) -> Registration:
    """The registration that flags and environment describe: directory, label, scope and file root; and `more`."""
    return Registration(
        args.value("--directory") or "".join(args.words) or os.environ.get("SWARM_MCP_DIRECTORY", "").strip() or here(),
        label=args.value("--label") or os.environ.get("SWARM_MCP_LABEL", ""),
        scope=args.value("--scope") or os.environ.get("SWARM_MCP_SCOPE", ""),
        file_root=args.value("--file-root") or os.environ.get("SWARM_MCP_FILE_ROOT", ""),
        **more,
    )


def _pane(args: Arguments) -> dict[str, str]:
    """The pane to publish: the one that hooks name, or a session's own that registers for good.

    A lease is taken on behalf of others as well, and the pane here is then the wrong one.
    """
    if args.value("--pane"):
        return pane_in({**os.environ, "HERDR_PANE_ID": args.value("--pane")})
    if args.value("--runtime") or args.given("--lease-seconds"):
        return {}
    return pane_in(os.environ)


@verb(
    Usage(Option("--force", "also another session than one's own"), PATIENCE, *DOING),
    Usage(
        RUNTIME,
        SESSION_ID,
        Option(
            "--client PID:START",
            "the client in which the session has ended: it goes on if another client has it open too",
        ),
        PATIENCE,
        JSON,
    ),
    group=INTERNAL,
)
def deregister(args: Arguments) -> int:
    """deregister: end a session; its locks and claims go with it

    Its published identity, its locks, its unread messages and the tasks it had claimed are released in one step.
    Another session than your own goes only with --force, because it would lose its locks in the middle of its work; one
    that is gone already needs no force. From an agent's shell a live session that is not its own cannot be ended at
    all. Exit 1 where it is refused, with --json as {"error"}.

    example: swarm-mcp deregister --as role:reviewer --force
    """
    with Store(busy_seconds=args.patience) as store:
        session_id, runtime, ended = args.value("--session-id"), args.value("--runtime"), True
        if session_id:
            row = store.instances.of_session(runtime, session_id)
            if row:
                require_same_client(store, row)
        else:
            reference = args.value("--as")
            if not reference or store.instances.live(reference):
                gone = None
            else:
                gone = store.instances.get(reference)
            row = gone or find_acting_session(store, args)
            if args.value("--as") and not args.given("--force") and not _may_go(store, args, row):
                error = f"{row.id} is a live session and not this one; --force removes it all the same"
                return refused(args, "deregister", {"error": error})
        if row and session_id:
            ended = store.instances.end_session(row, args.process("--client"))
        elif row:
            store.instances.remove(row.id)
    line = "nothing to deregister"
    if row and ended:
        line = f"deregistered {row.id}"
    elif row:
        line = f"still registered, for another client or its run: {row.id}"
    return answer(args, {"ok": True, "id": row and row.id, "scope": row and row.scope}, line)


def _may_go(store: Store, args: Arguments, row: Session) -> bool:
    """Return True if `row` is the caller's own session, or has gone."""
    if store.instances.live(row.id) is None:
        return True
    try:
        return session_of_caller(store, current_scope(args.value("--scope"))).id == row.id
    except UnknownInstance:  # the caller is no session
        return False


@verb(
    Usage(
        Word("DIRECTORY", "where it works, for a session that is registered by this", optional=True, source=FOLDERS),
        Option("--limit N", "at most N unread messages (default 50; 0: leave them unread, -1: all)"),
        Option(
            "--adopt-instance-id ID",
            "become this reserved instance first; it must wait in this scope and DIRECTORY",
            source=INSTANCES,
        ),
        *PLACE,
        ABSOLUTE,
        *DOING,
    ),
    group=SESSIONS,
)
def bootstrap(args: Arguments) -> int:
    """bootstrap: where this session stands: peers, unread messages, tasks

    The messages that are shown, as text or as JSON, count as read once they are written out, and only then. Where
    SWARM_MCP_INSTANCE_ID names a session that is not registered yet, it is registered.

    example: swarm-mcp bootstrap --as role:reviewer
    """
    from swarm_mcp.sessions.summary import bootstrap_summary, neighbours_of, with_mail

    with Store() as store:
        row = _session(store, args)
        identity = token(row.label or "", "identity")
        value = bootstrap_summary(store, row, neighbours_of(store, row, printed), store.tasks.current(row))
        limit = args.number("--limit", 50)
        messages = []
        if limit:
            messages = store.messages.take(row, limit)
        value = with_mail(store, row, value, "unread_messages", messages, measure=printed)
        if args.json:
            show(value)
        else:
            _say_standing(value, Reader(args, store, identity))
        if flush():
            store.messages.acknowledge([message["id"] for message in value["unread_messages"]])
    return 0


def _say_standing(value: dict[str, Any], reader: Reader) -> None:
    """Print the answer of `bootstrap` for people."""
    me, left = value["instance"], value.get("not_shown", {})
    say(f"session {me['id']} ({reader.known(me['label'], me['id'])}) in scope {me['scope']}")

    def section(name: str, lines: list[str]) -> None:
        title = f"{name.replace('_', ' ')}: none"
        if lines:
            title = f"{name.replace('_', ' ')} ({len(lines)}{clause(', and {} more', left.get(name))}):"
        say(title)
        for line in lines:
            say_prose(line)

    section("peers", [f"  {reader.known(peer['label'], peer['id'])}  {peer['id']}" for peer in value["peers"]])
    texts = [
        f"  #{mail['id']}  {reader.when(mail['created_at'])}  from {reader.called(mail['sender'])}\n"
        + "\n".join(f"      {line}" for line in mail["content"].split("\n"))
        for mail in value["unread_messages"]
    ]
    section("unread_messages", texts)
    tasks = [task for group in value["tasks"].values() if isinstance(group, list) for task in group]
    section("tasks", [f"  {short(task['id'])}  [{task['status']}]  {task['type']}  {task['title']}" for task in tasks])
    tracker = value.get("work_tracker")
    if tracker:
        say(f"work is tracked in {tracker['value']}")


def _session(store: Store, args: Arguments) -> Session:
    """The session this is for, adopted or registered where that was asked for."""
    wanted = args.value("--adopt-instance-id")
    reserved = os.environ.get("SWARM_MCP_INSTANCE_ID", "").strip()
    if wanted:
        request = asked_for(args, adopt_id=wanted)
        waiting = store.instances.live(wanted)
        if waiting and (waiting.scope, waiting.directory) == (request.scope, request.directory):
            return store.instances.register(request)
        if wanted == reserved:
            return store.instances.register(asked_for(args, preassigned_id=wanted))
        raise SwarmError(f"instance {wanted} cannot be adopted: no instance waits under that id in {request.directory}")
    try:
        return find_acting_session(store, args)
    except UnknownInstance:
        if not reserved or args.value("--as") or args.given("--person"):
            raise
        return store.instances.register(asked_for(args, preassigned_id=reserved))


# The sessions of a scope, and the session of the caller.


@verb(
    Usage(*PAGES, ABSOLUTE, *ACTING),
    group=SESSIONS,
)
def instances(args: Arguments) -> int:
    """instances: the sessions of this scope

    example: swarm-mcp instances --scope ~/src/shop
    """
    scope = current_scope(args.value("--scope"))
    rows: list[Session] = []
    with Store(read_only=True) as store:
        viewer = viewer_identity(store, args)
        reader = Reader(args, store, viewer)

        def shown(row: Session) -> dict[str, Any]:
            rows.extend(veiled([row], viewer))
            return store.panes.with_session(public_instance(rows[-1]))

        found = printed_page(
            args, lambda after: store.instances.walk(scope, after), shown, lambda: store.instances.count(scope)
        )

    def table() -> None:
        cells, plain = [], []
        for row, public in zip(rows, found.rows):
            pane, folder = public.get("pane_id") or "", reader.path(row.directory)
            name, seen = reader.session(row), reader.when(row.last_seen or row.heartbeat)
            cells.append((name, short(row.id), state_of(row, reader.now), seen, row.pid, pane, folder))
            line = f"  {short(row.id)}  {name}  pid={row.pid}  {presence(row, reader.now)}  {folder}"
            plain.append(line + clause("  pane={}", pane))
        listing(
            ("session", "id", "state", "seen", "pid", "pane", "directory"), cells, plain,
            title=f"scope: {scope}", empty=f"(no instances in scope {scope})",
        )  # fmt: skip

    return say_page(args, found, table)


@verb(
    Usage(*ACTING),
    group=SESSIONS,
)
def whoami(args: Arguments) -> int:
    """whoami: the session this command would act as

    The session is WHO, if given; else SWARM_MCP_INSTANCE_ID; else the session around this shell; else the only session
    of the scope.

    example: swarm-mcp whoami --json
    """
    with Store(read_only=True) as store:
        row = find_acting_session(store, args, reads=True)
    return answer(args, registration(row), f"{row.id}  {name_of(row)}  scope={row.scope}")
