"""The harness codex on Codex's output: recorded streams, errors, its own record, costs, and our TOML."""

import json
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.recordings import Recordings
from support.requirement import requirement
from support.toml_reader import reader

from swarm_mcp.agents.harness import codex as adapter
from swarm_mcp.agents.harness import codex_overrides as overrides
from swarm_mcp.agents.harness import codex_stream as stream
from swarm_mcp.agents.harness.outcome import Ending, cost_of, priced
from swarm_mcp.agents.harness.query import Query
from swarm_mcp.errors import Refused

RECORDED = Recordings("codex")
SESSION = "01a202bc-06da-7911-be41-5931d6aa0af3"

codex = RECORDED.adapter


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No codex on PATH."""
    monkeypatch.setenv("PATH", str(tmp_path))


def test_a_server_that_does_not_start_has_an_event_of_its_own() -> None:
    line = '2026-11-26T20:33:51.6Z  WARN codex_mcp::rmcp_client: MCP server startup failed server_name="a-b" error=No such file'
    (found,) = codex.parse_stderr(line, {})
    assert found.data == {
        "name": "codex.mcp_failed", "data": [{"name": "a-b", "status": "failed", "error": "No such file"}],
    }  # fmt: skip


def test_how_long_the_api_wants_to_be_left_alone_is_in_its_log() -> None:
    found, _ = RECORDED.replayed("retry_after")
    told = [event.data["data"] for event in found if event.kind == "custom"]
    waits = [data["retry_not_before"] - time.time() for data in told if "retry_not_before" in data]
    assert len(waits) == 3 and all(25 < wait <= 30 for wait in waits)
    assert {data["category"] for data in told} == {"rate_limited"}
    state: dict = {}
    for line in RECORDED.errors("retry_after"):
        codex.parse_stderr(line, state)
    text = "exceeded retry limit, last status: 429 Too Many Requests"
    line = json.dumps({"type": "error", "message": f"Reconnecting... 4/5 ({text})"})
    (again,) = codex.parse(line, state)
    assert 25 < again.data["data"]["retry_not_before"] - time.time() <= 30
    *_, ended = codex.parse(json.dumps({"type": "turn.failed", "error": {"message": text}}), state)
    assert 25 < ended.data["retry_not_before"] - time.time() <= 30


@requirement("A-21", "D-09")
def test_what_is_new_becomes_custom() -> None:
    (found,) = codex.parse('{"type": "thread.renamed", "name": "x"}', {})
    assert found.data == {"name": "codex.thread.renamed", "data": {"type": "thread.renamed", "name": "x"}}
    (item,) = codex.parse('{"type": "item.completed", "item": {"id": "1", "type": "hologram"}}', {})
    assert item.data["name"] == "codex.hologram"


@requirement("A-16")
def test_a_denial_is_read_from_standard_error() -> None:
    line = (
        "2026-11-22T10:17:38Z ERROR codex_core::tools::router: error=Command blocked by PreToolUse hook: swarm lock "
        "blocked apply_patch for /x/a. Command: b.md: held by lead. Command: *** Begin Patch"
    )
    (found,) = codex.parse_stderr(line, {})
    assert found.data["name"] == "lock_denied"
    assert found.data["data"]["message"] == "swarm lock blocked apply_patch for /x/a. Command: b.md: held by lead"
    (other,) = codex.parse_stderr("x: Tool call blocked by PreToolUse hook: not on Fridays. Tool: mcp__a__b", {})
    assert (other.data["name"], other.data["data"]["call"]) == ("codex.hook_denied", "mcp__a__b")
    assert codex.parse_stderr("ERROR something else", {}) == []


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("Codex ran out of room in the model's context window. Start a new thread", "context_overflow"),
        ("Your access token could not be refreshed. Please log out and sign in again.", "auth_failed"),
        ("unexpected status 503 Service Unavailable", "rate_limited"),
        ("Error: thread/fork: thread/fork failed: no rollout found for thread id x (code -32600)", "session_not_found"),
        ("something quite different", "unknown"),
    ],
)
def test_messages_have_codes(text: str, code: str) -> None:
    assert stream.category_of(text) == code


def test_only_a_completed_turn_is_a_success() -> None:
    good = {"output": "x", "is_error": False}
    assert codex.error_of(Ending(0, result=good)) is None
    assert codex.error_of(Ending(1, result=good)) == ("process_crashed", "codex exited 1")
    assert codex.error_of(Ending(0))[0] == "unknown"
    assert codex.error_of(Ending(-9, 9)) == ("process_crashed", "codex was ended by signal 9")
    # An error that was got over is no failure.
    assert codex.error_of(Ending(0, result=good, errors=({"message": "429"},))) is None


def test_when_to_try_again() -> None:
    now = time.mktime((2026, 11, 22, 15, 0, 0, 0, 0, -1))
    assert stream.not_before("or try again at Nov 23rd, 2026 3:30 PM.", now) == now + 86400 + 1800
    assert stream.not_before("try again at 4:00 PM.", now) == now + 3600
    assert stream.not_before("try again at 2:00 PM.", now) == now + 23 * 3600
    assert stream.not_before("Please try again in 1 day 2 hours 5 minutes.", now) == now + 93900
    assert stream.not_before("try again in 1.5s", now) == now + 1.5
    assert stream.not_before("try again later", now) is None
    state: dict = {}
    (line,) = [text for text in RECORDED.lines("quota") if "turn.failed" in text]
    assert codex.parse(line, state)[-1].data["retry_not_before"] == time.mktime((2100, 1, 1, 0, 0, 0, 0, 0, -1))


def record(home: Path, cwd: str, *lines: dict) -> Path:
    path = home / "sessions/2026/11/22" / f"rollout-2026-11-22T10-10-06-{SESSION}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    first = {"type": "session_meta", "payload": {"id": SESSION, "cwd": cwd, "model_provider": "openai"}}
    path.write_text("".join(json.dumps(line) + "\n" for line in (first, *lines)) + "torn {", encoding="utf-8")
    return path


def count(total: int) -> dict:
    info = {"last_token_usage": {"total_tokens": total}, "model_context_window": 258400}
    return {"type": "event_msg", "payload": {"type": "token_count", "info": info}}


@requirement("A-22")
def test_the_record_tells_model_and_context(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "wrong"))
    home = tmp_path / "home"
    empty = {"type": "event_msg", "payload": {"type": "token_count", "info": None}}
    record(home, "/x", {"type": "turn_context", "payload": {"model": "gpt-6-sol"}}, count(55), empty, count(25840))
    query = Query("x", "/x", env={"CODEX_HOME": str(home)}, output_schema={})
    state: dict = {"query": query, "folder": str(tmp_path)}
    usage = {"input_tokens": 1_000_000, "cached_input_tokens": 400_000, "cache_write_input_tokens": 100_000,
             "output_tokens": 10_000}  # fmt: skip
    for native in ({"type": "thread.started", "thread_id": SESSION}, {"type": "turn.completed", "usage": usage}):
        codex.parse(json.dumps(native), state)
    (tmp_path / "answer.json").write_text('{"a": 1}')
    context, result = codex.finish(state)
    assert cost_of(context.data.pop("spent")) == cost_of(result.data["cost"])
    assert context.data == {"context_used_tokens": 25840, "context_total_tokens": 258400, "context_percent": 10.0,
                            "output_tokens": 10_000}  # fmt: skip
    assert result.data["structured"] == {"a": 1} and result.data["model"] == "gpt-6-sol"
    assert result.data["provider"] == "openai"
    cost = cost_of(result.data["cost"])
    assert (cost.input_tokens, cost.cache_read_tokens, cost.cache_write_tokens) == (500_000, 400_000, 100_000)
    # 0.5 M at $2, 0.4 M at $0.20, 0.1 M at $2.50, 0.01 M at $10.
    assert priced(cost, codex.prices, None).total_cost_usd == pytest.approx(1.0 + 0.08 + 0.25 + 0.10)
    assert priced(cost._replace(model="gpt-99"), codex.prices, None).total_cost_usd is None


def test_a_run_that_was_cut_off_has_cost_what_the_record_has_counted(tmp_path: Path) -> None:
    info = {"last_token_usage": {"total_tokens": 55}, "total_token_usage": {
        "input_tokens": 200, "cached_input_tokens": 50, "output_tokens": 10, "total_tokens": 210}}  # fmt: skip
    told = {"type": "event_msg", "payload": {"type": "token_count", "info": info}}
    record(tmp_path, "/x", {"type": "turn_context", "payload": {"model": "gpt-6-sol"}}, told)
    state: dict = {"query": Query("x", "/x", env={"CODEX_HOME": str(tmp_path)})}
    codex.parse(json.dumps({"type": "thread.started", "thread_id": SESSION}), state)
    (context,) = codex.finish(state)
    spent = cost_of(context.data["spent"])
    assert (spent.input_tokens, spent.cache_read_tokens, spent.output_tokens) == (150, 50, 10)
    assert priced(spent, codex.prices, None).total_cost_usd == pytest.approx((150 * 2 + 50 * 0.2 + 10 * 10) / 1e6)


@requirement("A-03")
def test_only_a_session_of_this_folder_can_be_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "ho[m]e"))
    record(tmp_path / "ho[m]e", str(tmp_path))
    (tmp_path / "link").symlink_to(tmp_path)
    assert codex.can_resume(SESSION, str(tmp_path)) and codex.can_resume(SESSION, str(tmp_path / "link"))
    assert codex.can_resume(SESSION, "")
    for session, cwd in ((SESSION, "/"), (SESSION[:-1] + "4", ""), ("", ""), ("*", ""), ("--last", ""), ("../x", "")):
        assert codex.can_resume(session, cwd) is False


def test_a_record_that_is_no_record_tells_nothing(tmp_path: Path) -> None:
    path = record(tmp_path, "/x", {"type": "turn_context", "payload": []}, {"type": "token_count"})
    assert stream.last_turn(str(path)) == stream.Turn()
    path.write_text('{"type": "event_msg"')
    assert stream.opening(str(path), "cwd") is None


@requirement("A-12", "D-19")
def test_models_and_prices_agree() -> None:
    assert set(codex.models.values()) <= set(codex.prices) == set(adapter.WINDOWS)
    for price in codex.prices.values():
        assert time.strptime(price.dated, "%Y-%m-%d") and price.cached < price.input < price.output
    listed = {entry["name"]: entry for entry in codex.listed_models()}  # no codex on PATH
    assert listed["gpt-6.1-sol"] == {"name": "gpt-6.1-sol", "short": "sol", "context_tokens": 272_000}


WRITABLE = st.recursive(
    st.booleans() | st.integers(-(1 << 63), (1 << 63) - 1) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(st.text(), WRITABLE)
@requirement("D-15")
@pytest.mark.thorough
def test_what_is_written_as_toml_is_read_back(name: str, value: object) -> None:
    toml = reader()
    line = f"{overrides._key(name)} = {overrides.toml_value(value)}"
    assert "\n" not in line and "\0" not in line
    assert toml.loads(line) == {name: value}


HALVES = st.characters(min_codepoint=0xD700, max_codepoint=0xE100, categories=("Cs", "Lo", "Co"))


@given(st.text(alphabet=HALVES, min_size=1))
def test_halves_of_characters_become_something_that_can_be_written(value: str) -> None:
    read = reader().loads(f"x = {overrides.toml_value(value)}")["x"]
    assert len(read) == len(value) and read.encode()


@pytest.mark.parametrize("value", [None, object(), {"a": None}, 1 << 63, b"x"])
@requirement("D-15")
def test_what_cannot_be_written_is_refused(value: object) -> None:
    with pytest.raises(Refused):
        overrides.toml_value(value)


@pytest.mark.parametrize("path", ["", "a.", "a b", 'a."b.c"', "é"])
def test_a_setting_has_a_plain_name(path: str) -> None:
    with pytest.raises(Refused):
        overrides.override(path, 1)
