"""The contributions of packages: a package takes part by one line in the list of packages."""

import sys
from pathlib import Path

import pytest
from support.fixtures import Ground

from swarm_mcp import contributions
from swarm_mcp.cli.verbs import all_verbs
from swarm_mcp.doctor import own_checks
from swarm_mcp.server.tools import all_tools

CONTRIBUTES = """
VERBS = {"hello": "scratch.commands"}
PLACES = {"hello": "lock"}
ALIASES = {"hi": "hello"}
OTHER_WORDS = {"greet": "hello"}
TOOLS = ("scratch.tools",)
CHECKS = {"weather": "scratch.checks:weather"}
REACTIONS = {"locks changed": "scratch.checks:noted"}
"""
COMMANDS = '''
from swarm_mcp.cli.arguments import LOCKS, Arguments, Usage, verb
from swarm_mcp.cli.output import say


@verb(Usage(), group=LOCKS)
def hello(args: Arguments) -> int:
    """hello: greet the reader

    example: swarm-mcp hello
    """
    say("hello from elsewhere")
    return 0
'''
TOOLS = """
from swarm_mcp.server.tool import Answer, Tool

TOOLS = (Tool("hello", "Greets.", {}, lambda call, arguments: Answer(text="hello"), reads=True),)
"""
CHECKS = """
from swarm_mcp.runtimes.base import Finding

NOTED = []


def weather(asked):
    return Finding("weather", "ok", f"fair in {asked.scope_flag}")


def noted(what):
    NOTED.append(what)
    return len(NOTED)
"""


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package outside of ours, and its one line in the list."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    modules = {"__init__": "", "contributes": CONTRIBUTES, "commands": COMMANDS, "tools": TOOLS, "checks": CHECKS}
    for name, text in modules.items():
        (folder / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(contributions, "PACKAGES", (*contributions.PACKAGES, "scratch"))
    monkeypatch.setattr(contributions, "REACTING", ("scratch",))
    monkeypatch.setattr(contributions, "shares_locks", lambda: True)
    yield
    for name in [name for name in sys.modules if name.partition(".")[0] == "scratch"]:
        del sys.modules[name]


def test_its_verb_runs_and_is_on_the_help_page(scratch: None, ground: Ground) -> None:
    assert ground.swarm("hello").out == ground.swarm("hi").out == "hello from elsewhere\n"
    assert "did you mean hello?" in ground.swarm("greet").err
    assert all_verbs()[all_verbs().index("lock") + 1] == "hello"
    assert "greet the reader" in ground.swarm("help").out
    assert ground.swarm("help", "hello").out.startswith("hello: greet the reader")


def test_its_tool_is_listed_after_the_others(scratch: None) -> None:
    assert list(all_tools())[-1] == "hello"


def test_its_check_is_a_part_of_doctor(scratch: None, ground: Ground) -> None:
    (found,) = [one for one in own_checks.findings(ground.scope) if one.name == "weather"]
    assert found.status == "ok" and ground.scope in found.message


def test_its_reactions_follow_a_change(scratch: None) -> None:
    assert contributions.react("locks changed", 7) == 1
    assert contributions.react("another change", 8) is None
    assert sys.modules["scratch.checks"].NOTED == [7]


def test_a_verb_of_the_coordinator_is_found_without_the_other_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contributions, "PACKAGES", ("swarm_mcp", "no_such_package"))
    assert contributions.module_of("alive") == "swarm_mcp.cli.commands.reports"


def test_a_name_belongs_to_one_package() -> None:
    for part in ("VERBS", "ALIASES", "OTHER_WORDS", "CHECKS"):
        named = [name for one in contributions.lists() for name in getattr(one, part, ())]
        assert len(named) == len(set(named)), part
    known = set(all_verbs())
    assert set(contributions.table("ALIASES").values()) <= known


def test_everything_named_is_there() -> None:
    for name in [*contributions.table("CHECKS").values(), *contributions.table("REACTIONS").values()]:
        assert callable(contributions.function_named(name)), name
    for module in {*contributions.table("VERBS").values(), *contributions.names("TOOLS")}:
        assert contributions.module_named(module), module
