"""The guarantees of each verb of each part of the store."""

from __future__ import annotations

import inspect
import os
import re
import threading
from itertools import islice
from pathlib import Path

import pytest
from support.fixtures import Sleeper
from support.listings import rows_of

import swarm_mcp
from swarm_hook_core import clock
from swarm_hook_core.process import start_time
from swarm_mcp.domain.lock import SHARED
from swarm_mcp.domain.record import Record
from swarm_mcp.domain.run import CANCEL, ENDED, RUNNING
from swarm_mcp.domain.session import DETACHED, RUN_RUNTIME
from swarm_mcp.errors import Deadlock, LockRefused, Refused, SwarmError, UnknownInstance
from swarm_mcp.locking.acquisition import LockWait
from swarm_mcp.store import store as faces
from swarm_mcp.store.lock_request import Attempt, reach_of, request
from swarm_mcp.store.sessions import Registration


@pytest.fixture
def store(ground):
    with ground.store() as opened:
        yield opened


@pytest.fixture
def join(store, ground):
    """Register a session by its name, also its label."""

    def register(name: str, label: str = "", scope: str = "", client=(0, "")):
        client = client if client[0] else (os.getpid(), start_time(os.getpid()))
        facts = {"runtime": "codex", "session_id": name, "lease_seconds": 86400, "client": client}
        return store.instances.register(Registration(scope or ground.scope, label=label or name, **facts))

    return register


@pytest.fixture
def pair(join):
    return join("ann"), join("bob")


def mail(store, session) -> list[str]:
    taken = store.messages.take(session)
    store.messages.acknowledge([one.id for one in taken])
    return [one.content for one in taken]


# ------------------------------------------------------------------------- the interface itself


PARTS = [name for name, kind in vars(faces).items() if isinstance(kind, type) and issubclass(kind, faces.Part)]


@pytest.mark.parametrize("part", PARTS)
def test_every_verb_is_a_function_with_a_docstring_of_a_transaction(part):
    for name, verb in vars(getattr(faces, part)).items():
        if isinstance(verb, faces.verb):
            function = getattr(getattr(faces, part), name)
            first, *_ = inspect.signature(function).parameters
            assert first in ("tx", "db") and function.__doc__, f"{part}.{name}"


def test_a_verb_takes_what_its_function_takes_after_the_transaction(store):
    assert list(inspect.signature(store.locks.release).parameters) == ["instance", "file", "agent", "fence"]


def test_a_store_answers_for_itself(store):
    store.check_reading()
    store.check_writing()
    store.refresh()
    assert (
        store.exists()
        and store.described()["backend"]
        and store.here
        and store.journal()
        and store.now() > 1_600_000_000
    )


def test_a_row_cannot_be_changed(store, pair):
    row = store.instances.get(pair[0].id)
    assert isinstance(row, Record) and row.label == row["label"] == "ann" and row.get("nothing") is None
    for change in (
        lambda: row.update(label="x"),
        lambda: row.__setitem__("label", "x"),
        lambda: setattr(row, "label", 1),
    ):
        with pytest.raises(TypeError):
            change()
    assert row.replace(label="x").label == "x" and row.label == "ann"
    with pytest.raises(AttributeError):
        _ = row.nothing


# ------------------------------------------------------------------------------------- sessions


def test_a_session_is_found_by_what_it_is_called(store, ground, pair):
    ann, bob = pair
    assert [row.id for row in store.instances.in_scope(ground.scope)] == [ann.id, bob.id]
    assert store.instances.of_session("codex", "ann").id == ann.id and store.instances.of_session("codex", "x") is None
    assert store.instances.live(bob.id).label == "bob" and store.instances.get("nobody") is None
    assert store.instances.in_scope("/elsewhere") == []


def test_a_session_has_one_row_for_life(store, join):
    first = join("ann")
    again = join("ann", "another label")
    assert (again.id, store.instances.get(first.id).label) == (first.id, "another label")


def test_a_session_that_leaves_takes_all_it_has_along(store, pair):
    ann, bob = pair
    store.locks.acquire(ann, "f", "mine")
    task = store.tasks.request(bob, {"type": "fix", "title": "t", "assignee": ann.id})["task"]
    store.messages.send(bob, ann.id, "hello")
    assert store.instances.remove(ann.id) and not store.instances.remove(ann.id)
    assert list(store.locks.held(None)) == [] and store.instances.get(ann.id) is None
    assert (store.tasks.get(bob.scope, task.id).status, store.tasks.get(bob.scope, task.id).assignee) == ("open", None)
    with pytest.raises(SwarmError, match="no longer registered"):
        store.instances.show_life(ann.id)


def test_a_session_whose_client_is_killed_is_gone(store, join):
    with Sleeper() as client:
        dead = join("dead", client=client.identity)
        store.locks.acquire(dead, "f")
        client.end()
        assert store.instances.live(dead.id) is None and [row.id for row in store.instances.gone()] == [dead.id]
        assert list(store.locks.held(None)) == []
        heir = join("heir")
        assert store.locks.acquire(heir, "f").instance_id == heir.id
        assert store.instances.get(dead.id) is None


def test_a_session_is_open_in_several_clients_and_ends_with_the_last(store, join):
    with Sleeper() as one, Sleeper() as two:
        row = join("ann", client=one.identity)
        assert join("ann", client=two.identity).id == row.id
        assert {found.id for client in (one, two) for found in store.instances.of_client(*client.identity)} == {row.id}
        assert store.instances.is_session(row.id) and [one.id for one in store.instances.of_session_id("ann")] == [
            row.id
        ]
        assert not store.instances.end_session(row, two.identity) and store.instances.live(row.id)
        assert store.instances.of_client(*two.identity) == []
        assert store.instances.end_session(row, one.identity) and store.instances.get(row.id) is None


