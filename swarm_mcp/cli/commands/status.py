"""The state of a checkout: at a glance (``status``), and whole (``inspect``)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from heapq import merge
from itertools import islice
from typing import Any, NamedTuple

from swarm_hook_core import settings
from swarm_hook_core.json_text import loads_object
from swarm_hook_core.process import SERVER_RUNTIME
from swarm_hook_core.untrusted_text import quoted, same_circle, token
from swarm_mcp import contributions
from swarm_mcp.answers.people import Machines, People, machines_of, public_instance, short, veiled
from swarm_mcp.answers.size import ROWS_BYTES, fitted, place_of, printed
from swarm_mcp.answers.timeline import NOTICE, REFUSED, Group, as_json, lately, sentence
from swarm_mcp.cli import locking
from swarm_mcp.cli.arguments import (
    ABSOLUTE,
    ACTING,
    INTERNAL,
    JSON,
    MORE_SETUP,
    SCOPE,
    START,
    Arguments,
    Option,
    Usage,
    verb,
)
from swarm_mcp.cli.locking import counted, with_waiting
from swarm_mcp.cli.output import answer, listing, presence, say, say_marked, show, state_of
from swarm_mcp.cli.words import Reader, clause, count
from swarm_mcp.doctor import recorded_faults
from swarm_mcp.domain import REMOTE, STATUSES, TERMINAL, Denial, Question, Session, Task, onlooker
from swarm_mcp.folders import current_scope
from swarm_mcp.runtimes import user_settings
from swarm_mcp.sessions.acting import viewer_identity
from swarm_mcp.store import Store

TYPE_CHECKING = False


if TYPE_CHECKING:
    from swarm_mcp.answers.work import Edit

DAY_SECONDS = 86400
HOUR_SECONDS = 3600
LOCKS, SESSIONS, STORMS, INCIDENTS, QUESTIONS = 20, 100, 20, 5, 20  # rows of each kind
FILES, AUTHORS = 5, 20  # uncommitted files that are named for each author; authors
NEXT_STEPS = """\
No sessions and no locks here. Next steps:
  start an agent here: it takes part by itself after swarm-mcp install
  lock a file yourself: swarm-mcp lock FILE --note WHY
  see that locks are enforced: swarm-mcp doctor, or swarm-mcp demo"""


class Status(NamedTuple):
    """The state of one scope. Lists have the most important rows; the numbers are totals."""

    scope: str
    me: Session | None
    sessions: list[Session]
    session_count: int
    locks: list[dict[str, Any]]
    lock_count: int
    storms: list[dict[str, Any]]
    refused: list[Group]
    noticed: list[Group]
    tasks: dict[str, int]
    questions: list[dict[str, str]]
    messages: dict[str, int]
    values: int
    faults: int
    edited: list[Edit]
    lowered: str
    tries: str
    machines: Machines | None


@verb(
    Usage(ABSOLUTE, *ACTING),
    group=START,
)
def status(args: Arguments) -> int:
    """status: sessions, locks and recent denials at a glance

    First come the files with uncommitted changes, by owner: a session, or a person. If the protection is below its
    default, a line says so, and until when. Then come up to 100 sessions, and up to 20 locks: first those of your own
    session, then those with a queue, then the newest. `swarm-mcp instances` and `swarm-mcp locks` list all of them.
    Tasks, messages and shared values are counted. Last come the sessions that were denied the same file ten times or
    more within minutes, and the last five refusals and notices of the past hour, each with its reason. A notice was
    given to a model about a call that went ahead.

    A session is guarded if its client runs our hooks; `swarm-mcp doctor` proves that locks are enforced.

    In a clone that has joined a team it shows if the data about other machines is fresh, and lists the machines: their
    sessions, their connection, and the number of changes they have not received yet.

    With --json, `instance_count` and `lock_count` are the totals, and the repeated denials are `storms`: [{"file",
    "times", "denied_at", "instance_id", "label", "holder_id", "holder_label"}]. The files of the last denials are
    `refusals`: [{"file", "events", "at", "instance_id", "name", "holder_id", "holder_name", "reason", "level", "kind",
    "tool", "command"}], with the reason in words and, as "kind", in one; the same of notices are `notices`. Files that
    are not committed are `uncommitted`: [{"file", "instance_id", "name", "at"}], without an id for those away.
    `protect` is the level of protection: {"value", "source", "until"}, with "until" for a limited time. `tries` says
    what `swarm-mcp try` keeps, in words.

    example: swarm-mcp status
    """
    with Store(read_only=True) as store:
        viewer = viewer_identity(store, args)
        reader = Reader(args, store, viewer)
        found = _query(store, current_scope(args.value("--scope")), viewer, reader)
        if args.json:
            show(fitted(_as_json(found), measure=printed))
        else:
            _say(found, reader)
    return 0


def _query(store: Store, scope: str, viewer: str, reader: Reader) -> Status:
    """Return the state of a scope as the identity `viewer` may see it."""
    now = store.now()
    sessions = veiled([row for _, row in islice(store.instances.walk(scope), SESSIONS)], viewer)
    session_count = len(sessions)
    if session_count == SESSIONS:
        session_count = store.instances.count(scope)
    me = None
    if reader.own_id:
        me = store.instances.get(reader.own_id)
    waiting = store.queue.lengths()
    lock_count, locks = store.locks.foremost(scope, viewer, LOCKS, (me and me.id) or "", waiting)
    return Status(
        scope=scope,
        me=me,
        sessions=sessions,
        session_count=session_count,
        locks=list(with_waiting(locks, waiting)),
        lock_count=lock_count,
        storms=[_storm(one, viewer) for one in store.storms.known(scope, STORMS)],
        refused=lately(store, scope, reader.people, now - HOUR_SECONDS, INCIDENTS, REFUSED),
        noticed=lately(store, scope, reader.people, now - HOUR_SECONDS, INCIDENTS, NOTICE),
        tasks=store.tasks.counts(onlooker(viewer, scope)),
        questions=_questions(store, onlooker(viewer, scope)),
        messages=store.messages.counts(scope, now - DAY_SECONDS, viewer),
        values=store.kv.count(scope, clause("identity:{}", viewer) or None),
        faults=len([fault for fault in recorded_faults() if fault["at"] > now - DAY_SECONDS]),
        edited=contributions.uncommitted(store, scope, reader.people),
        lowered=user_settings.lowered(scope),
        tries=contributions.tries(scope),
        machines=machines_of(store, scope),
    )


def _questions(store: Store, viewer: Session) -> list[dict[str, str]]:
    """Return the tasks that wait for a person's answer, the oldest question first."""
    if not store.has_questions():
        return []  # most often: the modules of tasks are not loaded
    return [_asked(*one) for one in store.questions.waiting(viewer)[:QUESTIONS]]


