"""Locks on folders and patterns, shared ones, leases, waiting in line, sub-agents and hand-over, in real clients."""

import os
import re
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from .checks import NOTE, assert_denied, assert_text, assert_untouched
from .client import Client
from .clients import Codex
from .coordinator import PEER_NAME
from .ground import wait_for

# Tests that do not depend on the way of installing run in one of them.
pytestmark = pytest.mark.ways("install")

CHANGE = ("notes.md", "line one", "line two")
GRANTED = re.compile(r'\\*"ok\\*": *true')
DENIED = "swarm lock blocked"
AGENT_ID = re.compile(r"you are agent `([0-9a-f-]+)`")


def verdicts(client: Client, script: str, *calls: str) -> dict[str, str]:
    """Return the results of the last calls of `script` in the model's view, by the names given to them here."""
    results = client.results(script)
    assert len(results) >= len(calls), f"{script} has only {results}"
    return dict(zip(calls, results[-len(calls) :], strict=True))


def assert_only(told: dict[str, str], denied: set[str], by: str) -> None:
    """Just these calls were `denied`, and by the peer's lock on `by`."""
    found = {name for name, result in told.items() if DENIED in result}
    assert found == denied, f"denied were {found}: {told}"
    for name in denied:
        assert by in told[name] and NOTE in told[name] and PEER_NAME in told[name], told[name]


@pytest.mark.promise("a lock on a folder holds all that is or will be in it", only=("codex",))
def test_a_locked_folder_holds_what_is_in_it_and_what_is_not_yet(client: Client) -> None:
    checkout = client.ground.checkout
    client.ground.coordinator.peer_lock("sub")
    client.run(
        "work",
        client.create("sub/new.md", "mine\n"),
        client.create("sub/far/below.md", "mine\n"),
        client.replace("sub/deep.md", "deep", "deeper"),
        client.shell("mkdir -p sub/made && echo mine > sub/made/shell.md"),
        client.create("subway.md", "free\n"),
    )
    told = verdicts(client, "work", "new", "far", "old", "shell", "beside")
    assert_only(told, {"new", "far", "old", "shell"}, "sub")
    assert sorted(os.listdir(checkout / "sub")) == ["deep.md"]
    assert_untouched(client, "sub/deep.md")
    assert_text(client, "subway.md", "free\n")


def test_a_locked_pattern_holds_what_fits_and_nothing_else(client: Client) -> None:
    checkout = client.ground.checkout
    (checkout / "src" / "db").mkdir(parents=True)
    for name in ("src/db/one.sql", "src/db/one.py"):
        (checkout / name).write_text("old\n")
    client.ground.coordinator.peer_lock("src/**/*.sql", NOTE, "--pattern")
    client.run(
        "work",
        client.replace("src/db/one.sql", "old", "mine"),
        client.create("src/two.sql", "mine\n"),
        client.shell("sed -i.bak s/old/mine/ src/db/one.sql"),
        client.shell("echo mine > src/db/three.sql"),
        client.replace("src/db/one.py", "old", "mine"),
        client.create("top.sql", "mine\n"),
        client.shell("echo mine > src/db/three.txt"),
    )
    told = verdicts(client, "work", "old", "new", "sed", "echo", "other", "above", "text")
    assert_only(told, {"old", "new", "sed", "echo"}, "src/**/*.sql")
    assert [path.read_text() for path in checkout.rglob("*.sql") if path.parent != checkout] == ["old\n"]
    for name in ("src/db/one.py", "top.sql", "src/db/three.txt"):
        assert_text(client, name, "mine\n")


def test_what_a_peer_keeps_still_may_be_shared_but_not_written(client: Client) -> None:
    client.ground.coordinator.peer_lock("notes.md", NOTE, "--shared")
    *ahead, share, alone = client.swarm_tools(
        ("lock_file", {"file": "notes.md", "mode": "shared"}), ("lock_file", {"file": "notes.md"})
    )
    client.run("work", *ahead, share, alone, client.replace(*CHANGE))
    told = verdicts(client, "work", "share", "alone", "write")
    assert GRANTED.search(told["share"]), told
    assert PEER_NAME in told["alone"] and "error" in told["alone"], told
    assert_denied(client, "work", "notes.md")
    assert "keeps it still" in told["write"], told


@pytest.mark.promise("first come, first served", only=("claude-code",))
def test_who_is_denied_waits_in_line_is_woken_by_the_release_and_writes(client: Client) -> None:
    ground = client.ground
    peer = ground.coordinator.peer_lock("notes.md")
    *ahead, wait = client.swarm_tools(("lock_file", {"file": "notes.md", "wait_seconds": 40}))
    with client.held("work", *ahead, client.replace(*CHANGE), wait, client.replace(*CHANGE)) as live:
        live.gate.open()
        assert wait_for(lambda: waiting(client), 30), client.results("work")
        assert_denied(client, "work", "notes.md")
        assert "wait_seconds" in client.last_result("work"), "a denial says how to wait"
        released = time.time()
        ground.coordinator.text("unlock", "notes.md", "--as", peer)
        live.go_on()
    assert_text(client, "notes.md", "line two\n")
    told = verdicts(client, "work", "wait", "write")
    assert GRANTED.search(told["wait"]), told
    woken = next(exchange.at for exchange in client.exchanges("work") if exchange.at > released)
    assert woken - released < 5, f"the call came back {woken - released:.1f} s after the release"
    assert waiting(client) == 0


