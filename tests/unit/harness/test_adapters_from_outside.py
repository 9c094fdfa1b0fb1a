"""A harness that another installed package brings: commands, dispatch and supervisors run it by its name alone."""

import os
from pathlib import Path

import pytest
from support.fixtures import Ground
from support.outside_packages import command, installed_packages, package

from swarm_mcp.agents.harness import registry
from swarm_mcp.agents.harness.adapter import HarnessAdapter
from swarm_mcp.errors import Refused

pytestmark = pytest.mark.slow

ADAPTER = """
from swarm_mcp.agents.harness import events
from swarm_mcp.agents.harness.adapter import HarnessAdapter, Launch


class Outside(HarnessAdapter):
    name, label = "outside", "From outside"
    instructions = "It is there already."
    doc = "Use when it is tested.\\nDo not use when it is not. No settings."

    def launch(self, query, folder):
        return Launch(("/bin/cat",), stdin="said from outside")

    def parse(self, line, state):
        return [events.message("assistant", line)]
"""


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    return installed_packages(tmp_path)


@pytest.mark.parametrize("worked_on", [False, True])
def test_commands_and_a_supervisor_run_it(ground: Ground, installed: Path, tmp_path: Path, worked_on: bool) -> None:
    """Also one that is installed for being worked on: its files are elsewhere, and `site` alone would find them."""
    if worked_on:
        package(tmp_path / "source", "outside_harness", ADAPTER, "outside = outside_harness:Outside")
        (installed / "outside.pth").write_text(f"{tmp_path / 'source'}\n")
    else:
        package(installed, "outside_harness", ADAPTER, "outside = outside_harness:Outside")
    program = command(installed)
    listed = {one["name"]: one for one in ground.process("harness", "list", "--json", program=program).json}
    assert listed["outside"]["label"] == "From outside" and listed["claude"]["label"] == "Claude Code"
    assert ground.process("harness", "doctor", "outside", program=program).code == 0
    done = ground.process("run", "--harness", "outside", "x", program=program)
    assert (done.code, done.out) == (0, "said from outside\n"), done
    words = ("dispatch", "Say it", "--harness", "outside", "--completion-wait", "60", "--json")
    env = {**os.environ, "SWARM_MCP_ALLOW_SPAWN": "1"}
    answer = ground.process(*words, program=program, env=env).json
    assert answer["completion"]["result"] == "said from outside", answer


def test_what_is_broken_is_said_and_breaks_no_other(ground: Ground, installed: Path) -> None:
    package(installed, "broken_harness", "import nothing_of_that_name", "broken = broken_harness:Broken")
    package(installed, "odd_harness", ADAPTER, "odd = odd_harness:Outside\nclaude = odd_harness:Outside")
    done = ground.process("harness", "list", "--json", program=command(installed))
    names = [one["name"] for one in done.json]
    assert names == [*registry.ADAPTERS], "a name of this package's was taken, or what is broken is listed"
    assert "broken cannot be loaded: ModuleNotFoundError" in done.err
    assert "odd cannot be loaded" in done.err and "is no adapter of a harness called 'odd'" in done.err
    assert next(one for one in done.json if one["name"] == "claude")["label"] == "Claude Code"


@pytest.mark.usefixtures("own_registry")
def test_a_name_that_is_offered_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    from importlib.metadata import EntryPoint

    entry = EntryPoint("outside", f"{__name__}:Here", registry.GROUP)
    monkeypatch.setattr(registry, "_offered", lambda: {"outside": entry})
    assert registry.has("outside") and registry.names()[-1] == "outside"
    assert registry.get("outside") is registry.get("outside") and registry.get("outside").label == "Here"
    with pytest.raises(Refused, match="is there already"):
        registry.register(Here())


class Here(HarnessAdapter):
    """An adapter in this very module."""

    name, label = "outside", "Here"

    def launch(self, query, folder):
        raise NotImplementedError

    def parse(self, line, state):
        return []


def test_the_guide_shows_the_entry_point() -> None:
    page = (Path(__file__).parents[3] / "docs" / "dev" / "adding-a-harness.md").read_text()
    assert f'[project.entry-points."{registry.GROUP}"]' in page
