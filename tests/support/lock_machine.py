"""Random sequences of lock operations: stores and hooks agree with a model without common code.

`run` plays it in a world of ``support.worlds``: on one machine, or on two of a team.
"""

import contextlib
import itertools
import shutil
import time
from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from support.lock_model import AUTO, FILES, NAMES, PATHS, SHARED, SILENT, Circle, Grant, Holder, Model, No, Wait, reach
from support.worlds import OneMachine
from swarm_hook_core import clock, paths, state
from swarm_hook_core.check import Writes
from swarm_hook_core.collisions import denied_by_lock
from swarm_hook_core.config import RuntimeConfig, paths_under_keys
from swarm_hook_core.hooks import ToolCall
from swarm_hook_core.lookup import Peers, plain
from swarm_hook_core.lookup.sqlite import StoreReader
from swarm_hook_core.process import start_time
from swarm_hook_core.traces import TURN, traces_dir, turn_files
from swarm_hook_core.traces.trail import Trail
from swarm_hook_core.traces.turn_files import TurnFiles
from swarm_mcp.errors import Deadlock, LockRefused, SwarmError
from swarm_mcp.locking import acquisition as lock_acquisition
from swarm_mcp.locking.acquisition import LockWait
from swarm_mcp.store import Store, lock_finder, reactions
from swarm_mcp.store.lock_request import request
from swarm_mcp.store.sessions import Registration

CLAUDE = RuntimeConfig("claude-code", "CC", "swarm-cc", {"Write"}, paths_under_keys("file_path"))
LEASE = 600
SESSIONS = ("ann", "bob", "cid")
AGENTS = ("", "x", "y")
REQUESTS = st.lists(st.sampled_from(NAMES), min_size=1, max_size=3, unique=True).map(tuple)
HOLDERS = st.tuples(st.sampled_from(SESSIONS), st.sampled_from(("", "", "", "x", "y")))
MODES = st.sampled_from(("exclusive", "exclusive", SHARED))
TTLS = st.sampled_from((None, None, 10.0, 60.0))
PATIENCE = st.sampled_from((None, None, 5.0, 90.0))
PICKS = st.integers(0, 11)  # an index into the existing ones
RARELY = st.integers(0, 7).map(lambda number: number == 7)
SIGN = 11.0  # seconds after which a wait has sent a heartbeat, and looked for circles
STEPS = 50


def picked(these: list, pick: int):
    """Return one of `these`. The drawn number does not depend on their count: that may depend on the clock."""
    return these[pick % len(these)]