def test_a_session_takes_the_row_that_waits_for_it(store, ground, join):
    reserved = store.instances.register(Registration(ground.scope, label="kept", preassigned_id="reserved"))
    ann, bob = join("ann"), join("bob")
    store.locks.acquire(ann, "f")
    task = store.tasks.request(bob, {"title": "t", "assignee": ann.id})["task"]
    adopted = store.instances.adopt(ann, reserved.id)
    assert (adopted.id, adopted.label) == ("reserved", "kept")
    assert [lock.file for lock in store.locks.of("reserved")] == [f"{ground.scope}/f"]
    assert store.tasks.get(ground.scope, task.id).assignee == "reserved" and store.instances.get(ann.id) is None
    assert store.instances.of_session("codex", "ann").id == "reserved"
    assert store.instances.adopt(bob, "reserved") is None, "it is a session's now"
    assert store.instances.adopt(bob, "nobody") is None
    early = Registration(ground.scope, runtime="codex", session_id="cid", preassigned_id="early", lease_seconds=60)
    assert store.instances.register(early).id == "early"


def test_a_session_that_was_made_for_its_locks_goes_with_them(store, join):
    row = store.instances.register(
        Registration("/", runtime=DETACHED, session_id="hold", lease_seconds=600, client=(0, ""))
    )
    store.instances.forget(join("ann").id)
    store.locks.acquire(row, "/f")
    store.instances.forget(row.id)
    assert store.instances.get(row.id) and len(store.instances.in_scope(row.scope)) == 1
    store.locks.release(row, "/f")
    store.instances.forget(row.id)
    assert store.instances.get(row.id) is None


# ---------------------------------------------------------------------------------------- locks


@pytest.mark.parametrize(
    ("held", "asked", "meets"),
    [
        ("f", "f", True), ("f", "./x/../f", True), ("f", "g", False), ("src/", "src/a.py", True),
        ("src/a.py", "src/", True), ("src/", "src2/a.py", False), ("*.sql", "deep/x.sql", True),
        ("src/*.sql", "deep/src/x.sql", False),
        ("**/*.sql", "deep/x.sql", True), ("db/*.sql", "db/*.txt", False), ("db/*", "db/a*", True),
    ],
)  # fmt: skip
def test_locks_meet_by_what_they_reach(store, pair, held, asked, meets):
    ann, bob = pair
    (lock,) = store.locks.acquire_all(ann, request(ann, [held], note="why"))
    if meets:
        with pytest.raises(LockRefused) as refused:
            store.locks.acquire_all(bob, request(bob, [asked]))
        assert refused.value.active["instance_id"] == ann.id
        assert store.locks.in_the_way(bob, request(bob, [asked])).id == lock.id
    else:
        assert store.locks.acquire_all(bob, request(bob, [asked]))[0].fence > lock.fence
    assert [one.id for one in store.locks.meeting(reach_of(ann, held))][0] == lock.id


def test_a_storm_of_refusals_is_told_to_the_holder_and_then_to_who_leads(store, pair, join):
    ann, bob = pair
    lead = join("lead", "mode:gateway")
    (lock,) = store.locks.acquire_all(ann, request(ann, ["f"]))
    for times in (1, 2, 3, 3, 9):
        store.denials.report(bob, lock.file, ann.id, Attempt("Write", lock.file, times=times))
    assert len(mail(store, ann)) == 1 and mail(store, lead) == [] and store.storms.known(ann.scope, 9) == []
    for times in (10, 11):
        store.denials.report(bob, lock.file, ann.id, Attempt("Write", lock.file, times=times))
    (storm,) = store.storms.known(ann.scope, 9)
    assert (storm.instance_id, storm.holder_id, storm.file, storm.label) == (bob.id, ann.id, lock.file, "bob")
    assert storm.times >= 10 and mail(store, ann) == [] and len(mail(store, lead)) == 1
    store.locks.release(ann, "f")
    assert store.storms.known(ann.scope, 9) == []


def test_several_locks_are_taken_together_or_not_at_all(store, pair):
    ann, bob = pair
    store.locks.acquire(ann, "b")
    with pytest.raises(LockRefused):
        store.locks.acquire_all(bob, request(bob, ["a", "b", "c"]))
    assert store.locks.of(bob.id) == []
    assert len(store.locks.acquire_all(bob, request(bob, ["a", "c"]))) == 2


def test_what_is_locked_covers_what_is_under_it_and_nothing_over_it(store, ground, pair):
    store.locks.acquire(pair[0], "src/")
    assert len(store.locks.on(f"{ground.scope}/src/deep/a.py")) == 1
    assert store.locks.on(f"{ground.scope}/other.py") == store.locks.on(ground.scope) == []


def test_shared_locks_keep_out_exclusive_ones(store, pair):
    ann, bob = pair
    for one in pair:
        assert store.locks.acquire_all(one, request(one, ["f"], mode=SHARED))[0].mode == SHARED
    with pytest.raises(LockRefused):
        store.locks.acquire(bob, "f")
    store.locks.release(ann, "f")
    assert store.locks.acquire(bob, "f").mode is None


def test_asking_again_keeps_the_grant_and_a_release_names_it(store, pair):
    ann, _bob = pair
    first = store.locks.acquire(ann, "f", "a")
    again = store.locks.acquire(ann, "f", "b")
    assert again.fence == first.fence and [lock.content for lock in store.locks.of(ann.id)] == ["b"]
    with pytest.raises(LockRefused):
        store.locks.acquire(ann, "f", exclusive=True)
    with pytest.raises(Refused, match="no longer good"):
        store.locks.release(ann, "f", fence=first.fence + 1)
    assert store.locks.fences_held(ann.id, [first.fence, 99]) == {first.fence}
    assert (store.locks.release(ann, "f", fence=first.fence), store.locks.release(ann, "f")) == (1, 0)
    assert store.locks.acquire(ann, "f").fence > first.fence


def test_what_one_agent_of_a_session_holds_the_others_do_not(store, pair):
    ann, _bob = pair
    store.locks.acquire_all(ann, request(ann, ["f"], agent="helper"))
    with pytest.raises(LockRefused):
        store.locks.acquire_all(ann, request(ann, ["f"], agent="other"))
    assert store.locks.release_of_agent(ann, "helper") == [f"{ann.scope}/f"]
    assert store.locks.of(ann.id) == []


