"""Automatic locks: a write's claim is a lock to every caller of the store, until the turn ends."""

from __future__ import annotations

import os
import time

import pytest
from support.altered import Limits

from swarm_hook_core.process import start_time
from swarm_hook_core.traces import claims
from swarm_mcp.domain.lock import AUTO
from swarm_mcp.errors import Deadlock, LockRefused, StoreUnavailable
from swarm_mcp.locking.acquisition import LockWait
from swarm_mcp.store import automatic_locks, claimed, locks, transfers
from swarm_mcp.store.lock_request import request
from swarm_mcp.store.sessions import Registration

HERE = (os.getpid(), start_time(os.getpid()))


class Place:
    """One store and two sessions in it, registered by hooks; `file` in their spelling."""

    def __init__(self, store, scope: str):
        self.store, self.scope = store, scope
        self.ann, self.bob = self.join("ann"), self.join("bob")
        self.file = f"{scope}/a.py"

    def join(self, name: str, turn_over: int = 0):
        facts = {"runtime": "codex", "session_id": name, "lease_seconds": 86400, "client": HERE}
        return self.store.instances.register(Registration(self.scope, label=name, turn_over=turn_over, **facts))

    def write(self, name: str, file: str = "", agent: str = "", ago: float = 0.0) -> claims.Claim:
        """A hook of this session lets a write pass; the claim that stands."""
        path = file or self.file
        at = time.time_ns() - int(ago * 10**9)
        return claims.make(path, path, "codex", name, agent, "Edit", at)

    def locks(self, file: str = "") -> list[tuple]:
        """Return the holder of the file, and the mode."""
        return [(lock.owner_label, lock.mode) for lock in self.store.locks.on(file or self.file)]

    def wants(self, row, **given):
        return request(row, [self.file], **given)


@pytest.fixture
def place(ground):
    with ground.store() as store:
        yield Place(store, ground.scope)


def events(place: Place, kind: str) -> list:
    return [one for one in place.store.activity.of_locks(None, 100) if one.type == f"context.{kind}"]


def test_what_a_write_has_claimed_is_a_lock(place: Place):
    assert place.locks() == []
    place.write("ann")
    assert place.locks() == [("ann", AUTO)]
    assert claims.standing() == [], "the store has it now"
    (shown,) = place.store.locks.held(place.scope)
    assert (shown["mode"], shown["content"], shown["file"]) == (AUTO, "editing it in this turn", place.file)
    assert place.store.locks.count_of(place.ann.id) == 1


def test_a_claim_on_what_somebody_else_holds_waits_until_that_is_free(place: Place):
    """The hook that made it may look at the locks only after this one is given back, and let the write pass."""
    place.store.locks.acquire(place.bob, place.file)
    place.write("ann")
    assert place.locks() == [("bob", None)] and len(claims.standing()) == 1
    place.store.locks.release(place.bob, place.file)
    assert place.locks() == [("ann", AUTO)] and claims.standing() == []


@pytest.mark.parametrize("what", ["a.py", "."])
def test_a_claim_on_what_its_session_has_asked_for_adds_nothing(place: Place, what: str):
    place.store.locks.acquire(place.ann, f"{place.scope}/{what}", note="mine")
    place.write("ann")
    assert place.locks() == [("ann", None)] and claims.standing() == []


def test_a_claim_of_who_has_gone_or_is_void_is_nothing(place: Place):
    place.write("ann", ago=601), place.write("nobody", f"{place.scope}/b")
    assert place.locks() == [] and place.locks(f"{place.scope}/b") == []
    place.write("ann")
    place.store.instances.remove(place.ann.id)
    assert place.locks() == []


def test_a_session_s_agents_may_write_what_it_has_and_not_the_other_way_round(place: Place):
    place.write("ann")
    assert place.locks() == [("ann", AUTO)]
    place.write("ann", agent="x")
    (lock,) = place.store.locks.on(place.file)
    assert lock.agent is None and claims.standing() == []
    place.write("ann", f"{place.scope}/b", agent="x")
    (lock,) = place.store.locks.on(f"{place.scope}/b")
    assert lock.agent == "x"