class Machine(RuleBasedStateMachine):
    """The store, a hook's reader of it, and the model, operation by operation.

    An impossible rule returns instead of having a precondition: Hypothesis's draws depend on nothing else.
    """

    make_world: Callable[[], OneMachine]
    clock: Model
    counted: Counter = Counter()

    def __init__(self):
        super().__init__()
        shutil.rmtree(traces_dir(), ignore_errors=True)  # of the example before, whose sessions have the same names
        self.began = Wall.began = int(time.time())
        self.model = Machine.clock = Model(LEASE)
        self.turn, self.sound = 0, False
        self.places: list[tuple[Wait, LockWait]] = []  # waiters: in the model, and here
        self.world = Machine.make_world()
        for store in self.world.stores:
            store.database.now = lambda: self.began + int(self.model.now)
        self.rows: dict[str, dict] = {}
        self.readers = [StoreReader(ground.database) for ground in self.world.grounds]
        self.model.homes = {name: at % len(self.readers) for at, name in enumerate(SESSIONS)}
        self.numbers: dict[int, tuple[int, int]] = {}  # of grants, by the model's: the turn of it, and the world's

    def teardown(self) -> None:
        if self.sound:
            self.drain()
        for reader in self.readers:
            reader.connection.close()
        self.world.close()

    def on(self, home: int) -> Store:
        """Make the next request one of that machine; return its store."""
        self.model.here = home
        return self.world.on(home)

    def at(self, name: str) -> Store:
        """The same, on the machine of a session."""
        return self.on(self.model.homes[name])

    def folder_of(self, home: int) -> str:
        return str(self.world.grounds[home].repo)

    def wanted(self, holder: Holder, names, mode: str, ttl: float | None):
        return request(self.rows[holder[0]], list(names), mode=mode, agent=holder[1], ttl=ttl)

    def even(self) -> None:
        """Have machines of a team hear of all operations, and of departed sessions."""
        if len(self.readers) > 1:
            self.world.even()
            self.settle()

    def check_number(self, grant: Grant, number: int) -> None:
        """Check that a grant keeps its number, and later ones have higher numbers: on one machine, the next."""
        assert self.numbers.setdefault(grant.fence, (self.turn, number))[1] == number, grant
        known = [number for _turn, number in sorted(self.numbers.values())]
        assert known == sorted(set(known)), (grant, self.numbers)
        assert len(self.readers) > 1 or number == grant.fence, grant

    def do(self, what: str, deed, modelled) -> None:
        """`deed()` on the store and `modelled()` on the model: both refuse, for the same reason, or both do it."""
        self.sound, refusal, done = False, None, None
        try:
            done = deed()
        except SwarmError as error:
            refusal = error
        try:
            expected = modelled()
        except No as no:
            assert refusal, f"{what}: granted, though it should have been refused because of {no.by}"
            assert isinstance(no, Circle) == isinstance(refusal, Deadlock), refusal
            if isinstance(refusal, LockRefused):
                assert refusal.active["instance_id"] in {self.rows[name]["id"] for name in no.by}, refusal.active
            Machine.counted[type(refusal).__name__] += 1
            self.even()
            return
        assert not refusal, f"{what}: {refusal!r} {getattr(refusal, 'active', '')}"
        Machine.counted[what] += 1
        self.check_grants(done, expected)
        self.even()

    def check_grants(self, done, expected) -> None:
        """Check that the granted locks are the expected ones, with fitting numbers."""
        assert isinstance(done, list) == isinstance(expected, list)
        if isinstance(done, list):
            assert len(done) == len(expected)
            for number, grant in zip(self.world.numbers(done), expected):
                self.check_number(grant, number)

    @initialize()
    def begin(self):
        for name in SESSIONS:
            self.register(name)

    @rule(name=st.sampled_from(SESSIONS))
    def register(self, name: str, turn_over: int = 0):
        store, place = self.at(name), self.folder_of(self.model.homes[name])
        facts = {"runtime": "claude-code", "session_id": name, "client": (1, start_time(1)), "lease_seconds": LEASE}
        self.rows[name] = store.instances.register(
            Registration(place, label=name, scope=place, turn_over=turn_over, **facts)
        )
        homes = self.model.homes
        for other in [other for other in self.model.seen if other != name and self.model.has_gone(other)]:
            if homes[other] == homes[name]:
                self.lose(other)
        self.model.dead.discard(name)  # it has a client again
        self.model.seen[name] = self.model.now
        self.even()

    @rule(name=st.sampled_from(SESSIONS))
    def sign_of_life(self, name: str):
        store = self.at(name)

        def deed():
            with store.database.writing():
                reactions.require(store.database, self.rows[name]["id"])

        self.do("renewed", deed, lambda: self.model.sign_of_life(name))

    @rule(name=st.sampled_from(SESSIONS), now=RARELY)
    def leave(self, name: str, now: bool):
        if now:
            self.at(name).instances.remove(self.rows[name]["id"])
            self.lose(name)

    @rule(name=st.sampled_from(SESSIONS), now=RARELY)
    def kill(self, name: str, now: bool):
        """Its client dies; its waiters may live on for a while."""
        if now and name in self.model.seen:
            store = self.at(name)
            with store.database.writing():
                store.database.change(
                    "UPDATE swarm_sessions SET client_pid = 4194305 WHERE instance_id = ?", (self.rows[name]["id"],)
                )
            self.model.dead.add(name)
            self.even()

    def lose(self, name: str) -> None:
        """A session is gone. Its remaining waiters get nothing."""
        self.model.forget(name)
        for wait, place in [both for both in self.places if both[0].holder[0] == name]:
            self.places.remove((wait, place))
            with contextlib.suppress(SwarmError):
                assert place.advance(self.at(name)) is None
            place.give_up(self.at(name))
        self.world.even()

    @rule(seconds=st.sampled_from((1, 1, 4, 5, 10, 30, 60, 61, 300, 700)))
    def pass_time(self, seconds: int):
        self.model.pass_time(float(seconds))
        self.even()

    @rule(holder=HOLDERS, names=REQUESTS, mode=MODES, ttl=TTLS)
    def acquire(self, holder: Holder, names, mode: str, ttl: float | None):
        self.wake(holder[0])
        wanted, store = self.wanted(holder, names, mode, ttl), self.at(holder[0])
        self.do(
            "granted",
            lambda: lock_acquisition.take(store, self.rows[holder[0]], wanted),
            lambda: self.model.acquire(holder, names, mode, ttl),
        )

    @rule(pick=PICKS, mode=MODES, ttl=TTLS)
    def ask_again(self, pick: int, mode: str, ttl: float | None):
        """Ask again for a held lock: up, down, or the same, without a gap."""
        if not self.model.grants:
            return
        grant = picked(self.model.grants, pick)
        self.acquire(grant.holder, (grant.name,), mode, ttl)

    @rule(pick=PICKS, whole=st.booleans(), off=st.sampled_from((None, None, None, 0, 1)))
    def release(self, pick: int, whole: bool, off: int | None):
        """Also with the number of a grant: the right one, or an older one."""
        if not self.model.grants:
            return
        grant = picked(self.model.grants, pick)
        session, agent = grant.holder[0], "" if whole else grant.holder[1]
        store, fences = self.at(session), self.fences(session)
        fence = None if off is None or grant.mode == AUTO else fences.get((grant.holder, grant.name), 1) - off

        def modelled():
            if fence is not None and not there:
                raise No
            self.model.give_back(there, agent)

        def deed():
            assert store.locks.release(self.rows[session], grant.name, agent, fence) == len(there)

        mine = self.model.held(session, agent, grant.name)
        there = [one for one in mine if fence is None or fence == fences.get((one.holder, one.name))]
        self.do("released", deed, modelled)

    def fences(self, session: str) -> dict[tuple[Holder, str], int]:
        """Return the numbers of a session's grants in the store of its machine, as verbs use them."""
        names = {self.path_of(name, self.model.homes[session]): name for name in NAMES}
        return {
            ((session, row.get("agent", "")), names[row["file"]]): row["fence"]
            for row in self.at(session).locks.held(None)
            if row["instance_id"] == self.rows[session]["id"] and row.get("mode") != AUTO
        }

    @rule(pick=PICKS, to=st.sampled_from(SESSIONS))
    def transfer(self, pick: int, to: str):
        if not self.model.grants:
            return
        grant = picked(self.model.grants, pick)
        giver, agent = grant.holder
        self.wake(giver)
        if self.model.has_gone(to) or (grant.mode == AUTO and grant not in self.model.live()):
            return
        store = self.at(giver)

        def deed():
            before = {"": 0, **self.fences(giver)}
            done = store.transfers.transfer(self.rows[giver], grant.name, self.rows[to]["id"], agent)
            assert done["fence"] > max(before.values())

        self.do("transferred", deed, lambda: self.model.transfer(grant, to))

    @rule(holder=HOLDERS, name=st.sampled_from(FILES))
    def write(self, holder: Holder, name: str):
        """A hook at level `turn` looks at a write, and takes the file where it lets that pass."""
        home = self.model.homes[holder[0]]
        store, reader, folder = self.at(holder[0]), self.readers[home], self.folder_of(home)
        session = reader.session("claude-code", holder[0])
        if session is None or self.model.has_gone(holder[0]):
            return
        path, now = self.path_of(name, home), self.wall()
        call = ToolCall("Write", {"file_path": path}, holder[0], folder, agent=holder[1])

        def deed():
            taken = TurnFiles("claude-code", call, reader, int(now * 1e9))
            taken.take(Trail(CLAUDE, call, TURN), [path])
            peers = Peers(reader, session.instance_id, now, holder[1], taken)
            denial = denied_by_lock(Writes(CLAUDE, call), session, peers, now)
            if denial is not None:
                taken.take_back()
                raise SwarmError(denial.reason)

        self.do("written", deed, lambda: self.model.write(holder, name))
        self.at(holder[0])
        assert len(list(store.locks.held(None))) == len(self.model.live())

    @rule(name=st.sampled_from(SESSIONS))
    def end_turn(self, name: str):
        self.register(name, turn_over=int(self.wall() * 1e9) + 10**6)
        self.model.end_turn((name, ""))

    @rule(holder=HOLDERS, now=RARELY)
    def end_agent(self, holder: Holder, now: bool):
        if now and holder[1]:
            self.at(holder[0]).locks.release_of_agent(self.rows[holder[0]], holder[1])
            self.model.end_agent(holder)
            self.even()

    def wall(self) -> float:
        return self.began + self.model.now

    @rule(holder=HOLDERS, names=REQUESTS, mode=MODES, ttl=TTLS, seconds=PATIENCE)
    def wait(self, holder: Holder, names, mode: str, ttl: float | None, seconds: float | None):
        self.wake(holder[0])
        store = self.at(holder[0])
        place = LockWait(self.rows[holder[0]], self.wanted(holder, names, mode, ttl), seconds)
        joined: list[Wait] = []

        def modelled():
            with contextlib.suppress(No):
                return self.model.acquire(holder, names, mode, ttl)
            wait = self.model.join(holder, names, mode, ttl, seconds)
            with contextlib.suppress(No):
                return self.model.acquire(holder, names, mode, ttl, wait)
            joined.append(wait)
            return None

        self.do("asked", lambda: place.advance(store), modelled)
        self.places += [(wait, place) for wait in joined]

    @rule(pick=PICKS)
    def advance(self, pick: int):
        if self.places:
            self.advance_one(*picked(self.places, pick))

    def advance_one(self, wait: Wait, place: LockWait) -> None:
        """Ask it again, after the longest pause between two looks."""
        self.pass_time(1)
        if (wait, place) not in self.places:
            return  # its session has been lost by then
        self.wake(wait.holder[0])
        store = self.at(wait.holder[0])
        over = wait.until is not None and self.model.now >= wait.until
        stands = wait in self.model.queue  # a waiter taken for dead has lost its place, and may take another
        given = (wait.holder, wait.names, wait.mode, wait.ttl, wait if stands and not over else None)
        if over and stands:
            self.model.queue.remove(wait)
        try:
            rows = place.advance(store)
        except SwarmError as error:
            self.check_end(error, wait, over, given)
        else:
            if rows is None:
                assert not over
                with pytest.raises(No):
                    self.model.acquire(*given)
                if not stands and store.queue.has(place.wanted.ticket, place.instance["id"]):
                    wait.fence, wait.seen = self.model.fence, self.model.now
                    self.model.queue.append(wait)
                elif stands:
                    self.check_sign(wait, place)
                self.even()
                return
            self.check_grants(rows, self.model.acquire(*given))
            Machine.counted["waited for"] += 1
        self.places.remove((wait, place))
        self.even()

    def check_sign(self, wait: Wait, place: LockWait) -> None:
        """Check that a waiter that is asked again sends heartbeats, every ten seconds at least."""
        (row,) = self.at(wait.holder[0]).database.rows(
            "SELECT seen FROM swarm_waiters WHERE ticket = ?", (place.wanted.ticket,)
        )
        assert row["seen"] == self.model.now or (row["seen"] == wait.seen and self.model.now - wait.seen < SIGN)
        Machine.counted["awake again"] += self.model.now - wait.seen >= SILENT
        wait.seen = row["seen"]

    def check_end(self, error: SwarmError, wait: Wait, over: bool, given) -> None:
        """Check a wait without a grant: time is over, its session has gone, or it would never have ended."""
        if wait not in self.model.queue:
            self.model.queue.append(wait)
        if isinstance(error, Deadlock):
            assert self.model.in_circle(wait)
        else:
            assert over if isinstance(error, LockRefused) else self.model.is_lost(wait.holder[0]), error
        self.model.queue.remove(wait)
        if not isinstance(error, Deadlock):
            with pytest.raises(No):
                self.model.acquire(*given[:4])
        Machine.counted[f"waited in vain: {type(error).__name__}"] += 1

    @rule(pick=PICKS, dies=st.booleans())
    def give_up(self, pick: int, dies: bool):
        """The wait is cancelled, or its process dies."""
        if not self.places:
            return
        wait, place = picked(self.places, pick)
        store = self.at(wait.holder[0])
        if dies:
            with store.database.writing():
                gone = (place.wanted.ticket,)
                store.database.change("UPDATE swarm_waiters SET pid = 4194305 WHERE ticket = ?", gone)
        else:
            place.give_up(store)
        if wait in self.model.queue:
            self.model.queue.remove(wait)
        self.places.remove((wait, place))
        self.even()

    def wake(self, name: str) -> None:
        """A session that has been silent for long is back, and says so before anything else."""
        if self.model.has_gone(name) and not self.model.is_lost(name):
            self.sign_of_life(name)

    def there(self) -> dict[str, float]:
        """The sessions that the stores know, each on its own machine, and when it last showed life."""
        return {
            row["session_id"]: row["last_seen"] - self.began
            for store in self.world.stores
            for row in store.database.rows("SELECT * FROM swarm_sessions WHERE runtime = 'claude-code'")
        }

    def settle(self) -> None:
        """Let the delayed discoveries happen: departed sessions with their places, and life in refused files."""
        while lost := [name for name in self.model.seen if name not in self.there()]:
            for name in lost:
                assert self.model.has_gone(name)
                self.lose(name)
        there = self.there()
        assert there.keys() == self.model.seen.keys()
        for name, seen in there.items():
            assert seen in (self.model.seen[name], self.model.now)
            self.model.seen[name] = seen
        tickets = {
            (row["instance_id"], row["ticket"])
            for store in self.world.stores
            for row in store.database.rows("SELECT * FROM swarm_waiters WHERE machine IS NULL")
        }
        for wait, place in self.places:
            if wait in self.model.queue and (place.instance["id"], place.wanted.ticket) not in tickets:
                assert self.model.has_gone(wait.holder[0]), "somebody who waits has lost its place"
                self.model.queue.remove(wait)
        renewed = {
            (row["instance_id"], row["agent"] or "", plain(row["file"])): row["renewed"]
            for store in self.world.stores
            for row in store.database.rows("SELECT * FROM context WHERE ttl IS NOT NULL AND machine IS NULL")
        }
        for grant in self.model.grants:
            if grant.ttl is not None and grant.mode != AUTO:
                session, agent = grant.holder
                path = self.path_of(grant.name, self.model.homes[session])
                found = renewed.get((self.rows[session]["id"], agent, path), grant.renewed)
                assert found in (grant.renewed, self.model.now), "a lease was renewed by nothing"
                grant.renewed = found

    @invariant()
    def each_store_holds_what_the_model_holds(self):
        self.settle()
        ids = {row["id"]: name for name, row in self.rows.items()}
        for home in range(len(self.readers)):
            store, found, told = self.on(home), {}, {}
            for row in store.locks.held(None):
                held = (ids[row["instance_id"]], row.get("agent", "")), row["file"]
                found[held] = row.get("mode", "exclusive"), row
            for grant in self.model.live():
                told[grant.holder, self.path_of(grant.name, home)] = grant.mode, grant
            assert {held: mode for held, (mode, _) in found.items()} == {held: mode for held, (mode, _) in told.items()}
            for held, (mode, row) in found.items():
                if mode != AUTO:
                    self.check_number(told[held][1], self.world.number(row))

    def path_of(self, name: str, home: int) -> str:
        return f"{self.folder_of(home)}/{name if '*' in name else name.rstrip('/')}"

    @invariant()
    def no_two_hold_the_same(self):
        """Ask the stores' own rows. Automatic locks hold on their own machine only."""
        for home in range(len(self.readers)):
            names = {self.path_of(name, home): name for name in NAMES}
            rows = list(self.on(home).locks.held(None))
            for number, one in enumerate(rows):
                for other in rows[:number]:
                    if one.get("mode") == other.get("mode") == SHARED:
                        continue
                    if AUTO in (one.get("mode"), other.get("mode")) and one.get("machine") != other.get("machine"):
                        continue
                    agents = {row.get("agent", "") for row in (one, other)}
                    if one["instance_id"] == other["instance_id"] and (len(agents) == 1 or "" in agents):
                        continue
                    assert not reach(names[one["file"]]) & reach(names[other["file"]]), (one, other)

    @invariant()
    def the_queue_is_in_order(self):
        ids = {row["id"]: name for name, row in self.rows.items()}
        for home in range(len(self.readers)):
            found = [((ids[row["instance_id"]], row["agent"]), row["mode"]) for row in self.on(home).queue.waiting()]
            assert found == [(wait.holder, wait.mode) for wait in self.model.waiting()], home

    @invariant()
    def a_hook_lets_pass_what_nobody_else_holds(self):
        """For one session, or agent of one, and some paths after each step: each has its turn."""
        self.turn += 1
        name, agent = SESSIONS[self.turn % 3], AGENTS[self.turn // 3 % 3]
        home = self.model.homes[name]
        store, reader, folder = self.at(name), self.readers[home], self.folder_of(home)
        session, now = reader.session("claude-code", name), store.now()
        if session is None or self.model.has_gone(name):
            return
        for path in PATHS[self.turn // 9 % 4 :: 4]:
            call = ToolCall("Write", {"file_path": f"{folder}/{path}"}, name, folder, agent=agent)
            others = TurnFiles("claude-code", call, reader, int(self.wall() * 1e9))
            peers = Peers(reader, session.instance_id, now, agent, others)
            denial = denied_by_lock(Writes(CLAUDE, call), session, peers, now)
            assert (denial is None) == self.model.may_write(name, agent, path), (path, denial and denial.reason)
        self.sound = True

    def drain(self) -> None:
        """All non-waiting sessions release their locks: then every waiter gets its lock, or is told."""
        for _ in range(3 * len(self.places) + 5):
            self.pass_time(SIGN)
            waiting = {wait.holder for wait, _place in self.places}
            for grant in list(self.model.grants):
                store = self.at(grant.holder[0])
                if grant.holder not in waiting and not self.model.has_gone(grant.holder[0]):
                    store.locks.release(self.rows[grant.holder[0]], grant.name, grant.holder[1])
                    self.model.give_back([grant])
            self.even()
            self.settle()
            for both in list(self.places):
                if both in self.places:
                    self.advance_one(*both)
                    self.settle()
        assert not self.places, "waiting for ever"


class Wall:
    """The time of day, for its users: each machine begins at another one."""

    began = 0
    ticks = itertools.count()  # no two moments are the same
    monotonic, sleep = staticmethod(time.monotonic), staticmethod(time.sleep)

    @classmethod
    def time(cls) -> float:
        return cls.began + Machine.clock.now

    @classmethod
    def time_ns(cls) -> int:
        return int(cls.time() * 1e9) + next(cls.ticks)


def run(make_world: Callable[[], OneMachine], examples: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Play so many `examples`, each in a world of its own."""
    Machine.make_world = staticmethod(make_world)
    Machine.counted.clear()
    # Keys of both kinds: locks in one folder must be found from the folders above it, and the reverse.
    monkeypatch.setattr(paths, "ignores_case", lambda path: "/sub/" in path)
    monkeypatch.setattr(clock, "now", lambda: Machine.clock.now)
    monkeypatch.setattr(clock, "awake", lambda: Machine.clock.now)
    for module in (turn_files, lock_finder, state):
        monkeypatch.setattr(module, "time", Wall)
    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=examples, stateful_step_count=STEPS, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )
    print(dict(Machine.counted))
