"""Listings in pages at any size: every row once, despite changes meanwhile, and each holder looked at once."""

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest
from support.altered import Limits, Listening
from support.fixtures import SWARM, Ground, Sleeper

from swarm_hook_core.lookup import hold_agent
from swarm_hook_core.process import start_time
from swarm_mcp.answers import size
from swarm_mcp.answers.size import page
from swarm_mcp.cli import output
from swarm_mcp.cli.commands import locks as verb
from swarm_mcp.cli.commands import status
from swarm_mcp.errors import StoreUnavailable, UsageError
from swarm_mcp.store import Store, cursors, lock_listing
from swarm_mcp.store.lock_request import request
from swarm_mcp.store.sessions import Registration

US = (os.getpid(), start_time(os.getpid()))


@pytest.fixture
def small(limits: Limits) -> None:
    """Pieces so small that a few locks make many."""
    limits(lock_listing, BATCH=3, FEW=2, MANY=5)


def fill(ground: Ground, holder: str, *numbers: int, **columns) -> None:
    """Locks `numbers` of session `holder`, past the store."""
    for number in numbers:
        row = {"id": f"lock-{number}", "scope": ground.scope, "instance_id": holder, "type": "lock", "content": "n"}
        file = f"{ground.scope}/{number}"
        ground.add("context", **{**row, "file": file, "path_key": file, **columns})


def numbers(rows) -> list[int]:
    return [int(os.path.basename(row["file"])) for row in rows]


def statements(store, ask) -> int:
    """Return the number of statements of `ask`."""
    asked = []
    store.database.connection.set_trace_callback(asked.append)
    ask()
    store.database.connection.set_trace_callback(None)
    return len(asked)


def test_every_lock_is_listed_once_whatever_happens_meanwhile(ground: Ground, small: None, store: Store):
    me, peer = ground.session("me", client=US), ground.session("peer", client=US)
    fill(ground, me["id"], *range(20))
    rows = store.locks.held(ground.scope)
    seen = [next(rows) for _ in range(7)]
    store.locks.release(me, "0")
    store.locks.release(me, "15")
    store.locks.acquire(me, "3", "renewed: its id and time are new")
    store.locks.acquire(peer, "20")
    seen += rows
    assert numbers(seen) in ([*range(15), *range(16, 20)], [*range(15), *range(16, 21)])


def test_a_slow_reader_keeps_nobody_from_shortening_the_log(ground: Ground, small: None):
    me = ground.session("me", client=US)
    fill(ground, me["id"], *range(20))
    with ground.store() as store, ground.store(read_only=True) as reader:
        rows = reader.locks.held(ground.scope)
        next(rows)
        store.locks.acquire(me, "20")
        busy = ground.sql("PRAGMA wal_checkpoint(TRUNCATE)")
        assert busy == [{"busy": 0, "log": 0, "checkpointed": 0}] or store.journal() != "wal"
        assert numbers(rows)[:19] == list(range(1, 20))


def test_names_that_are_no_files_are_neither_listed_nor_counted(ground: Ground, store: Store):
    me = ground.session("me", client=US)
    fill(ground, me["id"], 1)
    fill(ground, me["id"], 2, file="/__swarm/spawn/worker/1", path_key=None)
    assert numbers(store.locks.held(None)) == [1] and store.locks.counts(None) == {"live": 1, "void": 0}


def test_a_holder_is_looked_at_once_in_a_listing(ground: Ground, small: None, listening: Listening):
    looked = listening(lock_listing, "departed")
    holders = [ground.session(f"s{number}", client=US)["id"] for number in range(3)]
    for number in range(30):
        fill(ground, holders[number % 3], number)
    with ground.store(read_only=True) as store:
        assert numbers(store.locks.held(ground.scope)) == list(range(30))
        assert sorted(call.given[0]["id"] for call in looked) == sorted(holders)
        looked.clear()
        assert store.locks.counts(ground.scope) == {"live": 30, "void": 0}
        assert sorted(call.given[0]["id"] for call in looked) == sorted(holders)