def _asked(task: Task, asked: Question) -> dict[str, str]:
    """Return such a task, with its question cut to a line."""
    return {"task_id": task.id, "title": task.title, "question": quoted(asked.question)}


def _storm(storm: Denial, viewer: str) -> dict[str, Any]:
    """Return repeated denials as `viewer` may see them: sessions of another identity have no labels."""
    names = ("file", "times", "denied_at", "instance_id", "label", "holder_id", "holder_label")
    shown = {**{name: storm[name] for name in names}, "file": storm.path or storm.file}
    for name, instance in (("label", "instance_id"), ("holder_label", "holder_id")):
        if same_circle(viewer, token(shown[name] or "", "identity")):
            shown[name] = shown[name] or short(shown[instance])
        else:
            shown[name] = None
    return shown


# -- as JSON ----------------------------------------------------------------------------------------


def _as_json(found: Status) -> dict[str, Any]:
    me = None
    if found.me:
        me = public_instance(found.me)
    shown: dict[str, Any] = {
        "scope": found.scope,
        "me": me,
        "instances": [
            {**public_instance(row), "state": row.state, "last_seen": row.last_seen, "guarded": _is_guarded(row)}
            for row in found.sessions
        ],
        "locks": found.locks,
        "storms": found.storms,
        "refusals": [as_json(one) for one in found.refused],
        "notices": [as_json(one) for one in found.noticed],
        "lock_count": found.lock_count,
        "instance_count": found.session_count,
        "open_tasks": {state: number for state, number in found.tasks.items() if number and state not in TERMINAL},
        "tasks": found.tasks,
        "questions": found.questions,
        "messages": found.messages,
        "values": found.values,
        "faults": found.faults,
        "protect": user_settings.described(settings.protect("", found.scope)),
        "merging": dict(zip(("on", "off"), user_settings.merging(found.scope))),
        "uncommitted": [
            {
                "file": one.path,
                "instance_id": (not one.has_ended and one.instance_id) or None,
                "name": one.name,
                "at": one.at,
            }
            for one in found.edited
        ],
    }
    if found.tries:
        shown["tries"] = found.tries
    if found.machines:
        shown[found.machines.kind] = found.machines.shown
    return shown


