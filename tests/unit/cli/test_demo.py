"""`swarm-mcp demo`: three scenes, in any folder and for any user."""

import json
import os
import re
import shutil
from pathlib import Path

import pytest
from support.fixtures import Done, Ground

from swarm_mcp.doctor import demo

pytestmark = pytest.mark.slow

SCENES = ["1. One agent, and your uncommitted lines", "2. Two agents", "3. A lock, for a file that must not change"]
GIT_HOOK = {"GIT_DIR": "/nonexistent/.git", "GIT_INDEX_FILE": "/nonexistent/index"}
AGENT_SHELL = {"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": "0c8f5f0e-0000-4000-8000-000000000001"}
SETTINGS = {"SWARM_PROTECT": "off", "SWARM_FAIL": "closed", "NO_COLOR": "1"}


def played(ground: Ground, folder: Path, with_git: bool = True, **more: str) -> Done:
    """Play the demo in a new home, with few programs on PATH and a repository around the temporary folder."""
    programs, home, temporary = (folder / name for name in ("bin", "home", "tmp"))
    for made in (programs, home, temporary, temporary / ".git"):
        made.mkdir()
    for name in ("sh", "grep", *(["git"] if with_git else [])):
        found = shutil.which(name)
        assert found, name
        (programs / name).symlink_to(found)
    environment = {"HOME": str(home), "PATH": str(programs), "TMPDIR": str(temporary), **more}
    return ground.process("demo", env=environment)


def check_that_nothing_is_left(folder: Path) -> None:
    assert list((folder / "home").iterdir()) == []
    assert list((folder / "tmp").iterdir()) == [folder / "tmp" / ".git"]


@pytest.mark.parametrize("more", [{}, GIT_HOOK, AGENT_SHELL, SETTINGS], ids=["plain", "git hook", "agent", "settings"])
def test_it_plays_in_a_new_home_without_clients_and_leaves_nothing(
    more: dict[str, str], ground: Ground, tmp_path: Path
) -> None:
    done = played(ground, tmp_path, **more)
    assert done.code == 0 and "NOT" not in done.out, done
    lines = done.out.splitlines()
    assert [line for line in lines if re.match(r"\d\. ", line)] == SCENES
    assert max(map(len, lines)) <= 80 and "\x1b" not in done.out
    assert [line.strip() for line in lines[-3:]] == list(demo.NEXT) and lines[-4] == "Next:"
    assert len(re.findall("^   refused; its model reads:$", done.out, re.MULTILINE)) == 3
    assert "a person's work" in done.out and "schema.sql: 4 lines (2 to 5)" in done.out
    check_that_nothing_is_left(tmp_path)


def test_without_git_the_lock_is_played(ground: Ground, tmp_path: Path) -> None:
    done = played(ground, tmp_path, with_git=False)
    assert done.code == 0 and "NOT" not in done.out, done
    assert "git is not on PATH" in done.out
    assert [line for line in done.out.splitlines() if re.match(r"\d\. ", line)] == SCENES[2:]
    check_that_nothing_is_left(tmp_path)


def test_a_hook_that_lets_everything_pass_is_told(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    write = demo.bundle.write

    def written(target: Path, local: bool) -> None:
        write(target, local=local)
        for name in demo.SESSIONS:
            file = target / f"integrations/{name}/hooks.json"
            tree = json.loads(file.read_text())
            tree["hooks"]["PreToolUse"][0]["hooks"][0]["command"] = "exit 0"
            file.write_text(json.dumps(tree))

    monkeypatch.setattr(demo.bundle, "write", written)
    said: list[str] = []
    assert demo.play(lambda line, mark, style: said.append(line), lambda doing: None) is False
    assert [line for line in said if line == "   NOT refused"] != []
    assert "   NOT your four lines are still there" in said


def test_all_commands_of_its_last_lines_exist(ground: Ground) -> None:
    for line in demo.NEXT:
        program, verb, *_ = line.split()
        assert program == "swarm-mcp" and ground.process(verb, "--help", env=dict(os.environ)).code == 0
