"""The cards of sessions: their work, and the reasons why they need a person, the most urgent first."""

import pytest
from support.fixtures import Ground
from support.world import World

from swarm_hook_core import greetings
from swarm_hook_core.traces import journal_name, others_in, place_of
from swarm_mcp.answers.people import People
from swarm_mcp.answers.timeline import Happening, refusals
from swarm_mcp.locking.acquisition import LockWait
from swarm_mcp.store import Store
from swarm_mcp.store.lock_request import request
from swarm_mcp.view.overview.cards import (
    GONE,
    HOUR,
    OFTEN,
    ORDER,
    READ,
    REFUSED,
    STUCK,
    UNCOMMITTED,
    UNREAD,
    Card,
    cards,
)
from swarm_mcp.view.overview.now import NOTHING, Names, Work, Written, edit_events, now, work


def cards_of(store, scope: str, found: Work = NOTHING, viewer: str = "") -> list[Card]:
    people = People(store, viewer)
    refused = refusals(store, scope, people, store.now() - HOUR, READ)
    return cards(store, now(store, scope, people, found.edits), people, found, refused)


def kinds(card: Card) -> list[str]:
    return [one.kind for one in card.reasons]


def test_a_session_that_waits_for_a_lock_of_an_idle_one_is_stuck(ground: Ground, store: Store):
    ann, bob = ground.session("ann", state="idle"), ground.session("bob", state="working")
    file = f"{ground.scope}/my file"
    ground.lock(ann, file, "busy")
    assert LockWait(bob, request(bob, [file]), 60).advance(store) is None
    first, second = cards_of(store, ground.scope)
    assert first.row.id == bob.id and kinds(first) == [STUCK] and kinds(second) == []
    (reason,) = first.reasons
    assert "my file" in reason.words and second.row.name in reason.words and "idle" in reason.words
    assert reason.command == f"swarm-mcp unlock 'my file' --as {ann.id[:8]}"
    assert [path for path, _ in second.locks] == [file] and second.doing.words == "busy"
    ground.sql("UPDATE swarm_sessions SET state = 'working'")
    assert [kinds(card) for card in cards_of(store, ground.scope)] == [[], []]


def test_a_session_that_is_refused_often_says_most_often_for_what(ground: Ground, store: Store):
    ann, bob = ground.session("ann"), ground.session("bob")
    for name in ("f", "g", "h"):
        ground.lock(ann, f"{ground.scope}/{name}")
        assert ground.swarm("lock", f"{ground.scope}/{name}", "--as", bob.id).code == 1
    first = cards_of(store, ground.scope)[0]
    ground.sql("UPDATE swarm_denials SET times = 7 WHERE file LIKE '%/g'")  # repeats add no event
    again = cards_of(store, ground.scope)[0]
    assert first.row.id == bob.id and kinds(first) == [REFUSED] and first.refusals == OFTEN == 3
    assert first.refused.file.endswith("/h") and first.reasons[0].command == "swarm-mcp why h"
    assert again.refusals == 9 and again.reasons[0].command == "swarm-mcp why g"


def test_an_unread_message_is_quoted_until_it_is_read(ground: Ground, store: Store, ann: dict, bob: dict):
    store.messages.send(ann, bob.id, "look at\nthe tables " + "x" * 100)
    assert [kinds(one) for one in cards_of(store, ground.scope)] == [[], []], "a hook tells its session"
    ground.sql("UPDATE swarm_sessions SET runtime = 'mcp' WHERE instance_id = ?", bob.id)  # without hooks
    first = cards_of(store, ground.scope)[0]
    assert first.row.id == bob.id and kinds(first) == [UNREAD]
    assert "“look at the tables xx" in first.reasons[0].words and len(first.reasons[0].words) < 200
    store.messages.acknowledge([one.id for one in store.messages.take(store.instances.get(bob.id))])
    assert kinds(cards_of(store, ground.scope)[0]) == []


def test_a_person_with_uncommitted_work_has_a_card(world: World):
    world.write("notes.md", "a person's\n")
    scope = str(world.repo)
    with world.store() as store:
        (card,) = cards_of(store, scope, work(store, scope, People(store)))
        assert (card.row.name, card.row.runtime, kinds(card)) == ("a person", "person", [])
        assert [file.path for file in card.files] == [str(world.repo / "notes.md")]
        world.commit()
        assert cards_of(store, scope, work(store, scope, People(store))) == []


