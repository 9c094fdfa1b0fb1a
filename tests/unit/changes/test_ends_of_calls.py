"""A person's lines right after a command of a session, before the session's next call: never the session's alone."""

from __future__ import annotations

import os
import time
from pathlib import Path
from unittest import mock

import pytest
from support.traced import lines_of
from support.world import TEXT, Agent, World

from swarm_hook_core.state import ended_mark
from swarm_hook_core.traces import LOOK, journal_name, place_of, version_path
from swarm_hook_core.traces.trail import Trail
from swarm_hook_core.traces.versions import keep

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("checks_have_time", "no_faults")]

# What the agent's command leaves in notes.md, and the file once a person has saved it right after that.
COMMANDS = {
    "appends": ("echo MINE >> notes.md", f"{TEXT}MINE\n"),
    "writes anew": ("printf 'ONE\nMINE\n' > notes.md", "ONE\nMINE\n"),
    "in a pipe": ("printf 'ONE\nMINE\n' | tee notes.md", "ONE\nMINE\n"),
    "by a script": ("""python3 -c 'open("notes.md", "a").write("MINE\\n")'""", f"{TEXT}MINE\n"),
    "changes its mode": ("chmod +x notes.md", TEXT),
    "fails": ("git stash pop", TEXT),
}


class Scene(World):
    """A session with a written file and a command that ends, and a person's save right after that."""

    def __init__(self, folder: Path, command: str, is_beside: bool):
        super().__init__(folder, "notes.md", "other.md")
        self.me: Agent = self.session("claude-code")
        self.me.is_prompted()
        if is_beside:
            self.session("codex").edit("other.md", "gamma", "PEER")
        assert not self.me.edit("other.md", "beta", "MINE").denied
        assert not self.me.bash(command).denied
        self.me.call_ends()
        self.file = self.repo / "notes.md"
        self.made = self.file.read_text()
        self.file.write_text(self.made + "PERSON\n")

    def may_be_a_person_s(self, text: str) -> bool:
        """Return True if a person is among the authors of the line."""
        lines = self.swarm("blame", "--json", "notes.md").json["lines"]
        (line,) = [one for one in lines if one["text"] == text + "\n"]
        return any(author["is_person"] for author in line["authors"])


def writers(file: Path, text: str) -> list[str]:
    """The sessions that may have written the line of the file, empty for a person."""
    return [author.session_id for line in lines_of(str(file)) if line.text == text.encode() for author in line.authors]


def test_a_mark_that_lags_behind_the_clock_ends_no_call_before_its_write(tmp_path: Path) -> None:
    world = World(tmp_path, "notes.md", "other.md")
    me, peer, file = world.session("claude-code"), world.session("codex"), world.repo / "notes.md"
    me.is_prompted()
    peer.edit("other.md", "gamma", "PEER")
    assert not me.ask("Edit", {"file_path": str(file), "old_string": "beta", "new_string": "MINE"}).denied
    now, theirs = time.time_ns(), journal_name("codex", peer.session_id)
    assert keep(str(file), f"{version_path(place_of(str(world.repo)), theirs, str(file))}{LOOK}{now}", now)
    file.write_text(TEXT.replace("beta", "MINE"))
    me.call_ends()
    os.utime(ended_mark(os.getpid()), ns=(now - 1, now - 1))  # a file's time is that of the kernel's last tick
    assert writers(file, "MINE\n") == [me.session_id]


def test_a_note_that_is_withdrawn_is_no_call_without_an_end(tmp_path: Path) -> None:
    world = World(tmp_path, "notes.md")
    me, file = world.session("claude-code"), world.repo / "notes.md"
    me.is_prompted()
    with mock.patch.object(Trail, "has_company", lambda _trail: True):  # another session begins at the same moment
        assert not me.edit("notes.md", "beta", "MINE").denied
    me.call_ends()
    me.turn_ends()
    file.write_text(file.read_text() + "PERSON\n")
    assert (writers(file, "MINE\n"), writers(file, "PERSON\n")) == ([me.session_id], [""])


@pytest.fixture(params=[False, True], ids=["alone", "beside a peer"])
def is_beside(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.sampled
def test_blame_names_a_person(name: str, is_beside: bool, tmp_path: Path) -> None:
    command, made = COMMANDS[name]
    scene = Scene(tmp_path, command, is_beside)
    assert scene.made == made
    assert scene.may_be_a_person_s("PERSON")


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.sampled
def test_an_undo_of_the_session_leaves_the_line(name: str, is_beside: bool, tmp_path: Path) -> None:
    scene = Scene(tmp_path, COMMANDS[name][0], is_beside)
    scene.swarm("undo", "--session", scene.me.session_id, "--partial", "--json")
    assert scene.read("notes.md").endswith("PERSON\n")
    assert "MINE" not in scene.read("other.md")


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.sampled
def test_a_commit_of_the_session_leaves_the_line_out(name: str, is_beside: bool, tmp_path: Path) -> None:
    scene = Scene(tmp_path, COMMANDS[name][0], is_beside)
    assert scene.swarm("commit", "-m", "mine", as_=scene.me).code == 0
    assert "PERSON" not in scene.git("show", "HEAD:notes.md") and "MINE" in scene.git("show", "HEAD:other.md")
    assert scene.read("notes.md") == scene.made + "PERSON\n"


def test_a_later_call_that_cannot_write_does_not_lengthen_a_command(is_beside: bool, tmp_path: Path) -> None:
    scene = Scene(tmp_path, COMMANDS["appends"][0], is_beside)
    with mock.patch("os.getppid", os.getpid):  # of the hook's process: this one is the client
        scene.me.check("mcp__forge__list_issues", {})
    scene.me.call_ends()
    assert scene.may_be_a_person_s("PERSON")
