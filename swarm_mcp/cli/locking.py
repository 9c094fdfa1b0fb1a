"""Lock requests from the command line: the wait, the error if one is refused, the columns of a listing."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from itertools import takewhile
from typing import Any

from swarm_hook_core import lookup
from swarm_hook_core.environment import identity
from swarm_hook_core.lookup import plain
from swarm_hook_core.naming import LONGEST_WORDS, agent_name, holder_name
from swarm_hook_core.paths import git_root
from swarm_hook_core.process import start_time
from swarm_hook_core.untrusted_text import named, quoted, token
from swarm_hook_core.wording import duration
from swarm_mcp.answers.people import short
from swarm_mcp.cli.arguments import Arguments, Option
from swarm_mcp.cli.output import refused
from swarm_mcp.cli.words import Reader, clause, said_path
from swarm_mcp.domain import NAME_PREFIX, Lock, Session, Waiter
from swarm_mcp.errors import LockRefused, SwarmError, UsageError
from swarm_mcp.folders import current_scope, here
from swarm_mcp.locking.acquisition import Taken, acquire, refused_answer, requested
from swarm_mcp.sessions.acting import find_acting_session, session_of_person, surrounding_session
from swarm_mcp.store import Store
from swarm_mcp.store.lock_request import LockRequest
from swarm_mcp.store.messages import seconds_since

NAME = Option("--name", "a name that is no file, such as port:3000: the same as name:port:3000")


def files_in(args: Arguments, words: list[str]) -> list[str]:
    """Return `words`, as names where ``--name`` says so."""
    if not args.given("--name"):
        return words
    if args.given("--pattern") or args.given("--path"):
        raise UsageError("--name excludes --pattern and --path")
    return [NAME_PREFIX + word.removeprefix(NAME_PREFIX) for word in words]


def lock_request(args: Arguments, store: Store, instance: Session, files: list[str], **facts: Any) -> LockRequest:
    """Return the request that the flags of `args` make. No `files` means ``--git``; `facts` as in ``LockRequest``.

    Raises SwarmError.
    """
    if args.given("--pattern") and args.given("--path"):
        raise UsageError("--pattern and --path exclude each other")
    if args.given("--shared") and args.given("--exclusive"):
        raise UsageError("--shared and --exclusive exclude each other")
    mode = "exclusive"
    if args.given("--shared"):
        mode = "shared"
    given = {
        "note": args.value("--note"),
        "mode": mode,
        "agent": args.value("--agent").strip(),
        "ttl": args.seconds_if_given("--ttl"),
        "task_id": args.value("--task") or None,
        "once": args.given("--exclusive"),
        "logical": args.given("--logical"),
    }
    as_pattern = None
    if args.given("--pattern") or args.given("--path"):
        as_pattern = args.given("--pattern")
    files = files_in(args, files) or [repository_of(instance)]
    return requested(store, instance, files, as_pattern, args.seconds_if_given("--expect"), **{**given, **facts})


def repository_of(instance: Session) -> str:
    """Return the path that stands for a session's repository: ``.git`` at the top of its work tree.

    Raises SwarmError outside of a repository.
    """
    folder = instance.file_root or instance.directory
    mark = os.path.join(git_root(folder), ".git")
    if not os.path.lexists(mark):
        raise SwarmError(f"{folder} is not in a git repository")
    return mark


def say_refused(refusal: LockRefused, args: Arguments, store: Store, wanted: LockRequest, verb: str) -> int:
    """Print the holder of a wanted lock and the length of the queue; return exit code 1."""
    answer = refused_answer(store, refusal, wanted, "--wait SECONDS")
    waiting, active = answer["queue"]["waiting"], refusal.active
    if active.get("hidden"):
        who = "a session of another identity"
    else:
        owner = holder_name(active["owner"]["label"], active["instance_id"])
        age = "first in the queue"
        if active.get("created_at"):
            age = f"for {duration(seconds_since(active['created_at'], store.now()))}"
        who = f"{owner}, {age}"
        if active["content"]:
            who += f": {quoted(active['content'])}"
    waited = args.seconds("--wait")
    file = named(said_path(active["file"]))
    next_step = "--wait SECONDS joins the queue"
    if waited:
        next_step = f"waited {duration(waited)}; next: swarm-mcp why {file}"
    return refused(
        args, verb, answer, f"{refusal} ({file} by {who}); {clause('{} in the queue; ', waiting)}{next_step}"
    )


def process_holder(store: Store, args: Arguments, argv: list[str]) -> tuple[Session, str]:
    """Return the owner of locks that end with this process: the session around it, with this process as an agent.

    Outside of a session it is a new session without an agent, named after the command `argv`. The caller removes it.
    """
    pid, started = os.getpid(), start_time(os.getpid())
    session: Session | None
    if args.given("--person"):
        session = session_of_person(store, args)
    elif args.value("--as") or os.environ.get("SWARM_MCP_INSTANCE_ID", "").strip():
        session = find_acting_session(store, args)
    else:
        session = surrounding_session(store)
    if session:
        return session, lookup.hold_agent(pid, started, store.here)
    from swarm_mcp.store.sessions import Registration

    # The words of a command for a label, where a colon would make a fact of them: those before the first such
    program, *rest = argv
    words = " ".join([os.path.basename(program), *rest])[: 2 * LONGEST_WORDS].split()
    labels = [
        clause("identity:{}", identity("MCP")),
        *list(takewhile(lambda word: ":" not in word, words)),
        f"origin:hold pid:{pid}",
    ]
    row = store.instances.register(
        Registration(
            here(),
            label=" ".join(filter(None, labels)),
            scope=current_scope(args.value("--scope")),
            runtime=lookup.HOLD,
            session_id=f"{pid}-{started}-{store.here}",
            client=(pid, started),
        )
    )
    return row, ""


# Columns of a lock in listings beyond file, holder and note: mode, time left, agent, fence, length of the queue.

Row = dict[str, Any]  # of a listing of locks

HEADERS = ("mode", "left", "agent", "fence", "waits")


def counted(store: Store, rows: Iterable[Row]) -> Iterator[Row]:
    """Yield `rows` of a listing, with the length of the queue (``glance``) of each lock that has one."""
    return with_waiting(rows, store.queue.lengths())


def with_waiting(rows: Iterable[Row], waiting: dict[str, int]) -> Iterator[Row]:
    """As `counted`; `waiting` maps the ids of locks to the lengths of their queues (``queue.lengths``)."""
    for row in rows:
        if row["id"] in waiting:
            row = {**row, "waiting": waiting[row["id"]]}
        yield row


def cells(row: Row, now: float) -> tuple[object, ...]:
    """The values of `HEADERS` for a row of a listing."""
    fence = row.get("fence") or ""
    return (_mode(row), _left(row, now), _agent(row), str(fence), row.get("waiting") or "")


def suffix(row: Row, now: float) -> str:
    """The same at the end of a line, empty for the lock that the contract knows: exclusive, for good, of a session."""
    agent = _agent(row)
    if agent and not agent.endswith(")"):
        agent = f"agent {agent}"
    left = _left(row, now)
    if "lapses_in" in row:
        left += " left"
    parts = (_mode(row), agent, left, clause("{} waiting", row.get("waiting")))
    return clause("  [{}]", ", ".join(filter(None, parts)))


def _agent(row: Row) -> str:
    """The agent of the session that holds the lock: the beginning of its id, or its name for a command; empty for the
    session.
    """
    agent = row.get("agent") or ""
    if not agent:
        return ""
    name = agent_name(agent)
    if name.startswith("agent "):
        return short(agent)
    return name


def _mode(row: Row) -> str:
    kinds = (("pattern", "pattern"), ("repository", "all work trees"), ("team_fence", "all machines"))
    known = [words for name, words in kinds if row.get(name)]
    if "all machines" in known and "all work trees" in known:
        known.remove("all work trees")
    return " ".join(filter(None, [row.get("mode") or "", *known]))


def _left(row: Row, now: float) -> str:
    if "lapses_in" in row:
        return duration(row["lapses_in"])
    if isinstance(row.get("expected_end"), (int, float)):
        away = row["expected_end"] - now
        if away <= 0:
            return "overdue"
        return f"about {duration(away)}"
    return ""


# A command in the queue for locks: shows the holder it waits for.


def acquire_shown(args: Arguments, store: Store, instance: Session, wanted: LockRequest, aside: bool = False) -> Taken:
    """As ``lock_acquisition.acquire``, waiting as long as --wait says; `aside` as in ``Progress``."""
    seconds = args.seconds("--wait")
    if not seconds:
        return acquire(store, instance, wanted, seconds)
    from swarm_mcp.cli.progress import Progress

    reader = Reader(args, store, token(instance.label or "", "identity"))
    with Progress(args.json, aside) as progress:

        def tell(obstacle: Lock | Waiter) -> None:
            who = reader.known(obstacle.owner_label, obstacle.instance_id)
            if isinstance(obstacle, Waiter):
                progress.begin(f"waiting in the queue behind {who}")
            else:
                progress.begin(f"waiting for {reader.path(plain(obstacle.file))}, held by {who}")

        taken = acquire(store, instance, wanted, seconds, tell)
        progress.end()
        return taken
