"""Listings of locks at any size: read in pieces, each holder looked at once, each lock shown at most once."""

import json
import os
import subprocess

import pytest
from support.altered import Limits, Listening
from support.fixtures import SWARM, Ground, Sleeper

from swarm_hook_core.lookup.process_holders import agent_of
from swarm_hook_core.process import start_time
from swarm_mcp.cli import output
from swarm_mcp.cli.commands import locks as verb
from swarm_mcp.cli.commands import status
from swarm_mcp.errors import StoreUnavailable, UsageError
from swarm_mcp.store import Store, lock_pages
from swarm_mcp.store.lock_request import request

US = (os.getpid(), start_time(os.getpid()))


@pytest.fixture
def small(limits: Limits) -> None:
    """Pieces so small that a few locks make many."""
    limits(lock_pages, BATCH=3, FEW=2, MANY=5)


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


def test_every_lock_is_listed_once_whatever_happens_meanwhile(ground: Ground, small: None):
    me, peer = ground.session("me", client=US), ground.session("peer", client=US)
    fill(ground, me["id"], *range(20))
    with ground.store() as store:
        rows = store.locks.held(ground.scope)
        seen = [next(rows) for _ in range(7)]
        store.locks.release(me, "0")
        store.locks.release(me, "15")
        store.locks.acquire(me, "3", "renewed: its id and time are new")
        store.locks.acquire(peer, "20")
        seen += rows
    assert numbers(seen) in ([*range(15), *range(16, 20)], [*range(15), *range(16, 21)])


def test_pages_end_where_the_locks_do(ground: Ground, small: None):
    fill(ground, ground.session("me", client=US)["id"], *range(8))
    with ground.store(read_only=True) as store:
        walked = list(store.locks.walk(ground.scope))
        assert numbers(row for _, row in walked) == list(range(8))
        assert numbers(row for _, row in store.locks.walk(ground.scope, after=walked[4][0])) == [5, 6, 7]
        assert list(store.locks.walk(ground.scope, after=walked[7][0])) == []
        with pytest.raises(UsageError):
            list(store.locks.walk(ground.scope, after="7"))


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
    looked = listening(lock_pages, "departed")
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
        agent = agent_of(*process.identity, store.here)
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
    read, write = lock_pages._live, output._write
    monkeypatch.setattr(lock_pages, "_live", lambda *given: happened.append("read") or read(*given))
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
    read, times = lock_pages._live, iter(range(3))

    def break_off(*given):
        if next(times) == 2:
            raise StoreUnavailable("the store cannot be used: it was taken away")
        return read(*given)

    limits(verb, AT_ONCE=2)
    monkeypatch.setattr(lock_pages, "_live", break_off)
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


def test_a_long_table_has_a_heading_for_each_of_its_parts(
    ground: Ground, monkeypatch: pytest.MonkeyPatch, limits: Limits
):
    me = ground.session("me", "a label", client=US)
    fill(ground, me["id"], *range(5))
    limits(verb, AT_ONCE=2)
    monkeypatch.setenv("FORCE_COLOR", "1")
    lines = ground.swarm("locks").out.splitlines()
    assert ["FILE" in line for line in lines] == [True, False, False, True, False, False, True, False]


def test_status_shows_some_locks_and_says_how_many_more(
    ground: Ground, monkeypatch: pytest.MonkeyPatch, limits: Limits
):
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
