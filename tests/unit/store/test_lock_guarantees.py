"""SPEC.md's guarantees of locks on one machine, leases, one file's lock under every name, and giving up all."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator

import pytest
from support import sessions
from support.altered import Clocks
from support.fixtures import BARE_PYTHON, FOLDERS, Ground, Sleeper, take, wait_for
from support.lock_cases import *  # noqa: F403
from support.lock_cases import denied
from support.worlds import OneMachine

from swarm_hook_core import clock
from swarm_hook_core.process import is_stopped, start_time
from swarm_mcp.errors import LockRefused
from swarm_mcp.server.app import Heartbeat
from swarm_mcp.store import Store, grants
from swarm_mcp.store.lock_request import request

pytestmark = pytest.mark.slow


@pytest.fixture
def world(ground: Ground) -> Iterator[OneMachine]:
    with ground.store() as store:
        yield OneMachine([ground], [store])


STEPPED = f"""
import json, sys, time
sys.path[:0] = {FOLDERS!r}
step, real = float(sys.argv[1]), time.time
time.time = lambda: real() + step
from swarm_mcp.domain import Session
from swarm_mcp.errors import LockRefused
from swarm_mcp.store import Store
from swarm_mcp.store.lock_request import request
row, said = Session(json.loads(sys.argv[2])), []
with Store() as store:
    for name in ("a", "b/", "x.py"):
        try:
            store.locks.acquire_all(row, request(row, [name]))
            said.append(True)
        except LockRefused:
            said.append(False)
