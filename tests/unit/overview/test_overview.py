"""The viewers' rows: sessions, files, queues and events; bounded, and without strangers' words."""

import os
import subprocess

import pytest
from support.sessions import fault_lines
from support.traced import Player
from support.world import some_time_passes

from swarm_hook_core.traces import place_of
from swarm_mcp.answers.people import People
from swarm_mcp.answers.timeline import newest, refusals, timeline
from swarm_mcp.answers.work import Edit, edits, journal_marks
from swarm_mcp.errors import Deadlock, UnknownInstance
from swarm_mcp.locking.acquisition import LockWait
from swarm_mcp.store import Store
from swarm_mcp.store.lock_request import request
from swarm_mcp.view.overview.cards import session_whole
from swarm_mcp.view.overview.now import FILES, Line, Obstacle, checkouts, circles, lines, now


def wait(store, session, *files: str, **given) -> LockWait:
    waiting = LockWait(session, request(session, files, **given), 60)
    assert waiting.advance(store) is None
    return waiting


def test_who_holds_waits_for_and_has_edited_a_file(ground, store: Store, ann: dict, bob: dict):
    file = f"{ground.scope}/f"
    ground.lock(ann, file, "busy with it")
    wait(store, bob, file)
    found = now(store, ground.scope, People(store), [Edit(file, bob.id, "bob", 1, "Edit")])
    assert [(one.id, one.held, one.waiting, one.edited) for one in found.sessions] == [
        (ann.id, 1, 0, 0), (bob.id, 0, 1, 1),
    ]  # fmt: skip
    (shown,) = found.files
    assert shown.path == file and shown.conflict == "changed by one, held by another"
    assert [(one.instance_id, one.note, one.mode) for one in shown.holds] == [(ann.id, "busy with it", "exclusive")]
    assert [line.instance_id for line in shown.waits] == [bob.id]
    assert [one.tool for one in shown.edits] == ["Edit"]
    assert (found.lock_count, found.session_count) == (1, 2)


def test_who_waits_for_a_file_in_a_locked_folder_is_shown_with_the_folder(ground, store: Store, ann: dict, bob: dict):
    os.mkdir(f"{ground.scope}/src")
    ground.lock(ann, f"{ground.scope}/src/")
    wait(store, bob, f"{ground.scope}/src/f")
    (shown,) = now(store, ground.scope, People(store)).files
    assert (shown.path, shown.conflict) == (f"{ground.scope}/src", "waited for")


def test_of_many_files_those_that_somebody_waits_for_stand_first_and_the_others_are_counted(ground, store, ann, bob):
    for number in range(12):
        ground.lock(ann, f"{ground.scope}/{number}")
    wait(store, bob, f"{ground.scope}/0")
    found = now(store, ground.scope, People(store), limit=5)
    assert [one.path for one in found.files][0] == f"{ground.scope}/0"
    assert (len(found.files), found.lock_count) == (5, 12)
    assert FILES <= 100


def test_a_line_says_what_it_waits_for_and_behind_whom(ground, store: Store):
    ann, bob, cy = ground.session("ann"), ground.session("bob"), ground.session("cy")
    file = f"{ground.scope}/f"
    lock = ground.lock(ann, file)
    wait(store, bob, file)
    wait(store, cy, file)
    first, second = lines(store, ground.scope, People(store)).waiting
    assert (first.instance_id, first.files, first.mode) == (bob.id, (file,), "exclusive")
    assert [(one.instance_id, one.lock_id) for one in first.obstacles] == [(ann.id, lock.id)]
    assert [(one.instance_id, one.lock_id) for one in second.obstacles] == [(ann.id, lock.id), (bob.id, "")]
    assert lines(store, "/elsewhere", People(store)).waiting == []
    cut = lines(store, "", People(store), limit=1)
    assert (len(cut.waiting), cut.more) == (1, 1)


def waiting_for(who: str, *others: str) -> Line:
    obstacles = tuple(Obstacle(other, other, "", "/f", "1") for other in others)
    return Line(1, "", who, who, "", "exclusive", ("/f",), 0.0, None, False, obstacles)


