"""`swarm-mcp auto`: the level in force here, and setting it without harm to a person's other settings."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from support.fixtures import Ground

from swarm_hook_core.state import config_path
from swarm_hook_core.traces import level

CONFIG = '{"writers": [{"tool": "ä", "paths": ["p"]}], "x": 1.50, "checkouts": {"/a": {"strict": true}}}'


@pytest.fixture(autouse=True)
def _here(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process of its own reads the file anew, and so do we."""
    (ground.repo / "sub").mkdir()
    monkeypatch.setattr("swarm_hook_core.settings._last", (None, None))


def shown(ground: Ground, *words: str) -> dict:
    return json.loads(ground.swarm("auto", *words, "--json").out)


def config() -> dict:
    return json.loads(Path(config_path()).read_text())


def given(text: str) -> Path:
    path = Path(config_path())
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_the_level_in_force_and_who_says_so(ground: Ground, monkeypatch: pytest.MonkeyPatch):
    done = ground.swarm("auto")
    assert done.code == 0 and done.out.startswith(f"keep in {ground.repo}, by default: ") and done.out.count("\n") == 1
    assert not os.path.exists(config_path()), "asking writes nothing"
    nothing = {"ok": True, "value": "keep", "source": "default", "checkout": str(ground.repo), "clients": {}}
    assert shown(ground) == nothing
    monkeypatch.setenv("SWARM_AUTO", "notice")
    monkeypatch.setenv("SWARM_CODEX_AUTO", "off")
    lines = ground.swarm("auto").out.splitlines()
    assert lines[0].startswith("notice in") and "by SWARM_AUTO" in lines[0]
    assert lines[1:] == ["off for codex, by SWARM_CODEX_AUTO"]
    told = shown(ground)
    assert (told["value"], told["source"]) == ("notice", "SWARM_AUTO")
    assert told["clients"] == {"codex": {"value": "off", "source": "SWARM_CODEX_AUTO"}}


def test_it_is_set_for_the_checkout_for_the_user_and_taken_out_again(ground: Ground):
    before = sorted(ground.repo.rglob("*"))
    repo = str(ground.repo)
    assert f"set for {repo} in {config_path()}" in ground.swarm("auto", "turn").out
    assert config() == {"checkouts": {repo: {"auto": "turn"}}} and level("CC", repo) == "turn"
    assert os.stat(config_path()).st_mode & 0o777 == 0o600
    assert "overridden here" in ground.swarm("auto", "off", "--user").out
    assert config() == {"auto": "off", "checkouts": {repo: {"auto": "turn"}}}
    told = shown(ground, "--unset")
    assert (told["changed"], told["value"], told["source"]) == (True, "off", "user") and config() == {"auto": "off"}
    assert shown(ground, "--unset")["changed"] is False
    assert shown(ground, "--unset", "--user")["source"] == "default" and config() == {}
    assert sorted(ground.repo.rglob("*")) == before, "nothing is written into the checkout"


def test_a_subfolder_and_a_link_mean_the_same_checkout(ground: Ground):
    link = ground.folder / "link"
    link.symlink_to(ground.repo)
    ground.swarm("auto", "notice", cwd=ground.repo / "sub")
    ground.swarm("auto", "turn", cwd=link)
    assert config() == {"checkouts": {str(ground.repo): {"auto": "turn"}}}


def test_whatever_else_is_in_the_file_stays(ground: Ground):
    path = given(CONFIG)
    ground.swarm("auto", "turn")
    ground.swarm("auto", "keep", "--user")
    wanted = json.loads(CONFIG)
    wanted["checkouts"][str(ground.repo)] = {"auto": "turn"}
    assert config() == {**wanted, "auto": "keep"} and "ä" in path.read_text()
    ground.swarm("auto", "--unset")
    ground.swarm("auto", "--unset", "--user")
    assert config() == json.loads(CONFIG)
    assert [one.name for one in path.parent.iterdir()] == [path.name]


