"""All there is in a scope, in one answer."""

from __future__ import annotations

from heapq import merge
from itertools import islice

from swarm_mcp.answers.paging import place_of
from swarm_mcp.answers.size import ROWS_BYTES, fitted, printed
from swarm_mcp.answers.views import public_instance, short, veiled
from swarm_mcp.cli import lock_columns
from swarm_mcp.cli.arguments import ABSOLUTE, ACTING, INTERNAL, Arguments, Option, Usage, verb
from swarm_mcp.cli.lock_columns import counted
from swarm_mcp.cli.output import listing, presence, say, show, state_of
from swarm_mcp.cli.reader import Reader
from swarm_mcp.cli.words import clause
from swarm_mcp.domain.session import Session, onlooker
from swarm_mcp.domain.task import STATUSES, TERMINAL, Task
from swarm_mcp.folders import current_scope
from swarm_mcp.sessions.acting import viewer_identity
from swarm_mcp.store import Store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

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
    cells = [(*one, *lock_columns.cells(row, now)) for one, row in zip(held, locks)]
    lines = [f"  {row[1]}  {row[0]}  — {row[2]}{lock_columns.suffix(lock, now)}" for row, lock in zip(cells, locks)]
    section("locks", ("file", "who", "note", *lock_columns.HEADERS), cells, lines=lines)
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
