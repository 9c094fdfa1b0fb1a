"""A client's own rewind that drops others' lines is told at the next turn, and undone by `swarm-mcp undo`."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path

import pytest
from support.traced import lines_of
from support.world import Agent, World, file_times_catch_up, some_time_passes

from swarm_hook_core import session_events
from swarm_hook_core.hooks import SessionEvent
from swarm_mcp.changes.undoing import Undoing

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("checks_have_time", "no_faults")]
TEXT = "alpha\nbeta\ngamma\ndelta\nepsilon\nzeta\n"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path, "a.txt", "b.txt")
    for name in ("a.txt", "b.txt"):
        world.write(name, TEXT)
    world.commit()
    yield world


def prompted(agent: Agent) -> str:
    """Let a turn of the session begin; return the words for its model."""
    said = io.StringIO()
    with redirect_stdout(said):
        session_events.takes_turn(agent.core, SessionEvent(agent.session_id, str(agent.folder), "UserPromptSubmit"))
    if not said.getvalue():
        return ""
    words = str(json.loads(said.getvalue())["hookSpecificOutput"]["additionalContext"])
    return "\n".join(line for line in words.split("\n") if "rewind" in line)


def works(agent: Agent, name: str, old: str, new: str) -> None:
    """Have the session edit a file, in a turn of its own."""
    assert prompted(agent) == ""
    assert not agent.edit(name, old, new).denied
    agent.turn_ends()
    some_time_passes()


def rewind(world: World, name: str, text: str | None) -> None:
    """Put a file back, as a client does: without any hook."""
    file_times_catch_up()
    if text is None:
        (world.repo / name).unlink()
    else:
        (world.repo / name).write_text(text)
    some_time_passes()


def undo_of(world: World, words: str, agent: Agent | None) -> None:
    """Give the command that the words name, as the session or as a person."""
    command = words.partition("`swarm-mcp ")[2].partition("`")[0].split()
    assert command[:2] == ["undo", "--undo"], words
    with world.store() as store:
        session = next((row for _, row in store.instances.walk(str(world.repo)) if agent and row.id == agent.id), None)
        undoing = Undoing(store, session, str(world.repo))
        record = undoing.record_called(command[2])
        undoing.do(undoing.plan_back(record, [], False), record.whose, record.id)


@pytest.mark.sampled
@pytest.mark.parametrize("by", ["me", "peer", "person"])
def test_a_peers_lines_come_back_and_the_own_ones_do_not(world: World, by: str) -> None:
    me, peer = world.session(), world.session("codex")
    works(me, "a.txt", "alpha", "MINE")
    works(peer, "a.txt", "epsilon", "PEER")
    works(me, "a.txt", "gamma", "MINE TOO")
    rewind(world, "a.txt", TEXT)
    words = prompted(me)
    assert f"took back 1 line of codex {peer.id[:8]} in a.txt: tell your user" in words, words
    assert prompted(me) == "", "told once"
    undo_of(world, words, {"me": me, "peer": peer, "person": None}[by])
    assert world.read("a.txt") == TEXT.replace("epsilon", "PEER")
    authors = [{one.session_id for one in line.authors} for line in lines_of(str(world.repo / "a.txt")) if line.authors]
    assert authors == [{peer.session_id}]


def test_a_persons_lines_come_back(world: World) -> None:
    me = world.session()
    works(me, "a.txt", "alpha", "MINE")
    world.write("a.txt", world.read("a.txt") + "by hand\nby hand, too\n")
    assert prompted(me) == "" and not me.bash("true").denied
    me.turn_ends()
    rewind(world, "a.txt", TEXT)
    words = prompted(me)
    assert "took back 2 lines of a person in a.txt" in words
    undo_of(world, words, None)
    assert world.read("a.txt") == TEXT + "by hand\nby hand, too\n"


def test_a_part_of_the_own_work_is_rewound(world: World) -> None:
    me, peer = world.session(), world.session("codex")
    works(me, "a.txt", "alpha", "MINE")
    first = world.read("a.txt")
    works(me, "a.txt", "beta", "MINE TOO")
    works(peer, "a.txt", "zeta\n", "")
    rewind(world, "a.txt", first)
    words = prompted(me)
    assert f"1 line of codex {peer.id[:8]}" in words, "the peer had removed it"
    undo_of(world, words, me)
    assert world.read("a.txt") == first.replace("zeta\n", "")


def test_a_file_that_was_made_is_gone_with_anothers_lines(world: World) -> None:
    me, peer = world.session(), world.session("codex")
    prompted(me)
    me.write("new.txt", TEXT)
    me.turn_ends()
    works(peer, "new.txt", "beta", "PEER")
    rewind(world, "new.txt", None)
    words = prompted(me)
    assert f"1 line of codex {peer.id[:8]} in new.txt" in words
    undo_of(world, words, me)
    assert world.read("new.txt") == "PEER\n"


def test_anothers_whole_file_goes_back_at_the_same_time(world: World) -> None:
    me, peer = world.session("opencode"), world.session("codex")
    prompted(me)
    me.ask("edit", {"filePath": str(world.repo / "a.txt"), "oldString": "alpha", "newString": "MINE"})
    world.write("a.txt", TEXT.replace("alpha", "MINE"))
    me.turn_ends()
    works(peer, "b.txt", "beta", "PEER")
    works(peer, "a.txt", "zeta", "PEER")
    (world.repo / "a.txt").write_text(TEXT)
    rewind(world, "b.txt", TEXT)
    words = prompted(me)
    assert "in a.txt" in words and "in b.txt" in words
    undo_of(world, words, me)
    assert world.read("a.txt") == TEXT.replace("zeta", "PEER") and world.read("b.txt") == TEXT.replace("beta", "PEER")


@pytest.mark.thorough
def test_what_is_no_rewind(world: World) -> None:
    me, peer = world.session(), world.session("codex")
    works(me, "a.txt", "alpha", "MINE")
    rewind(world, "a.txt", TEXT)
    assert prompted(me) == "", "its own lines alone"
    works(me, "a.txt", "alpha", "MINE")
    works(peer, "a.txt", "beta", "PEER")
    world.write("a.txt", world.read("a.txt").replace("PEER", "by hand"))
    assert prompted(me) == "", "a person's edit"
    me.turn_ends()
    world.git("commit", "-qam", "all")
    assert prompted(me) == "" and prompted(peer) == ""