def test_strangers_see_that_a_file_is_held_and_no_more(store, join, ground):
    join("reader", "identity:b")
    store.locks.acquire(join("holder", "identity:a me"), "f", "secret")
    (shown,) = store.locks.held(ground.scope, "b")
    assert (shown["file"], shown["content"], shown["owner_label"], shown["hidden"]) == (
        f"{ground.scope}/f",
        "",
        None,
        True,
    )
    (shown,) = store.locks.held(None, "a")
    assert (shown["content"], shown["owner_label"]) == ("secret", "identity:a me")


def test_locks_are_listed_in_pages(store, join, ground):
    ann, bob, far = join("ann"), join("bob"), join("far", scope="/far")
    for number in range(7):
        store.locks.acquire(ann if number % 2 else bob, f"{ground.scope}/{number}")
    store.locks.acquire(far, "/far/elsewhere")
    names = [os.path.basename(lock["file"]) for lock in store.locks.held(ground.scope)]
    assert names == list("0123456") and store.locks.counts(ground.scope) == {"live": 7, "void": 0}
    places, first = zip(*islice(store.locks.walk(ground.scope), 3))
    store.locks.acquire(ann, f"{ground.scope}/1", "renewed in place")
    store.locks.release(bob, f"{ground.scope}/2")
    rest = [row for _, row in store.locks.walk(ground.scope, after=places[-1])]
    assert [os.path.basename(lock["file"]) for lock in (*first, *rest)] == names
    assert len(list(store.locks.held(None))) == 7 and store.locks.counts(None)["live"] == 7


def test_locks_are_found_by_the_names_of_what_they_are_on(store, pair, ground):
    ann, bob = pair
    for name in ("src/", "src/deep/a", "other", "*.md"):
        store.locks.acquire(ann, f"{ground.scope}/{name}")
    store.locks.acquire(bob, f"{ground.scope}/b")
    found = store.locks.by_name([f"{ground.scope}/{name}" for name in ("b", "src", "none", "src")])
    assert [os.path.relpath(lock.file, ground.scope) for lock in found] == ["src", "*.md", "b"]
    assert [lock.pattern for lock in store.locks.by_name(())] == ["/*.md"]


def test_the_foremost_locks_are_ones_own_then_those_waited_for(store, join, ground):
    ann, bob, cid = join("ann"), join("bob"), join("cid")
    for number in range(6):
        store.locks.acquire(ann if number in (0, 4) else bob, f"{ground.scope}/{number}")
    assert LockWait(cid, request(cid, [f"{ground.scope}/2"]), None).advance(store) is None
    found, shown = store.locks.foremost(ground.scope, "", 4, ann.id, store.queue.lengths())
    assert (found, [os.path.basename(lock["file"]) for lock in shown]) == (6, list("4025"))
    assert store.locks.foremost(ground.scope, "", 1, "", {})[1][0]["file"] == f"{ground.scope}/5"
    assert store.locks.foremost("/empty", "", 4, ann.id, {}) == (0, [])


def test_the_newest_locks_of_some_sessions(store, join, ground):
    ann, bob, cy = join("ann"), join("bob"), join("cy")
    rows = [store.locks.acquire(one, f"f{number}") for number, one in enumerate((cy, ann, bob, ann))]
    files = [lock["file"][-2:] for lock in store.locks.recent_of([ann.id, bob.id], "", 10)]
    assert files == ["f3", "f2", "f1"]
    files = [lock["file"][-2:] for lock in store.locks.recent_of([ann.id, bob.id], "", 2, [rows[0].id])]
    assert files == ["f0", "f3"]
    assert store.locks.counts_of([ann.id, cy.id, "nobody"], 10) == {ann.id: 2, cy.id: 1, "nobody": 0}
    assert store.locks.counts_of([ann.id], 1) == {ann.id: 1}


def test_who_was_refused_is_told_when_the_file_is_free(store, pair):
    ann, bob = pair
    store.locks.acquire(ann, "f")
    with pytest.raises(LockRefused):
        store.locks.acquire(bob, "f")
    assert mail(store, bob) == []
    store.locks.release(ann, "f")
    (word,) = mail(store, bob)
    assert "f" in word and "is free" in word
    store.locks.acquire(ann, "f")
    store.locks.release(ann, "f")
    assert mail(store, bob) == [], "once"


def test_what_is_known_of_a_lock_is_said_to_its_circle(store, join, ground):
    holder = join("holder", "identity:a me")
    lock = store.locks.acquire(holder, "src/", "why")
    file = f"{ground.scope}/src/f"
    assert store.locks.path_of(holder, "src/../src/f") == file
    assert [one.id for one in store.locks.covering(reach_of(holder, "src/f"))] == [lock.id]
    assert store.locks.covering(reach_of(holder, ".")) == []
    (found,) = store.locks.on(file)
    known, hidden = store.locks.describe(found, "a"), store.locks.active_on(file, "b")
    assert (known["instance_id"], known["content"], known["owner"]["label"]) == (holder.id, "why", "identity:a me")
    assert hidden["hidden"] and "why" not in str(hidden) and holder.id not in str(hidden)
    assert store.locks.listed(found, "a")["owner_label"] == "identity:a me" and store.locks.active_on("/x", "") is None
    hidden = {"file": found.file, "content": "", "owner_label": None, "instance_id": holder.id}
    assert store.instances.held_beside(join("stranger", "identity:b"), 5, "b") == (1, [hidden])
    shown = {**hidden, "content": "why", "owner_label": "identity:a me"}
    assert store.instances.held_beside(join("reader", "identity:a"), 5, "a") == (1, [shown])
    assert store.instances.held_beside(holder, 5, "a") == (0, [])


def test_a_refusal_that_happened_elsewhere_is_kept_until_the_file_is_free(store, pair):
    ann, bob = pair
    file = f"{ann.scope}/f"
    assert store.denials.report(bob, file, ann.id, "Write") is False and "is free" in mail(store, bob)[0]
    store.locks.acquire(ann, "f")
    assert store.denials.report(bob, file, ann.id, "Write") is True and mail(store, bob) == []
    assert store.denials.files(bob.id, 5) == [file] and store.denials.files(ann.id, 5) == []
    store.locks.release(ann, "f")
    assert len(mail(store, bob)) == 1 and store.denials.files(bob.id, 5) == []