def test_what_nobody_holds_any_more_is_not_listed(ground: Ground, small: None):
    with Sleeper() as client, Sleeper() as process, ground.store() as store:
        dead = ground.session("dead", client=client.identity)
        me = ground.session("me", client=US)
        agent = hold_agent(*process.identity, store.here)
        fill(ground, dead["id"], *range(0, 20, 2))
        fill(ground, me["id"], *range(1, 21, 2))
        fill(ground, me["id"], 20, 21, agent=agent)
        fill(ground, "never registered", 22)
        store.locks.acquire_all(me, request(me, ["23"], ttl=100))
        assert store.locks.counts(ground.scope) == {"live": 23, "void": 1}
        client.end()
        process.end()
        ground.sql("UPDATE context SET renewed = renewed - 1000 WHERE ttl IS NOT NULL")
        assert numbers(store.locks.held(ground.scope)) == list(range(1, 21, 2))
        assert store.locks.counts(ground.scope) == {"live": 10, "void": 14}
        live, shown = store.locks.foremost(ground.scope, "", 3, "", ())
        assert (live, numbers(shown)) == (10, [19, 17, 15])
        assert store.locks.foremost(ground.scope, "", 3, dead["id"], ["lock-2", "lock-3"])[1][0]["id"] == "lock-3"


def test_the_number_of_questions_does_not_grow_with_the_locks(ground: Ground):
    holders = [ground.session(f"s{number}", client=US)["id"] for number in range(3)]
    for number, holder in enumerate(holders):
        key = f"identity/{'workspace/' if number else ''}herdr/{holder}"  # of an earlier release, and of this one
        pane = json.dumps({"backend": "herdr", "handle_kind": "pane", "handle": f"p{number}", "pane_id": f"p{number}"})
        ground.add("kv", scope=ground.scope, key=key, value=pane)
    asked = []
    for many in (range(10), range(10, 100)):
        for number in many:
            fill(ground, holders[number % 3], number)
        with ground.store(read_only=True) as store:
            asked.append(statements(store, lambda: list(store.panes.with_locks(store.locks.held(ground.scope)))))
            panes = {row["pane_id"] for row in store.panes.with_locks(store.locks.held(ground.scope))}
            assert panes == {"p0", "p1", "p2"}
    assert asked[0] == asked[1]


def test_what_is_printed_is_read_while_it_is_printed(ground: Ground, small: None, monkeypatch: pytest.MonkeyPatch):
    fill(ground, ground.session("me", client=US)["id"], *range(12))
    happened: list[str] = []
    read, write = lock_listing._live, output._write
    monkeypatch.setattr(lock_listing, "_live", lambda *given: happened.append("read") or read(*given))
    monkeypatch.setattr(output, "_write", lambda text: happened.append("written") or write(text))
    done = ground.swarm("locks", "--json")
    assert numbers(done.json) == list(range(12)) and done.out == json.dumps(done.json, indent=2) + "\n"
    assert happened[:3] == ["read", "written", "written"] and happened.count("read") >= 4


def test_no_locks_are_an_empty_list(ground: Ground):
    assert ground.swarm("locks", "--json").out == "[]\n" and ground.swarm("locks").out == "(no locks)\n"


@pytest.mark.parametrize("words", [["locks", "--json"], ["locks"]])
def test_an_answer_that_breaks_off_does_not_look_whole(
    ground: Ground, small: None, monkeypatch: pytest.MonkeyPatch, limits: Limits, words: list[str]
):
    fill(ground, ground.session("me", client=US)["id"], *range(12))
    read, times = lock_listing._live, iter(range(3))

    def break_off(*given):
        if next(times) == 2:
            raise StoreUnavailable("the store cannot be used: it was taken away")
        return read(*given)

    limits(verb, AT_ONCE=2)
    monkeypatch.setattr(lock_listing, "_live", break_off)
    done = ground.swarm(*words)
    assert done.code == 1 and done.err == "swarm-mcp locks: the store cannot be used: it was taken away\n"
    shown = [f"{ground.scope}/{number}" if "--json" in words else f"  {number}  " for number in (1, 7)]
    assert [one in done.out for one in shown] == [True, False]
    if "--json" in words:
        with pytest.raises(ValueError):
            json.loads(done.out)