# -- as text ----------------------------------------------------------------------------------------


def _say(found: Status, reader: Reader) -> None:
    say(f"scope {found.scope}")
    numbers = [count(found.session_count, "session"), count(found.lock_count, "lock")]
    if found.values:
        numbers.append(count(found.values, "value"))
    say(", ".join(numbers))
    say_uncommitted(found.edited, found.lowered, reader)
    if found.tries:
        say(f"  {found.tries}")
    if found.machines:
        shared = found.machines
        advice = f": swarm-mcp {shared.kind} status" * (not shared.is_fresh)
        say(f"{shared.kind}: {shared.repository}, {shared.freshness}{advice}")
    if any(found.tasks.values()):
        say(f"tasks: {', '.join(f'{number} {state}' for state, number in found.tasks.items() if number)}")
    for asked in found.questions:
        task = short(asked["task_id"])
        say(f"  {task} asks a person: {asked['question']} (swarm-mcp task answer {task} TEXT)")
    if any(found.messages.values()):
        say(f"messages: {found.messages['unread']} unread, {found.messages['recent']} in the last day")
    _say_sessions(found, reader)
    if found.machines and found.machines.machines:
        rows = [(one.name, one.person, count(one.sessions, "session"), one.state) for one in found.machines.machines]
        plain = [f"  machine  {'  '.join(filter(None, row))}" for row in rows]
        listing(("machine", "person", "sessions", "state"), rows, plain)
    _say_locks(found, reader)
    for storm in found.storms:
        session, holder = reader.called(storm["instance_id"]), reader.called(storm["holder_id"])
        file, last = reader.path(storm["file"]), reader.when(storm["denied_at"])
        say(f"  refused {storm['times']} times  {file}  to {session}, held by {holder}, last {last}")
    for one in (*found.refused, *found.noticed):
        say(f"  {one.last.level} {reader.when(one.last.at)}  {sentence(one.last, reader.path, one.times)}")
    if found.faults:
        say(f"  {count(found.faults, 'fault')} in the last day: swarm-mcp doctor")
    if not found.session_count and not found.lock_count:
        for line in NEXT_STEPS.split("\n"):
            say(line)


def _say_sessions(found: Status, reader: Reader) -> None:
    cells, plain = [], []
    for row in found.sessions:
        state, age = row.state or "live", reader.when(row.last_seen or row.heartbeat)
        seen = f"seen {age}"
        if row.runtime == REMOTE:  # the time of its last sign of life is known to its own machine
            state, seen, age = "live", "elsewhere", "elsewhere"
        bare = "not guarded" * (not _is_guarded(row))
        cells.append((reader.session(row), state, age, token(row.label or "", "role"), bare))
        plain.append(f"  {reader.session(row)}  {state:<8} {seen}" + clause("  ({})", bare))
    listing(("session", "state", "seen", "role", ""), cells, plain)
    if found.session_count > len(found.sessions):
        say(f"  and {count(found.session_count - len(found.sessions), 'more session')}: swarm-mcp instances")


def _say_locks(found: Status, reader: Reader) -> None:
    cells, plain = [], []
    for lock in found.locks:
        note = lock["content"] and f" ({quoted(lock['content'])})"
        file, holder, since = reader.path(lock["file"]), reader.holder(lock), reader.when(lock["created_at"])
        cells.append((file, holder, since, *locking.cells(lock, reader.now), lock["content"]))
        plain.append(f"  locked  {file}  by {holder}, {since}{note or ''}{locking.suffix(lock, reader.now)}")
    listing(("file", "who", "since", *locking.HEADERS, "note"), cells, plain)
    if found.lock_count > len(found.locks):
        say(f"  and {count(found.lock_count - len(found.locks), 'more lock')}: swarm-mcp locks")


def say_uncommitted(edited: list[Edit], lowered: str, reader: Reader, authors: int = AUTHORS) -> None:
    """Print the uncommitted files by author, the last changed first, after a line about a `lowered` protection."""
    if lowered:
        say_marked(lowered, lowered.partition(":")[0], "bad")
    files: dict[str, list[str]] = {}
    for one in edited:
        files.setdefault(one.name, []).append(reader.path(one.path))
    for name, paths in islice(files.items(), authors):
        more = f" and {len(paths) - FILES} more" * (len(paths) > FILES)
        say_marked(f"  not committed, by {name}: {', '.join(paths[:FILES])}{more}", name, "name")
    if len(files) > authors:
        say(f"  and of {len(files) - authors} more: swarm-mcp diff")