def test_what_only_a_person_may_do_is_an_event_and_what_is_lowered_is_told(store, pair):
    ann, bob = pair
    before = store.events_so_far()
    assert store.protection.attempted(ann.scope, ann.id, "swarm-mcp auto off") is True
    assert store.protection.attempted(ann.scope, ann.id, "swarm-mcp auto off") is False, "the same, just now"
    assert store.protection.attempted(ann.scope, None, "sqlite3 x", "/s/swarm.db", "Bash") is True
    store.protection.lowered(ann.scope, bob.id, "auto", "the level is off now")
    assert [("off now" in text) for text in mail(store, ann)] == [True] and mail(store, bob) == []
    found = store.activity.timeline(ann.scope, 0, store.now() + 1, 9, ("protection",))
    kinds = [(row.type, row.actor, row.subject) for row in found]
    assert kinds == [
        ("protection.lowered", bob.id, "auto"), ("protection.attempted", None, "/s/swarm.db"),
        ("protection.attempted", ann.id, "swarm-mcp auto off"),
    ]  # fmt: skip
    assert store.events_so_far() >= before + 3


def test_a_held_file_that_changes_is_written_down_and_told_once(store, pair):
    ann, bob = pair
    file = f"{ann.scope}/f"
    change = {"file": file, "holder_id": ann.id, "kind": "changed", "kept": "/kept/1", "at": store.now()}
    assert store.breaches.report(bob, "Bash", "make", [change]) == [], "nobody holds it"
    store.locks.acquire(ann, "f")
    (number,) = store.breaches.report(bob, "Bash", "make", [change])
    assert store.breaches.report(bob, "Bash", "make", [change]) == [], "told already"
    (word,) = mail(store, ann)
    assert file in word
    (row,) = store.breaches.of(file, [])
    assert (row.id, row.writer_id, row.holder_id, row.kept, row.command) == (number, bob.id, ann.id, "/kept/1", "make")
    restored = store.breaches.restored(bob, file, "/kept/2", "/kept/1", ann.scope)
    assert [one.id for one in store.breaches.known(ann.scope)] == [restored, number]
    assert len(mail(store, ann)) == 1 and store.breaches.known("/elsewhere") == []
    assert [one.id for one in store.breaches.of("/other/name", [row.path_key])] == [restored, number]


def test_one_dispatch_at_a_time_starts_a_worker(store, pair):
    ann, bob = pair
    task = store.tasks.request(ann, {"title": "t"})["task"]
    lock = store.spawn_locks.take(ann, "/__swarm/spawn/any/1", task.id, "worker")
    assert store.spawn_locks.take(bob, lock.file, task.id, "other") is None
    assert store.spawn_locks.holder(ann.scope, lock.file).id == lock.id
    assert store.spawn_locks.worker_of(lock) is None and list(store.locks.held(ann.scope)) == [], "it is no file"
    store.spawn_locks.started(lock, {"instance_id": bob.id})
    assert store.spawn_locks.worker_of(store.spawn_locks.holder(ann.scope, lock.file)).id == bob.id
    store.tasks.end(ann, task.id, "cancelled")
    again = store.spawn_locks.take(bob, lock.file, task.id, "other")
    assert again.id != lock.id
    store.spawn_locks.release(again, "over")
    assert store.spawn_locks.holder(ann.scope, lock.file) is None


# ------------------------------------------------------------------------------------ the queue


def test_first_come_first_served(store, join):
    ann, bob, cid = join("ann"), join("bob"), join("cid")
    store.locks.acquire(ann, "f")
    waits = {who: LockWait(row, request(row, ["f"]), None) for who, row in (("bob", bob), ("cid", cid))}
    assert all(wait.advance(store) is None for wait in waits.values())
    assert [place.instance_id for place in store.queue.waiting_for(reach_of(ann, "f"))] == [bob.id, cid.id]
    assert store.queue.lengths() == {store.locks.on(f"{ann.scope}/f")[0].id: 2}
    store.locks.release(ann, "f")
    with pytest.raises(LockRefused):
        store.locks.acquire(ann, "f")
    assert waits["cid"].advance(store) is None
    assert waits["bob"].advance(store)[0].instance_id == bob.id
    store.locks.release(bob, "f")
    assert waits["cid"].advance(store)[0].instance_id == cid.id and store.queue.waiting() == []


def test_who_waits_is_told_who_holds_and_who_goes_before(store, join, ground):
    ann, bob, cy = join("ann"), join("bob"), join("cy")
    for reader in (ann, bob):
        store.locks.acquire_all(reader, request(reader, ["f"], mode=SHARED))
    waits = [LockWait(cy, request(cy, ["f"]), 60), LockWait(ann, request(ann, ["f"], mode=SHARED), 60)]
    late = join("late")
    waits.append(LockWait(late, request(late, ["f", "g"]), 60))
    assert [wait.advance(store) is None for wait in waits] == [True, False, True]
    first, last = store.queue.waiting()
    assert {one.instance_id for one in store.queue.obstacles(first)} == {ann.id, bob.id}
    *held, before = store.queue.obstacles(last)
    assert {one.instance_id for one in held} == {ann.id, bob.id}
    assert (before.instance_id, before.ticket) == (cy.id, first.ticket)
    assert len(store.queue.obstacles(last, 1)) == 2


def test_a_circle_of_waiters_is_refused_to_the_one_that_would_close_it(store, pair):
    ann, bob = pair
    store.locks.acquire(ann, "a")
    store.locks.acquire(bob, "b")
    first = LockWait(ann, request(ann, ["b"]), None)
    assert first.advance(store) is None
    with pytest.raises(Deadlock):
        LockWait(bob, request(bob, ["a"]), None).advance(store)
    store.locks.release(bob, "b")
    assert first.advance(store)


def test_a_holder_passes_those_that_wait_for_it(store, pair):
    ann, bob = pair
    store.locks.acquire(ann, "src/")
    wait = LockWait(bob, request(bob, ["src/"]), None)
    assert wait.advance(store) is None
    assert store.locks.acquire(ann, "src/a.py"), "it would wait for itself otherwise"
    wait.give_up(store)
    assert store.queue.waiting() == []


