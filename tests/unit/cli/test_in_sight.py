"""One line in a client's own status line, and notifications: off unless a person takes them."""

import io
import json
import os
import sys
from pathlib import Path

import pytest
from support.files import program_at, text_at
from support.fixtures import Ground
from support.world import World

from swarm_mcp.cli.arguments import ABSOLUTE, ACTING, Usage, parse
from swarm_mcp.cli.commands import watch
from swarm_mcp.cli.words import Reader
from swarm_mcp.errors import SwarmError
from swarm_mcp.runtimes import runtime
from swarm_mcp.store import Store


def line(world: World, monkeypatch: pytest.MonkeyPatch, **told: object) -> str:
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


CLIENTS = {
    "claude-code": ("CLAUDE_CONFIG_DIR", "", '{\n    "theme":  "dark"\n}\n', '{"statusLine": {"command": "mine"}}', "{ broken"),
    "qwen": (
        "HOME", ".qwen", '{\n  // mine\n  "ui": {"hideTips": true}\n}\n', '{"ui": {"statusLine": {"command": "mine"}}}', "[",
    ),
    "kimi": ("KIMI_CODE_HOME", "", '# mine\ntheme = "dark"\n', '[status_line]\nitems = ["cwd"]\n', None),
    "grok": ("GROK_HOME", "", "[ui]\nvim_mode = true\n", '[ui]\nstatus_line = {type = "builtin"}\n', None),
}  # fmt: skip


@pytest.mark.parametrize("name", CLIENTS)
def test_the_status_line_is_put_in_and_taken_out_and_anothers_stays(name: str, tmp_path: Path, monkeypatch) -> None:
    variable, below, before, another, broken = CLIENTS[name]
    monkeypatch.setenv(variable, str(tmp_path))
    line = runtime(name).status_line()
    assert line is not None and line.path.parent == tmp_path / below
    text_at(line.path, before)
    assert "status line: " in line.set(True)
    written = line.path.read_text()
    assert "mine" in written or "dark" in written or "vim_mode" in written
    assert written.count(" statusline") == 1 and len(written) > len(before)
    line.set(True)
    assert line.path.read_text() == written
    assert line.set(False) and line.path.read_text() == before
    assert line.set(False) == ""
    line.path.write_text(another)
    assert "it stays" in line.set(True) and line.set(False) == "" and line.path.read_text() == another
    if broken:
        line.path.write_text(broken)
        with pytest.raises(SwarmError, match="left as it is"):
            line.set(True)
    line.path.unlink()
    line.set(True)
    assert " statusline" in line.path.read_text()


def test_a_line_that_its_client_has_written_anew_is_still_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KIMI_CODE_HOME", str(tmp_path))
    line = runtime("kimi").status_line()
    assert line is not None
    line.set(True)
    text = "".join(row for row in line.path.read_text().splitlines(True) if not row.startswith("#"))
    line.path.write_text(f'theme = "dark"\n\n{text}')
    assert "status line: " in line.set(True) and line.set(False).startswith("took")
    assert line.path.read_text() == 'theme = "dark"\n'


@pytest.mark.parametrize("told", [{"cwd": "."}, {"workspace": {"current_dir": "."}}], ids=["cwd", "workspace"])
def test_each_client_names_its_session_and_folder_in_its_way(told: dict, world: World, monkeypatch) -> None:
    me, other = world.session("kimi", "me"), world.session("qwen", "other")
    here = {key: str(world.repo) if key == "cwd" else {"current_dir": str(world.repo)} for key in told}
    for name, session in (("sessionId", me), ("session_id", other)):
        assert line(world, monkeypatch, **here, **{name: session.session_id}) == "1 session\n"


def test_a_person_is_notified_of_refusals_and_of_questions_alone(ground: Ground, monkeypatch, store: Store) -> None:
    shown: list[str] = []
    monkeypatch.setattr(watch, "_notify", shown.append)
    ann, bob = ground.session("ann"), ground.session("bob")
    ground.lock(ann, f"{ground.scope}/f")
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
    assert shown[0].startswith("task") and "Which?" in shown[0] and shown[1].startswith("refused")
    assert "f to" in shown[1]


def test_the_desktop_shows_a_notification(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program, seen = tmp_path / "notify-send", tmp_path / "seen"
    os.mkfifo(seen)
    program_at(program, f'#!/bin/sh\nprintf "%s|" "$@" >"{seen}"\n')
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.defpath}")
    monkeypatch.setenv("DISPLAY", ":0")
    watch._notify("refused f\x1b[2J to bob")
    assert seen.read_text() == "--app-name=swarm|swarm|refused f\\e[2J to bob|"