def _is_guarded(row: Session) -> bool:
    """Return True if hooks registered this session; a bare MCP connection or command has none."""
    return row.last_seen is not None and row.runtime != SERVER_RUNTIME


# One line for the status line of a client.

LONGEST_INPUT = 1024 * 1024  # bytes that the client tells about its session


@verb(
    Usage(SCOPE, JSON),
    group=MORE_SETUP,
)
def statusline(args: Arguments) -> int:
    """statusline: one line about this checkout, for a client's own status line

    "2 sessions, 3 files of others uncommitted, 1 lock": the other sessions here, the files with uncommitted changes of
    others or of a person, and all locks. A lowered protection is named. Without any of it the line is empty. Claude
    Code, Qwen Code, Kimi Code and Grok Build run this command after `swarm-mcp install --statusline`, and name their
    session and folder in JSON on standard input.

    example: swarm-mcp statusline
    """
    told: dict[str, Any] = {}
    if sys.stdin is not None and not sys.stdin.isatty():
        try:
            told = loads_object(sys.stdin.read(LONGEST_INPUT) or "{}")
        except (OSError, ValueError, RecursionError):
            pass  # no input of a client
    folder = args.value("--scope")
    for place in (told, told.get("workspace")):
        for name in ("cwd", "current_dir"):
            if not folder and isinstance(place, dict) and isinstance(place.get(name), str):
                folder = place[name]
    scope = current_scope(folder)
    with Store(read_only=True) as store:
        session_id = str(told.get("session_id") or told.get("sessionId") or "")
        row = next(iter(store.instances.of_session_id(session_id)), None)
        own_id = row.id if row else ""
        others = store.instances.count(scope) - bool(row)
        edited = contributions.uncommitted(store, scope, People(store, token((row and row.label) or "", "identity")))
        files = {one.path for one in edited if not own_id or one.instance_id != own_id}
        locks = store.locks.counts(scope)["live"]
    parts = [count(others, "session")] * bool(others) + [count(locks, "lock")] * bool(locks)
    if files:
        parts.insert(bool(others), f"{count(len(files), 'file')} of others uncommitted")
    lowered = user_settings.lowered(scope).partition(":")[0]
    line = ", ".join([lowered] * bool(lowered) + parts)
    return answer(args, {"line": line}, line)


# All there is in a scope, in one answer.

MESSAGES = 20
MOST, ALL = 1000, 10**9  # rows of a kind that are read; more than this an answer never has room for
OF_LOCK = (
    "owner_label", "id", "instance_id", "file", "type", "content", "created_at",
    # Beyond the contract's columns, where there is anything to say.
    "mode", "agent", "pattern", "repository", "fence", "ttl", "lapses_in", "expected_end", "waiting",
)  # fmt: skip
OF_TASK = ("id", "type", "title", "status", "assignee", "requester")


@verb(
    Usage(
        Option("--limit N", "at most N rows of each kind (default: as many as take 100 KB together)"), ABSOLUTE, *ACTING
    ),
    group=INTERNAL,
)
def inspect(args: Arguments) -> int:
    """inspect: everything in this scope at once

    Sessions, the newest 20 messages, tasks (first those that have not ended), locks and keys. Nothing is marked as
    read. Of other identities only the files that they hold are shown.

    Where there is more than one answer has room for, it says how much of each kind (with --json: "not_shown");
    `swarm-mcp instances`, `tasks`, `locks`, `kv list` and `messages` have all of it, in pages.

    example: swarm-mcp inspect --json
    """
    scope = current_scope(args.value("--scope"))
    limit = args.number("--limit", MOST)
    if limit < 0:
        limit = ALL
    with Store(read_only=True) as store:
        viewer = viewer_identity(store, args)
        shown = _found(store, scope, viewer, limit)
        if not args.given("--limit"):
            shown = fitted(shown, ROWS_BYTES, printed)
        if not args.json:
            _print(shown, Reader(args, store, viewer))
            return 0
    hidden = {"instances": ("state", "last_seen"), "locks": ("owner_label",)}  # for people
    for kind, names in hidden.items():
        shown[kind] = [{name: row[name] for name in row if name not in names} for row in shown[kind]]
    show(shown)
    return 0