# --------------------------------------------------------------------------- leases, transfers


def test_a_lease_lapses_unless_its_session_shows_life(store, pair, monkeypatch):
    ann, bob = pair
    begin = clock.now()
    later = lambda seconds: monkeypatch.setattr(clock, "now", lambda: begin + seconds)  # noqa: E731
    later(0)
    store.locks.acquire_all(ann, request(ann, ["f"], ttl=60))
    later(50)
    store.instances.show_life(ann.id)
    later(100)
    assert 0 < store.locks.left(store.locks.on(f"{ann.scope}/f")[0]) < 60
    later(120)
    assert store.locks.on(f"{ann.scope}/f") == []
    assert store.locks.acquire(bob, "f").instance_id == bob.id
    store.leases.some()
    assert any("lapsed" in word for word in mail(store, ann))
    with pytest.raises(Refused):
        store.leases.renew_lock(ann, "f")


def test_what_lapsed_and_went_to_another_is_known(store, pair, monkeypatch):
    ann, bob = pair
    begin = clock.now()
    assert store.leases.next_due() is None and not store.leases.is_due(ann.id)
    monkeypatch.setattr(clock, "now", lambda: begin)
    store.locks.acquire_all(ann, request(ann, ["f"], ttl=60))
    assert 0 < store.leases.next_due() <= 60 and not store.leases.is_due(ann.id)
    monkeypatch.setattr(clock, "now", lambda: begin + 30)
    assert store.leases.is_due(ann.id) and not store.leases.is_due(bob.id)
    monkeypatch.setattr(clock, "now", lambda: begin + 70)
    assert store.leases.some() and store.leases.overtaken(ann.id) == []
    fence = store.locks.acquire(bob, "f").fence
    (lapse,) = store.leases.overtaken(ann.id)
    assert (lapse.file, lapse.taken_by, lapse.taken_fence) == (f"{ann.scope}/f", bob.id, fence)
    (notice,) = store.notices.take(ann)
    assert "lapsed" in notice.text and "bob" in notice.text
    store.messages.acknowledge([notice.id])
    assert store.notices.take(ann) == mail(store, ann) == []


def test_a_lock_is_renewed_by_name_and_grant(store, pair):
    ann, _bob = pair
    lock = store.locks.acquire(ann, "f")
    assert store.locks.left(store.leases.renew_lock(ann, "f", fence=lock.fence, ttl=30)) > 20
    with pytest.raises(Refused):
        store.leases.renew_lock(ann, "f", fence=lock.fence + 1)


def test_a_transfer_goes_past_those_that_wait_and_is_another_grant(store, join):
    ann, bob, cid = join("ann"), join("bob"), join("cid")
    lock = store.locks.acquire(ann, "f", "note")
    wait = LockWait(cid, request(cid, ["f"]), None)
    assert wait.advance(store) is None
    given = store.transfers.transfer(ann, "f", bob.id)
    assert (given.instance_id, given.content) == (bob.id, "note") and given.fence > lock.fence
    assert len(mail(store, bob)) == 1 and wait.advance(store) is None
    store.locks.release(bob, "f")
    assert wait.advance(store)
    for to, error in ((ann.id, Refused), ("nobody", UnknownInstance)):
        with pytest.raises(error):
            store.transfers.transfer(ann, "f", to)
    with pytest.raises(Refused):
        store.transfers.transfer(ann, "f", bob.id)


def test_a_holder_is_asked_and_a_dead_or_forced_one_is_robbed(store, pair):
    ann, bob = pair
    store.locks.acquire(ann, "f")
    assert [lock.instance_id for lock in store.transfers.request(bob, "f", "need it")] == [ann.id]
    assert "need it" in mail(store, ann)[0]
    with pytest.raises(LockRefused):
        store.transfers.steal(bob, "f")
    done = store.transfers.steal(bob, "f", force=True)
    assert done["lock"].instance_id == bob.id and [lock.instance_id for lock in done["taken"]] == [ann.id]
    assert any("was taken" in word for word in mail(store, ann))
    with pytest.raises(Refused):
        store.transfers.request(bob, "free")


# ------------------------------------------------------------------------------------- messages


def test_mail_is_delivered_once(store, pair):
    ann, bob = pair
    number = store.messages.send(ann, bob.id, "one")
    store.messages.send(ann, bob.id, "[task:t] two")
    assert [one.content for one in store.messages.peek(bob)] == ["one", "[task:t] two"]
    assert [one.content for one in store.messages.take(bob, about="t")] == ["[task:t] two"]
    store.messages.acknowledge([number])
    assert mail(store, bob) == [], "the other is on its way to this very process"
    assert [one.content for one in rows_of(store.messages.walk(ann.scope, to=bob.id))[:1]] == ["[task:t] two"]


def test_who_may_not_meet_does_not_write(store, join):
    ann, bob, far = join("ann", "identity:a"), join("bob", "identity:b"), join("far", "identity:a", scope="/")
    for to, error in ((bob.id, Refused), (far.id, UnknownInstance), ("nobody", UnknownInstance)):
        with pytest.raises(error):
            store.messages.send(ann, to, "x")
    with pytest.raises(Refused):
        store.messages.send(ann, ann.id, "  ")
    peer = join("peer", "identity:a")
    assert store.messages.broadcast(ann, "all") == [peer.id] and mail(store, peer) == ["all"]


def test_a_hook_tells_of_a_lock_that_was_handed_over_and_mail_waits_for_a_poll(store, pair):
    ann, bob = pair
    store.locks.acquire(ann, "f")
    store.messages.send(ann, bob.id, "later")
    store.transfers.transfer(ann, "f", bob.id)
    (notice,) = store.notices.take(bob)
    assert "handed" in notice.text and store.notices.take(ann) == []
    store.messages.acknowledge([notice.id])
    assert mail(store, bob) == ["later"] and store.notices.take(bob) == []