def test_a_folder_that_a_write_has_made_is_not_locked(place: Place):
    made = f"{place.scope}/made"
    place.write("ann", made)
    os.mkdir(made)
    assert place.locks(f"{made}/f") == [] and claims.standing() == []


def test_only_a_further_write_renews_it(place: Place):
    place.write("ann", ago=500)
    (lock,) = place.store.locks.on(place.file)
    assert 99 < place.store.locks.left(lock) <= 100
    place.store.instances.show_life(place.ann.id)
    place.join("ann")
    assert place.store.leases.keep(place.ann.id) is None
    (lock,) = place.store.locks.on(place.file)
    assert place.store.locks.left(lock) <= 100
    place.write("ann")
    (again,) = place.store.locks.on(place.file)
    assert place.store.locks.left(again) > 590 and (again.id, again.fence) == (lock.id, lock.fence)


def test_ten_minutes_after_the_last_write_it_lapses_without_a_word(place: Place, clocks):
    place.write("ann")
    assert place.locks() == [("ann", AUTO)]
    clocks.ahead(boot=601)
    assert place.locks() == []
    assert place.store.locks.acquire(place.bob, place.file).fence
    assert place.store.messages.peek(place.ann) == [] and place.store.leases.overtaken(place.ann.id) == []


def test_its_holder_is_not_warned(place: Place):
    place.write("ann", ago=550)
    assert place.locks() == [("ann", AUTO)]
    assert place.store.leases.some() and not place.store.leases.some()
    assert place.store.messages.peek(place.ann) == []


@pytest.mark.parametrize("asked", [True, False])
def test_it_ends_with_the_turn(place: Place, asked: bool):
    place.write("ann"), place.write("ann", f"{place.scope}/b", agent="x")
    if asked:
        assert place.locks() == [("ann", AUTO)]
    place.store.locks.acquire(place.ann, f"{place.scope}/c")
    place.join("ann", turn_over=time.time_ns())
    assert place.locks() == []
    assert place.locks(f"{place.scope}/b") == [("ann", AUTO)], "that agent goes on"
    assert place.locks(f"{place.scope}/c") == [("ann", None)], "it was asked for"
    place.store.locks.release_of_agent(place.ann, "x")
    assert place.locks(f"{place.scope}/b") == [] and claims.standing() == []


@pytest.mark.parametrize("asked", [True, False])
def test_what_the_next_turn_has_written_stays(place: Place, asked: bool):
    over = time.time_ns()
    place.write("ann", ago=-1)
    if asked:
        assert place.locks() == [("ann", AUTO)]
    place.join("ann", turn_over=over)
    assert place.locks() == [("ann", AUTO)]


def test_who_was_refused_is_told_when_the_turn_is_over(place: Place):
    place.write("ann")
    with pytest.raises(LockRefused):
        place.store.locks.acquire(place.bob, place.file)
    place.join("ann", turn_over=time.time_ns())
    (message,) = place.store.messages.peek(place.bob)
    assert "is free" in message.content


def test_whoever_waits_in_a_circle_through_automatic_locks_is_told(place: Place):
    other = f"{place.scope}/b"
    place.write("ann"), place.write("bob", other)
    assert LockWait(place.ann, request(place.ann, [other]), 60).advance(place.store) is None
    with pytest.raises(Deadlock):
        LockWait(place.bob, place.wants(place.bob), 60).advance(place.store)


@pytest.mark.parametrize("once", [True, False])
def test_its_holder_makes_an_ordinary_lock_of_it(place: Place, once: bool):
    place.write("ann")
    (auto,) = place.store.locks.on(place.file)
    (lock,) = place.store.locks.acquire_all(place.ann, place.wants(place.ann, note="for longer", once=once))
    assert (lock.mode, lock.content, lock.ttl, lock.fence) == (None, "for longer", None, auto.fence)
    place.write("ann")
    place.join("ann", turn_over=time.time_ns())
    assert place.locks() == [("ann", None)]


