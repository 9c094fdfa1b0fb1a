"""Automatic locks: the files that sessions have for their turns are locks to every caller of the store."""

import os
import time

import pytest
from support import turns
from support.altered import Limits

from swarm_hook_core.process import start_time
from swarm_hook_core.traces import turn_files
from swarm_mcp.domain import AUTO
from swarm_mcp.errors import Deadlock, LockRefused
from swarm_mcp.locking.acquisition import LockWait
from swarm_mcp.store import lock_finder, locks
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

    def write(self, name: str, file: str = "", agent: str = "", ago: float = 0.0) -> None:
        """A hook of this session lets a write pass."""
        turns.write(("codex", name), file or self.file, agent, ago)

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


def test_what_a_write_has_taken_is_a_lock(place: Place):
    assert place.locks() == []
    place.write("ann")
    assert place.locks() == [("ann", AUTO)]
    (shown,) = place.store.locks.held(place.scope)
    assert (shown["mode"], shown["content"], shown["file"]) == (AUTO, "editing it in this turn", place.file)
    assert place.store.locks.count_of(place.ann.id) == 1


def test_what_somebody_else_has_locked_is_shown_by_that_lock(place: Place):
    """The hook may look at the locks only after this one is given back, and let the write pass."""
    place.store.locks.acquire(place.bob, place.file)
    place.write("ann")
    assert place.locks() == [("bob", None)]
    place.store.locks.release(place.bob, place.file)
    assert place.locks() == [("ann", AUTO)]


@pytest.mark.parametrize("what", ["a.py", "."])
def test_a_write_of_what_its_session_has_asked_for_adds_nothing(place: Place, what: str):
    place.store.locks.acquire(place.ann, f"{place.scope}/{what}", note="mine")
    place.write("ann")
    assert place.locks() == [("ann", None)]


def test_a_file_behind_a_lock_is_given_up_without_a_word(place: Place):
    """Nobody is told that it is free: the lock still covers it."""
    place.store.locks.acquire(place.ann, place.scope)
    place.write("ann")
    assert place.store.locks.release(place.ann, place.file) == 0 and place.locks() == [("ann", None)]
    place.store.locks.release(place.ann, place.scope)
    assert place.locks() == []


def test_an_agent_locks_a_folder_with_what_its_session_has_for_its_turn(place: Place, monkeypatch: pytest.MonkeyPatch):
    """The session's own file refuses nothing to its agent, so the lock is not given back for it, again and again."""
    monkeypatch.setattr(lock_finder, "YIELD_SECONDS", 0)
    place.write("ann")
    (lock,) = place.store.locks.acquire_all(place.ann, request(place.ann, [place.scope], agent="x"))
    assert (lock.agent, place.locks()) == ("x", [("ann", None)])


def test_what_one_had_who_has_gone_or_is_void_is_nothing(place: Place):
    place.write("ann", ago=601), place.write("nobody", f"{place.scope}/b")
    assert place.locks() == [] and place.locks(f"{place.scope}/b") == []
    place.write("ann")
    place.store.instances.remove(place.ann.id)
    assert place.locks() == []


def test_a_folder_that_a_write_has_made_is_not_locked(place: Place):
    made = f"{place.scope}/made"
    place.write("ann", made)
    os.mkdir(made)
    assert place.locks(f"{made}/f") == [] and place.locks(made) == []


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
    assert place.store.locks.left(again) > 590 and again.id == lock.id


def test_ten_minutes_after_the_last_write_it_lapses_without_a_word(place: Place):
    place.write("ann", ago=601)
    assert place.locks() == []
    assert place.store.locks.acquire(place.bob, place.file).fence
    assert place.store.messages.peek(place.ann) == [] and place.store.leases.overtaken(place.ann.id) == []


def test_its_holder_is_not_warned(place: Place):
    place.write("ann", ago=550)
    assert place.locks() == [("ann", AUTO)]
    assert not place.store.leases.some()
    assert place.store.messages.peek(place.ann) == []