print(json.dumps(said))
"""


@pytest.mark.parametrize("hours", [1, -1])
def test_one_clock_the_time_of_day_may_be_set_by_an_hour(ground: Ground, world: OneMachine, hours: int):
    """The time of day at the taking of a lock and at a question about it differ by an hour."""
    two = ground.session("2")
    with Sleeper() as client, ground.store() as store:
        one = ground.session("1", client=client.identity, lease_seconds=0)
        take(store, one, "a", ttl=1800)
        take(store, one, "b/")
        take(store, one, "x.py", ttl=1)
        time.sleep(1.05)
        argv = [*BARE_PYTHON, "-c", STEPPED, str(3600 * hours), json.dumps(two)]
        done = subprocess.run(argv, cwd=ground.repo, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout) == [False, False, True]


def test_one_clock_after_a_restart_the_time_of_day_counts(ground: Ground, store: Store, world: OneMachine):
    one, two = ground.session("1"), ground.session("2")
    take(store, one, "a", ttl=100)
    take(store, one, "b/", ttl=100)
    # Another start of the machine, with a new clock; the holder's client is gone.
    ground.sql("UPDATE context SET booted = 'another', renewed = 9e9")
    ground.sql("UPDATE context SET wall_until = ? WHERE path_key LIKE '%/b'", time.time() - 1)
    with pytest.raises(LockRefused):
        take(store, two, "a")
    take(store, two, "b")


def test_other_implementations_know_exact_paths_alone_and_theirs_are_honoured(ground: Ground, world: OneMachine):
    """One of them can take a file in a folder that is locked here: then neither may write it here."""
    one, two = ground.session("1"), ground.session("2")
    ground.stranger("f1")
    with ground.store() as store:
        take(store, one, "a")
        file = f"{ground.scope}/a/x.py"
        ground.add("context", id="theirs", scope="/s", instance_id="f1", file=file, type="lock", content="")
        assert denied(ground, one, "a/x.py") and not denied(ground, one, "a/y.sql")
        store.locks.release(one, "a")
        for name in ("a", "a/*.py", "a/x.py"):
            with pytest.raises(LockRefused) as refused:
                take(store, two, name)
            assert refused.value.active["instance_id"] == "f1"


def test_a_path_that_became_a_folder_counts_as_a_file_towards_patterns_and_still_holds_what_is_below(
    ground: Ground, store: Store
):
    one, two = ground.session("1"), ground.session("2")
    take(store, one, "new")
    (ground.repo / "new").mkdir()
    take(store, two, "*.md")
    assert denied(ground, one, "new/a.md") == denied(ground, two, "new/a.md") == {"new/a.md"}
    with pytest.raises(LockRefused):
        take(store, one, "new")  # as the folder that it is now


RUNTIME = "claude-code"


class Hands:
    """The boot clock and the time of day, turned by hand."""

    def __init__(self, clocks: Clocks):
        self.clocks, self.passed = clocks, 0.0
        clocks.stop("boot", "wall")

    def pass_by(self, seconds: float) -> None:
        self.passed += seconds
        self.clocks.ahead(boot=self.passed, wall=self.passed)


@pytest.fixture
def hands(clocks: Clocks) -> Hands:
    return Hands(clocks)


def leased(store, row: dict, file: str, ttl: float, **given) -> dict:
    return store.locks.acquire_all(row, request(row, [file], ttl=ttl, **given))[0]


def notices(store, row: dict) -> list[str]:
    taken = store.notices.take(row)
    store.messages.acknowledge([notice["id"] for notice in taken])
    return [notice["text"] for notice in taken]


def mail(store, row: dict) -> list[str]:
    return [message["content"] for message in store.messages.peek(row)]


def is_free_for(store, row: dict, file: str) -> bool:
    try:
        store.locks.acquire(row, file)
    except LockRefused:
        return False
    return True


def test_at_most_one_second_late(ground: Ground, store: Store):
    """In the view of a caller, of listings, of a hook, and of a waiter: by the real clock."""
    from swarm_mcp.locking.acquisition import acquire

    peer = ground.session("peer", "peer")
    holder = ground.session("holder", "holder")
    leased(store, holder, "f", 1.2)
    end = clock.now() + 1.2
    leased(store, holder, "g", 1.2)
    assert sessions.write(RUNTIME, "peer", ground.repo, ground.repo / "g").reason
    acquire(store, peer, request(peer, ["f"]), 20)
    assert 0 <= clock.now() - end < 1
    assert list(store.locks.held(ground.scope))[0]["instance_id"] == peer["id"]
    assert sessions.write(RUNTIME, "peer", ground.repo, ground.repo / "g").reason == ""


def test_a_hook_renews_once_in_a_third_of_a_lease_and_waits_for_nobody(ground: Ground, store: Store):
    holder = ground.session("holder", "holder")
    file = ground.repo / "f"
    leased(store, holder, str(file), 30)

    def renewed() -> float:
        return ground.sql("SELECT renewed FROM context WHERE type = 'lock'")[0]["renewed"]

    begun = renewed()
    assert sessions.write(RUNTIME, "holder", ground.repo, file).out == ""
    ground.sql("UPDATE context SET renewed = renewed - 11")
    assert renewed() == begun - 11, "nothing was due"
    assert sessions.write(RUNTIME, "holder", ground.repo, file).out == ""
    wait_for(lambda: renewed() > begun)
    ground.sql("UPDATE context SET renewed = renewed - 11")
    before = renewed()
    assert sessions.write(RUNTIME, "holder", ground.repo, file).out == ""
    time.sleep(0.5)
    assert renewed() == before, "less than ten seconds ago one was started"


def test_the_heartbeat_of_a_server_renews_in_time(ground: Ground):
    from swarm_mcp.server.calling_session import CallingSession

    with subprocess.Popen(["sleep", "60"]) as client:
        try:
            holder = ground.session("holder", "holder", client=(client.pid, start_time(client.pid)))
            session = CallingSession()
            session.client = (client.pid, start_time(client.pid))
            heart = Heartbeat(session)
            with ground.store() as store:
                leased(store, holder, "f", 30)
                assert 9 < heart.beat() <= 10
                ground.sql("UPDATE context SET renewed = renewed - 15")
                assert 9 < heart.beat() <= 10
                assert list(store.locks.held(ground.scope))[0]["lapses_in"] > 29
                ground.sql("UPDATE context SET renewed = renewed - 15")
                os.kill(client.pid, signal.SIGSTOP)
                wait_for(lambda: is_stopped(client.pid))
                heart.beat()
                assert 14 < list(store.locks.held(ground.scope))[0]["lapses_in"] < 16, (
                    "nobody speaks for one that is stopped"
                )
        finally:
            client.kill()


def test_the_end_of_a_lease_is_told_to_all_concerned(ground: Ground, store: Store, hands: Hands):
    holder, peer = ground.session("holder", "holder"), ground.session("peer", "peer")
    lock = leased(store, holder, "f", 100)
    assert not is_free_for(store, peer, "f")
    hands.pass_by(79)
    assert not store.leases.some() and mail(store, holder) == []
    hands.pass_by(1)
    assert store.leases.next_due() == pytest.approx(0, abs=1e-6) and store.leases.some()
    assert len(mail(store, holder)) == 1 and "lapses in 20 s" in mail(store, holder)[0]
    assert not store.leases.some(), "warned once"
    hands.pass_by(20)
    assert store.leases.some()
    (event,) = store.database.rows("SELECT * FROM events WHERE type = 'context.lock_released'")
    assert (event["actor"], event["subject"]) == (holder["id"], lock["file"]) and "lapsed" in event["payload"]
    assert "the lease of holder " in mail(store, peer)[0] and "is free" in mail(store, peer)[0]
    assert "lapsed at" in mail(store, holder)[1] and f"fence {lock['fence']}" in mail(store, holder)[1]
    store.locks.acquire(peer, "f")
    assert f"peer {peer['id'][:8]} has been given" in mail(store, holder)[1]
    (told,) = notices(store, holder)
    assert f"It is held by peer {peer['id'][:8]} now." in told and notices(store, holder) == []
    assert len(mail(store, holder)) == 1, "what a hook has told is read"


def test_a_session_that_is_warned_and_shows_life_is_warned_again(ground: Ground, store: Store, hands: Hands):
    holder = ground.session("holder", "holder")
    leased(store, holder, "f", 100)
    for count in (1, 2):
        hands.pass_by(85)
        store.leases.some()
        assert len(mail(store, holder)) == count
        ground.session("holder", "holder")


def test_a_turn_tells_of_a_lock_that_lapsed_with_nobody_around(ground: Ground, store: Store):
    holder = ground.session("holder", "holder")
    leased(store, holder, "f", 5)
    ground.sql("UPDATE context SET renewed = renewed - 6")
    payload = {**sessions.captured(RUNTIME, "UserPromptSubmit", ground.repo), "session_id": "holder"}
    ran = sessions.run(RUNTIME, "turn", payload)
    assert "lapsed at" in ran.out and "Nobody holds it now." in ran.out
    assert sessions.run(RUNTIME, "turn", payload).out == ""


def files(ground: Ground, *argv: str, **options) -> list[str]:
    done = ground.swarm("locks", *argv, "--json", **options)
    assert done.code == 0, done
    return [row["file"] for row in done.json]


def test_only_that_file_in_whatever_scope(ground: Ground):
    one = ground.session("1", "one")
    far = ground.session("2", "far", directory="/far", scope="/far")
    ground.lock(one, "a")
    ground.lock(one, "b")
    ground.lock(far, f"{ground.scope}/c", "note")
    assert files(ground, "--file", "a") == [f"{ground.scope}/a"]
    assert files(ground, "--file", "c") == [f"{ground.scope}/c"], "taken in another scope, and held all the same"
    assert files(ground, "--file", "free") == []
    assert files(ground, "--file", "b", "--file", "a", "--file", "./b") == [f"{ground.scope}/b", f"{ground.scope}/a"]
    (shown,) = ground.swarm("locks", "--file", "c", "--json").json
    (listed,) = ground.swarm("locks", "--scope", "/far", "--json").json
    assert shown == listed, "the same shape as in the listing"
    assert ground.swarm("locks", "--file", "c").out == f"  far {far['id'][:8]}  c  — note\n"
    assert ground.swarm("locks", "--file", "free").out == "(no locks)\n"


def test_a_relative_name_counts_from_here_and_from_the_sessions_folder(ground: Ground):
    sub = ground.repo / "sub"
    sub.mkdir()
    tree = ground.folder / "tree"
    (tree / ".git").mkdir(parents=True)
    one = ground.session("1", directory=str(sub))
    in_tree = ground.session("2", directory=str(tree), file_root=ground.scope, scope=ground.scope)
    ground.lock(one, "f")
    ground.lock(in_tree, "g")
    assert files(ground, "--file", "f", "--as", one["id"]) == [f"{sub}/f"]
    assert files(ground, "--file", "f", "--as", in_tree["id"]) == []
    assert files(ground, "--file", "f", "--as", in_tree["id"], cwd=sub) == [f"{sub}/f"]
    assert files(ground, "--file", "g", "--as", in_tree["id"], cwd=tree) == [f"{ground.scope}/g"]
    assert files(ground, "--file", f"{tree}/g", "--as", in_tree["id"], cwd=sub) == [f"{ground.scope}/g"]
    assert files(ground, "--file", "../sub/f", cwd=sub) == [f"{sub}/f"]


def test_a_row_that_the_table_does_not_take_is_an_error_and_not_tried_for_ever(ground: Ground, monkeypatch) -> None:
    """Here two grants of one id."""
    me = ground.session("me")
    monkeypatch.setattr(grants, "new_id", lambda: "one")
    with ground.store() as store:
        store.locks.acquire(me, "a.py")
        with pytest.raises(Exception, match="UNIQUE"):
            store.locks.acquire(me, "b.py")
        assert [lock.file for lock in store.locks.of(me["id"])] == [str(ground.repo / "a.py")]


def test_all_of_a_session_go_and_nothing_else(ground: Ground, store: Store):
    me, other = ground.session("1", "me"), ground.session("2", "other")
    for file in ("a", "b/", "/__swarm/spawn/x"):
        ground.lock(me, file)
    ground.lock(other, "theirs")
    store.locks.acquire_all(me, request(me, ["*.sql"], as_pattern=True))
    store.locks.acquire_all(me, request(me, ["mine"], agent="a1"))
    assert sorted(store.locks.release_all(me)) == [f"{ground.scope}/{file}" for file in ("*.sql", "a", "b")]
    assert store.locks.release_all(me) == []
    assert [lock.file for lock in store.locks.of(me["id"])] == ["/__swarm/spawn/x", f"{ground.scope}/mine"]
    assert store.locks.release_all(me, "a1") == [f"{ground.scope}/mine"]
    assert len(store.locks.of(other["id"])) == 1