def test_it_can_be_handed_over_and_then_is_an_ordinary_one(place: Place):
    place.write("ann")
    lock = place.store.transfers.transfer(place.ann, place.file, place.bob.id)
    assert (lock.mode, lock.content) == (None, "")
    place.join("bob", turn_over=time.time_ns())
    assert place.locks() == [("bob", None)]


def test_it_can_be_asked_for_and_taken(place: Place):
    place.write("ann")
    (lock,) = place.store.transfers.request(place.bob, place.file, "mine soon")
    assert lock.mode == AUTO
    assert place.store.notices.take(place.ann)
    place.store.transfers.steal(place.bob, place.file, force=True)
    place.write("ann")
    assert place.locks() == [("bob", None)]


def test_grant_and_end_are_on_record(place: Place):
    place.write("ann")
    place.locks()
    place.join("ann", turn_over=time.time_ns())
    (begun,), (ended,) = events(place, "lock_acquired"), events(place, "lock_released")
    assert '"mode": "auto"' in begun.payload and begun.actor == place.ann.id
    assert '"mode": "auto"' in ended.payload and '"reason": "turn_ended"' in ended.payload


def test_nothing_is_written_where_nothing_is_claimed_and_no_claim_is_adopted_twice(place: Place):
    place.write("ann")
    assert place.locks() == [("ann", AUTO)]
    changes = place.store.database.connection.total_changes
    assert place.locks() == [("ann", AUTO)] and list(place.store.locks.held(None))
    assert place.store.database.connection.total_changes == changes


def test_a_claim_of_another_store_s_session_stays(place: Place):
    place.write("elsewhere")
    assert place.locks() == [] and [one.session_id for one in claims.standing()] == ["elsewhere"]


def test_who_only_reads_has_it_written(place: Place, ground):
    place.write("ann")
    with ground.store(read_only=True) as store:
        assert [lock.mode for lock in store.locks.on(place.file)] == [AUTO]
    assert claims.standing() == []


def test_where_the_store_cannot_be_written_who_reads_leaves_claims_alone(place: Place, ground, failing):
    place.write("ann")
    with ground.store(read_only=True) as store:
        failing(automatic_locks.Database, "writing", StoreUnavailable("the store is in a sandbox"))
        assert store.locks.on(place.file) == []
    assert len(claims.standing()) == 1


def test_a_claim_stays_until_its_lock_is_committed(place: Place):
    """After a kill in between, the next caller adopts it again."""
    place.write("ann")
    with pytest.raises(RuntimeError), place.store.database.writing() as tx:
        assert claimed.adopt_in(tx) and len(claims.standing()) == 1
        raise RuntimeError
    assert len(claims.standing()) == 1 and place.locks() == [("ann", AUTO)]


def test_a_write_made_while_its_claim_is_adopted_is_not_forgotten(place: Place):
    place.write("ann", ago=500)
    with place.store.database.writing() as tx:
        claimed.adopt_in(tx)
        place.write("ann")
    assert len(claims.standing()) == 1
    (lock,) = place.store.locks.on(place.file)
    assert place.store.locks.left(lock) > 590


def test_what_is_known_of_a_lock_before_the_transaction_is_looked_at_again(place: Place, monkeypatch):
    """A pattern is looked for before the transaction; a claim may come in between."""
    wanted = request(place.bob, ["*.py"], as_pattern=True)
    look = locks._look

    def claimed_meanwhile(*arguments):
        found = look(*arguments)
        place.write("ann")
        monkeypatch.setattr(locks, "_look", look)
        return found

    monkeypatch.setattr(locks, "_look", claimed_meanwhile)
    with pytest.raises(LockRefused):
        place.store.locks.acquire_all(place.bob, wanted)


