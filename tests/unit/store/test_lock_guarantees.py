"""What SPEC.md guarantees of locks, and what it assumes, as far as no other module here says it: named after it."""

from __future__ import annotations

import json
import subprocess
import time

import pytest
from support.crashing import Dead, Dying
from support.fixtures import BARE_PYTHON, FOLDERS, Ground, Sleeper
from support.lock_model import FOLDERS as WORLD
from support.lock_model import NAMES, PATHS, SHARED, overlap, reach

from swarm_hook_core import clock
from swarm_hook_core.config import RuntimeConfig, paths_under_keys
from swarm_hook_core.decision import decide
from swarm_hook_core.hooks import ToolCall
from swarm_hook_core.lookup import Peers
from swarm_hook_core.lookup.sqlite import StoreReader
from swarm_mcp.errors import Deadlock, LockRefused
from swarm_mcp.lock_acquisition import LONGEST_NAP, LockWait
from swarm_mcp.store import Store
from swarm_mcp.store.lock_request import request

pytestmark = pytest.mark.slow

CLAUDE = RuntimeConfig("claude-code", "CC", "swarm-cc", {"Write"}, paths_under_keys("file_path"))


@pytest.fixture
def world(ground: Ground) -> Ground:
    """The folders of ``lock_model``."""
    for folder in WORLD:
        (ground.repo / folder).mkdir(parents=True)
    return ground


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch):
    """Sets the clock that leases go by."""
    begin = clock.now()
    monkeypatch.setattr(clock, "now", lambda: begin)
    return lambda seconds: monkeypatch.setattr(clock, "now", lambda: begin + seconds)


def take(store: Store, row: dict, *names: str, **given) -> list[dict]:
    return store.locks.acquire_all(row, request(row, names, **given))


def denied(ground: Ground, row: dict, *paths: str) -> set[str]:
    """Which of these a hook does not let this session write now."""
    reader = StoreReader(ground.database)
    name = ground.sql("SELECT session_id FROM swarm_sessions WHERE instance_id = ?", row["id"])[0]["session_id"]
    session, now = reader.session("claude-code", name), time.time()
    peers = Peers(reader, row["id"], now)
    calls = {path: ToolCall("Write", {"file_path": f"{ground.scope}/{path}"}, cwd="/") for path in paths}
    return {path for path, call in calls.items() if decide(CLAUDE, session, call, peers, now)}


# -- exclusion --------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["exclusive", SHARED])
def test_exclusion_two_requests_that_overlap_are_never_both_granted(world: Ground, mode: str):
    """File against folder against pattern, whichever came first; against shared ones, unless both are."""
    one, two = world.session("1"), world.session("2")
    with world.store() as store:
        for first in NAMES[::2]:  # the others: in the machine of `test_lock_machine`
            take(store, one, first, mode=mode)
            take(store, two, *[name for name in NAMES if not overlap([first], [name])])
            for name in NAMES:
                if overlap([first], [name]):
                    with pytest.raises(LockRefused):
                        take(store, two, name)
                    if mode == SHARED:
                        take(store, two, name, mode=SHARED)
            for lock in (*store.locks.of(one["id"]), *store.locks.of(two["id"])):
                with store.database.writing():
                    store.database.change("DELETE FROM context WHERE id = ?", (lock["id"],))


@pytest.mark.parametrize("mode", ["exclusive", SHARED])
def test_exclusion_nobody_else_writes_what_is_held(world: Ground, mode: str):
    one, two = world.session("1"), world.session("2")
    with world.store() as store:
        for name in ("a/x.py", "a", "new/", "a/*", "*.sql"):
            take(store, one, name, mode=mode)
            assert denied(world, two, *PATHS) == reach(name)
            assert denied(world, one, *reach(name)) == set()
            store.locks.release(one, name)


# -- liveness ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["released", "lapsed", "left", "killed"])
def test_liveness_whatever_ends_a_lock_ends_the_wait_for_it(world: Ground, at, end: str):
    two = world.session("2")
    with Sleeper() as client, world.store() as store:
        one = world.session("1", client=client.identity)
        take(store, one, "a", ttl=30 if end == "lapsed" else None)
        wait = LockWait(two, request(two, ["a/*.py"]), None)
        assert wait.advance(store) is None and wait.advance(store) is None
        if end == "released":
            store.locks.release(one, "a")
        elif end == "left":
            store.instances.remove(one["id"])
        elif end == "killed":
            client.end()
            at(LONGEST_NAP)  # nobody says so: that is looked for
        else:
            at(30)
        rows = wait.advance(store)
        assert rows and [lock["instance_id"] for lock in store.locks.held(None)] == [two["id"]]
        assert wait.left() <= LONGEST_NAP < 1  # so often is asked what nobody commits


# -- fairness ---------------------------------------------------------------------------------------


def test_fairness_first_come_first_served_and_nobody_overtakes(world: Ground):
    holder, *others = [world.session(str(number)) for number in range(5)]
    with world.store() as store:
        take(store, holder, "a")
        waits = [LockWait(row, request(row, ["a/x.py"]), None) for row in others]
        assert [wait.advance(store) for wait in waits] == [None] * 4
        store.locks.release(holder, "a")
        for number, wait in enumerate(waits):
            assert all(later.advance(store) is None for later in waits[number + 1 :])
            with pytest.raises(LockRefused):
                take(store, holder, "a")  # free or not: who does not wait comes after those who do
            assert wait.advance(store)
            store.locks.release(others[number], "a/x.py")
        take(store, holder, "a")


def test_fairness_readers_do_not_starve_a_writer(world: Ground):
    reader, writer, late = (world.session(name) for name in "123")
    with world.store() as store:
        take(store, reader, "a", mode=SHARED)
        wait = LockWait(writer, request(writer, ["a"]), None)
        assert wait.advance(store) is None
        with pytest.raises(LockRefused):
            take(store, late, "a/x.py", mode=SHARED)
        store.locks.release(reader, "a")
        assert wait.advance(store)