def test_work_that_is_finished_and_not_committed_counts_its_lines(world: World):
    me = world.session("codex")
    assert not me.edit("notes.md", "beta", "MINE").denied
    scope = str(world.repo)
    with world.store() as store:
        found = work(store, scope, People(store))
        world.sql("UPDATE swarm_sessions SET state = 'working'")
        (card,) = cards_of(store, scope, found)
        assert kinds(card) == [] and card.commands == [f"swarm-mcp diff --session {me.id[:8]}"]
        world.sql("UPDATE swarm_sessions SET state = 'idle'")
        (card,) = cards_of(store, scope, found)
        assert kinds(card) == [UNCOMMITTED] and card.commands == []
        (file,) = card.files
        assert file.path == str(world.repo / "notes.md") and file.share[1:3] == (1, 1)
        world.commit()
        assert work(store, scope, People(store)).shares == {}


def test_a_session_that_has_gone_is_there_as_long_as_its_work_is(world: World):
    me = world.session("codex")
    assert not me.edit("notes.md", "beta", "MINE").denied
    scope = str(world.repo)
    with world.store() as store:
        store.instances.remove(me.id)
        (card,) = cards_of(store, scope, work(store, scope, People(store)))
        assert kinds(card) == [GONE] and card.row.name.startswith("codex ") and card.files[0].share.added == 1
        assert card.reasons[0].command == f"swarm-mcp diff --session {me.session_id[:8]}"
        (hidden,) = cards_of(store, scope, work(store, scope, People(store, "other")), viewer="other")
        assert "codex" not in hidden.row.name


def test_what_a_session_works_on_is_its_task_else_its_prompt_else_the_note_of_its_lock(ground: Ground, store: Store):
    ann = ground.session("ann")
    assert cards_of(store, ground.scope)[0].doing is None
    ground.lock(ann, f"{ground.scope}/f", "the note")
    assert cards_of(store, ground.scope)[0].doing.words == "the note"
    greetings.note("claude-code", "ann", "Mend the\n  tables")
    assert cards_of(store, ground.scope)[0].doing.words == "Mend the tables"
    task = store.tasks.request(ann, {"type": "fix", "title": "The task", "assignee": ann.id})["task"]
    store.tasks.claim(ann, task.id, ignore_unread=True)
    assert cards_of(store, ground.scope)[0].doing == ("The task", task.id)


def test_the_most_urgent_reason_comes_first(ground: Ground, store: Store):
    assert ORDER == (STUCK, REFUSED, UNREAD, UNCOMMITTED, GONE)
    ann, bob, cy = (ground.session(name, state="idle") for name in ("ann", "bob", "cy"))
    ground.lock(bob, f"{ground.scope}/f")
    store.messages.send(ann, bob.id, "look")
    ground.sql("UPDATE swarm_sessions SET runtime = 'mcp' WHERE instance_id = ?", bob.id)  # without hooks
    assert LockWait(cy, request(cy, [f"{ground.scope}/f"]), 60).advance(store) is None
    found = cards_of(store, ground.scope)
    assert [card.row.id for card in found] == [cy.id, bob.id, ann.id]


def test_the_writes_of_a_checkout_are_known_after_their_sessions_have_ended(world: World):
    me = world.session("codex")
    assert not me.edit("notes.md", "beta", "MINE").denied
    scope = str(world.repo)
    with world.store() as store:
        (one,) = work(store, scope, People(store)).written
        assert one.session == ("codex", me.session_id) and one.path == str(world.repo / "notes.md")
        assert others_in(place_of(scope), journal_name("", "")) != []
        (event,) = edit_events(Names(store, People(store)), scope, [one], 0, one.at + 1)
        assert (event.instance_id, event.what, event.file) == (me.id, "edited", one.path)


@pytest.mark.parametrize("ages, times", [([0], [1]), ([0, 30, 60], [3]), ([0, 100, 130], [1, 2]), ([0, 9000], [1])])
def test_writes_in_quick_succession_are_one_event(ages, times, store: Store):
    written = [Written(("codex", "x"), "/s/f", 10_000.0 - age, "Edit") for age in ages]
    found: list[Happening] = edit_events(Names(store, People(store)), "/s", written, 5000, 10_000)
    assert [one.details["times"] for one in found] == times
    assert all(one.name == "codex x" and one.instance_id == "" for one in found)