@pytest.mark.parametrize(
    "waits, found",
    [
        ([("a", "b"), ("b", "c")], []),
        ([("a", "b"), ("b", "a")], [["a", "b"]]),
        ([("b", "c"), ("c", "a", "x"), ("a", "b")], [["a", "b", "c"]]),
        ([("a", "b", "c"), ("b", "a"), ("c", "a")], [["a", "b"], ["a", "c"]]),
        ([("x", "a"), ("a", "b"), ("b", "a")], [["a", "b"]]),
    ],
)
def test_circles_of_those_who_wait_for_each_other(waits, found):
    assert sorted(circles([waiting_for(*one) for one in waits])) == found


def test_what_has_happened_is_told_oldest_first(ground, store: Store, ann: dict, bob: dict):
    file = f"{ground.scope}/f"
    ground.lock(ann, file, "mine")
    assert ground.swarm("lock", file, "--as", bob.id).code == 1
    waiting = wait(store, bob, file)
    store.locks.release(ann, file)
    assert waiting.advance(store)
    found = timeline(store, ground.scope, People(store), 0, store.now() + 1)
    assert [one.what for one in found.happenings] == ["joined", "joined", "acquired", "denied", "released", "acquired"]
    denial = found.happenings[3]
    assert (denial.instance_id, denial.other, denial.note) == (bob.id, ann.id, "mine")
    assert [one.id for one in refusals(store, ground.scope, People(store), 0, 5)] == [denial.id]
    assert not found.is_cut
    newest = timeline(store, "", People(store), 0, store.now() + 1, limit=2)
    assert [one.what for one in newest.happenings] == ["released", "acquired"] and newest.is_cut
    assert timeline(store, "/elsewhere", People(store), 0, store.now() + 1).happenings == []


def test_how_long_a_lock_was_waited_for_is_on_record(ground, store: Store, ann: dict, bob: dict):
    file = f"{ground.scope}/f"
    ground.lock(ann, file)
    waiting = wait(store, bob, file)
    ground.sql("UPDATE swarm_waiters SET since = since - 5")
    store.locks.release(ann, file)
    assert waiting.advance(store)
    got = timeline(store, ground.scope, People(store), 0, store.now() + 1).happenings[-1]
    assert got.what == "acquired" and 5 <= got.waited < 60


def test_what_nobody_locked_is_shown_with_whoever_has_changed_it(ground, store: Store):
    git = ["git", "-C", str(ground.repo), "-c", "user.name=t", "-c", "user.email=t@t", "-c", "commit.gpgsign=false"]
    subprocess.run([*git, "init", "-q"], check=True)
    assert edits(store, ground.scope, People(store)) == [] and journal_marks(ground.scope) == {}
    ann, bob = (Player("claude-code", ground.repo) for _ in range(2))
    file = str(ground.repo / "f")
    assert ann.writes("f", "ann\n") == ""
    bob.runs("echo bob >> f")  # her line stays
    assert (ground.repo / "f").read_text() == "ann\nbob\n"
    found = edits(store, ground.scope, People(store))
    assert {one.instance_id for one in found} == {ann.row["id"], bob.row["id"]} and {one.path for one in found} == {
        file
    }
    assert len(journal_marks(ground.scope)) == 2
    in_the_way = os.path.join(place_of(ground.scope), "codex.eve")
    os.mkdir(in_the_way)
    assert edits(store, ground.scope, People(store)) == found and in_the_way in fault_lines()[-1]["fault"]
    os.rmdir(in_the_way)
    subprocess.run([*git, "add", "-A"], check=True)
    subprocess.run([*git, "commit", "-qm", "all"], check=True)
    assert edits(store, ground.scope, People(store)) == []


def test_a_session_that_has_taken_its_change_back_is_not_named(ground, store: Store):
    git = ["git", "-C", str(ground.repo), "-c", "user.name=t", "-c", "user.email=t@t", "-c", "commit.gpgsign=false"]
    file = ground.repo / "f"
    file.write_text("one\ntwo\nthree\nfour\n")
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "all"]):
        subprocess.run([*git, *words], check=True)
    ann, bob = (Player("claude-code", ground.repo) for _ in range(2))
    ann.edits("f", "one", "ANN")
    some_time_passes()
    bob.edits("f", "four", "BOB")
    some_time_passes()
    assert {one.instance_id for one in edits(store, ground.scope, People(store))} == {ann.row["id"], bob.row["id"]}
    ann.edits("f", "ANN", "one")
    some_time_passes()
    assert [one.instance_id for one in edits(store, ground.scope, People(store))] == [bob.row["id"]]


