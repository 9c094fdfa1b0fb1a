"""Harnesses by name, the adapter that docs/dev/adding-a-harness.md shows, and the check of a harness's fitness."""

import hashlib
import os
import re
import subprocess
import sys
import time
import types
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.files import folder_at, program_at
from support.requirement import requirement
from support.sessions import ROOT

from swarm_mcp.agents.harness import registry
from swarm_mcp.agents.harness.adapter import Check, HarnessAdapter, Launch
from swarm_mcp.agents.harness.query import McpServer, Query
from swarm_mcp.agents.harness.registry import common, environment_test, status_of
from swarm_mcp.agents.harness.run import Run
from swarm_mcp.errors import Refused


@requirement("A-25")
def test_an_unknown_harness_is_refused_with_the_known_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Refused) as refusal:
        registry.get("x")
    assert str(refusal.value) == f'Unknown HARNESS_PROVIDER: "x". Supported: {", ".join(registry.ADAPTERS)}'
    assert {"claude", "codex", "pi", "gemini", "opencode", "hs", "loop", "process"} <= set(registry.names())
    monkeypatch.setenv("HARNESS_PROVIDER", "y" * 500)
    with pytest.raises(Refused, match='"y{40}"'):
        registry.chosen_name()


@requirement("A-26")
def test_the_environment_chooses_and_claude_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HARNESS_PROVIDER", raising=False)
    assert registry.chosen_name() == "claude"
    monkeypatch.setenv("HARNESS_PROVIDER", "codex")
    assert registry.chosen_name() == "codex" and registry.chosen_name("pi") == "pi"


@pytest.mark.parametrize("name", sorted(registry.ADAPTERS))
@requirement("C-01", "C-58")
def test_each_harness_says_when_to_use_it(name: str) -> None:
    adapter = registry.get(name)
    assert adapter.name == name and adapter.label and adapter.instructions
    lines = adapter.doc.splitlines()
    assert any(line.startswith("Use when") for line in lines) and any(
        line.startswith("Do not use when") for line in lines
    )
    advice = adapter.use_when  # the words for a model that chooses one
    assert advice.startswith("Use when") and "Do not use when" in advice and "Settings" not in advice
    assert "\n" not in advice and "DEFAULT_MODEL" not in advice
    assert adapter.listed_models() == list(adapter.listed_models())
    assert registry.get(name) is adapter


@requirement("A-27")
@pytest.mark.usefixtures("own_registry")
def test_a_broken_module_breaks_no_other() -> None:
    registry.ADAPTERS["codex"] = ("swarm_mcp.agents.harness.adapters.no_such_module", "Codex")
    with pytest.raises(ImportError):
        registry.get("codex")
    assert registry.get("process").name == "process"


