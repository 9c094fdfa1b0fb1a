"""`swarm-mcp protect`: the level in force, setting it without harm, and changes of protection without a command."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from support.altered import Clocks
from support.files import text_at
from support.fixtures import Ground
from support.sessions import captured, new_session, ready_store, run, start

from swarm_hook_core.state import config_path, store_path
from swarm_hook_core.traces import level
from swarm_mcp.cli.main import main
from swarm_mcp.store import Store

pytestmark = pytest.mark.slow


CONFIG = '{"writers": [{"tool": "ä", "paths": ["p"]}], "x": 1.50, "checkouts": {"/a": {"strict": true}}}'


@pytest.fixture(autouse=True)
def _here(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process of its own reads the file anew, and so do we."""
    (ground.repo / "sub").mkdir()
    monkeypatch.setattr("swarm_hook_core.settings._last", (None, None))


def shown(ground: Ground, *words: str) -> dict:
    return json.loads(ground.swarm("protect", *words, "--json").out)


def config() -> dict:
    return json.loads(Path(config_path()).read_text())


def given(text: str) -> Path:
    path = Path(config_path())
    text_at(path, text)
    return path


def test_the_level_in_force_and_who_says_so(ground: Ground, monkeypatch: pytest.MonkeyPatch):
    done = ground.swarm("protect")
    assert done.code == 0 and done.out.startswith(f"keep in {ground.repo}, by default: ") and done.out.count("\n") == 1
    assert not os.path.exists(config_path()), "asking writes nothing"
    nothing = {"ok": True, "value": "keep", "source": "default", "checkout": str(ground.repo), "clients": {}}
    assert shown(ground) == nothing
    monkeypatch.setenv("SWARM_PROTECT", "notice")
    monkeypatch.setenv("SWARM_CODEX_PROTECT", "off")
    lines = ground.swarm("protect").out.splitlines()
    assert lines[0].startswith("notice in") and "by SWARM_PROTECT" in lines[0]
    assert lines[1:] == ["off for codex, by SWARM_CODEX_PROTECT"]
    told = shown(ground)
    assert (told["value"], told["source"]) == ("notice", "SWARM_PROTECT")
    assert told["clients"] == {"codex": {"value": "off", "source": "SWARM_CODEX_PROTECT"}}


def test_it_is_set_for_the_checkout_for_the_user_and_taken_out_again(ground: Ground):
    before = sorted(ground.repo.rglob("*"))
    repo = str(ground.repo)
    assert f"set for {repo} in {config_path()}" in ground.swarm("protect", "turn").out
    assert config() == {"checkouts": {repo: {"protect": "turn"}}} and level("CC", repo) == "turn"
    assert os.stat(config_path()).st_mode & 0o777 == 0o600
    assert "overridden here" in ground.swarm("protect", "off", "--user").out
    assert config() == {"protect": "off", "checkouts": {repo: {"protect": "turn"}}}
    told = shown(ground, "--unset")
    assert (told["changed"], told["value"], told["source"]) == (True, "off", "user") and config() == {"protect": "off"}
    assert shown(ground, "--unset")["changed"] is False
    assert shown(ground, "--unset", "--user")["source"] == "default" and config() == {}
    assert sorted(ground.repo.rglob("*")) == before, "nothing is written into the checkout"


def test_the_fence_is_switched_for_the_checkout_or_the_user(ground: Ground):
    repo = str(ground.repo)
    assert ground.swarm("protect", "--fence", "off").out.startswith(f"the fence is off here, set for {repo}")
    assert config() == {"checkouts": {repo: {"fence": "off"}}}
    ground.swarm("protect", "--fence", "on")
    assert shown(ground, "--fence", "off", "--user")["fence"] == {"value": "on", "source": "checkout", "folder": repo}
    assert config() == {"fence": "off", "checkouts": {repo: {"fence": "on"}}}
    for wrong in (["--fence", "no"], ["--fence", "off", "turn"], ["--fence", "on", "--unset"]):
        assert ground.swarm("protect", *wrong).code == 2


