"""One line in a client's own status line, and notifications: off unless a person takes them."""

import io
import json
import os
import sys
from pathlib import Path

import pytest
from support.fixtures import Ground
from support.world import World

from swarm_mcp.cli.arguments import ABSOLUTE, ACTING, Usage, parse
from swarm_mcp.cli.commands import watch
from swarm_mcp.cli.words import Reader
from swarm_mcp.errors import SwarmError
from swarm_mcp.runtimes.claude_code import ClaudeCode, home


def line(world: World, monkeypatch: pytest.MonkeyPatch, **told: str) -> str:
    monkeypatch.setattr(sys, "stdin", io.StringIO(json.dumps(told)))
    done = world.ground.swarm("statusline", cwd=world.folder)
    assert done.code == 0, done
    return done.out


def test_the_line_counts_the_others(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    me, other = world.session("claude-code", "me"), world.session("codex", "other")
    asked = {"cwd": str(world.repo), "session_id": me.session_id}
    assert line(world, monkeypatch, **asked) == "1 session\n"
    other.edit("notes.md", "alpha", "THEIRS")
    me.edit("sub/deep.md", "alpha", "MINE")
    world.write("made.md", "a person's\n")
    world.lock(other, "notes.md")
    assert line(world, monkeypatch, **asked) == "1 session, 2 files of others uncommitted, 1 lock\n"
    assert line(world, monkeypatch, cwd=str(world.repo)) == "2 sessions, 3 files of others uncommitted, 1 lock\n"
    monkeypatch.setattr(sys, "stdin", io.StringIO("no JSON"))
    assert world.ground.swarm("statusline").code == 0


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The settings of Claude Code, in a folder of their own."""
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path))
    return home() / "settings.json"


def test_the_status_line_is_put_in_and_taken_out_and_anothers_stays(settings: Path) -> None:
    before = '{\n    "theme":  "dark"\n}\n'
    settings.write_text(before)
    assert "status line" in ClaudeCode().set_status_line(True)
    written = json.loads(settings.read_text())
    assert written["theme"] == "dark" and written["statusLine"]["command"].endswith(" statusline")
    ClaudeCode().set_status_line(True)
    assert json.loads(settings.read_text()) == written
    assert ClaudeCode().set_status_line(False) and settings.read_text() == before
    assert ClaudeCode().set_status_line(False) == ""
    own = '{"statusLine": {"type": "command", "command": "mine"}}'
    settings.write_text(own)
    assert "it stays" in ClaudeCode().set_status_line(True) and ClaudeCode().set_status_line(False) == ""
    assert settings.read_text() == own
    settings.write_text("{ broken")
    with pytest.raises(SwarmError, match="left as it is"):
        ClaudeCode().set_status_line(True)
    settings.unlink()
    ClaudeCode().set_status_line(True)
    assert list(json.loads(settings.read_text())) == ["statusLine"]


def test_a_person_is_notified_of_refusals_and_of_questions_alone(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[str] = []
    monkeypatch.setattr(watch, "_notify", shown.append)
    ann, bob = ground.session("ann"), ground.session("bob")
    ground.lock(ann, f"{ground.scope}/f")
    with ground.store() as store:
        task = store.tasks.request(ann, {"type": "fix", "title": "T", "assignee": bob.id})["task"]
        store.tasks.claim(bob, task.id, ignore_unread=True)
        store.questions.ask(bob, task.id, "Which?")
        ground.add(
            "events", scope=ground.scope, type="context.write_denied", actor=bob.id, subject=f"{ground.scope}/f",
            payload=json.dumps({"holder": ann.id, "reason": "uncommitted", "tool": "Bash", "path": f"{ground.scope}/f"}),
        )  # fmt: skip
        for notifies in (False, True):
            printed = watch._Shown(Reader(parse("", [Usage(ABSOLUTE, *ACTING)], []), store), as_json=False)
            printed.notifies = notifies
            printed.new(store.activity.feed(ground.scope, "", 0))
            assert len(shown) == 2 * notifies
    assert (
        shown[0].startswith("task") and "Which?" in shown[0] and shown[1].startswith("refused") and "f to" in shown[1]
    )


def test_the_desktop_shows_a_notification(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program, seen = tmp_path / "notify-send", tmp_path / "seen"
    os.mkfifo(seen)
    program.write_text(f'#!/bin/sh\nprintf "%s|" "$@" >"{seen}"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.defpath}")
    monkeypatch.setenv("DISPLAY", ":0")
    watch._notify("refused f\x1b[2J to bob")
    assert seen.read_text() == "--app-name=swarm|swarm|refused f\\e[2J to bob|"
