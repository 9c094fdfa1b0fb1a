"""Listings in pages: every row once, despite changes meanwhile."""

import os
from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest

from swarm_hook_core.process import start_time
from swarm_mcp.answers import paging
from swarm_mcp.answers.paging import page
from swarm_mcp.errors import UsageError
from swarm_mcp.store import cursors
from swarm_mcp.store.sessions import Registration

MANY = 23


@pytest.fixture
def store(ground, limits):
    limits(cursors, BLOCK=4)
    with ground.store() as opened:
        yield opened


class Listing(NamedTuple):
    """One listing: how a row is added by its number, and removed; how the rows are walked, called and counted."""

    add: Callable[[int], object]
    walk: Callable[[str], Iterator]
    name: Callable[[object], str]
    count: Callable[[], int]
    remove: Callable[[str], object] | None = None


LISTINGS = (
    "sessions",
    "tasks",
    "tasks by age",
    "open tasks",
    "values",
    "messages",
    "mail",
    "runs",
    "orders",
    "locks",
    "own locks",
)


@pytest.fixture
def join(store, ground):
    def register(name: str, label: str = ""):
        client = (os.getpid(), start_time(os.getpid()))
        facts = {"runtime": "codex", "session_id": name, "lease_seconds": 86400, "client": client}
        return store.instances.register(Registration(ground.scope, label=label or name, **facts))

    return register


@pytest.fixture
def listings(store, join, ground) -> dict[str, Listing]:
    me, peer = join("me"), join("peer")
    scope = ground.scope
    tasks, kv, mail, runs = store.tasks, store.kv, store.messages, store.runs

    def request(number: int):
        return tasks.request(me, {"type": "fix", "title": f"row {number}", "priority": number % 3})

    def of_tasks(status: str = "", by_age: bool = False) -> Listing:
        return Listing(
            request,
            lambda after: tasks.walk(me, status, after=after, by_age=by_age),
            lambda task: task.title,
            lambda: tasks.count(me, status),
        )

    def run(number: int):
        spec = {"id": f"row {number}", "scope": scope, "instance_id": me.id, "harness": "process", "cwd": scope}
        return runs.begin(spec)

    return {
        "sessions": Listing(
            lambda number: join(f"row {number}"),
            lambda after: store.instances.walk(scope, after),
            lambda row: row.label,
            lambda: store.instances.count(scope),
            lambda name: store.instances.remove(store.instances.of_session("codex", name).id),
        ),
        "tasks": of_tasks(),
        "tasks by age": of_tasks(by_age=True),
        "open tasks": of_tasks("open"),
        "values": Listing(
            lambda number: kv.put(me, f"row {number}", "x"),
            lambda after: kv.walk(scope, "row", None, after),
            lambda row: row.key,
            lambda: kv.count(scope, None, "row"),
            lambda name: kv.delete(me, name),
        ),
        "messages": Listing(
            lambda number: mail.send(me, peer.id, f"row {number}"),
            lambda after: mail.walk(scope, to=peer.id, after=after),
            lambda row: row.content,
            lambda: mail.count(scope, peer.id),
        ),
        "mail": Listing(
            lambda number: mail.send(me, peer.id, f"row {number}"),
            lambda after: mail.walk_unread(peer, after),
            lambda row: row.content,
            lambda: mail.unread_count(peer),
            lambda name: mail.acknowledge([one.id for one in mail.peek(peer, 1000) if one.content == name]),
        ),
        "runs": Listing(
            run, lambda after: runs.walk(scope, after=after), lambda row: row.id, lambda: runs.count(scope)
        ),
        "locks": Listing(
            lambda number: store.locks.acquire(me, f"{scope}/row {number}"),
            lambda after: store.locks.walk(scope, after=after),
            lambda row: os.path.basename(row["file"]),
            lambda: store.locks.counts(scope)["live"],
            lambda name: store.locks.release(me, f"{scope}/{name}"),
        ),
        "own locks": Listing(
            lambda number: store.locks.acquire(me, f"{scope}/row {number}"),
            lambda after: store.locks.walk_of(me.id, after),
            lambda row: os.path.basename(row["file"]),
            lambda: store.locks.count_of(me.id),
            lambda name: store.locks.release(me, f"{scope}/{name}"),
        ),
        "orders": Listing(
            lambda number: store.ui_commands.enqueue(scope, None, "move_node", {"row": number}),
            lambda after: store.ui_commands.walk(scope, after=after),
            lambda row: f"row {row.payload['row']}",
            lambda: store.ui_commands.count(scope),
        ),
    }


def pages(listing: Listing, limit: int, between: Callable[[list[str]], None] = lambda _names: None) -> list[list[str]]:
    """The names on each page; `between` is called with those so far before the next is asked for."""
    found, after = [], ""
    while True:
        shown = page(
            listing.walk(after), lambda row: {"name": listing.name(row)}, listing.count, after=after, limit=limit
        )
        found.append([row["name"] for row in shown.rows])
        if not shown.next:
            return found
        after = shown.next
        between([name for names in found for name in names])


@pytest.mark.parametrize("kind", LISTINGS)
@pytest.mark.parametrize("limit", [1, 4, 7])
def test_pages_have_each_row_once_and_in_order(listings, kind: str, limit: int):
    listing = listings[kind]
    for number in range(MANY):
        listing.add(number)
    whole = [listing.name(row) for _, row in listing.walk("")]
    shown = pages(listing, limit)
    assert [name for names in shown for name in names] == whole
    assert all(len(names) == limit for names in shown[:-1]) and 0 < len(shown[-1]) <= limit
    assert {f"row {number}" for number in range(MANY)} <= set(whole) and listing.count() == len(whole)


