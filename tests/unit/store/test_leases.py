"""Leases: their end, their renewal, and the notices about both."""

import os
import signal
import subprocess
import time

import pytest
from support import sessions
from support.altered import Clocks
from support.fixtures import Ground, wait_for

from swarm_hook_core import clock
from swarm_hook_core.process import is_stopped, start_time
from swarm_mcp.errors import LockRefused, SwarmError
from swarm_mcp.server.heartbeat import Heartbeat
from swarm_mcp.store import Store
from swarm_mcp.store.lock_request import request

pytestmark = pytest.mark.slow

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
def hands(clocks) -> Hands:
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


def test_a_lease_that_cannot_be_is_refused(ground: Ground, store: Store):
    row = ground.session("holder")
    for ttl in (0.5, 1e9):
        with pytest.raises(SwarmError, match="a lease lasts from 1 second"):
            leased(store, row, "f", ttl)


def test_a_hook_renews_once_in_a_third_of_a_lease_and_waits_for_nobody(ground: Ground):
    holder = ground.session("holder", "holder")
    file = ground.repo / "f"
    with ground.store() as store:
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


def test_a_turn_tells_of_a_lock_that_lapsed_with_nobody_around(ground: Ground):
    holder = ground.session("holder", "holder")
    with ground.store() as store:
        leased(store, holder, "f", 5)
    ground.sql("UPDATE context SET renewed = renewed - 6")
    payload = {**sessions.captured(RUNTIME, "UserPromptSubmit", ground.repo), "session_id": "holder"}
    ran = sessions.run(RUNTIME, "turn", payload)
    assert "lapsed at" in ran.out and "Nobody holds it now." in ran.out
    assert sessions.run(RUNTIME, "turn", payload).out == ""