def test_a_message_is_handed_over_once(store, pair):
    ann, bob = pair
    for _ in range(2):
        store.messages.hand_over(ann, bob.id, "the task", "the task, in short", read_too=False)
    assert mail(store, bob) == ["the task"]
    store.messages.hand_over(ann, bob.id, "the task, in short", "the task", read_too=True)
    assert mail(store, bob) == []
    store.messages.hand_over(ann, bob.id, "the task", "", read_too=False)
    store.messages.write_down(ann.scope, ann.id, bob.id, "typed into its terminal")
    assert store.messages.counts(ann.scope, 0) == {"unread": 1, "recent": 3}
    assert mail(store, bob) == ["the task"]
    assert [one.content for one in rows_of(store.messages.walk(ann.scope))[:1]] == ["typed into its terminal"]


# ---------------------------------------------------------------------------------------- tasks


def ask(store, who, title: str, **more):
    return store.tasks.request(who, {"type": "fix", "title": title, **more})["task"]


def test_a_task_goes_from_hand_to_hand(store, pair):
    ann, bob = pair
    task = ask(store, ann, "t", files=["f"], priority=2)
    assert (task.status, task.files, task.requester) == ("open", [f"{ann.scope}/f"], ann.id)
    begun = store.tasks.claim(bob, task.id)
    assert (begun["task"].status, begun["prior_status"]) == ("in_progress", "open")
    with pytest.raises(Refused):
        store.tasks.claim(ann, task.id)
    with pytest.raises(Refused):
        store.tasks.end(ann, task.id, "done")
    store.tasks.report_progress(bob, task.id, "half", blocked_reason="rain")
    assert store.tasks.seen(ann, task.id).blocked_reason == "rain"
    store.locks.acquire(bob, "f")
    ended = store.tasks.end(bob, task.id, "done", "well")
    assert (ended["task"].status, ended["task"].result) == ("done", "well") and ended["notices"][0][0] == ann.id
    assert store.locks.of(bob.id) == [] and len(mail(store, ann)) == 1
    assert store.tasks.counts(ann)["done"] == 1


def test_the_most_urgent_is_claimed_first_and_ones_own_before(store, pair):
    ann, bob = pair
    low, high = ask(store, ann, "low"), ask(store, ann, "high", priority=5)
    mine = ask(store, ann, "mine", assignee=bob.id)
    order = [store.tasks.claim_next(bob, ignore_unread=True)["task"].id for _ in range(3)]
    assert order == [mine.id, high.id, low.id]
    with pytest.raises(Refused):
        store.tasks.claim_next(bob)


def test_a_key_makes_a_task_once(store, pair):
    first = store.tasks.request(pair[0], {"title": "t", "idempotency_key": "k"})
    again = store.tasks.request(pair[0], {"title": "other", "idempotency_key": "k"})
    assert again["existing"] and again["task"].id == first["task"].id and not first["existing"]


@pytest.mark.parametrize(("end", "after"), [("done", "open"), ("failed", "cancelled"), ("cancelled", "cancelled")])
def test_what_waits_for_a_task_follows_its_end(store, pair, end, after):
    ann, _bob = pair
    first = ask(store, ann, "first")
    second = ask(store, ann, "second", depends_on=[first.id])
    third = ask(store, ann, "third", depends_on=[second.id])
    assert (second.status, third.status) == ("blocked", "blocked")
    store.tasks.claim(ann, first.id)
    store.tasks.end(ann, first.id, end)
    assert store.tasks.get(ann.scope, second.id).status == after
    assert store.tasks.get(ann.scope, third.id).status == ("blocked" if end == "done" else "cancelled")
    late = ask(store, ann, "late", depends_on=[first.id])
    assert late.status == after


def test_a_task_waits_for_approval(store, pair):
    task = ask(store, pair[0], "t", approval_required=True, assignee=pair[1].id)
    assert task.status == "approval_required"
    with pytest.raises(Refused):
        store.tasks.claim(pair[1], task.id, ignore_unread=True)
    assert store.tasks.approve(pair[0], task.id)["task"].status == "claimed"


def test_new_work_waits_until_the_mail_is_read(store, pair):
    ann, bob = pair
    task = ask(store, ann, "t", assignee=bob.id)
    store.messages.send(ann, bob.id, "about it")
    with pytest.raises(Refused, match="Read your mail"):
        store.tasks.claim(bob, task.id)
    mail(store, bob)
    assert store.tasks.claim(bob, task.id)["task"].status == "in_progress"


def test_a_batch_is_made_as_a_whole(store, pair):
    ann, bob = pair
    specs = [{"title": "first", "assignee": bob.id}, {"title": "second", "assignee": bob.id, "depends_on": ["$1"]}]
    made = store.tasks.request_batch(ann, specs)
    assert [(one["status"], one["new"]) for one in made["tasks"]] == [("claimed", True), ("blocked", True)]
    assert [who for who, _text in made["notices"]] == [bob.id] and len(mail(store, bob)) == 1
    with pytest.raises(Refused):
        store.tasks.request_batch(ann, [{"title": "third"}, {"title": "fourth", "depends_on": ["nothing"]}])
    assert len(rows_of(store.tasks.walk(ann))) == 2


def test_who_does_what_at_a_glance(store, pair):
    ann, bob = pair
    mine, theirs, done = ask(store, ann, "mine"), ask(store, ann, "theirs", assignee=bob.id), ask(store, ann, "done")
    store.tasks.claim(ann, mine.id)
    store.tasks.end(ann, done.id, "cancelled")
    assert [task.id for task in store.tasks.unfinished_of(ann)] == [mine.id]
    assert [task.id for task in store.tasks.at_work_beside(ann, 5)] == [theirs.id]
    assert store.tasks.current(ann)["terminal_counts"] == {"done": 0, "failed": 0, "cancelled": 1}
    assert "cancelled" not in store.tasks.current(ann, include_terminal=False)
    assert [task.id for task in store.tasks.glance(ann)["in_progress"]] == [mine.id]
    ended = store.tasks.complete(ann, mine.id, {"summary": "well", "followups": ["more"]})
    assert ended["result"]["followups"] == ["more"] and '"summary":"well"' in ended["task"].result.replace(": ", ":")


# ------------------------------------------------------------------------------- values and runs