def test_another_setting_of_the_checkout_stays(ground: Ground):
    given(json.dumps({"checkouts": {str(ground.repo): {"fail": "closed"}}}))
    ground.swarm("auto", "off")
    assert config()["checkouts"] == {str(ground.repo): {"fail": "closed", "auto": "off"}}
    ground.swarm("auto", "--unset")
    assert config()["checkouts"] == {str(ground.repo): {"fail": "closed"}}


@pytest.mark.parametrize(
    "text", ["nonsense", "[]", '{"checkouts": []}', '{"checkouts": {"/a": 3}}', "{", "[" * 100_000, "{}x"], ids=ascii
)
def test_a_file_that_cannot_be_read_is_left_as_it_is(text: str, ground: Ground):
    path = given(text)
    done = ground.swarm("auto", "turn")
    assert done.code == 1 and done.out == "" and done.err.count("\n") == 1
    assert str(path) in done.err and "was left as it is" in done.err and path.read_text() == text


def test_a_pipe_or_a_folder_in_its_place_is_refused(ground: Ground):
    path = Path(config_path())
    path.parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(path)
    assert ground.swarm("auto", "turn").code == 1 and ground.swarm("auto").code == 0
    path.unlink()
    path.mkdir()
    assert ground.swarm("auto", "turn").code == 1


def test_a_link_in_its_place_stays_one(ground: Ground):
    own = ground.folder / "dotfiles.json"
    own.write_text('{"strict": true}')
    path = Path(config_path())
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(own)
    ground.swarm("auto", "off", "--user")
    assert path.is_symlink() and json.loads(own.read_text()) == {"strict": True, "auto": "off"}


def test_a_place_that_cannot_be_written_is_said_in_one_line(ground: Ground, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SWARM_CONFIG_DIR", "/dev/null/nowhere")
    done = ground.swarm("auto", "turn")
    assert done.code == 1 and done.err.count("\n") == 1 and "/dev/null/nowhere" in done.err


@pytest.mark.parametrize("words", [("loud",), ("off", "--unset"), ("--user",), ("off", "on")])
def test_a_wrong_command_line_is_refused(words: tuple[str, ...], ground: Ground):
    done = ground.swarm("auto", *words)
    assert done.code == 1 and done.out == "" and not os.path.exists(config_path())


def test_two_at_once_lose_nothing(ground: Ground):
    from support.fixtures import SWARM

    folders = [ground.folder / f"r{number}" for number in range(6)]
    for folder in folders:
        (folder / ".git").mkdir(parents=True)
    running = [subprocess.Popen([*SWARM, "auto", "off"], cwd=folder, stdout=subprocess.DEVNULL) for folder in folders]
    assert [one.wait(60) for one in running] == [0] * 6
    assert config()["checkouts"] == {str(folder): {"auto": "off"} for folder in folders}


def test_the_doctor_shows_level_and_fail_with_where_they_come_from(ground: Ground, monkeypatch: pytest.MonkeyPatch):
    from swarm_mcp.doctor import own_checks

    monkeypatch.chdir(ground.repo)

    def finding(name: str):
        return next(one for one in own_checks.findings("") if one.name == name)

    assert finding("auto").message.startswith("keep, by default") and finding("fail").message.startswith("open, by")
    given(json.dumps({"fail": "closed", "checkouts": {str(ground.repo): {"auto": "off"}}}))
    assert f"off, set for {ground.repo} in {config_path()}" in finding("auto").message
    assert f"closed, set in {config_path()}" in finding("fail").message and finding("fail").status == "ok"
    monkeypatch.setenv("SWARM_CC_FAIL", "shut")
    found = finding("fail")
    assert found.status == "warn" and "SWARM_CC_FAIL=shut" in found.message and "open, closed" in found.mend
    monkeypatch.setenv("SWARM_CC_FAIL", "open")
    assert "open for claude-code, by SWARM_CC_FAIL" in finding("fail").message