@pytest.mark.parametrize("is_taken_back", [False, True], ids=["let pass", "denied"])
def test_a_claim_made_while_a_lock_is_committed_is_met_afterwards(
    place: Place, monkeypatch: pytest.MonkeyPatch, limits: Limits, is_taken_back: bool
) -> None:
    """Its hook may have looked at the store before the commit: then it lets its write pass."""
    through, made = locks.grants.grant, list[claims.Claim]()

    def granting(*given):
        found = through(*given)
        if not made:
            made.append(place.write("ann"))
        return found

    def paused(_seconds: float) -> None:
        claims.take_back(made[0])

    monkeypatch.setattr(locks.grants, "grant", granting)
    monkeypatch.setattr(automatic_locks.time, "sleep", paused)
    if is_taken_back:
        place.store.locks.acquire(place.bob, place.file)
        assert place.locks() == [("bob", None)]
        return
    limits(automatic_locks, YIELD_SECONDS=0)
    with pytest.raises(LockRefused):
        place.store.locks.acquire(place.bob, place.file)
    assert place.locks() == [("ann", AUTO)]


def test_a_claim_made_while_a_free_file_is_taken_by_force_is_taken_too(
    place: Place, monkeypatch: pytest.MonkeyPatch, limits
) -> None:
    """Else the session with the passed write, and the thief, would both have it."""
    through, made = locks.grants.grant, list[claims.Claim]()

    def granting(*given):
        found = through(*given)
        if not made:
            made.append(place.write("ann"))
        return found

    monkeypatch.setattr(locks.grants, "grant", granting)
    limits(automatic_locks, YIELD_SECONDS=0)
    done = place.store.transfers.steal(place.bob, place.file, "it hangs", force=True)
    assert [row.instance_id for row in done["taken"]] == [place.ann.id]
    assert place.locks() == [("bob", None)] and claims.standing() == []
    assert "was taken by" in place.store.messages.peek(place.ann)[-1]["content"]


def test_a_claim_made_while_its_session_hands_the_file_over_keeps_the_taker_out_for_that_turn(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the giver's own hook can let a write pass meanwhile: others meet the giver's lock, or the taker's."""
    through, made = transfers.lock_rows.next_fence, list[claims.Claim]()

    def next_fence(tx):
        made.append(place.write("ann"))
        return through(tx)

    place.store.locks.acquire(place.ann, place.file)
    monkeypatch.setattr(transfers.lock_rows, "next_fence", next_fence)
    place.store.transfers.transfer(place.ann, place.file, place.bob.id)
    assert len(made) == 1 and place.locks() == [("bob", None)]
    assert claims.others("codex", "bob", "", [place.file], time.time_ns()), "the taker's hook denies its writes"
    claims.end("codex", "ann")
    assert not claims.others("codex", "bob", "", [place.file], time.time_ns()) and place.locks() == [("bob", None)]


@pytest.mark.parametrize(("gone", "living"), [("a.py", "b.py"), ("b.py", "a.py")])
def test_a_claim_of_who_has_gone_hides_no_other_made_while_locks_are_committed(
    place: Place, monkeypatch: pytest.MonkeyPatch, limits: Limits, gone: str, living: str
) -> None:
    place.join("cat")
    through, made, departed = locks.grants.grant, list[claims.Claim](), automatic_locks.departed

    def granting(*given):
        found = through(*given)
        if not made:
            made.append(place.write("cat", f"{place.scope}/{gone}"))
            made.append(place.write("ann", f"{place.scope}/{living}"))
        return found

    monkeypatch.setattr(locks.grants, "grant", granting)
    limits(automatic_locks, YIELD_SECONDS=0)
    monkeypatch.setattr(automatic_locks, "departed", lambda row, *at: row.label == "cat" or departed(row, *at))
    with pytest.raises(LockRefused):
        place.store.locks.acquire_all(place.bob, request(place.bob, [f"{place.scope}/a.py", f"{place.scope}/b.py"]))
    assert place.locks(f"{place.scope}/{living}") == [("ann", AUTO)]
