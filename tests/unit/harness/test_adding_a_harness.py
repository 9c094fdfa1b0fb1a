"""docs/dev/adding-a-harness.md: the adapter that the page shows is executed, and it is short."""

import sys
import types
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.requirement import requirement
from support.sessions import ROOT

from swarm_mcp.agents.harness import outcome, registry
from swarm_mcp.agents.harness.adapter import HarnessAdapter
from swarm_mcp.agents.harness.query import Query
from swarm_mcp.agents.harness.run import Run
from swarm_mcp.errors import Refused

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
    path = tmp_path / "parrot"
    path.write_text(PROGRAM)
    path.chmod(0o755)
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


def test_its_failures_have_codes(parrot: HarnessAdapter) -> None:
    (event,) = parrot.parse('{"kind": "bye", "why": "who?"}', {})
    assert event.data["error_category"] == outcome.SESSION_NOT_FOUND