@pytest.mark.parametrize("words", [["locks", "--json"], ["locks"]])
def test_a_reader_that_has_seen_enough_ends_it_quietly(ground: Ground, words: list[str]):
    ground.sql(
        "WITH RECURSIVE number(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < 3000) INSERT INTO context"
        " (id, scope, instance_id, file, type, content) SELECT 'lock-' || n, ?, ?, ? || '/a/b/' || n, 'lock',"
        " 'a note that has some words' FROM number",
        ground.scope, ground.session("me", client=US)["id"], ground.scope,
    )  # fmt: skip
    with subprocess.Popen([*SWARM, *words], cwd=ground.repo, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout and process.stderr
        assert process.stdout.read(100)
        process.stdout.close()
        assert process.stderr.read() == b"" and process.wait(60) == 0


def test_a_long_table_has_a_heading_for_each_of_its_parts(ground: Ground, monkeypatch, limits: Limits):
    me = ground.session("me", "a label", client=US)
    fill(ground, me["id"], *range(5))
    limits(verb, AT_ONCE=2)
    monkeypatch.setenv("FORCE_COLOR", "1")
    lines = ground.swarm("locks").out.splitlines()
    assert ["FILE" in line for line in lines] == [True, False, False, True, False, False, True, False]


def test_status_shows_some_locks_and_says_how_many_more(ground: Ground, monkeypatch, limits: Limits):
    limits(status, LOCKS=3)
    me, peer = ground.session("me", "me", client=US), ground.session("peer", "peer")
    monkeypatch.setenv("CLAUDE_CODE_SESSION_ID", "me")
    fill(ground, peer["id"], *range(5))
    fill(ground, me["id"], 5)
    fill(ground, peer["id"], 6)
    found = ground.swarm("status", "--json").json
    assert (found["lock_count"], numbers(found["locks"])) == (7, [5, 6, 4])
    text = ground.swarm("status").out
    assert "2 sessions, 7 locks" in text and text.count("  locked  ") == 3
    assert text.endswith("  and 4 more locks: swarm-mcp locks\n")
    limits(status, LOCKS=7)
    assert "more lock" not in ground.swarm("status").out


MANY = 23


@pytest.fixture
def pages_store(ground: Ground, limits: Limits):
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
def join(pages_store, ground: Ground):
    def register(name: str, label: str = ""):
        client = (os.getpid(), start_time(os.getpid()))
        facts = {"runtime": "codex", "session_id": name, "lease_seconds": 86400, "client": client}
        return pages_store.instances.register(Registration(ground.scope, label=label or name, **facts))

    return register


@pytest.fixture
def listings(pages_store, join, ground: Ground) -> dict[str, Listing]:
    me, peer = join("me"), join("peer")
    scope = ground.scope
    tasks, kv, mail, runs = pages_store.tasks, pages_store.kv, pages_store.messages, pages_store.runs

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
            lambda after: pages_store.instances.walk(scope, after),
            lambda row: row.label,
            lambda: pages_store.instances.count(scope),
            lambda name: pages_store.instances.remove(pages_store.instances.of_session("codex", name).id),
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
            lambda number: pages_store.locks.acquire(me, f"{scope}/row {number}"),
            lambda after: pages_store.locks.walk(scope, after=after),
            lambda row: os.path.basename(row["file"]),
            lambda: pages_store.locks.counts(scope)["live"],
            lambda name: pages_store.locks.release(me, f"{scope}/{name}"),
        ),
        "own locks": Listing(
            lambda number: pages_store.locks.acquire(me, f"{scope}/row {number}"),
            lambda after: pages_store.locks.walk_of(me.id, after),
            lambda row: os.path.basename(row["file"]),
            lambda: pages_store.locks.count_of(me.id),
            lambda name: pages_store.locks.release(me, f"{scope}/{name}"),
        ),
        "orders": Listing(
            lambda number: pages_store.ui_commands.enqueue(scope, None, "move_node", {"row": number}),
            lambda after: pages_store.ui_commands.walk(scope, after=after),
            lambda row: f"row {row.payload['row']}",
            lambda: pages_store.ui_commands.count(scope),
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
@pytest.mark.sampled
def test_pages_have_each_row_once_and_in_order(listings: dict[str, Listing], kind: str, limit: int):
    listing = listings[kind]
    for number in range(MANY):
        listing.add(number)
    whole = [listing.name(row) for _, row in listing.walk("")]
    shown = pages(listing, limit)
    assert [name for names in shown for name in names] == whole
    assert all(len(names) == limit for names in shown[:-1]) and 0 < len(shown[-1]) <= limit
    assert {f"row {number}" for number in range(MANY)} <= set(whole) and listing.count() == len(whole)


@pytest.mark.parametrize("kind", LISTINGS)
@pytest.mark.sampled
def test_what_stays_is_met_once_while_others_come_and_go(listings: dict[str, Listing], kind: str):
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
def test_what_is_no_cursor_is_refused(listings: dict[str, Listing], kind: str):
    for wrong in ("x", "00", "5b5d", size.cursor("no", "such", "place", "here"), size.cursor({"a": 1})):
        with pytest.raises(UsageError, match="is no place in this listing"):
            list(listings[kind].walk(wrong))


def test_the_total_is_counted_only_where_a_page_is_not_the_whole(listings: dict[str, Listing]):
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


def test_whoever_sees_next_to_nothing_is_answered_after_so_many_rows(listings: dict[str, Listing], limits: Limits):
    limits(size, MOST_LOOKED_AT=5)
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


def test_another_identitys_rows_are_on_no_page(pages_store, join, ground: Ground):
    mine, theirs = join("mine", "identity:a x"), join("theirs", "identity:b y")
    for number in range(6):
        who = (mine, theirs)[number % 2]
        pages_store.tasks.request(who, {"type": "fix", "title": f"{number}"})
        pages_store.kv.put(who, f"k{number}", "x")
    assert {task.title for _, task in pages_store.tasks.walk(mine)} == {"0", "2", "4"} and pages_store.tasks.count(
        mine
    ) == 3
    assert [row.key for _, row in pages_store.kv.walk(ground.scope, "", "identity:a")] == ["k0", "k2", "k4"]
    assert pages_store.kv.count(ground.scope, "identity:a", "k") == 3
    assert (
        pages_store.instances.count(ground.scope, viewer="a"),
        pages_store.instances.count(ground.scope, "ident"),
    ) == (1, 2)


def test_runs_of_one_state_are_walked_and_counted(pages_store, listings: dict[str, Listing], ground: Ground):
    for number in range(6):
        listings["runs"].add(number)
    for number in (1, 2):
        pages_store.runs.update(f"row {number}", state="ended")
    for state, there in (("ended", ["row 2", "row 1"]), ("starting", ["row 5", "row 4", "row 3", "row 0"])):
        assert [run.id for _, run in pages_store.runs.walk(ground.scope, state)] == there
        assert pages_store.runs.count(ground.scope, state) == len(there)


def test_what_is_known_by_its_beginning_is_found_by_it(pages_store, join):
    me, other = join("me", "identity:a reader"), join("other", "identity:a writer")
    assert {row.id for row in pages_store.instances.alike(me.scope, "identity:a")} == {me.id, other.id}
    assert [row.id for row in pages_store.instances.alike(me.scope, other.id[:13])] == [other.id]
    assert pages_store.instances.alike(me.scope, "nobody") == pages_store.instances.alike("/elsewhere", me.id) == []
    task = pages_store.tasks.request(me, {"type": "fix", "title": "one"})["task"]
    stranger = join("stranger", "identity:b")
    assert [row.id for row in pages_store.tasks.beginning(other, task.id[:9], 5)] == [task.id]
    assert pages_store.tasks.beginning(stranger, task.id[:9], 5) == pages_store.tasks.beginning(me, "none", 5) == []


def test_ones_own_unfinished_tasks_of_each_status(pages_store, join):
    me = join("me")
    for number in range(5):
        pages_store.tasks.request(me, {"type": "fix", "title": f"{number}", "assignee": me.id})
    first = pages_store.tasks.unfinished_of(me)[0]
    pages_store.tasks.claim(me, first.id, ignore_unread=True)
    assert [task.status for task in pages_store.tasks.unfinished_of(me, 1)].count("claimed") == 1
    assert {task.status for task in pages_store.tasks.unfinished_of(me, 1)} == {"claimed", "in_progress"}
    assert (len(pages_store.tasks.unfinished_of(me)), pages_store.tasks.count_unfinished_of(me)) == (5, 5)


def test_one_message_is_had_by_its_id_by_whom_it_is_to(pages_store, join):
    me, peer = join("me"), join("peer")
    number = pages_store.messages.send(me, peer.id, "words")
    pages_store.messages.acknowledge([number])
    assert pages_store.messages.get(peer, number).content == "words"
    assert pages_store.messages.get(me, number) is None and pages_store.messages.get(peer, number + 1) is None
