"""The coordinator's command: told from other programs of that name before any is started."""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.altered import Limits
from support.files import program_at, text_at
from support.fixtures import time_limit
from support.sessions import ROOT, Ran, new_session, peer_locks, ready_store, start
from support.toml_reader import reader

from swarm_hook_core import coordinator, process
from swarm_hook_core.state import state_dir

INSTALLED = Path(sys.executable).with_name("swarm-mcp")  # as pip makes it
STRANGER = f"""\
#!{sys.executable}
import sys
from swarm_mcp.server import main
if __name__ == "__main__":
    open(sys.argv[0] + ".started", "a").write(" ".join(sys.argv[1:]))
    sys.exit(main())
"""
SPEAKS_LIKE_US = 'case "$1" in --version) echo "swarm-mcp 9.9.9" ;; *) echo >"$0.started" ;; esac'


def script(folder: Path, text: str, name: str = "swarm-mcp") -> Path:
    return program_at(folder / name, text if text.startswith("#!") else f"#!/bin/sh\n{text}\n")


def serving(path: str) -> subprocess.CompletedProcess[str]:
    """The plugin's server, started as a client does on this PATH, with a client that says nothing."""
    launcher = ["/bin/sh", str(ROOT / "integrations" / "coordinator.sh"), "serve"]
    tools = f"{path}:/usr/bin:/bin"
    assert not shutil.which("swarm-mcp", path="/usr/bin:/bin")
    env = {**os.environ, "PATH": tools}
    return subprocess.run(launcher, input="", env=env, capture_output=True, text=True, timeout=60)


def program(folder: Path, name: str) -> Path:
    return script(folder, ': swarm_mcp.cli.main\necho ran $0 "$@"', name)


def test_what_the_installer_recorded_comes_before_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = program(tmp_path, "swarm-mcp-installed")
    plugin = tmp_path / "plugin"
    (plugin / "swarm_hook_core").mkdir(parents=True)
    monkeypatch.setattr(coordinator, "__file__", str(plugin / "swarm_hook_core" / "coordinator.py"))
    record = plugin / "install.json"
    on_path = coordinator.command()
    assert on_path and on_path[0].endswith("/swarm-mcp")
    record.write_text(f'{{"coordinator": ["{chosen}", "-m", "x"]}}')
    assert coordinator.command() == [str(chosen), "-m", "x"]
    for broken in ("", "[]", "{", "null", '{"coordinator": "x"}', '{"coordinator": []}', '{"coordinator": [3]}',
                   '{"coordinator": ["/not/there/any/more"]}', "\udcff", "[" * 100_000):  # fmt: skip
        record.write_bytes(broken.encode("utf-8", "surrogateescape"))
        assert coordinator.command() == on_path, broken[:40]
    record.write_text(f'{{"coordinator": ["{chosen}"]}}')
    monkeypatch.setenv("SWARM_MCP_BIN", "true")
    assert os.path.basename(coordinator.command()[0]) == "true"


def test_the_command_is_the_chosen_one_then_the_one_on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on_path, chosen = program(tmp_path / "bin", "swarm-mcp"), program(tmp_path / "other", "sw")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert coordinator.command() == [str(on_path)]
    monkeypatch.setenv("SWARM_MCP_BIN", f"{chosen} --flag")
    assert coordinator.command() == [str(chosen), "--flag"]
    monkeypatch.setenv("PATH", str(tmp_path / "other"))
    monkeypatch.setenv("SWARM_MCP_BIN", "sw")
    assert coordinator.command() == [str(chosen)]
    monkeypatch.setenv("SWARM_MCP_BIN", "")
    assert coordinator.command() == []


@pytest.mark.parametrize("setting", ["/not/there", "'unbalanced", "nowhere-on-path", "/", "/etc/passwd", '"', "\\"])
def test_a_choice_that_cannot_run_is_passed_over(setting: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on_path = program(tmp_path, "swarm-mcp")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("SWARM_MCP_BIN", setting)
    assert coordinator.command() == [str(on_path)]


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("'{0}/a b/sw' -x", ["{0}/a b/sw", "-x"]),
        ('"{0}/a b/sw" "y z"', ["{0}/a b/sw", "y z"]),
        ("{0}/a\\ b/sw", ["{0}/a b/sw"]),
    ],
)
def test_the_choice_is_split_as_a_shell_would(setting: str, words: list[str], tmp_path: Path, monkeypatch) -> None:
    program(tmp_path / "a b", "sw")
    monkeypatch.setenv("SWARM_MCP_BIN", setting.format(tmp_path))
    assert coordinator.command() == [word.format(tmp_path) for word in words]


@pytest.mark.parametrize(("name", "interpreter"), [("cli.ts", "bun"), ("cli.js", "node")])
def test_a_script_runs_with_its_interpreter(name: str, interpreter: str, tmp_path: Path, monkeypatch) -> None:
    code = text_at(tmp_path / name, "")
    runner, on_path = program(tmp_path / "bin", interpreter), program(tmp_path / "last", "swarm-mcp")
    monkeypatch.setenv("SWARM_MCP_BIN", f"{code} -v")
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{tmp_path}/last")
    assert coordinator.command() == [str(runner), str(code), "-v"]
    monkeypatch.setenv("PATH", f"{tmp_path}/last")
    assert coordinator.command() == [str(on_path)], "without its interpreter the script cannot be run"


def test_what_an_installer_makes_is_known_by_its_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing) -> None:
    failing(process, "run", pytest.fail.Exception)  # nothing is started
    assert coordinator.is_ours(str(INSTALLED))
    (tmp_path / "swarm-mcp").symlink_to(INSTALLED)  # as pipx and uv do
    monkeypatch.setenv("PATH", f"/nowhere:{tmp_path}")
    assert coordinator.command() == [str(tmp_path / "swarm-mcp")]


