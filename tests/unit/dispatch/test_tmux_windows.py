"""Workers in windows of a real tmux, on a server of the test's own."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from support import supervised
from support.fixtures import Ground, wait_for
from support.supervised import GATEWAY, alive, child_of, dispatch, over, reaches, task, tmux

from swarm_mcp.agents.dispatch.tmux_windows import _Tmux

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not shutil.which("tmux"), reason="needs tmux (apt-get install tmux)"),
]

WAIT = "while [ ! -e go ]; do sleep 0.05; done"


def panes() -> list[str]:
    return tmux("list-panes", "-a", "-F", "#{session_name} #{pane_id} #{pane_dead} #{@swarm_run}")


@pytest.fixture
def lead(ground: Ground, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory):
    monkeypatch.setenv("TMUX_TMPDIR", str(tmp_path_factory.mktemp("t")))
    monkeypatch.delenv("TMUX", raising=False)
    monkeypatch.setenv("SWARM_RUN_ID", "of-the-dispatcher")
    yield ground.session("lead", GATEWAY)
    supervised.end_all(ground)
    subprocess.run(["tmux", "kill-server"], capture_output=True, check=False)


def test_a_worker_can_be_watched_in_a_window(ground: Ground, lead: dict, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "sesame-sesame")
    script = f'echo "I see ${{#SOME_API_KEY}}"; {WAIT}; echo fine'
    answer = dispatch(ground, lead, "A: #1. title", script, spawner="tmux")
    assert (answer["status"], answer["spawner"]) == ("spawned", "tmux")
    assert panes() == [f"swarm {answer['pane_id']} 0 {answer['run_id']}"]
    assert tmux("list-windows", "-a", "-F", "#{window_name}") == ["implementer A 1 title"]
    wait_for(lambda: "I see 13" in "\n".join(tmux("capture-pane", "-p", "-t", answer["pane_id"])))
    second = dispatch(ground, lead, "B", WAIT, spawner="tmux", placement={"tab": "new"})
    assert len(panes()) == 2 and second["placement_ignored"] == ["tab"]
    assert "SWARM_RUN_ID" not in "".join(tmux("show-environment", "-g"))
    (ground.repo / "go").touch()
    assert reaches(ground, answer, "done")["result"] == "I see 13\nfine"
    over(ground, answer)
    wait_for(lambda: f"swarm {answer['pane_id']} 1 {answer['run_id']}" in panes())
    assert "fine" in "\n".join(tmux("capture-pane", "-p", "-t", answer["pane_id"])), "it stays to be read"
    assert [path.name for path in Path(ground.folder.parent).glob("**/assignment-*")] == []


def test_closing_the_window_ends_the_worker_and_frees_its_task(
    ground: Ground, lead: dict, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmux("new-session", "-d", "-s", "mine", "-x", "80", "-y", "20")
    (around,) = tmux("display-message", "-p", "-t", "mine", "#{socket_path},#{pid},0")
    monkeypatch.setenv("TMUX", around)
    (own,) = tmux("list-panes", "-t", "mine", "-F", "#{pane_id}")
    place = {"parent_pane_id": own, "split_direction": "down"}
    answer = dispatch(ground, lead, script="echo $$ > pid; sleep 600", spawner="tmux", placement=place)
    child = child_of(ground, answer)
    assert [line.split()[0] for line in panes()] == ["mine", "mine"]
    tmux("kill-pane", "-t", answer["pane_id"])
    wait_for(lambda: not alive(child))
    over(ground, answer)
    assert wait_for(lambda: task(ground, answer)["status"] == "open")
    beside = dispatch(ground, lead, "B", "true", spawner="tmux")
    assert [line.split()[0] for line in panes()] == ["mine", "mine"] and beside["status"] == "spawned"


@pytest.mark.parametrize("pane", ["-x", "#{pane_id}", "%99"])
def test_a_pane_that_cannot_be_split(ground: Ground, lead: dict, pane: str) -> None:
    answer = dispatch(ground, lead, command="true", spawner="tmux", placement={"parent_pane_id": pane})
    assert (answer["status"], task(ground, answer)["status"]) == ("spawn_failed", "open")


def test_without_tmux(ground: Ground, lead: dict, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWARM_TMUX_BIN", "/nowhere/tmux")
    answer = dispatch(ground, lead, command="true", spawner="tmux")
    assert answer["status"] == "spawn_failed" and "SWARM_TMUX_BIN" in answer["error"]


def test_only_the_newest_of_the_ended_stay(ground: Ground, lead: dict) -> None:
    tmux("new-session", "-d", "-s", "swarm", "-x", "80", "-y", "20")
    (session,) = tmux("display-message", "-p", "-t", "swarm", "#{session_id}")
    for number in range(11):
        (pane,) = tmux("new-window", "-d", "-P", "-F", "#{pane_id}", "-t", "swarm:", f"cd {ground.repo}; {WAIT}")
        _Tmux("tmux").keep(session, pane, f"run{number}")
    (ground.repo / "go").touch()
    wait_for(lambda: len([line for line in panes() if line.split()[2] == "1"]) == 11)
    _Tmux("tmux").keep(session, "%0", "")
    ended = [line.split()[3] for line in panes() if line.split()[2] == "1"]
    assert ended == [f"run{number}" for number in range(3, 11)]