def test_it_ends_with_the_turn(place: Place):
    place.write("ann"), place.write("ann", f"{place.scope}/b", agent="x")
    assert place.locks() == [("ann", AUTO)]
    place.store.locks.acquire(place.ann, f"{place.scope}/c")
    place.join("ann", turn_over=time.time_ns())
    assert place.locks() == []
    assert place.locks(f"{place.scope}/b") == [("ann", AUTO)], "that agent goes on"
    assert place.locks(f"{place.scope}/c") == [("ann", None)], "it was asked for"
    place.store.locks.release_of_agent(place.ann, "x")
    assert place.locks(f"{place.scope}/b") == [] and turns.held() == []


def test_what_the_next_turn_has_written_stays(place: Place):
    over = time.time_ns()
    place.write("ann", ago=-1)
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
    (lock,) = place.store.locks.acquire_all(place.ann, place.wants(place.ann, note="for longer", once=once))
    assert (lock.mode, lock.content, lock.ttl) == (None, "for longer", None)
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


def test_another_store_s_session_holds_nothing_here(place: Place):
    place.write("elsewhere")
    assert place.locks() == [] and turns.holders() == ["elsewhere"]


def test_its_holder_releases_it(place: Place):
    place.write("ann")
    with pytest.raises(LockRefused):
        place.store.locks.acquire(place.bob, place.file)
    assert place.store.locks.release(place.bob, place.file) == 0
    assert place.store.locks.release(place.ann, place.file) == 1 and place.locks() == []
    (message,) = place.store.messages.peek(place.bob)
    assert "is free" in message.content and turns.held() == []


def test_it_is_counted_and_listed_where_locks_are(place: Place):
    for number in range(3):
        place.write("ann", f"{place.scope}/{number}", ago=9 - number)
    place.store.locks.acquire(place.bob, place.file)
    listed = list(place.store.locks.walk(place.scope))
    names = [os.path.basename(row["file"]) for _cursor, row in listed]
    assert names == ["a.py", "0", "1", "2"]
    for place_of_it, (cursor, _row) in enumerate(listed):
        rest = [os.path.basename(row["file"]) for _, row in place.store.locks.walk(place.scope, after=cursor)]
        assert rest == names[place_of_it + 1 :]
    assert [os.path.basename(row["file"]) for _, row in place.store.locks.walk_of(place.ann.id)] == ["0", "1", "2"]
    assert place.store.locks.counts(None) == {"live": 4, "void": 0}
    assert place.store.locks.counts_of([place.ann.id, place.bob.id], 9) == {place.ann.id: 3, place.bob.id: 1}
    count, some = place.store.locks.foremost(place.scope, "", 3, place.bob.id, [])
    assert (count, [os.path.basename(row["file"]) for row in some]) == (4, ["a.py", "2", "1"])
    recent = place.store.locks.recent_of([place.ann.id], "", 2)
    assert [os.path.basename(row["file"]) for row in recent] == ["2", "1"]
    assert [row.file for row in place.store.locks.by_name([f"{place.scope}/1"])] == [f"{place.scope}/1"]
    count, few = place.store.instances.held_beside(place.bob, 2, "")
    assert (count, [row["instance_id"] for row in few]) == (3, [place.ann.id] * 2)


def test_what_is_known_of_a_lock_before_the_transaction_is_looked_at_again(place: Place, monkeypatch):
    """A pattern is looked for before the transaction; a write may come in between."""
    wanted = request(place.bob, ["*.py"], as_pattern=True)
    look = locks._look

    def written_meanwhile(*arguments):
        found = look(*arguments)
        place.write("ann")
        monkeypatch.setattr(locks, "_look", look)
        return found

    monkeypatch.setattr(locks, "_look", written_meanwhile)
    with pytest.raises(LockRefused):
        place.store.locks.acquire_all(place.bob, wanted)


def written_once(place: Place, monkeypatch: pytest.MonkeyPatch, module, name: str, *files: tuple[str, str]) -> None:
    """Have these sessions write these files when a function is first called: between a look and a commit."""
    through, made = getattr(module, name), list[str]()

    def writing(*given):
        if not made:
            for who, file in files:
                place.write(who, file)
                made.append(who)
        return through(*given)

    monkeypatch.setattr(module, name, writing)


