"""The samples on the pages for contributors work as these pages say."""

import sys
from types import ModuleType

import pytest
from documents.python_programs import programs
from support.fixtures import Ground
from support.toolbox import TOOLS, Hands

from swarm_mcp import contributions

HELD = ("a/one", "a/two", "ab")  # the locks of a session


@pytest.fixture
def samples(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> dict[str, ModuleType]:
    """The samples of a verb and a tool as modules."""
    found = {}
    for name in ("count_verb", "count_tool"):
        module = found[name] = ModuleType(name)
        exec(programs()[name], module.__dict__)
        monkeypatch.setitem(sys.modules, name, module)
    return found


def test_the_sample_of_a_verb_counts(ground: Ground, samples: dict[str, ModuleType], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(contributions.VERBS, "count", "count_verb")
    me = ground.session("me")
    for file in HELD:
        ground.lock(me, f"{ground.scope}/{file}")
    counted = {
        path: ground.swarm("count", "--as", me.id, *path).out for path in ((), ("--path", "a"), ("--path", "ab"))
    }
    assert counted == {(): "3\n", ("--path", "a"): "2\n", ("--path", "ab"): "1\n"}
    assert ground.swarm("count", "--as", me.id, "--json", "--path", "a").json == {"count": 2}


def test_the_sample_of_a_tool_counts(ground: Ground, samples: dict[str, ModuleType], monkeypatch: pytest.MonkeyPatch):
    (tool,) = samples["count_tool"].TOOLS
    monkeypatch.setitem(TOOLS, tool.name, tool)
    me = ground.session("me")
    for file in HELD:
        ground.lock(me, f"{ground.scope}/{file}")
    hands = Hands(ground, me)
    assert [hands.value(tool.name, path=path)["count"] for path in ("", "a", "ab")] == [3, 2, 1]
