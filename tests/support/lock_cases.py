"""SPEC.md's guarantees of locks, in a `world` of one machine (tests/unit/store) and of two of a team (tests/team).

With two, each session works on another machine than the one before it.
"""

import time

import pytest

from support.altered import Clocks
from support.crashing import Dead, Dying
from support.fixtures import Sleeper
from support.lock_model import NAMES, PATHS, SHARED, overlap, reach
from swarm_hook_core.check import Writes
from swarm_hook_core.collisions import denied_by_lock
from swarm_hook_core.config import RuntimeConfig, paths_under_keys
from swarm_hook_core.hooks import ToolCall
from swarm_hook_core.lookup import Peers
from swarm_hook_core.lookup.sqlite import StoreReader
from swarm_mcp.errors import Deadlock, LockRefused
from swarm_mcp.locking import acquisition as lock_acquisition
from swarm_mcp.locking.acquisition import LONGEST_NAP
from swarm_mcp.store import Store
from swarm_mcp.store.lock_request import request

CLAUDE = RuntimeConfig("claude-code", "CC", "swarm-cc", {"Write"}, paths_under_keys("file_path"))


@pytest.fixture
def at(clocks: Clocks):
    """Sets the clock that leases go by."""
    clocks.stop("boot")
    return lambda seconds: clocks.ahead(boot=seconds)


def denied(ground, row, *paths: str) -> set[str]:
    """Return the paths that a hook does not let this session write now."""
    reader = StoreReader(ground.database)
    name = ground.sql("SELECT session_id FROM swarm_sessions WHERE instance_id = ?", row["id"])[0]["session_id"]
    session, now = reader.session("claude-code", name), time.time()
    peers = Peers(reader, row["id"], now)
    calls = {path: ToolCall("Write", {"file_path": f"{ground.scope}/{path}"}, cwd="/") for path in paths}
    return {path for path, call in calls.items() if denied_by_lock(Writes(CLAUDE, call), session, peers, now)}


@pytest.mark.parametrize("mode", ["exclusive", SHARED])
def test_exclusion_two_requests_that_overlap_are_never_both_granted(world, mode: str):
    """File against folder against pattern, in both orders; shared against exclusive."""
    one, two = world.session("1"), world.session("2")
    for first in NAMES[::2]:  # the others: in the machine of `test_lock_machine`
        world.take(one, first, mode=mode)
        world.take(two, *[name for name in NAMES if not overlap([first], [name])])
        for name in NAMES:
            if overlap([first], [name]):
                with pytest.raises(LockRefused):
                    world.take(two, name)
                if mode == SHARED:
                    world.take(two, name, mode=SHARED)
        world.give_all_back()


@pytest.mark.parametrize("mode", ["exclusive", SHARED])
def test_exclusion_nobody_else_writes_what_is_held(world, mode: str):
    one, two = world.session("1"), world.session("2")
    for name in ("a/x.py", "a", "new/", "a/*", "*.sql"):
        world.take(one, name, mode=mode)
        assert denied(world.ground(two), two, *PATHS) == reach(name)
        assert denied(world.ground(one), one, *reach(name)) == set()
        world.release(one, name)


@pytest.mark.parametrize("end", ["released", "lapsed", "left", "killed"])
def test_liveness_whatever_ends_a_lock_ends_the_wait_for_it(world, at, end: str):
    two = world.session("2")
    with Sleeper() as client:
        one = world.session("1", client=client.identity)
        world.take(one, "a", ttl=30 if end == "lapsed" else None)
        advance = world.waits(two, "a/*.py")
        assert advance() is None and advance() is None
        if end == "released":
            world.release(one, "a")
        elif end == "left":
            world.leave(one)
        elif end == "killed":
            client.end()
            at(LONGEST_NAP)  # no commit announces it: the waiter looks for it
            world.even()
        else:
            at(30)
            world.even()
        assert advance()
        assert world.holders() == [[two["id"]]] * len(world.grounds)


def test_fairness_first_come_first_served_and_nobody_overtakes(world):
    holder, *others = [world.session(str(number)) for number in range(5)]
    world.take(holder, "a")
    waits = [world.waits(row, "a/x.py") for row in others]
    assert [advance() for advance in waits] == [None] * 4
    world.release(holder, "a")
    for number, advance in enumerate(waits):
        assert all(later() is None for later in waits[number + 1 :])
        with pytest.raises(LockRefused):
            world.take(holder, "a")  # free or not: a request without a wait comes after the waiters
        assert advance()
        world.release(others[number], "a/x.py")
    world.take(holder, "a")


def test_fairness_readers_do_not_starve_a_writer(world):
    reader, writer, late = (world.session(name) for name in "123")
    world.take(reader, "a", mode=SHARED)
    advance = world.waits(writer, "a")
    assert advance() is None
    with pytest.raises(LockRefused):
        world.take(late, "a/x.py", mode=SHARED)
    world.release(reader, "a")
    assert advance()


def test_no_early_expiry_a_lease_holds_to_its_end_and_no_longer(world, at):
    one, two = world.session("1"), world.session("2")
    world.take(one, "a", ttl=60)
    at(59.99)
    world.even()
    assert denied(world.ground(two), two, "a/x.py")
    with pytest.raises(LockRefused):
        world.take(two, "a")
    at(60)
    world.even()
    assert not denied(world.ground(two), two, "a/x.py")
    world.take(two, "a")


def test_fence_every_grant_has_a_higher_number_than_all_before(world, at):
    one, two = world.session("1"), world.session("2")
    numbers = []
    for row, names, mode, ttl in (
        (one, ["a"], SHARED, None), (two, ["a/x.py", "b/"], SHARED, 10), (one, ["c.txt"], "exclusive", None),
    ):  # fmt: skip
        numbers += map(world.number, world.take(row, *names, mode=mode, ttl=ttl))
    again = world.take(one, "a", mode=SHARED)
    assert world.number(again[0]) == numbers[0]  # held all along: the same grant
    at(10)  # the last grant has gone, with its rows
    world.leave(one)
    numbers += map(world.number, world.take(two, "a", "b", "c.txt"))
    assert numbers == sorted(set(numbers))


def test_all_or_none_a_process_that_dies_at_any_statement_has_all_or_nothing(world):
    one = world.session("1")
    counts = set()
    for last in range(1, 120):
        with Store(world.ground(one).database) as store:
            sound = store.database.connection
            store.database.connection = Dying(sound, last)
            try:
                lock_acquisition.take(store, one, request(one, ["a", "x.py", "b/"]))
            except Dead:
                survived = False
            else:
                survived = True
            store.database.connection = sound
        world.even()
        found = [len(holders) for holders in world.holders()]
        counts.add(found[0])
        assert found in ([0] * len(found), [3] * len(found)) and (found[0] == 3 or not survived), last
        if survived:
            break
        world.give_all_back()
    assert survived and last > 10 and counts == {0, 3}


def test_no_deadlock_two_who_both_want_what_both_read(world):
    one, two = world.session("1"), world.session("2")
    for row in (one, two):
        world.take(row, "a", mode=SHARED)
    first, second = world.waits(one, "a"), world.waits(two, "a")
    assert first() is None
    with pytest.raises(Deadlock):
        second()
    world.release(two, "a")
    assert first()