def test_a_value_belongs_to_the_identity_that_set_it(store, join):
    ann, bob, nobody = join("ann", "identity:a"), join("bob", "identity:b"), join("c", "plain")
    store.kv.put(ann, "k/1", "v")
    store.kv.put(nobody, "k/2", "w")
    for write in (lambda: store.kv.put(bob, "k/1", "x"), lambda: store.kv.delete(bob, "k/1")):
        with pytest.raises(Refused):
            write()
    assert store.kv.get(ann.scope, "k/1", "identity:a").value == "v"
    assert store.kv.get(ann.scope, "k/1", "identity:b") is None and store.kv.count(ann.scope, "identity:b") == 1
    assert [row.key for row in rows_of(store.kv.walk(ann.scope, "k/"))] == ["k/1", "k/2"]
    assert [store.kv.append(bob, "list", text) for text in ("1.50", '"x"')] == [1, 2]
    assert store.kv.get(ann.scope, "list").value == '[1.50,"x"]'
    assert store.kv.delete(ann, "k/1") and not store.kv.delete(ann, "k/1")


def test_a_run_is_found_and_asked_until_it_has_ended(store, pair):
    facts = {"scope": pair[0].scope, "instance_id": pair[0].id, "harness": "claude", "cwd": "/"}
    supervisor = {"host": store.here, "supervisor_pid": os.getpid(), "supervisor_start": start_time(os.getpid())}
    store.runs.begin({"id": "run-1", "task_id": "task-1", **facts, **supervisor})
    store.runs.begin({"id": "run-2", "task_id": "other", **facts, **supervisor})
    assert store.runs.find(pair[0].scope, "task-1").id == store.runs.find(pair[0].scope, "run-1").id == "run-1"
    with pytest.raises(Refused):
        store.runs.find(pair[0].scope, "run-")
    store.runs.update("run-1", state=RUNNING, usage={"tokens": 3})
    assert store.runs.ask("run-1", CANCEL).control == CANCEL and store.runs.get("run-1").usage == {"tokens": 3}
    assert {run.id for run in store.runs.live()} == {"run-1", "run-2"}
    assert store.runs.update("run-1", state=ENDED).ended_at is not None
    with pytest.raises(Refused):
        store.runs.ask("run-1", CANCEL)
    assert [run.id for run in store.runs.live(pair[0].scope)] == ["run-2"]
    assert store.runs.of_instance(pair[0].id).id == "run-2" and store.runs.get("none") is None


def test_a_run_takes_its_childs_session_in_and_back(store, ground):
    supervisor, child = (os.getpid(), start_time(os.getpid())), (os.getppid(), start_time(os.getppid()))
    row = store.instances.register(
        Registration(ground.scope, runtime=RUN_RUNTIME, session_id="run-1", client=supervisor, lease_seconds=600)
    )
    facts = {"id": "run-1", "scope": ground.scope, "instance_id": row.id, "harness": "claude", "cwd": "/"}
    owner = {"host": store.here, "supervisor_pid": supervisor[0], "supervisor_start": supervisor[1]}
    store.runs.begin({**facts, **owner, "task_id": "task-1"})
    assert store.runs.admit(row.id, child).client_pid == child[0] and store.runs.admit("other", child) is None
    with Sleeper() as another:
        assert store.runs.admit(row.id, another.identity) is None, "one child at a time"
    assert not store.instances.end_session(row) and store.runs.get("run-1").client_pid is None
    assert store.instances.get(row.id) and store.instances.of_session(RUN_RUNTIME, "run-1").id == row.id
    assert store.runs.session_of("task-1", "claude") is None
    store.runs.update("run-1", session_params={"session": "s"}, state=ENDED)
    assert store.runs.session_of("task-1", "claude") == {"session": "s"}
    assert [run.id for run in store.runs.of_task(ground.scope, "task-1")] == ["run-1"] and not store.runs.take_back("x")


def test_one_planner_owns_the_plan_until_it_leaves(store, join, ground):
    first, second = join("ann", "role:planner"), join("bob", "role:planner")
    join("cid", "role:implementer")
    assert store.planner.owner(ground.scope)["instance_id"] == first.id and store.planner.owner("/elsewhere") is None
    store.instances.remove(first.id)
    assert store.planner.owner(ground.scope)["instance_id"] == second.id
    join("bob", "role:reviewer")
    assert store.planner.owner(ground.scope) is None
    assert join("dan", "role:planner").id == store.planner.owner(ground.scope)["instance_id"]


def test_a_task_has_an_entry_in_the_work_tracker_of_its_identity(store, join):
    ann, bob = join("ann", "identity:a"), join("bob")
    assert store.tracker.of(ann) is None and store.tracker.entry(ann, "linear", "t") is None
    store.kv.put(bob, "config/work_tracker/default", '{"provider": "linear"}')
    assert store.tracker.of(ann)["value"] == store.tracker.of(bob)["value"] == {"provider": "linear"}
    store.kv.put(ann, "config/work_tracker/a", '{"provider": "jira"}')
    assert store.tracker.of(ann)["value"] == {"provider": "jira"}
    made = store.tracker.link(ann, "jira", "t", "J-1", "https://tracker.test/J-1")
    assert made == store.tracker.entry(ann, "jira", "t") and made["identifier"] == "J-1"
    assert store.tracker.entry(ann, "linear", "t") is None and store.tracker.entry(bob, "jira", "t") is None
    with pytest.raises(SwarmError):
        store.tracker.link(bob, "jira", "t", "J-1")


def test_a_pane_keeps_its_names_when_it_is_moved(store, pair):
    ann, bob = pair
    store.panes.republish(ann, {"HERDR_PANE_ID": "p1"})
    known = store.panes.published(ann.id)
    assert (known["handle"], known["backend"]) == ("p1", "herdr") and store.panes.published(bob.id) == {}
    assert store.panes.repair(ann, known, {"pane_id": "p2", "workspace_id": "w", "tab_id": ""})
    assert not store.panes.repair(ann, known, {"pane_id": "p3", "workspace_id": "", "tab_id": ""}), "out of date"
    store.panes.republish(ann, {"HERDR_PANE_ID": "p1"})
    moved = store.panes.published(ann.id)
    assert (moved["handle"], moved["handle_aliases"]) == ("p2", ["p1"]), "the environment keeps the first name"
    assert store.panes.with_session({"id": ann.id})["workspace_handle"] == "p2"
    assert store.panes.with_lock({"instance_id": ann.id})["pane_id"] == "p2"
    assert store.panes.with_lock({"instance_id": bob.id}) == {"instance_id": bob.id}


