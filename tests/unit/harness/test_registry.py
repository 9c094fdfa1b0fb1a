"""Harnesses by name: the right one, the error for an unknown one, and isolation of broken ones."""

import subprocess
import sys
from pathlib import Path

import pytest
from support.requirement import requirement

from swarm_mcp.agents.harness import registry
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