@pytest.mark.parametrize("kind", LISTINGS)
def test_what_stays_is_met_once_while_others_come_and_go(listings, kind: str):
    listing = listings[kind]
    for number in range(MANY):
        listing.add(number)
    removed, added = set(), iter(range(1000, 2000))

    def disturb(names: list[str]) -> None:
        listing.add(next(added))
        if listing.remove and names[-1].startswith("row"):
            removed.add(names[-1])  # the very row that the cursor stands on
            listing.remove(names[-1])

    shown = [name for names in pages(listing, 3, disturb) for name in names]
    assert len(shown) == len(set(shown)), "none comes twice"
    assert {f"row {number}" for number in range(MANY)} <= set(shown), "and none is left out"
    assert bool(removed) is bool(listing.remove)


@pytest.mark.parametrize("kind", LISTINGS)
def test_what_is_no_cursor_is_refused(listings, kind: str):
    for wrong in ("x", "00", "5b5d", paging.cursor("no", "such", "place", "here"), paging.cursor({"a": 1})):
        with pytest.raises(UsageError, match="is no place in this listing"):
            list(listings[kind].walk(wrong))


def test_the_total_is_counted_only_where_a_page_is_not_the_whole(listings):
    listing, asked = listings["values"], []
    for number in range(3):
        listing.add(number)

    def total() -> int:
        asked.append(1)
        return listing.count()

    whole = page(listing.walk(""), dict, total, limit=3)
    assert (whole.told(), asked) == ({}, [])
    part = page(listing.walk(""), dict, total, limit=2)
    assert part.told() == {"total": 3, "next": part.next} and part.next
    rest = page(listing.walk(part.next), dict, total, after=part.next, limit=2)
    assert rest.told() == {"total": 3} and [row["key"] for row in rest.rows] == ["row 2"]


def test_whoever_sees_next_to_nothing_is_answered_after_so_many_rows(listings, limits):
    limits(paging, MOST_LOOKED_AT=5)
    listing = listings["values"]
    for number in range(MANY):
        listing.add(number)
    found, after, asked = [], "", 0
    while asked == 0 or after:
        shown = page(
            listing.walk(after), lambda row: row if row.key == "row 9" else None, listing.count, after=after, limit=2
        )
        found += shown.rows
        after, asked = shown.next, asked + 1
    assert [row["key"] for row in found] == ["row 9"] and asked == 5


def test_another_identitys_rows_are_on_no_page(store, join, ground):
    mine, theirs = join("mine", "identity:a x"), join("theirs", "identity:b y")
    for number in range(6):
        who = (mine, theirs)[number % 2]
        store.tasks.request(who, {"type": "fix", "title": f"{number}"})
        store.kv.put(who, f"k{number}", "x")
    assert {task.title for _, task in store.tasks.walk(mine)} == {"0", "2", "4"} and store.tasks.count(mine) == 3
    assert [row.key for _, row in store.kv.walk(ground.scope, "", "identity:a")] == ["k0", "k2", "k4"]
    assert store.kv.count(ground.scope, "identity:a", "k") == 3
    assert (store.instances.count(ground.scope, viewer="a"), store.instances.count(ground.scope, "ident")) == (1, 2)


def test_runs_of_one_state_are_walked_and_counted(store, listings, ground):
    for number in range(6):
        listings["runs"].add(number)
    for number in (1, 2):
        store.runs.update(f"row {number}", state="ended")
    for state, there in (("ended", ["row 2", "row 1"]), ("starting", ["row 5", "row 4", "row 3", "row 0"])):
        assert [run.id for _, run in store.runs.walk(ground.scope, state)] == there
        assert store.runs.count(ground.scope, state) == len(there)


def test_what_is_known_by_its_beginning_is_found_by_it(store, join):
    me, other = join("me", "identity:a reader"), join("other", "identity:a writer")
    assert {row.id for row in store.instances.alike(me.scope, "identity:a")} == {me.id, other.id}
    assert [row.id for row in store.instances.alike(me.scope, other.id[:13])] == [other.id]
    assert store.instances.alike(me.scope, "nobody") == store.instances.alike("/elsewhere", me.id) == []
    task = store.tasks.request(me, {"type": "fix", "title": "one"})["task"]
    stranger = join("stranger", "identity:b")
    assert [row.id for row in store.tasks.beginning(other, task.id[:9], 5)] == [task.id]
    assert store.tasks.beginning(stranger, task.id[:9], 5) == store.tasks.beginning(me, "none", 5) == []


def test_ones_own_unfinished_tasks_of_each_status(store, join):
    me = join("me")
    for number in range(5):
        store.tasks.request(me, {"type": "fix", "title": f"{number}", "assignee": me.id})
    first = store.tasks.unfinished_of(me)[0]
    store.tasks.claim(me, first.id, ignore_unread=True)
    assert [task.status for task in store.tasks.unfinished_of(me, 1)].count("claimed") == 1
    assert {task.status for task in store.tasks.unfinished_of(me, 1)} == {"claimed", "in_progress"}
    assert (len(store.tasks.unfinished_of(me)), store.tasks.count_unfinished_of(me)) == (5, 5)


def test_one_message_is_had_by_its_id_by_whom_it_is_to(store, join):
    me, peer = join("me"), join("peer")
    number = store.messages.send(me, peer.id, "words")
    store.messages.acknowledge([number])
    assert store.messages.get(peer, number).content == "words"
    assert store.messages.get(me, number) is None and store.messages.get(peer, number + 1) is None
