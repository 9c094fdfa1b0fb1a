"""What hooks take from the environment, and in which order."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from swarm_hook_core import coordinator, environment, state

SETTINGS: list[tuple[Callable[[], object], list[tuple[str, str]], list[object], object]] = [
    (
        lambda: environment.identity("CC"),
        [("SWARM_CC_IDENTITY", "a"), ("SWARM_HERMES_IDENTITY", "b"), ("AGENT_IDENTITY", "c"), ("SWARM_IDENTITY", "d")],
        ["a", "b", "c", "d"],
        "",
    ),
    (
        lambda: environment.scope("CC"),
        [("SWARM_CC_SCOPE", "/a"), ("SWARM_HERMES_SCOPE", "/b"), ("SWARM_MCP_SCOPE", "/c")],
        ["/a", "/b", "/c"],
        "",
    ),
    (
        lambda: environment.file_root("CC"),
        [("SWARM_CC_FILE_ROOT", "/a"), ("SWARM_HERMES_FILE_ROOT", "/b"), ("SWARM_MCP_FILE_ROOT", "/c")],
        ["/a", "/b", "/c"],
        "",
    ),
    (
        lambda: environment.label_override("CC"),
        [("SWARM_CC_LABEL", "a"), ("SWARM_HERMES_LABEL", "b")],
        ["a", "b"],
        "",
    ),
    (
        lambda: environment.mode("CC"),
        [("SWARM_CC_ROLE", "gateway"), ("SWARM_ROLE", "x")],
        ["gateway", "worker"],
        "worker",
    ),
    (
        lambda: environment.mode("CC"),
        [("SWARM_CC_ROLE", "x"), ("SWARM_ROLE", "gateway")],
        ["worker", "gateway"],
        "worker",
    ),
    (
        lambda: environment.role("CC", "", ""),
        [("SWARM_CC_AGENT_ROLE", "A"), ("SWARM_AGENT_ROLE", "b"), ("SWARM_ROLE", "gateway")],
        ["a", "b", "planner"],
        "",
    ),
    (
        lambda: environment.lease_seconds("CC"),
        [("SWARM_CC_LEASE_SECONDS", "5"), ("SWARM_LEASE_SECONDS", "6")],
        [5, 6],
        86400,
    ),
    (environment.pane, [("HERDR_PANE_ID", "p_1"), ("HERDR_PANE", "p_2")], ["p_1", "p_2"], ""),
]


@pytest.mark.parametrize(("read", "variables", "values", "default"), SETTINGS)
def test_the_first_variable_that_is_set_wins(
    read: Callable[[], object],
    variables: list[tuple[str, str]],
    values: list[object],
    default: object,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in variables:
        monkeypatch.setenv(name, value)
    for (name, _), value in zip(variables, values, strict=True):
        assert read() == value
        monkeypatch.setenv(name, " \t ")  # a blank one counts as unset
    assert read() == default


@pytest.mark.parametrize("name", ["IDENTITY", "SCOPE", "FILE_ROOT", "LABEL", "ROLE", "AGENT_ROLE", "LEASE_SECONDS"])
def test_another_runtime_s_variables_are_not_ours(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def read_all() -> list[object]:
        of = environment
        return [of.identity("CC"), of.scope("CC"), of.file_root("CC"), of.label_override("CC"), of.mode("CC"),
                of.role("CC", "", ""), of.lease_seconds("CC")]  # fmt: skip

    before = read_all()
    monkeypatch.setenv(f"SWARM_CODEX_{name}", "gateway" if name == "ROLE" else "7")
    assert read_all() == before
    monkeypatch.setenv(f"SWARM_CC_{name}", "gateway" if name == "ROLE" else "7")
    assert read_all() != before


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ("work", "work"),
        (" work ", "work"),
        ("identity:work", "work"),
        ("A_b.c-9", "A_b.c-9"),
        ("my work", ""),
        ("a:b", ""),
        ("identity:", ""),
        ("arbeit-ü", ""),
        ("a\nrole:x", ""),
    ],
)
def test_an_identity_is_one_word(value: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT_IDENTITY", value)
    assert environment.identity("CC") == name


@pytest.mark.parametrize(
    ("value", "seconds"),
    [("60", 60), (" 60 ", 60), ("0", 0), ("-5", 0), ("", 86400), ("1.5", 86400), ("a day", 86400), ("1e3", 86400)],
)
def test_a_lease_is_whole_seconds(value: str, seconds: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWARM_CODEX_LEASE_SECONDS", value)
    assert environment.lease_seconds("CODEX") == seconds


@pytest.mark.parametrize(
    ("value", "role"),
    [("Reviewer", "reviewer"), ("worker", ""), ("WORKER", ""), ("a b", ""), ("a/b", ""), ("r.e-v_9", "r.e-v_9")],
)
def test_a_role_is_one_lower_case_word(value: str, role: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWARM_CC_AGENT_ROLE", value)
    assert environment.role("CC", "", "") == role


def test_the_nearest_role_file_counts_up_to_the_scope(tmp_path: Path) -> None:
    deep = tmp_path / "scope" / "a" / "b"
    deep.mkdir(parents=True)
    (tmp_path / ".swarm-role").write_text("outer\n")
    assert environment.role("CC", str(deep), "") == "outer"
    assert environment.role("CC", str(deep), str(tmp_path / "scope")) == ""
    (tmp_path / "scope" / ".swarm-role").write_text("scope\n")
    assert environment.role("CC", str(deep), str(tmp_path / "scope")) == "scope"
    (tmp_path / "scope" / "a" / ".swarm-role").write_text("\n# who works here\n\n  Tester  \nplanner\n")
    assert environment.role("CC", str(deep), str(tmp_path / "scope")) == "tester"
    assert environment.role("CC", str(deep / "not" / "there"), str(tmp_path / "scope")) == "tester"


@pytest.mark.parametrize("folder", ["", "."])
def test_a_role_file_stands_between_the_two_variables(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".swarm-role").write_text("filed")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SWARM_AGENT_ROLE", "general")
    assert environment.role("CC", folder, "") == ("filed" if folder else "general")
    monkeypatch.setenv("SWARM_CC_AGENT_ROLE", "own")
    assert environment.role("CC", folder, "") == "own"


def test_a_gateway_plans_unless_told_otherwise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWARM_ROLE", "gateway")
    assert environment.role("CC", str(tmp_path), str(tmp_path)) == "planner"
    (tmp_path / ".swarm-role").write_text("reviewer")
    assert environment.role("CC", str(tmp_path), str(tmp_path)) == "reviewer"


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"#" * 5_000_000, b"", b"two words\n"])
def test_a_strange_role_file_is_no_role(content: bytes, tmp_path: Path) -> None:
    (tmp_path / ".swarm-role").write_bytes(content)
    assert environment.role("CC", str(tmp_path), str(tmp_path)) == ""


def test_a_role_file_that_is_a_folder_is_passed_by(tmp_path: Path) -> None:
    (tmp_path / ".swarm-role").write_text("outer")
    (tmp_path / "in" / ".swarm-role").mkdir(parents=True)
    assert environment.role("CC", str(tmp_path / "in"), "") == "outer"


def test_a_role_file_that_is_a_pipe_does_not_hold_the_hook(tmp_path: Path) -> None:
    import subprocess
    import sys

    os.mkfifo(tmp_path / ".swarm-role")
    ask = "import sys; from swarm_hook_core.environment import role; print([role('CC', sys.argv[1], sys.argv[1])])"
    try:
        done = subprocess.run(
            [sys.executable, "-c", ask, tmp_path], capture_output=True, text=True, timeout=5, check=False
        )
    except subprocess.TimeoutExpired:
        pytest.fail("reading a .swarm-role that is a named pipe never returns")
    assert done.stdout == "['']\n"


# -- places ----------------------------------------------------------------------------------------


def test_the_store_is_where_its_variable_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWARM_DB_PATH", "/some/where.db")
    assert state.store_path() == "/some/where.db"
    monkeypatch.setenv("SWARM_DB_PATH", "  ")
    assert state.store_path() == os.path.join(os.environ["HOME"], ".swarm-mcp", "swarm.db")


def test_the_state_folder_is_where_its_variable_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWARM_STATE_DIR", "/some/state")
    assert state.state_dir() == "/some/state"


# -- the coordinator's command ---------------------------------------------------------------------


def program(folder: Path, name: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text('#!/bin/sh\n: swarm_mcp.cli.main\necho ran $0 "$@"\n')
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


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
def test_the_choice_is_split_as_a_shell_would(
    setting: str, words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path / "a b", "sw")
    monkeypatch.setenv("SWARM_MCP_BIN", setting.format(tmp_path))
    assert coordinator.command() == [word.format(tmp_path) for word in words]


@pytest.mark.parametrize(("name", "interpreter"), [("cli.ts", "bun"), ("cli.js", "node")])
def test_a_script_runs_with_its_interpreter(
    name: str, interpreter: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / name
    script.write_text("")
    runner, on_path = program(tmp_path / "bin", interpreter), program(tmp_path / "last", "swarm-mcp")
    monkeypatch.setenv("SWARM_MCP_BIN", f"{script} -v")
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{tmp_path}/last")
    assert coordinator.command() == [str(runner), str(script), "-v"]
    monkeypatch.setenv("PATH", f"{tmp_path}/last")
    assert coordinator.command() == [str(on_path)], "without its interpreter the script cannot be run"