def test_merging_is_switched_likewise(ground: Ground):
    repo = str(ground.repo)
    for words, as_flag in ((["merge", "off"], False), (["--merge", "off"], True)):
        assert ground.swarm("protect", *words).out.startswith(f"merging is off here, set for {repo}"), as_flag
        assert config() == {"checkouts": {repo: {"merge": "off"}}}
        assert "merging is off, set for" in ground.swarm("protect").out
        assert shown(ground, "merge")["merge"]["value"] == "off"
        ground.swarm("protect", "merge", "on")
    assert shown(ground, "merge", "off", "--user")["merge"] == {"value": "on", "source": "checkout", "folder": repo}
    for wrong in (["merge", "no"], ["--merge", "no"], ["--merge", "off", "turn"], ["--merge", "on", "--fence", "on"]):
        assert ground.swarm("protect", *wrong).code == 2


def test_a_subfolder_and_a_link_mean_the_same_checkout(ground: Ground):
    link = ground.folder / "link"
    link.symlink_to(ground.repo)
    ground.swarm("protect", "notice", cwd=ground.repo / "sub")
    ground.swarm("protect", "turn", cwd=link)
    assert config() == {"checkouts": {str(ground.repo): {"protect": "turn"}}}


def test_whatever_else_is_in_the_file_stays(ground: Ground):
    path = given(CONFIG)
    ground.swarm("protect", "turn")
    ground.swarm("protect", "keep", "--user")
    wanted = json.loads(CONFIG)
    wanted["checkouts"][str(ground.repo)] = {"protect": "turn"}
    assert config() == {**wanted, "protect": "keep"} and "ä" in path.read_text()
    ground.swarm("protect", "--unset")
    ground.swarm("protect", "--unset", "--user")
    assert config() == json.loads(CONFIG)
    assert [one.name for one in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize(
    "text", ["nonsense", "[]", '{"checkouts": []}', '{"checkouts": {"/a": 3}}', "{", "[" * 100_000, "{}x"], ids=ascii
)
def test_a_file_that_cannot_be_read_is_left_as_it_is(text: str, ground: Ground):
    path = given(text)
    done = ground.swarm("protect", "turn")
    assert done.code == 1 and done.out == "" and done.err.count("\n") == 1
    assert str(path) in done.err and "was left as it is" in done.err and path.read_text() == text


def test_a_pipe_or_a_folder_in_its_place_is_refused(ground: Ground):
    path = Path(config_path())
    path.parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(path)
    assert ground.swarm("protect", "turn").code == 1 and ground.swarm("protect").code == 0
    path.unlink()
    path.mkdir()
    assert ground.swarm("protect", "turn").code == 1


def test_a_link_in_its_place_stays_one(ground: Ground):
    own = text_at(ground.folder / "dotfiles.json", '{"strict": true}')
    path = Path(config_path())
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(own)
    ground.swarm("protect", "off", "--user")
    assert path.is_symlink() and json.loads(own.read_text()) == {"strict": True, "protect": "off"}


def test_a_place_that_cannot_be_written_is_said_in_one_line(ground: Ground, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SWARM_CONFIG_DIR", "/dev/null/nowhere")
    done = ground.swarm("protect", "turn")
    assert done.code == 1 and done.err.count("\n") == 1 and "/dev/null/nowhere" in done.err


@pytest.mark.parametrize("words", [("loud",), ("off", "--unset"), ("--user",), ("off", "on")])
def test_a_wrong_command_line_is_refused(words: tuple[str, ...], ground: Ground):
    done = ground.swarm("protect", *words)
    assert done.code == 2 and done.out == "" and not os.path.exists(config_path())


def test_two_at_once_lose_nothing(ground: Ground):
    from support.fixtures import SWARM

    folders = [ground.folder / f"r{number}" for number in range(6)]
    for folder in folders:
        (folder / ".git").mkdir(parents=True)
    running = [
        subprocess.Popen([*SWARM, "protect", "off"], cwd=folder, stdout=subprocess.DEVNULL) for folder in folders
    ]
    assert [one.wait(60) for one in running] == [0] * 6
    assert config()["checkouts"] == {str(folder): {"protect": "off"} for folder in folders}


def test_the_doctor_shows_level_and_fail_with_where_they_come_from(ground: Ground, monkeypatch: pytest.MonkeyPatch):
    from swarm_mcp.doctor import own_checks

    monkeypatch.chdir(ground.repo)

    def finding(name: str):
        return next(one for one in own_checks.findings("") if one.name == name)

    assert finding("protect").message.startswith("keep, by default") and finding("fail").message.startswith("open, by")
    given(json.dumps({"fail": "closed", "checkouts": {str(ground.repo): {"protect": "off"}}}))
    assert f"off, set for {ground.repo} in {config_path()}" in finding("protect").message
    assert f"closed, set in {config_path()}" in finding("fail").message and finding("fail").status == "ok"
    monkeypatch.setenv("SWARM_CC_FAIL", "shut")
    found = finding("fail")
    assert found.status == "warn" and "SWARM_CC_FAIL=shut" in found.message and "open, closed" in found.mend
    monkeypatch.setenv("SWARM_CC_FAIL", "open")
    assert "open for claude-code, by SWARM_CC_FAIL" in finding("fail").message


def test_a_level_for_a_while_gives_way_to_the_one_before(ground: Ground, clocks: Clocks):
    repo = str(ground.repo)
    ground.swarm("protect", "turn")
    said = ground.swarm("protect", "off", "--for", "5m").out
    assert said.startswith("off until ") and level("CC", repo) == "off"
    entry = config()["checkouts"][repo]
    assert entry["protect"] == "turn" and entry["protect_for"]["value"] == "off"
    clocks.ahead(wall=301)
    assert level("CC", repo) == "turn", "its time is over"
    ground.swarm("protect", "notice")
    assert config()["checkouts"] == {repo: {"protect": "notice"}}, "a level without an end ends it"


@pytest.mark.parametrize("words", [("off", "--for", "soon"), ("off", "--for", "25h"), ("--for", "5m"),
                                   ("off", "--for", "0s"), ("off", "--user", "--for", "5m")])  # fmt: skip
def test_a_wrong_time_is_refused(words: tuple[str, ...], ground: Ground):
    assert ground.swarm("protect", *words).code == 2 and not os.path.exists(config_path())


def test_the_old_names_work(ground: Ground, monkeypatch: pytest.MonkeyPatch):
    repo = str(ground.repo)
    given(json.dumps({"auto": "notice", "checkouts": {repo: {"auto": "off"}}}))
    assert level("CC", repo) == "off" and shown(ground)["source"] == "checkout"
    assert ground.swarm("auto", "turn").code == 0
    assert config() == {"auto": "notice", "checkouts": {repo: {"protect": "turn"}}}, "the new name takes its place"
    monkeypatch.setenv("SWARM_AUTO", "keep")
    assert level("CC", repo) == "keep"
    monkeypatch.setenv("SWARM_PROTECT", "notice")
    assert level("CC", repo) == "notice", "the new name counts first"


def test_doctor_says_for_which_clients_merging_is_on(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    def lines() -> list[str]:
        told = ground.swarm("doctor").out
        return [line for line in told.splitlines() if "in claude-code" in line and "opencode" in line]

    assert ground.swarm("register").code == 0
    all_on = lines()
    assert len(all_on) == 1 and all("on in claude-code, codex" in line for line in all_on), all_on
    monkeypatch.setenv("SWARM_CODEX_MERGE", "off")
    assert all("; off in codex" in line and "codex, " not in line for line in lines()), lines()
    monkeypatch.setenv("SWARM_MERGE", "off")
    assert all("off in claude-code, codex" in line for line in lines())
    assert json.loads(ground.swarm("status", "--json").out)["merging"]["on"] == []
    monkeypatch.setenv("SWARM_MERGE", "maybe")
    assert "not understood: SWARM_MERGE=maybe" in ground.swarm("doctor").out


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
    settings = text_at(Path(os.environ["CODEX_HOME"]) / "config.toml", '[plugins."swarm@swarm"]\nenabled = true\n')
    start("claude-code", new_session(), place)
    settings.write_text("# nothing\n")
    assert "no longer holds swarm's plugin" in start("claude-code", new_session(), place).context
    assert lowered() == [(None, "hooks")]
    assert "no longer holds" not in start("claude-code", new_session(), place).context


@pytest.mark.sampled
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


def test_a_guard_that_a_person_takes_out_is_no_news(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
        text_at(record, text)
        assert start("claude-code", new_session(), place).context
    assert lowered() == []
    record.unlink()
    record.mkdir()
    assert start("claude-code", new_session(), place).context
    shutil.rmtree(record)


def test_a_level_lowered_by_its_command_is_said_once(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWARM_MCP_ALLOW_SPAWN", "1")
    me = new_session()
    ground.store().close()
    start("claude-code", me, ground.repo)
    assert ground.swarm("auto", "notice").code == 0
    assert "the level of protection is notice now" in prompted(me, ground.repo)
    assert prompted(me, ground.repo) == ""