def test_orders_to_a_user_interface_stand_in_line(store, pair):
    ann, _bob = pair
    first = store.ui_commands.enqueue(ann.scope, ann.id, "spawn_shell", {"cwd": "/"})
    second = store.ui_commands.enqueue(ann.scope, None, "send_prompt", {"text": "hi"})
    assert (first.status, first.payload, store.ui_commands.get(first.id)) == ("pending", {"cwd": "/"}, first)
    assert [one.id for one in store.ui_commands.recent(ann.scope)] == [second.id, first.id]
    assert [one.id for one in store.ui_commands.recent(ann.scope, "pending", 1)] == [second.id]
    assert store.ui_commands.recent(ann.scope, "done") == store.ui_commands.recent("/elsewhere") == []
    assert store.ui_commands.outcome(first.id, 0).status == "pending" and store.ui_commands.get(99) is None
    for wrong in (lambda: store.ui_commands.recent(ann.scope, "lost"), lambda: store.ui_commands.outcome(99, 0)):
        with pytest.raises(SwarmError):
            wrong()


def test_cleaning_counts_what_is_due_and_a_dry_run_leaves_it(store, join, ground):
    bob = join("bob")
    with Sleeper() as client:
        dead = join("dead", client=client.identity)
        store.locks.acquire(dead, "f")
        task = ask(store, bob, "t", assignee=dead.id)
    told = store.cleanup.clean(ground.scope, dry_run=True)
    assert store.instances.get(dead.id) and store.cleanup.clean("/elsewhere")["instances_reclaimed"] == 0
    done = store.cleanup.clean(ground.scope)
    due = {"instances_reclaimed": 1, "tasks_reopened": 1, "locks_deleted": 1, "messages_deleted": 0}
    assert {name: told[name] for name in due} == {name: done[name] for name in due} == due
    assert store.instances.get(dead.id) is None and store.tasks.get(ground.scope, task.id).status == "open"


# ------------------------------------------------------------------------------ what has happened


def test_a_session_hears_of_what_others_do(store, pair):
    ann, bob = pair
    before = store.activity.moment(bob)
    store.locks.acquire(bob, "mine")
    assert store.activity.since(bob, before).changes == []
    store.locks.acquire(ann, "theirs")
    store.messages.send(ann, bob.id, "x")
    ask(store, ann, "t")
    store.kv.put(ann, "k", "v")
    news = store.activity.since(bob, before)
    assert set(news.changes) == {"lock_updates", "new_messages", "task_updates", "kv_updates"}
    assert store.activity.since(bob, news.moment).changes == []
    assert [event.subject for event in store.activity.of_locks(None, 5)] == [f"{ann.scope}/theirs", f"{ann.scope}/mine"]


def test_a_feed_tells_an_onlooker_what_its_circle_does(store, join, ground):
    ann, bob = join("ann", "identity:a"), join("bob", "identity:b")
    own, far = store.activity.feed(ground.scope, "a"), store.activity.feed("/elsewhere", "a")
    store.kv.put(ann, "k", "v")
    store.kv.put(bob, "secret", "v")
    store.locks.acquire(ann, "f")
    told = own.read()
    assert [event.get("type") for event in told] == ["kv.set", None, "context.lock_acquired"]
    assert told[0]["actor_label"] == "identity:a" and "secret" not in str(told) and own.read() == far.read() == []
    assert len(store.activity.feed(ground.scope, "a", told[0]["id"]).read()) == 2
    known = store.activity.acquaintance("identity:a")
    assert known.may_meet(ann.id) and not known.may_meet(bob.id) and known.label_of(bob.id) == "identity:b"
    assert [event.subject for event in store.activity.of_sessions([bob.id])] == [bob.id]


def test_what_happened_to_locks_and_sessions_in_a_while(store, pair, join):
    ann, _bob = pair
    store.locks.acquire(ann, "f")
    store.tasks.request(ann, {"type": "fix", "title": "t"})
    store.locks.release(ann, "f")
    now = store.now()
    names = [event.type for event in store.activity.timeline(ann.scope, now - 60, now, 10)]
    assert names == [
        "context.lock_released", "context.lock_acquired", "instance.registered", "instance.registered",
    ]  # fmt: skip
    assert [event.type for event in store.activity.timeline("", now - 60, now, 1)] == names[:1]
    assert store.activity.timeline("/elsewhere", now - 60, now, 10) == []
    assert store.activity.timeline("", now - 60, now - 30, 10) == []


def test_where_sessions_are(store, join, ground):
    join("ann")
    assert store.instances.scopes(10) == [ground.scope]
    join("bob", scope="/elsewhere")
    assert sorted(store.instances.scopes(10)) == sorted([ground.scope, "/elsewhere"])
    assert len(store.instances.scopes(1)) == 1


def test_a_change_wakes_who_waits_for_one(store, pair):
    with store.changes() as changes:
        assert not changes.wait(0)
        store.kv.put(pair[0], "k", "v")
        assert changes.wait(30) and not changes.wait(0)
        waiter = threading.Thread(target=lambda: changes.wait(None))
        waiter.start()
        changes.stop()
        waiter.join(30)
        assert not waiter.is_alive() and changes.stopped


def test_nobody_but_the_store_knows_what_it_is_kept_in():
    """No SQL, and no way around the interface, in the coordinator outside of the store's own package.

    The set-up of a team's server is exempt.
    """
    package = Path(swarm_mcp.__file__).parent
    words = re.compile(r"\bSELECT .* FROM\b|\bPRAGMA\b|INSERT INTO|DELETE FROM|\bstore\.(database|_\w+)")
    others = [path for path in package.rglob("*.py") if path.relative_to(package).parts[0] != "store"]
    others.remove(package / "team" / "migrations.py")
    assert [f"{path.name}: {found[0]}" for path in others if (found := words.search(path.read_text()))] == []