def waiting(client: Client) -> int:
    """Return the length of the queue for a lock."""
    return len(client.ground.coordinator.query("SELECT 1 FROM swarm_waiters"))


def test_sub_agents_of_one_session_exclude_each_other(client: Client) -> None:
    """Each is told its own id when it starts; one locks for itself, its sibling and its session are kept out."""
    if isinstance(client, Codex):
        client.model = client.code_model
    client.models.words["own id"] = lambda: own_id(client, "first")
    take = ("lock_file", {"file": "notes.md", "reason": NOTE, "agent_id": "«own id»"})
    lock = client.swarm_tools(take)
    client.models.script("first", *lock, client.replace(*CHANGE))
    client.models.script("second", client.replace(*CHANGE[:2], "from the sibling"))
    first, second = client.sub_agent("first"), client.sub_agent("second", "another")
    calls = [first[0], second[0], client.replace(*CHANGE[:2], "from the session"), *first[1:]]
    locked = client.hold("first", len(lock))
    with client.held("work", *calls, at=1) as live:
        assert locked.wait_reached(), client.results("first")
        (held,) = client.ground.coordinator.locks()
        assert held["file"].endswith("/notes.md")
        later = client.hold("work", 3)
        live.gate.open()
        assert later.wait_reached(), client.results("work")
        assert wait_for(lambda: client.results("second"), 20), "the sibling came to no end"
        for script in ("work", "second"):
            told = client.last_result(script)
            assert DENIED in told and own_id(client, "first") in told and NOTE in told, told
        assert_untouched(client, "notes.md")
        locked.open()
        assert wait_for(lambda: len(client.results("first")) > len(lock), 20), "the holder came to no end"
        assert wait_for(lambda: not client.ground.coordinator.locks(), 60), "its lock outlived it"
        later.open()
        assert live.process.wait(60) == 0
    assert_text(client, "notes.md", "line two\n")
    assert own_id(client, "first") != own_id(client, "second")


def own_id(client: Client, script: str) -> str:
    """The id that a sub-agent was told to be its own."""
    found = AGENT_ID.search(client.context(script))
    assert found, client.context(script)[-2000:]
    return found[1]


def test_a_lease_that_lapses_lets_others_write(client: Client) -> None:
    with client.held("work", client.replace(*CHANGE), client.shell("sleep 4"), client.replace(*CHANGE)) as live:
        client.ground.coordinator.peer_lock("notes.md", NOTE, "--ttl", "3")
        live.go_on()
    assert DENIED in client.results("work")[0] and "lapses in" in client.results("work")[0], client.results("work")
    assert_text(client, "notes.md", "line two\n")


def test_who_sleeps_through_its_lease_is_told_and_judged_by_the_locks_of_now(client: Client) -> None:
    coordinator = client.ground.coordinator
    lock = client.swarm_tools(("lock_file", {"file": "notes.md", "reason": "mine", "ttl_seconds": 3}))
    with client.held("work", *lock, client.replace(*CHANGE), at=len(lock)) as live:
        peer = coordinator.register_peer()
        time.sleep(4)
        refused = coordinator.json("lock", "notes.md", "--as", peer, allowed=(1,))
        assert "error" in refused, "it shows signs of life, so its lease is renewed"
        with stopped(client):
            assert wait_for(lambda: taken(client, peer), 60, 0.2), "the lease never lapsed"
        live.go_on()
    assert_denied(client, "work", "notes.md")
    told = "\n".join(map(str, (exchange.body for exchange in client.exchanges("work"))))
    assert re.search(r"Your lock on \S*/notes\.md lapsed at", told), client.results("work")


def taken(client: Client, peer: str) -> bool:
    answer = client.ground.coordinator.json("lock", "notes.md", "--note", NOTE, "--as", peer, allowed=(0, 1))
    return answer.get("ok") is True


@contextmanager
def stopped(client: Client) -> Iterator[None]:
    """Stop the client, its servers and all other processes of this home meanwhile."""
    pids = client.ground.own_processes()
    assert pids
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


@pytest.mark.promise("a lock can be handed over", only=("codex",))
def test_a_lock_changes_hands(client: Client) -> None:
    """A lock handed to this session lets its next write pass; one handed away has its next write denied."""
    coordinator = client.ground.coordinator
    peer = coordinator.peer_lock("notes.md")
    client.models.words["peer"] = lambda: peer
    *ahead, give = client.swarm_tools(("transfer_lock", {"file": "notes.md", "to": "«peer»"}))
    writes = [client.replace(*CHANGE), client.replace(*CHANGE), client.replace("notes.md", "line two", "line three")]
    with client.held("work", *ahead, writes[0], writes[1], give, writes[2], at=len(ahead) + 1) as live:
        assert DENIED in client.last_result("work")
        (own,) = coordinator.sessions()
        coordinator.text("transfer", "notes.md", "--to", own["id"], "--as", peer)
        live.go_on()
    assert_text(client, "notes.md", "line two\n")
    told = verdicts(client, "work", "first", "second", "given", "last")
    assert DENIED not in told["second"] and DENIED in told["last"] and PEER_NAME in told["last"], told
