"""The pages for contributors: their examples work as they stand."""

import re
import sys
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path

import pytest
from support.fixtures import Ground

from swarm_mcp import contributes
from swarm_mcp.server import tool

DOCS = Path(__file__).parents[3] / "docs" / "dev"


def code_of(page: str) -> str:
    """The Python that a page shows."""
    (code,) = re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), re.S)
    return code


@pytest.fixture
def ground_with_locks(ground: Ground) -> Ground:
    me = ground.plain("me")
    for file in ("src/a", "src/b", "doc/c"):
        ground.lock(me, file)
    return ground


def test_adding_a_verb(ground_with_locks: Ground, monkeypatch: pytest.MonkeyPatch):
    name = "swarm_mcp.cli.commands.count"
    module = module_from_spec(spec_from_loader(name, None))
    exec(compile(code_of("adding-a-verb.md"), name, "exec"), module.__dict__)
    monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setitem(contributes.VERBS, "count", name)
    count = ground_with_locks.swarm("count", "--path", f"{ground_with_locks.scope}/src", "--json")
    assert count.json == {"count": 2} and ground_with_locks.swarm("count").out == "3\n"
    assert ground_with_locks.swarm("count", "--pth", "x").err.startswith(
        "swarm-mcp count: Unknown flag: --pth (did you"
    )
    assert "  --path DIR   only those under DIR\n" in ground_with_locks.swarm("help", "count").out


def test_adding_a_tool(ground_with_locks: Ground):
    scope: dict = {name: getattr(tool, name) for name in ("Answer", "Tool", "text", "flag", "number", "texts")}
    exec(code_of("adding-a-tool.md"), scope)
    (made,) = scope["TOOLS"]
    with ground_with_locks.store() as store:
        (me,) = store.instances.in_scope(ground_with_locks.scope)

        class Caller:
            def instance(self, _store, _meta):
                return me

        call = tool.Call(store, Caller(), {})
        assert made.call(call, {"path": f"{ground_with_locks.scope}/src"}).value == {"count": 2}
    assert made.described()["inputSchema"]["properties"]["path"]["default"] == ""
