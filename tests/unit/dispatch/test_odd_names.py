"""Names of folders, titles, labels and windows are foreign text: nothing of them is ever expanded or executed."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from support import supervised
from support.fixtures import Ground, wait_for
from support.scripted_herdr import Herdr
from support.supervised import GATEWAY, dispatch, over, reaches, tmux

from swarm_mcp.agents.dispatch.herdr_panes import command_line
from swarm_mcp.agents.dispatch.spawners import SpawnFailed, WorkerSpec, shown_name
from swarm_mcp.domain.session import Session

# `$TRAP` is a path in the environment of all that is started here.
COMMANDS = ["#(touch $TRAP)", "$(touch $TRAP)", "`touch $TRAP`", "#{l:x}", "##(touch $TRAP)", "%H", "%%", "$HOME", "!!"]
SIGNS = ["'", '"', "\n", ";", "\\", "\t", "\x1b]2;titled\x07", "\x1b[2J", "\x9b31m", "\u202e", "~", "*", "&", "|", "é"]
ALL = "a" + "".join([*COMMANDS, *SIGNS]) + "b"
ODD = [*COMMANDS, *SIGNS, ALL, "-x", "--", "x;", "-x;", "\\;", ".", ":", ""]

needs_tmux = pytest.mark.skipif(not shutil.which("tmux"), reason="tmux is not installed (apt-get install tmux)")


@pytest.fixture
def trap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "sprung"
    monkeypatch.setenv("TRAP", str(path))
    return path


@pytest.fixture
def lead(ground: Ground, trap: Path, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory):
    monkeypatch.setenv("TMUX_TMPDIR", str(tmp_path_factory.mktemp("t")))
    monkeypatch.delenv("TMUX", raising=False)
    yield ground.session("lead", GATEWAY, pane={"pane_id": "w1:p1", "workspace_id": "w1"})
    supervised.end_all(ground)
    subprocess.run(["tmux", "kill-server"], capture_output=True, check=False)


@pytest.mark.parametrize("name", ODD)
def test_a_window_s_name_has_nothing_to_act_on(name: str) -> None:
    shown = shown_name(name)
    assert shown.isprintable() and not set(shown) & set("#%;:.") and not shown.startswith("-") and len(shown) <= 40
    assert shown_name("Fix the parser, part 2") == "Fix the parser, part 2"


@needs_tmux
@pytest.mark.parametrize("odd", [ALL, "-x;"], ids=["every sign", "like a flag"])
def test_a_worker_in_a_window(ground: Ground, lead: dict, trap: Path, odd: str) -> None:
    folder = ground.repo / odd
    folder.mkdir()
    (folder / "said").write_text(odd)
    given = {"name": odd, "label": "odd:" + "".join(odd.split()), "cwd": str(folder)}
    answer = dispatch(ground, lead, odd, "cat said; pwd > here; echo fine", spawner="tmux", **given)
    assert answer["status"] == "spawned", answer
    reaches(ground, answer, "done")
    over(ground, answer)
    assert (folder / "here").read_text() == f"{folder}\n"
    told = "#{session_name}|#{window_name}|#{pane_title}|#{pane_current_path}|#W|#T"
    session, name, title, *_ = tmux("display-message", "-p", "-t", answer["pane_id"], told)[0].split("|")
    assert (session, name) == ("swarm", shown_name(odd)) and "titled" not in title
    assert [line for line in tmux("list-sessions", "-F", "#{session_name}") if line != "swarm"] == []
    assert not trap.exists()


@pytest.mark.parametrize("odd", ODD)
def test_a_line_that_is_typed_into_a_shell_is_one_command(odd: str, trap: Path) -> None:
    requester = Session({"scope": f"/s/{odd}", "label": GATEWAY})
    worker = WorkerSpec(requester, "t", "i", "implementer", "codex", ("true", odd), "/", label=f"odd:{odd}")
    try:
        line = command_line(worker)
    except SpawnFailed:
        assert not odd.isprintable() or "\\" in odd
        return
    assert odd.isprintable() and "\n" not in line
    assert shlex.split(line)[-1] == odd
    for shell in filter(shutil.which, ("sh", "bash", "zsh", "fish")):
        assert subprocess.run([shell, "-c", line], capture_output=True, timeout=60).returncode == 0
    assert not trap.exists()


def test_a_pane_of_herdr(ground: Ground, lead: dict, trap: Path, herdr: Herdr) -> None:
    folder = ground.repo / ALL
    folder.mkdir()
    place = {"tab": "new"}
    given = {"spawner": "herdr", "harness": "codex", "wait_seconds": 0.1, "cwd": str(folder), "placement": place}
    answer = dispatch(ground, lead, ALL, name="-" + ALL, label="odd:$(touch,$TRAP);#(x)", **given)
    assert answer["status"] == "spawn_in_flight", answer
    opened, started = herdr.calls()
    assert opened[opened.index("--cwd") + 1] == str(folder), "an argument is not expanded"
    assert opened[opened.index("--label") + 1] == shown_name(ALL)
    assert "SWARM_MCP_LABEL=identity:p role:implementer odd:$(touch,$TRAP);#(x)" in shlex.split(started[3])
    wait_for(lambda: not trap.exists())
    refused = dispatch(ground, lead, "B", name="B", label="odd:\x03", **{**given, "placement": {"workspace": "-x"}})
    assert refused["status"] == "spawn_failed"
