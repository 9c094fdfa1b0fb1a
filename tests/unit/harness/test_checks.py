"""The check of a harness's fitness: the same codes for the same findings, nothing raised, nothing changed."""

import hashlib
import os
import re
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.requirement import requirement

from swarm_mcp.agents.harness import checks, registry
from swarm_mcp.agents.harness.adapter import Check, HarnessAdapter, Launch
from swarm_mcp.agents.harness.checks import common, environment_test, status_of
from swarm_mcp.agents.harness.query import McpServer


class Toy(HarnessAdapter):
    name, label, program, instructions = "toy", "Toy", "toy", "build one"
    own: list[Check] | Exception = []

    def launch(self, query, folder) -> Launch:
        return Launch((self.program,))

    def parse(self, line: str, state: dict) -> list:
        return []

    def checks(self, config) -> list[Check]:
        if isinstance(self.own, Exception):
            raise self.own
        return self.own


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Toy:
    """An installed harness; its program tells a version, and tries to write where it should not."""
    folder = tmp_path / "bin"
    folder.mkdir()
    program(folder / "toy", 'touch here; mkdir -p "$CODEX_HOME/tmp"; echo "toy 1.2"')
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return Toy()


def program(path: Path, script: str) -> None:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def codes(found: list[Check]) -> dict[str, str]:
    return {check.code: check.level for check in found}


@requirement("C-07", "C-08")
def test_a_healthy_installation_passes(toy: Toy, tmp_path: Path) -> None:
    report = environment_test(toy, {"cwd": str(tmp_path)})
    assert report["adapter_type"] == "toy" and report["status"] == "pass"
    assert [check["code"] for check in report["checks"]] == ["cwd_ok", "command_ok", "version"]
    assert report["checks"][2]["message"] == "toy 1.2"
    assert all(set(check) <= {"code", "level", "message", "hint", "detail"} for check in report["checks"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", report["tested_at"])


@pytest.mark.parametrize(("config", "code"), [
    ({"cwd": "relative"}, "cwd_relative"), ({"cwd": "/none/such"}, "cwd_missing"), ({"cwd": __file__}, "cwd_missing"),
    ({"cwd": "/nul\0l"}, "cwd_missing"), ({"command": "no-such-command x"}, "command_missing"),
    ({"command": "'"}, "command_invalid"), ({"command": ["no-such-command"]}, "command_missing"),
    ({"url": "nonsense"}, "url_invalid"), ({"base_url": "ftp://x"}, "url_invalid"),
    ({"env": {"ANTHROPIC_BASE_URL": "http://"}}, "url_invalid"),
    ({"env": {"MY_API_URL": "http://h:99999"}}, "url_invalid"),
    ({"mcp_servers": {"a": {"url": "x"}}}, "url_invalid"), ({"mcp_servers": {"a": McpServer(url="x")}}, "url_invalid"),
])  # fmt: skip
@requirement("C-08", "C-11")
def test_what_keeps_it_from_running_is_an_error(toy: Toy, tmp_path: Path, config: dict, code: str) -> None:
    report = environment_test(toy, {"cwd": str(tmp_path), **config})
    assert report["status"] == "fail"
    assert [check["code"] for check in report["checks"] if check["level"] == "error"] == [code]


def test_addresses_in_this_environment_count(toy: Toy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "localhost:8080")
    assert codes(common(toy, {}))["url_invalid"] == "error"
    monkeypatch.setenv("OPENAI_BASE_URL", "http://localhost:8080/v1")
    assert "url_invalid" not in codes(common(toy, {"url": "https://[::1]/x", "env": {"NAME_URL": "x"}}))


@pytest.mark.parametrize(("script", "code", "level"), [
    ("exit 3", "version_unknown", "warn"),
    (":", "version_unknown", "warn"), ("sleep 60 & sleep 60", "version_slow", "warn"),
    ("echo toy 2 >&2", "version", "info"),
])  # fmt: skip
@requirement("C-11")
def test_a_version_is_not_worth_an_error(toy: Toy, tmp_path: Path, limits, script: str, code: str, level: str) -> None:
    if "sleep" in script:
        limits(checks, VERSION_SECONDS=0.3)
    program(tmp_path / "bin/toy", script)
    began = time.monotonic()
    assert codes(common(toy, {}))[code] == level
    assert time.monotonic() - began < 60, "it is not waited for to its end"


@requirement("C-10")
def test_a_program_that_cannot_be_run_is_an_error(toy: Toy, tmp_path: Path) -> None:
    (tmp_path / "bin/toy").write_text("#!/no/such/interpreter\n")
    found = codes(common(toy, {}))
    assert found["command_broken"] == "error"


def test_a_setting_names_another_command(toy: Toy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWARM_HARNESS_TOY", f"{sys.executable} -S")
    assert checks.command_of(toy) == (sys.executable, "-S")
    assert checks.version_of(toy).startswith("Python 3")
    monkeypatch.setenv("SWARM_HARNESS_TOY", "no-such-command")
    assert checks.version_of(toy) is None


@requirement("C-10")
def test_its_own_look_counts_and_may_fail(toy: Toy) -> None:
    toy.own = [Check("toy_old", "warn", "an old one")]
    assert environment_test(toy, {})["status"] == "warn"
    toy.own = RuntimeError("oh")
    report = environment_test(toy, {})
    assert report["status"] == "warn" and report["checks"][-1]["code"] == "checks_failed"


@given(st.lists(st.sampled_from(["info", "warn", "error"])))
@requirement("C-09")
def test_the_worst_finding_is_the_status(levels: list[str]) -> None:
    worst = {"error": "fail", "warn": "warn"}
    expected = next((worst[level] for level in ("error", "warn") if level in levels), "pass")
    assert status_of([Check("c", level, "m") for level in levels]) == expected


def tree(folder: Path) -> str:
    lines = []
    for path in sorted(folder.rglob("*")):
        about = path.lstat()
        lines.append(f"{path} {about.st_mode} {about.st_mtime_ns} {path.read_bytes() if path.is_file() else ''}")
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


@pytest.mark.parametrize("name", ["toy", *sorted(registry.ADAPTERS)])
@requirement("C-12")
def test_nothing_is_changed(toy: Toy, tmp_path: Path, monkeypatch, name: str) -> None:
    home, work = tmp_path / "home", tmp_path / "work"
    for folder in (home / ".codex", home / ".claude", work / "sub"):
        folder.mkdir(parents=True)
    for client in ("claude", "codex", "pi", "hs"):
        program(tmp_path / "bin" / client, 'touch here; touch "$CODEX_HOME/x" "$CLAUDE_CONFIG_DIR/x"; echo "1.0"')
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("SWARM_STATE_DIR", str(home / "state"))
    monkeypatch.setenv("SWARM_DB_PATH", str(home / "swarm.db"))
    monkeypatch.chdir(work)
    before = tree(home) + tree(work)
    report = environment_test(toy if name == "toy" else registry.get(name), {"cwd": str(work)})
    assert tree(home) + tree(work) == before
    assert report["status"] in ("pass", "warn", "fail") and report["checks"]