def test_another_program_is_passed_over_and_never_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stranger = script(tmp_path / "a", STRANGER)
    monkeypatch.setenv("PATH", str(tmp_path / "a"))
    assert coordinator.find_on_path() == ("", str(stranger)) and coordinator.command() == []
    monkeypatch.setenv("PATH", f"{tmp_path / 'a'}:{INSTALLED.parent}")
    assert coordinator.find_on_path() == (str(INSTALLED), str(stranger))
    done = serving(f"{tmp_path / 'a'}:{INSTALLED.parent}")
    assert done.returncode == 0, done.stderr
    done = serving(str(tmp_path / "a"))
    assert done.returncode == 1 and done.stdout == "" and f"{stranger} is another program of that name" in done.stderr
    assert "not on PATH" in serving(str(tmp_path / "nothing")).stderr
    assert not list(tmp_path.rglob("*.started"))


def test_beside_another_program_of_that_name_ours_has_a_second(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both put a `swarm-mcp` into one folder, and the other was installed last."""
    stranger = script(tmp_path / "bin", STRANGER)
    ours = program(tmp_path / "bin", "swarm-locks")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert coordinator.find_on_path() == (str(ours), str(stranger)) and coordinator.command() == [str(ours)]
    done = serving(str(tmp_path / "bin"))
    assert (done.returncode, done.stdout, done.stderr) == (0, f"ran {ours} serve\n", "")
    before = program(tmp_path / "bin", "swarm-mcp")
    assert coordinator.command() == [str(before)]
    assert not list(tmp_path.rglob("*.started"))


def test_the_distribution_is_called_what_the_hooks_tell_people_to_install() -> None:
    settings = reader().loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    project, wheel = settings["project"], settings["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert project["name"] == coordinator.DISTRIBUTION
    assert set(project["scripts"]) == {coordinator.DISTRIBUTION}
    assert list(wheel["shared-scripts"].values()) == [coordinator.NAME]


def test_a_pipe_of_that_name_keeps_nobody_waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "swarm-mcp", 0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{INSTALLED.parent}")
    monkeypatch.setattr(coordinator, "is_ours", INSTALLED.samefile)  # to open the other one would hang
    assert coordinator.find_on_path() == (str(INSTALLED), "")


@pytest.mark.parametrize("way", ["python", "sh"])
def test_what_stands_in_for_a_command_is_asked(way: str, tmp_path: Path) -> None:
    """A version manager's stand-in has the same text for every target."""
    ours = script(tmp_path / "ours", f'echo >>"$0.asked"; exec {INSTALLED} "$@"')
    other = script(tmp_path / "other", SPEAKS_LIKE_US)
    if way == "sh":
        assert serving(str(ours.parent)).returncode == 0 and serving(str(other.parent)).returncode == 1
    else:
        for _ in range(3):
            assert coordinator.is_ours(str(ours))
        assert (tmp_path / "ours" / "swarm-mcp.asked").read_text() == "\n", "once"
        os.utime(ours)
        assert coordinator.is_ours(str(ours))
        assert (tmp_path / "ours" / "swarm-mcp.asked").read_text() == "\n\n", "and again where the file has changed"
        assert not coordinator.is_ours(str(other))
        old = time.time() - 2 * coordinator.REFUSED_SECONDS
        script(tmp_path / "other", f'exec {INSTALLED} "$@"')
        os.utime(other, (1, 1))
        (Path(state_dir()) / "command").write_text(f"other {other.stat().st_mtime_ns} {other.stat().st_size} {other}\n")
        assert not coordinator.is_ours(str(other))
        os.utime(Path(state_dir()) / "command", (old, old))
        assert coordinator.is_ours(str(other)), "what was refused is asked again some time later"
    assert not list(tmp_path.rglob("*.started"))


def test_a_stand_in_that_hangs_has_its_time(tmp_path: Path, limits: Limits) -> None:
    limits(coordinator, SECONDS=0.2)
    hangs = script(tmp_path / "a", "exec sleep 600")
    begun = time.monotonic()
    assert not coordinator.is_ours(str(hangs)) and not coordinator.is_ours(str(hangs))
    assert time.monotonic() - begun < time_limit(60)


def told(ran: Ran) -> str:
    """Return a session start's text for the user; the model hears the same."""
    answer = json.loads(ran.out)
    assert answer["systemMessage"] in answer["hookSpecificOutput"]["additionalContext"]
    return str(answer["systemMessage"])


def test_a_session_s_start_says_so_where_nothing_is_enforced(tmp_path: Path) -> None:
    path = ready_store()
    path.write_bytes(b"no database" * 1000)
    words = told(start("codex", new_session(), tmp_path))
    assert "locks are NOT enforced" in words and "swarm-mcp doctor" in words


def test_the_hook_of_the_pre_commit_framework_leaves_it_alone(tmp_path: Path) -> None:
    ready_store()
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / "f").write_text("x\n")
    subprocess.run(["git", "add", "f"], cwd=tmp_path, check=True)
    peer_locks(tmp_path, tmp_path / "f")
    script(tmp_path / "a", STRANGER)
    guard = str(ROOT / "integrations" / "git" / "guard.sh")

    def commits(path: str) -> subprocess.CompletedProcess[str]:
        env = {**os.environ, "PATH": f"{path}:/usr/bin:/bin"}
        return subprocess.run([guard], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60)

    done = commits(str(tmp_path / "a"))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    refused = commits(f"{tmp_path / 'a'}:{INSTALLED.parent}")
    assert refused.returncode == 1 and refused.stderr.startswith("swarm guard: ")
    assert not list(tmp_path.rglob("*.started"))