@requirement("A-01", "D-01", "D-12")
def test_all_of_them_are_had_and_looked_at(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert registry.has("codex") and not registry.has("x")
    assert [adapter.name for adapter in registry.get_all()] == registry.names()
    monkeypatch.setattr(registry, "ADAPTERS", {"process": registry.ADAPTERS["process"], "broken": ("no_module", "X")})
    told: list[tuple[str, str]] = []
    assert [a.name for a in registry.get_all(lambda name, why: told.append((name, type(why).__name__)))] == ["process"]
    assert told == [("broken", "ModuleNotFoundError")]
    report = registry.check_all({"cwd": str(tmp_path)})
    assert list(report) == ["process"] and report["process"]["status"] == "pass"


@requirement("A-27")
def test_other_commands_load_nothing_of_it() -> None:
    script = (
        "import sys; from swarm_mcp.cli.main import main\n"
        "main(['locks']); main(['help']); main(['tasks'])\n"
        "import swarm_mcp.server.app\n"
        "print(*[name for name in sys.modules if name.startswith('swarm_mcp.agents.harness')], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stderr.split() == []


FIRST = "# swarm_mcp/agents/harness/parrot.py"
OLD = "00000000-0000-4000-8000-000000000000"
NEW = "11111111-1111-4111-8111-111111111111"
PROGRAM = f"""\
#!{sys.executable} -S
import json, sys
say = lambda **told: print(json.dumps(told), flush=True)
if "--session" in sys.argv:
    say(kind="bye", why="who?")
    sys.exit(1)
words = sys.stdin.read()
say(kind="hello", session="{NEW}")
print("squawk")
say(kind="feather", colour="green")
say(kind="says", text=words)
say(kind="bye", text=words.upper())
"""


def shown() -> str:
    """The code on the page."""
    text = (ROOT / "docs" / "dev" / "adding-a-harness.md").read_text()
    assert FIRST in text, "the page shows no adapter"
    return FIRST + text.partition(FIRST)[2].partition("\n```")[0] + "\n"


@pytest.fixture
def parrot(monkeypatch: pytest.MonkeyPatch, own_registry: None) -> Iterator[HarnessAdapter]:
    module = types.ModuleType("swarm_mcp.agents.harness.parrot")
    exec(compile(shown(), "parrot.py", "exec"), module.__dict__)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    yield module.Parrot()


@requirement("A-54")
def test_it_is_short_and_says_when_to_use_it(parrot: HarnessAdapter) -> None:
    assert len(shown().splitlines()) < 40
    assert [line.partition(" when")[0] for line in parrot.doc.splitlines()] == ["Use", "Do not use"]


@requirement("C-05", "D-12")
def test_it_is_made_known_once(parrot: HarnessAdapter) -> None:
    registry.register(parrot)
    assert registry.get("parrot") is parrot and "parrot" in registry.names()
    with pytest.raises(Refused, match="is there already"):
        registry.register(parrot)


@pytest.fixture
def program(tmp_path: Path) -> tuple[str, ...]:
    path = program_at(tmp_path / "parrot", PROGRAM)
    return (str(path),)


@requirement("A-54")
def test_it_runs(parrot: HarnessAdapter, program: tuple[str, ...], tmp_path: Path) -> None:
    told: list = []
    query = Query("hello", str(tmp_path), command=program)
    result = Run(parrot, query, record_folder=str(tmp_path / "records")).on_event(told.append).start().wait(60)
    assert result and not result.is_error and result.output == "HELLO" and result.session_id == NEW
    kinds = [event.kind for event in told if event.kind != "raw_log"]
    assert kinds == ["session_init", "custom", "message", "result"]
    assert next(event for event in told if event.kind == "custom").data["name"] == "parrot.feather"


def test_a_session_that_is_gone_is_begun_anew(parrot: HarnessAdapter, program: tuple[str, ...], tmp_path: Path) -> None:
    query = Query("hello", str(tmp_path), command=program, resume_session_id=OLD)
    result = Run(parrot, query, record_folder=str(tmp_path / "records")).start().wait(60)
    assert result and not result.is_error and result.session_id == NEW
    assert result.clear_session and result.attempts == 2


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(line=st.text() | st.sampled_from(['{"kind": []}', '{"kind": {"a": 1}}', "[]", "[" * 100000, '{"kind": "bye"}']))
def test_it_never_raises_for_a_line(parrot: HarnessAdapter, line: str) -> None:
    for event in parrot.parse(line, {}):
        assert event.kind and isinstance(event.data, dict)


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
    folder = folder_at(tmp_path / "bin")
    checked_program(folder / "toy", 'touch here; mkdir -p "$CODEX_HOME/tmp"; echo "toy 1.2"')
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return Toy()


def checked_program(path: Path, script: str) -> None:
    program_at(path, f"#!/bin/sh\n{script}\n")


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
        limits(registry, VERSION_SECONDS=0.3)
    checked_program(tmp_path / "bin/toy", script)
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
    assert registry.command_of(toy) == (sys.executable, "-S")
    assert registry.version_of(toy).startswith("Python 3")
    monkeypatch.setenv("SWARM_HARNESS_TOY", "no-such-command")
    assert registry.version_of(toy) is None


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
def test_nothing_is_changed(toy: Toy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    home, work = tmp_path / "home", tmp_path / "work"
    for folder in (home / ".codex", home / ".claude", work / "sub"):
        folder.mkdir(parents=True)
    for client in ("claude", "codex", "pi", "hs"):
        checked_program(
            tmp_path / "bin" / client, 'touch here; touch "$CODEX_HOME/x" "$CLAUDE_CONFIG_DIR/x"; echo "1.0"'
        )
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("SWARM_STATE_DIR", str(home / "state"))
    monkeypatch.setenv("SWARM_DB_PATH", str(home / "swarm.db"))
    monkeypatch.chdir(work)
    before = tree(home) + tree(work)
    report = environment_test(toy if name == "toy" else registry.get(name), {"cwd": str(work)})
    assert tree(home) + tree(work) == before
    assert report["status"] in ("pass", "warn", "fail") and report["checks"]
