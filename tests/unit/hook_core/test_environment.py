"""The hooks' variables, and their precedence."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from support.requirement import requirement

from swarm_hook_core import environment

# The sources of a setting, the deciding one first, with their values, and the default.
PRECEDENCE = [
    (environment.identity, "SWARM_CC_IDENTITY=a SWARM_HERMES_IDENTITY=b AGENT_IDENTITY=c SWARM_IDENTITY=d", "a b c d -"),
    (environment.scope, "SWARM_CC_SCOPE=/a SWARM_HERMES_SCOPE=/b SWARM_MCP_SCOPE=/c", "/a /b /c -"),
    (environment.file_root, "SWARM_CC_FILE_ROOT=/a SWARM_HERMES_FILE_ROOT=/b SWARM_MCP_FILE_ROOT=/c", "/a /b /c -"),
    (environment.label_override, "SWARM_CC_LABEL=a SWARM_HERMES_LABEL=b", "a b -"),
    (environment.mode, "SWARM_CC_ROLE=gateway SWARM_ROLE=x", "gateway worker worker"),
    (environment.mode, "SWARM_CC_ROLE=x SWARM_ROLE=gateway", "worker gateway worker"),
    (lambda prefix: environment.role(prefix, "", ""), "SWARM_CC_AGENT_ROLE=A SWARM_AGENT_ROLE=b SWARM_ROLE=gateway", "a b planner -"),
    (environment.lease_seconds, "SWARM_CC_LEASE_SECONDS=5 SWARM_LEASE_SECONDS=6", "5 6 86400"),
    (lambda _prefix: environment.pane(), "HERDR_PANE_ID=p_1 HERDR_PANE=p_2", "p_1 p_2 -"),
]  # fmt: skip


@pytest.mark.parametrize(("read", "variables", "values"), PRECEDENCE)
@requirement("P-18")
def test_the_first_variable_that_is_set_wins(
    read: Callable[[str], object], variables: str, values: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = []
    for setting in variables.split():
        name, _, value = setting.partition("=")
        monkeypatch.setenv(name, value)
        names.append(name)
    *found, default = values.replace("-", "").split(" ")
    for name, value in zip(names, found, strict=True):
        assert str(read("CC")) == value
        monkeypatch.setenv(name, " \t ")  # a blank one counts as unset
    assert str(read("CC")) == default


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
            [sys.executable, "-c", ask, tmp_path], capture_output=True, text=True, timeout=60, check=False
        )
    except subprocess.TimeoutExpired:
        pytest.fail("reading a .swarm-role that is a named pipe never returns")
    assert done.stdout == "['']\n"