# -- no early expiry --------------------------------------------------------------------------------


def test_no_early_expiry_a_lease_holds_to_its_end_and_no_longer(world: Ground, at):
    one, two = world.session("1"), world.session("2")
    with world.store() as store:
        take(store, one, "a", ttl=60)
        at(59.99)
        assert denied(world, two, "a/x.py")
        with pytest.raises(LockRefused):
            take(store, two, "a")
        at(60)
        assert not denied(world, two, "a/x.py")
        take(store, two, "a")


# -- fence ------------------------------------------------------------------------------------------


def test_fence_every_grant_has_a_higher_number_than_all_before(world: Ground, at):
    one, two = world.session("1"), world.session("2")
    numbers = []
    with world.store() as store:
        for row, names, mode, ttl in (
            (one, ["a"], SHARED, None), (two, ["a/x.py", "b/"], SHARED, 10), (one, ["c.txt"], "exclusive", None),
        ):  # fmt: skip
            numbers += [lock["fence"] for lock in take(store, row, *names, mode=mode, ttl=ttl)]
        again = take(store, one, "a", mode=SHARED)
        assert again[0]["fence"] == numbers[0]  # held all along: the same grant
        at(10)  # what was granted last has gone, with its rows
        store.instances.remove(one["id"])
        numbers += [lock["fence"] for lock in take(store, two, "a", "b", "c.txt")]
    assert numbers == sorted(set(numbers))


# -- all or none ------------------------------------------------------------------------------------


def test_all_or_none_a_process_that_dies_at_any_statement_has_all_or_nothing(world: Ground):
    one = world.session("1")
    counts = set()
    for last in range(1, 80):
        with world.store() as store:
            sound = store.database.connection
            store.database.connection = Dying(sound, last)
            try:
                take(store, one, "a", "x.py", "b/")
            except Dead:
                survived = False
            else:
                survived = True
            store.database.connection = sound
        counts.add(found := world.sql("SELECT count(*) AS n FROM context")[0]["n"])
        assert found in (0, 3) and (found == 3 or not survived), last
        if survived:
            break
        world.sql("DELETE FROM context")
    assert survived and last > 10 and counts == {0, 3}


# -- no deadlock ------------------------------------------------------------------------------------


def test_no_deadlock_two_who_both_want_what_both_read(world: Ground):
    one, two = world.session("1"), world.session("2")
    with world.store() as store:
        for row in (one, two):
            take(store, row, "a", mode=SHARED)
        first, second = (LockWait(row, request(row, ["a"]), None) for row in (one, two))
        assert first.advance(store) is None
        with pytest.raises(Deadlock):
            second.advance(store)
        store.locks.release(two, "a")
        assert first.advance(store)


# -- what is assumed --------------------------------------------------------------------------------

STEPPED = f"""
import json, sys, time
sys.path[:0] = {FOLDERS!r}
step, real = float(sys.argv[1]), time.time
time.time = lambda: real() + step
from swarm_mcp.domain.session import Session
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
def test_one_clock_the_time_of_day_may_be_set_by_an_hour(world: Ground, hours: int):
    """What the time of day says when a lock is taken and when it is asked for differs by an hour."""
    two = world.session("2")
    with Sleeper() as client, world.store() as store:
        one = world.session("1", client=client.identity, lease_seconds=0)
        take(store, one, "a", ttl=1800)
        take(store, one, "b/")
        take(store, one, "x.py", ttl=1)
        time.sleep(1.05)
        argv = [*BARE_PYTHON, "-c", STEPPED, str(3600 * hours), json.dumps(two)]
        done = subprocess.run(argv, cwd=world.repo, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout) == [False, False, True]


def test_one_clock_after_a_restart_the_time_of_day_counts(world: Ground):
    one, two = world.session("1"), world.session("2")
    with world.store() as store:
        take(store, one, "a", ttl=100)
        take(store, one, "b/", ttl=100)
        # Another start of the machine, whose clock begins anew; the holder's client cannot be asked for.
        world.sql("UPDATE context SET booted = 'another', renewed = 9e9")
        world.sql("UPDATE context SET wall_until = ? WHERE path_key LIKE '%/b'", time.time() - 1)
        with pytest.raises(LockRefused):
            take(store, two, "a")
        take(store, two, "b")


def test_other_implementations_know_exact_paths_alone_and_theirs_are_honoured(world: Ground):
    """One of them can take a file in a folder that is locked here: then neither may write it here."""
    one, two = world.session("1"), world.session("2")
    world.stranger("f1")
    with world.store() as store:
        take(store, one, "a")
        file = f"{world.scope}/a/x.py"
        world.add("context", id="theirs", scope="/s", instance_id="f1", file=file, type="lock", content="")
        assert denied(world, one, "a/x.py") and not denied(world, one, "a/y.sql")
        store.locks.release(one, "a")
        for name in ("a", "a/*.py", "a/x.py"):
            with pytest.raises(LockRefused) as refused:
                take(store, two, name)
            assert refused.value.active["instance_id"] == "f1"


def test_a_path_that_became_a_folder_counts_as_a_file_towards_patterns_and_still_holds_what_is_below(ground: Ground):
    one, two = ground.session("1"), ground.session("2")
    with ground.store() as store:
        take(store, one, "new")
        (ground.repo / "new").mkdir()
        take(store, two, "*.md")
        assert denied(ground, one, "new/a.md") == denied(ground, two, "new/a.md") == {"new/a.md"}
        with pytest.raises(LockRefused):
            take(store, one, "new")  # as the folder that it is now
