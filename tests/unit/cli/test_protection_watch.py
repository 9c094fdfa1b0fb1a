"""Changes of protection without a command are noticed by the next start or prompt of a session, and reported."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from support.fixtures import Ground
from support.sessions import captured, new_session, ready_store, run, start

from swarm_hook_core.state import config_path, store_path
from swarm_mcp.cli.main import main
from swarm_mcp.store import Store

pytestmark = pytest.mark.slow


def prompted(me: str, folder: Path) -> str:
    """Return the text that a prompt gives to the session's model."""
    payload = {**captured("claude-code", "UserPromptSubmit", folder), "session_id": me}
    ran = run("claude-code", "turn", payload)
    return ran.out


@pytest.fixture
def place(tmp_path: Path) -> Path:
    folder = (tmp_path / "repo").resolve()
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    ready_store()
    Path(config_path()).parent.mkdir(parents=True)
    return folder


def lowered() -> list[tuple]:
    with Store() as store:
        rows = store.database.rows("SELECT actor, subject FROM events WHERE type = 'protection.lowered' ORDER BY id")
    return [(row["actor"], row["subject"]) for row in rows]


def test_a_setting_that_was_edited_is_said_once_to_each_session(place: Path) -> None:
    one, two = new_session(), new_session()
    assert "lowered" not in start("claude-code", one, place).context
    start("claude-code", two, place)
    Path(config_path()).write_text(json.dumps({"auto": "off", "fail": "open"}))
    told = prompted(one, place)
    assert "`protect` is off in this checkout, and was keep" in told and config_path() in told
    assert "`protect` is off" in prompted(two, place), "whoever finds it tells the others"
    assert "`protect` is off" not in prompted(one, place) + prompted(two, place)
    assert lowered() == [(None, "protect")]
    Path(config_path()).write_text(json.dumps({"auto": "turn", "strict": True, "fail": "closed"}))
    assert "is now" not in prompted(one, place)
    Path(config_path()).write_text("{}")
    told = prompted(one, place)
    assert all(f"`{name}` is" in told for name in ("protect", "strict", "fail"))


def test_a_store_that_was_replaced_is_said(place: Path) -> None:
    start("claude-code", new_session(), place)
    for ending in ("", "-wal", "-shm"):
        if os.path.exists(store_path() + ending):
            os.rename(store_path() + ending, f"{store_path()}.before{ending}")
    ready_store()
    assert "was removed or replaced" in start("claude-code", new_session(), place).context
    assert lowered() == [(None, "store")]


def test_hooks_that_are_gone_from_a_clients_settings_are_said(place: Path) -> None:
    settings = Path(os.environ["CODEX_HOME"]) / "config.toml"
    settings.parent.mkdir(parents=True)
    settings.write_text('[plugins."swarm@swarm"]\nenabled = true\n')
    start("claude-code", new_session(), place)
    settings.write_text("# nothing\n")
    assert "no longer holds swarm's plugin" in start("claude-code", new_session(), place).context
    assert lowered() == [(None, "hooks")]
    assert "no longer holds" not in start("claude-code", new_session(), place).context


@pytest.mark.parametrize("manager", ["overwrites", "elsewhere"])
@pytest.mark.parametrize("way", ["beside", "dispatcher"])
def test_a_hook_manager_that_takes_the_guard_out_is_said(place: Path, monkeypatch, way: str, manager: str) -> None:
    """husky and the pre-commit framework do this when they install themselves again."""
    hooks = place / ".git" / "hooks"
    monkeypatch.chdir(place)
    if way == "dispatcher":
        (hooks / "pre-commit").write_text("#!/bin/sh\n")
    assert main(["guard", "install"]) == 0
    me = new_session()
    assert "guard" not in start("claude-code", me, place).context
    if manager == "elsewhere":
        subprocess.run(["git", "config", "core.hooksPath", ".husky/_"], cwd=place, check=True)
    elif way == "dispatcher":
        subprocess.run(["git", "config", "--unset", "core.hooksPath"], cwd=place, check=True)
    else:
        (hooks / "pre-commit").write_text("#!/bin/sh\nexec pre-commit\n")
    told = prompted(me, place)
    assert "the guard of commits and pushes" in told and "swarm-mcp guard install" in told
    assert lowered() == [(None, "guard")]
    assert "guard" not in prompted(me, place)
    if manager == "overwrites" and way == "beside":
        (hooks / "pre-commit").unlink()
    assert main(["guard", "install"]) == 0
    assert "guard" not in start("claude-code", new_session(), place).context


def test_a_guard_that_a_person_takes_out_is_no_news(place: Path, monkeypatch) -> None:
    monkeypatch.chdir(place)
    assert main(["guard", "install"]) == 0
    me = new_session()
    start("claude-code", me, place)
    monkeypatch.setenv("SWARM_MCP_ALLOW_SPAWN", "1")
    assert main(["guard", "uninstall"]) == 0
    assert "guard" not in prompted(me, place) and lowered() == []


def test_a_record_that_cannot_be_read_is_made_anew(place: Path) -> None:
    record = Path(os.environ["SWARM_STATE_DIR"]) / "protection"
    for text in ("{", "[]", '{"settings": 3, "stores": [], "clients": {"x": 1}}', "\0" * 100):
        record.parent.mkdir(parents=True, exist_ok=True)
        record.write_text(text)
        assert start("claude-code", new_session(), place).context
    assert lowered() == []
    record.unlink()
    record.mkdir()
    assert start("claude-code", new_session(), place).context
    shutil.rmtree(record)


def test_a_level_lowered_by_its_command_is_said_once(ground: Ground, monkeypatch) -> None:
    monkeypatch.setenv("SWARM_MCP_ALLOW_SPAWN", "1")
    me = new_session()
    ground.store().close()
    start("claude-code", me, ground.repo)
    assert ground.swarm("auto", "notice").code == 0
    assert "the level of protection is notice now" in prompted(me, ground.repo)
    assert prompted(me, ground.repo) == ""