def test_all_checkouts_of_this_machine(ground, store: Store):
    ann, bob = ground.session("ann"), ground.session("bob", directory=str(ground.folder))
    ground.lock(ann, f"{ground.scope}/f")
    ground.backdate(ann, 60)
    assert [(one.scope, one.sessions, one.locks) for one in checkouts(store)] == [
        (bob.scope, 1, 0), (ground.scope, 1, 1),
    ]  # fmt: skip


def test_looking_on_writes_nothing(ground, ann: dict):
    ground.lock(ann, f"{ground.scope}/f")
    before = ground.sql("PRAGMA data_version")
    with Store(ground.database, read_only=True) as looking:
        assert now(looking, ground.scope, People(looking)).lock_count == 1
    assert ground.sql("PRAGMA data_version") == before


def test_one_session_whole(ground, store: Store, ann: dict, bob: dict):
    held, wanted = f"{ground.scope}/held", f"{ground.scope}/wanted"
    ground.lock(ann, held, "mine")
    ground.lock(bob, wanted)
    wait(store, ann, wanted)
    task = store.tasks.request(bob, {"type": "fix", "title": "Mend it", "assignee": ann.id})["task"]
    store.messages.send(ann, bob.id, "begun")
    edited = [Edit(held, ann.id, "ann", 1, "Edit"), Edit(wanted, bob.id, "bob", 1, "Edit")]
    found = session_whole(store, ann.id, "", People(store), 0, edited)
    assert (found.name, found.lock_count, found.scope) == (People(store).called(ann.id), 1, ground.scope)
    assert [(one.path, len(one.holds), len(one.waits), len(one.edits)) for one in found.files] == [
        (wanted, 0, 1, 0), (held, 1, 0, 1),
    ]  # fmt: skip
    assert [line.files for line in found.waits] == [(wanted,)]
    assert [one.task.id for one in found.tasks] == [task.id] and found.asked == []
    assert [one.message.content for one in found.said] == ["begun"]
    assert [one.what for one in found.happened] == ["acquired", "joined"]
    other = session_whole(store, bob.id, "", People(store), 0, [])
    assert [one.task.id for one in other.asked] == [task.id] and [one.message.content for one in other.told] == [
        "begun"
    ]


def test_of_a_session_that_has_gone_only_what_it_did_is_known(ground, store: Store, ann: dict):
    ground.lock(ann, f"{ground.scope}/f")
    store.instances.remove(ann.id)
    found = session_whole(store, ann.id, ground.scope, People(store), 0, [])
    assert found.row is None and found.files == []
    assert [one.what for one in found.happened][-2:] == ["acquired", "joined"]
    with pytest.raises(UnknownInstance):
        session_whole(store, "nobody", ground.scope, People(store), 0, [])


def test_the_newest_of_one_kind(ground, store: Store, ann: dict, bob: dict):
    file, other = f"{ground.scope}/f", f"{ground.scope}/g"
    ground.lock(ann, file, "mine")
    ground.lock(bob, other)
    for _ in range(3):
        assert ground.swarm("lock", file, "--as", bob.id).code == 1
    waiting = wait(store, bob, file)
    ground.sql("UPDATE swarm_waiters SET since = since - 5")
    with pytest.raises(Deadlock):
        LockWait(ann, request(ann, [other]), 60).advance(store)
    store.locks.release(ann, file)
    assert waiting.advance(store)
    people = People(store)
    (got,) = newest(store, ground.scope, people, 0, 5, "waited")
    assert (got.what, got.instance_id, got.file) == ("acquired", bob.id, file) and got.waited >= 5
    (refused,) = newest(store, ground.scope, people, 0, 5, "deadlock")
    assert (refused.instance_id, refused.file) == (ann.id, other)
    denials = newest(store, ground.scope, people, 0, 2, "denied")
    assert [one.instance_id for one in denials] == [bob.id] * len(denials) and 1 <= len(denials) <= 2
    assert newest(store, "/elsewhere", people, 0, 5, "denied") == []


def test_a_name_follows_its_label(store: Store, ground):
    ann = ground.session("ann", "claude-code session:5f0c2f6e")
    people = People(store)
    assert people.called(ann.id) == "claude-code 5f0c2f6e"
    people.learn(ann.id, "codex session:8e3c69bd")
    assert people.called(ann.id) == "codex 8e3c69bd"
    people.learn(ann.id, None)  # a row that does not say
    assert people.called(ann.id) == "codex 8e3c69bd"