@pytest.mark.parametrize("is_taken_back", [False, True], ids=["let pass", "denied"])
def test_a_write_that_begins_while_a_lock_is_committed_is_met_afterwards(
    place: Place, monkeypatch: pytest.MonkeyPatch, limits: Limits, is_taken_back: bool
) -> None:
    """Its hook may have looked at the store before the commit: then it lets its write pass."""
    written_once(place, monkeypatch, locks.grants, "grant", ("ann", place.file))
    monkeypatch.setattr(lock_finder.time, "sleep", lambda _seconds: turns.take_back(("codex", "ann"), place.file))
    if is_taken_back:
        place.store.locks.acquire(place.bob, place.file)
        assert place.locks() == [("bob", None)]
        return
    limits(lock_finder, YIELD_SECONDS=0)
    with pytest.raises(LockRefused):
        place.store.locks.acquire(place.bob, place.file)
    assert place.locks() == [("ann", AUTO)]


def test_a_write_that_begins_while_a_free_file_is_taken_by_force_loses_it_too(
    place: Place, monkeypatch: pytest.MonkeyPatch, limits: Limits
) -> None:
    """Else the session with the passed write, and the thief, would both have it."""
    written_once(place, monkeypatch, locks.grants, "grant", ("ann", place.file))
    limits(lock_finder, YIELD_SECONDS=0)
    done = place.store.transfers.steal(place.bob, place.file, "it hangs", force=True)
    assert [row.instance_id for row in done["taken"]] == [place.ann.id]
    assert place.locks() == [("bob", None)] and turns.held() == []
    assert "was taken by" in place.store.messages.peek(place.ann)[-1]["content"]


def test_a_write_that_begins_while_its_session_hands_the_file_over_keeps_the_taker_out_for_that_turn(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the giver's own hook can let a write pass meanwhile: others meet the giver's lock, or the taker's."""
    place.store.locks.acquire(place.ann, place.file)
    written_once(place, monkeypatch, locks.lock_rows, "next_fence", ("ann", place.file))
    place.store.transfers.transfer(place.ann, place.file, place.bob.id)
    assert place.locks() == [("bob", None)] and turns.holders(place.file) == ["ann"], "bob's hook denies its writes"
    turn_files.end("codex", "ann")
    assert turns.held() == [] and place.locks() == [("bob", None)]


def test_what_is_handed_over_was_written_by_its_giver_no_longer(place: Place) -> None:
    place.write("ann")
    place.store.locks.acquire(place.ann, place.file)
    place.store.transfers.transfer(place.ann, place.file, place.bob.id)
    assert turns.held() == [], "the taker may write at once"


@pytest.mark.parametrize(("gone", "living"), [("a.py", "b.py"), ("b.py", "a.py")])
def test_one_who_has_gone_hides_no_other_write_that_begins_while_locks_are_committed(
    place: Place, monkeypatch: pytest.MonkeyPatch, limits: Limits, gone: str, living: str
) -> None:
    place.join("cat")
    departed = lock_finder.departed
    files = ("cat", f"{place.scope}/{gone}"), ("ann", f"{place.scope}/{living}")
    written_once(place, monkeypatch, locks.grants, "grant", *files)
    limits(lock_finder, YIELD_SECONDS=0)
    monkeypatch.setattr(lock_finder, "departed", lambda row, *at: row.owner_label == "cat" or departed(row, *at))
    with pytest.raises(LockRefused):
        place.store.locks.acquire_all(place.bob, request(place.bob, [f"{place.scope}/a.py", f"{place.scope}/b.py"]))
    assert place.locks(f"{place.scope}/{living}") == [("ann", AUTO)]


def test_shared_locks_over_what_one_of_their_holders_has_for_its_turn_are_granted(place: Place) -> None:
    place.store.locks.acquire_all(place.ann, place.wants(place.ann, mode="shared"))
    place.write("ann")
    place.store.locks.acquire_all(place.bob, place.wants(place.bob, mode="shared"))
    assert sorted(place.locks()) == [("ann", "shared"), ("bob", "shared")]
