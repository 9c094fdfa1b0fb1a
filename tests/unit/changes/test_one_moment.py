"""Authors of lines while sessions go on: all that is read belongs to one moment."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from support.world import Agent, World, hunks_of, patch

from swarm_hook_core.traces.trail import Trail
from swarm_hook_core.traces.versions import notes
from swarm_mcp.changes.tries import picture
from swarm_mcp.changes.uncommitted import uncommitted

APPENDS = 'open("notes.md", "a").write("MINE\\n")\n'


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path, "notes.md", "build.py")
    world.write("build.py", APPENDS)
    world.commit()
    return world


@pytest.fixture(params=[False, True], ids=["clean before", "edited before"])
def me(request: pytest.FixtureRequest, world: World) -> Agent:
    """A session with a script that has added the line MINE."""
    me = world.session("claude-code")
    me.is_prompted()
    if request.param:
        assert not me.edit("notes.md", "alpha", "FIRST").denied
    assert not me.bash("python3 build.py").denied
    me.call_ends()
    return me


@pytest.fixture
def peer(world: World, me: Agent) -> Agent:
    return world.session("codex")


def authors(world: World, line: str) -> set[str]:
    """Return the ids of the sessions that may have added the line."""
    pieces = [piece for one in uncommitted(str(world.repo)) for piece in one.pieces]
    (found,) = [piece for piece in pieces if f"{line}\n".encode() in piece.added]
    return {author.session_id for author in found.authors}


def meanwhile(monkeypatch: pytest.MonkeyPatch, module: Any, name: str, *deeds: Callable[[], object]) -> None:
    """Have the `deeds` done right after the first calls of a function of `module`, one after each."""
    real, left = getattr(module, name), [*deeds]

    def read(*given: Any) -> Any:
        found = real(*given)
        if left:
            left.pop(0)()
        return found

    monkeypatch.setattr(module, name, read)


def asks(agent: Agent, world: World) -> None:
    """Let the check of an edit pass that is not made: it keeps the content, and notes the edit."""
    hunks = hunks_of(str(world.repo / "notes.md"), "gamma", "PEER")
    assert not agent.ask("apply_patch", patch(f"*** Update File: notes.md\n{hunks}")).denied


def test_a_content_that_is_kept_meanwhile_has_lines_of_the_command_before(
    world: World, me: Agent, peer: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = authors(world, "MINE")
    meanwhile(monkeypatch, notes, "journals_of", lambda: asks(peer, world))
    assert authors(world, "MINE") == before and me.session_id in before


def test_so_it_has_if_its_call_is_never_noted(world: World, me: Agent, peer: Agent) -> None:
    before = authors(world, "MINE")
    with mock.patch.object(Trail, "append", side_effect=OSError):  # a full disk
        asks(peer, world)
    assert authors(world, "MINE") == before
    world.write("notes.md", world.read("notes.md") + "PERSON\n")
    assert me.session_id in authors(world, "MINE"), "a person cannot have done it alone"
    assert me.session_id not in authors(world, "PERSON")


def test_a_write_meanwhile_has_its_author(world: World, peer: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    meanwhile(monkeypatch, notes, "journals_of", lambda: peer.edit("notes.md", "gamma", "PEER"))
    assert authors(world, "PEER") == {peer.session_id}


def test_sessions_that_go_on_without_end_do_not_hold_up_an_answer(
    world: World, peer: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[None] = []

    def goes_on() -> None:
        asks(peer, world)
        looks.append(None)

    meanwhile(monkeypatch, notes, "journals_of", *[goes_on] * 9)
    assert authors(world, "MINE") and len(looks) == notes.MOMENTS


def test_a_try_is_of_a_file_as_it_was_looked_at(world: World, peer: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    meanwhile(monkeypatch, picture, "uncommitted", lambda: peer.edit("notes.md", "gamma", "PEER"))
    found = picture.Picture(str(world.repo))
    assert "PEER" in str([piece.added for one in found.changed for piece in one.pieces])
    assert not found.changed_since(())
