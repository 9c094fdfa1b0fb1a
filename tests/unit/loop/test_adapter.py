"""The harness ``loop``: argv, private file, events, errors, and its search for sessions."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import settings as limited
from hypothesis import strategies as st
from support.requirement import requirement

from swarm_mcp.agents.harness import events, registry
from swarm_mcp.agents.harness.outcome import Ending
from swarm_mcp.agents.harness.query import McpServer, Query

adapter = registry.get("loop")
SECRET = "hunter2-hunter2-hunter2"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "private"
    made.mkdir()
    return made


@requirement("A-10")
def test_launch(folder: Path, tmp_path: Path) -> None:
    servers = {
        "swarm": McpServer("python3", ("-m", "x"), {"API_TOKEN": SECRET}, "/tmp"),
        "far": McpServer(url="http://127.0.0.1:1/mcp", headers={"Authorization": f"Bearer {SECRET}"}),
    }
    query = Query(
        "do it", str(tmp_path), mode="read-only", model="openai/gpt-x", effort="max", system_prompt="Be.",
        append_system_prompt="More.", resume_session_id="20261122-102913-1234", fork_session=True, max_turns=3,
        output_schema={"type": "object"}, mcp_servers=servers, skills=("/s/one",), additional_args=("--scope", "x"),
    )  # fmt: skip
    launch = adapter.launch(query, folder)
    assert launch.argv[-7:] == ("loop", "agent", "--json", "--resume", "20261122-102913-1234", "--scope", "x")
    assert launch.stdin == "do it" and SECRET not in " ".join(launch.argv)
    wanted = {"HARNESS_MODEL": "gpt-x", "HARNESS_PROVIDER": "openai", "HARNESS_THINKING": "max"}
    assert wanted.items() <= launch.env.items()
    path = Path(launch.env["SWARM_LOOP_CONFIG"])
    assert path.parent == folder and path.stat().st_mode & 0o777 == 0o600
    config = json.loads(path.read_text())
    assert config["mode"] == "read-only" and config["fork"] is True and config["max_turns"] == 3
    assert config["mcp_servers"]["far"]["headers"] == {"Authorization": f"Bearer {SECRET}"}
    assert SECRET not in json.dumps(dict(launch.env))


def test_the_variable_that_means_two_things(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``HARNESS_PROVIDER`` names a harness to swarm, and a model's provider to the loop."""
    for value, dropped in (("loop", True), ("openai", False)):
        monkeypatch.setenv("HARNESS_PROVIDER", value)
        drop = adapter.launch(Query("x", str(tmp_path)), folder).drop
        assert ("HARNESS_PROVIDER" in drop) is dropped


JSON = st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists)


@limited(max_examples=60)
@given(st.text() | JSON.map(json.dumps) | st.dictionaries(st.text(), st.text() | st.integers()).map(json.dumps))
def test_no_line_is_too_strange(line: str) -> None:
    for event in adapter.parse(line, {}):
        json.dumps(event.to_dict())
        assert event.kind in events.KINDS


def test_events_are_taken_as_they_are() -> None:
    line = json.dumps(events.tool_end("c", "bash", "x", True)._replace(at=3.0).to_dict())
    assert adapter.parse(line, {}) == [events.tool_end("c", "bash", "x", True)._replace(at=3.0)]
    assert adapter.parse('{"type": "news", "a": 1}', {}) == [events.custom("loop.news", {"a": 1})]


def test_errors() -> None:
    failed = {"is_error": True, "error_category": "auth_failed", "output": None}
    told = ({"message": "no key", "category": "auth_failed"},)
    assert adapter.error_of(Ending(4, 0, failed, told)) == ("auth_failed", "no key")
    assert adapter.error_of(Ending(0, 0, {"is_error": False, "output": "x"})) is None
    assert adapter.error_of(Ending(1, 0, None, (), "Traceback"))[0] == "process_crashed"
    lost = {"is_error": True, "error_category": "session_not_found"}
    assert adapter.unknown_session(Ending(1, 0, lost, ({"message": "session 'x' not found", "category": ""},)))


@requirement("A-57")
def test_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_API_KEY", "OPENAI_API_URL", "OPENAI_BASE_URL",
                 "HARNESS_PROVIDER"):  # fmt: skip
        monkeypatch.delenv(name, raising=False)

    def codes(**config: object) -> list[str]:
        return [check.code for check in adapter.checks(config)]

    assert codes() == ["loop_no_provider"]
    assert codes(model="anthropic/x") == ["loop_key_missing"]
    assert codes(env={"OPENAI_API_URL": "http://127.0.0.1:1"}) == ["loop_provider"]
    assert codes(env={"HARNESS_PROVIDER": "own"}) == ["loop_provider_unseen"]
    assert "Use when" in adapter.doc and "Do not use when" in adapter.doc