def _found(store: Store, scope: str, viewer: str, limit: int) -> dict[str, Any]:
    """Rows of each kind, at most `limit`, as JSON has them, and how many there are besides."""
    me, values = onlooker(viewer, scope), clause("identity:{}", viewer) or None
    sessions = veiled([row for _, row in islice(store.instances.walk(scope), limit)], viewer)
    messages = [row for _, row in islice(store.messages.walk(scope, viewer=viewer), min(limit, MESSAGES))]
    tasks = list(islice(_by_age(store, me), limit))
    locks = [row for _, row in islice(store.locks.walk(scope, viewer), limit)]
    keys = [row for _, row in islice(store.kv.walk(scope, "", values), limit)]
    found: dict[str, Any] = {
        "scope": scope,
        "instances": [{**public_instance(row), "state": row.state, "last_seen": row.last_seen} for row in sessions],
        "messages": messages[::-1],
        "tasks": [{name: task[name] for name in OF_TASK} for task in tasks],
        "locks": [{name: row[name] for name in OF_LOCK if name in row} for row in counted(store, locks)],
        "kv": keys,
    }
    totals: dict[str, Callable[[], int]] = {
        "instances": lambda: store.instances.count(scope), "tasks": lambda: store.tasks.count(me),
        "locks": lambda: store.locks.counts(scope)["live"], "kv": lambda: store.kv.count(scope, values),
    }  # fmt: skip
    left = {kind: total() - limit for kind, total in totals.items() if len(found[kind]) >= limit}
    left = {kind: number for kind, number in left.items() if number > 0}
    if left:
        found["not_shown"] = left
    return found


def _by_age(store: Store, viewer: Session) -> Iterator[Task]:
    """All tasks, those that have not ended first, in order of creation."""
    for ended in (False, True):
        statuses = [status for status in STATUSES if (status in TERMINAL) == ended]
        walks = (store.tasks.walk(viewer, status, by_age=True) for status in statuses)
        for _, task in merge(*walks, key=_age):
            yield task


def _age(row: tuple[str, Task]) -> tuple[bool, object, int]:
    """A key to sort tasks by age, also without a valid time from another program."""
    at, number = place_of(row[0], (object, int)) or (0, 0)
    return isinstance(at, str), at, number


def _print(shown: dict[str, Any], reader: Reader) -> None:
    say(f"scope: {shown['scope']}")

    def section(
        kind: str,
        headers: tuple[str, ...],
        cells: list[tuple[Any, ...]],
        line: str = "",
        lines: list[str] | None = None,
    ) -> None:
        number = str(len(cells))
        if kind in shown.get("not_shown", ()):
            number += f" of {len(cells) + shown['not_shown'][kind]}"
        title = f"{kind} ({number}):"
        if kind == "messages":
            title = f"recent messages ({number}, newest last):"
        say()
        say(title)
        listing(headers, cells, lines or [line.format(*row) for row in cells])

    rows = [Session(row) for row in shown["instances"]]
    now = reader.now
    cells: list[tuple[Any, ...]] = [
        (reader.session(row), short(row.id), state_of(row, now), reader.when(row.last_seen or row.heartbeat))
        for row in rows
    ]
    lines = [f"  {cell[1]}  {cell[0]}  {presence(row, now)}" for cell, row in zip(cells, rows)]
    section("instances", ("session", "id", "state", "seen"), cells, lines=lines)
    cells = [(short(row["id"]), row["status"], row["type"], row["title"]) for row in shown["tasks"]]
    section("tasks", ("id", "status", "type", "title"), cells, "  {}  [{}]  {}  {}")
    locks = shown["locks"]
    held = [(reader.path(row["file"]), reader.holder(row), row["content"] or "") for row in locks]
    cells = [(*one, *locking.cells(row, now)) for one, row in zip(held, locks)]
    lines = [f"  {row[1]}  {row[0]}  — {row[2]}{locking.suffix(lock, now)}" for row, lock in zip(cells, locks)]
    section("locks", ("file", "who", "note", *locking.HEADERS), cells, lines=lines)
    cells = [(row["key"], reader.when(row["updated_at"])) for row in shown["kv"]]
    section("kv", ("key", "changed"), cells, "  {}  ({})")
    cells = [
        (row["id"], reader.when(row["created_at"]), *_ends(row, reader), row["content"]) for row in shown["messages"]
    ]
    section("messages", ("id", "when", "from", "to", "message"), cells, "  #{}  {}  {} → {}  {}")


def _ends(message: dict[str, Any], reader: Reader) -> tuple[str, str]:
    recipient = "all"
    if message["recipient"]:
        recipient = reader.called(message["recipient"])
    return reader.called(message["sender"]), recipient
