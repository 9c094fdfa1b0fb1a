"""Requests beyond a harness's abilities: a missing protection is refused before anything starts, all else is reported."""

import json
from pathlib import Path

import pytest
from support.fixtures import Ground
from support.harness_fixtures import MAKERS, Scripted, run_of, seen_of
from support.requirement import requirement
from support.serving import Server

from swarm_mcp.agents.dispatch.dispatch import carry_out
from swarm_mcp.agents.dispatch.request import DispatchRequest
from swarm_mcp.agents.harness import registry
from swarm_mcp.agents.harness.adapter import Capabilities
from swarm_mcp.agents.harness.errors import Unsupported
from swarm_mcp.agents.harness.events import CONTEXT_USAGE, Event
from swarm_mcp.agents.harness.events import result as ended
from swarm_mcp.agents.harness.query import McpServer, Query
from swarm_mcp.agents.harness.requirements import left_out, limit_passed, require_possible
from swarm_mcp.errors import Refused

pytestmark = pytest.mark.slow

PROTECTING = {
    "read_only": {"mode": "read-only"}, "max_cost": {"max_cost_usd": 0.1}, "max_turns": {"max_turns": 2},
    "output_schema": {"output_schema": {"type": "object"}}, "client_tools": {"client_tools": (print,)},
    "mcp": {"mcp_servers": {"more": McpServer("true")}}, "fork": {"fork_session": True}, "permissions": {"on_permission": print}, "images": {"images": ("a.png",)},
}  # fmt: skip
SHAPING = {
    "model": {"model": "m"}, "effort": {"effort": "low"}, "system_prompt": {"system_prompt": "Be."},
    "append_system_prompt": {"append_system_prompt": "Be."}, "directories": {"additional_directories": ("/x",)},
    "streaming_tokens": {"stream_text": True},
}  # fmt: skip


@pytest.mark.parametrize("name", registry.names())
@requirement("D-02", "D-24")
def test_what_is_refused_and_what_is_said_is_what_the_flags_say(name: str, tmp_path: Path) -> None:
    adapter = registry.get(name)
    can = adapter.capabilities._asdict()
    for flag, asked in PROTECTING.items():
        query = Query("p", str(tmp_path), **asked)
        if can[flag] or (flag == "fork" and not can["resume"]):
            require_possible(adapter, query)
            continue
        with pytest.raises(Unsupported, match=f"^{name} cannot be given "):
            require_possible(adapter, query)
    for flag, asked in SHAPING.items():
        assert bool(left_out(adapter, Query("p", str(tmp_path), **asked))) is not can[flag], flag
    assert left_out(adapter, Query("p", str(tmp_path))) == []


@requirement("A-61", "D-01", "D-24")
def test_what_each_harness_cannot_do() -> None:
    cannot = {
        "claude": "read_only_servers",
        "codex": "native_skills cost max_cost max_turns",
        "pi": "output_schema directories read_only_servers permissions images",
        "gemini": "fork output_schema cost effort max_cost read_only_servers permissions images",
        "opencode": "output_schema streaming_tokens effort read_only_servers permissions images",
        "hs": "fork system_prompt mcp client_tools output_schema streaming_tokens cost directories max_cost"
        " read_only_servers permissions images",
        "loop": "streaming_tokens directories permissions images",
        "acp": "fork read_only system_prompt append_system_prompt native_skills output_schema cost locks model effort"
        " directories max_cost max_turns read_only_servers images",
        "process": " ".join(Capabilities._fields),
    }
    found = {
        name: " ".join(flag for flag, can in registry.get(name).capabilities._asdict().items() if not can)
        for name in registry.names()
    }
    assert found == cannot


@pytest.mark.parametrize("flags", [("--mode", "read-only"), ("--max-cost", "1"), ("--max-turns", "3")])
def test_run_refuses_before_anything_starts(ground: Ground, flags: tuple) -> None:
    words = ("run", "--harness", "process", "--command", "touch made", *flags)
    plain, asked_for_json = ground.swarm(*words, "x"), ground.swarm(*words, "--json", "x")
    assert (plain.code, plain.out, plain.err.count("\n")) == (125, "", 1)
    assert plain.err.startswith("run failed: process cannot be given ")
    assert asked_for_json.code == 125 and list(asked_for_json.json) == ["error"]
    assert not (ground.repo / "made").exists() and ground.swarm("runs", "--json").json == []


def test_what_only_shapes_is_said_and_stands_in_the_record(ground: Ground) -> None:
    done = ground.swarm("run", "--harness", "process", "--command", "echo done", "--model", "m", "--effort", "low", "x")
    assert (done.code, done.out) == (0, "done\n")
    lines = ["process does not heed the model", "process does not heed the effort"]
    assert done.err.splitlines()[:2] == [f"swarm-mcp run: {line}" for line in lines]
    (row,) = ground.swarm("runs", "--json").json
    said = [json.loads(line) for line in Path(row["record"]).read_text().splitlines()]
    told = [line["data"]["message"] for line in said if line.get("name") == "swarm.not_heeded"]
    assert told == lines


def test_from_python_it_is_an_exception(tmp_path: Path) -> None:
    run = run_of(registry.get("process"), tmp_path, command=("touch", "made"), mode="read-only")
    with pytest.raises(Refused, match="mode read-only"):
        run.start()
    assert list(tmp_path.iterdir()) == [] and not Path(run.record).exists()


# -------------------------------------------------------------------------------------------- limits


class Counting(Scripted):
    """Reports its cost so far after each answer."""

    capabilities = Capabilities(max_cost=True, max_turns=True)

    def parse(self, line: str, state: dict) -> list[Event]:
        word, *rest = json.loads(line)
        if word != "used":
            return [MAKERS[word](*rest)]
        return [Event(CONTEXT_USAGE, dict(zip(("cost_usd", "num_turns", "goes_on"), rest)))]


GOES_ON = "tell('say', 'a word'); tell('used', 0.02, 2, True); time.sleep(60)"


@pytest.mark.parametrize(
    "limit, script, words",
    [
        ({"max_cost_usd": 0.01}, GOES_ON, "it has cost $0.02, and may cost at most $0.01"),
        ({"max_turns": 2}, GOES_ON, "it has taken 2 turns, and may take at most 2"),
        ({"max_cost_usd": 1}, "tell('used', None, 1, True); time.sleep(60)", "unknown"),
        ({"max_cost_usd": 0.01}, "tell('result', 'answer', False, {'total_cost_usd': 0.02})", "was to cost at most"),
    ],
)
def test_a_run_is_ended_at_its_limit(tmp_path: Path, limit: dict, script: str, words: str) -> None:
    result, _ = seen_of(run_of(Counting(script), tmp_path, grace_seconds=1, **limit))
    assert (result.is_error, result.error_category) == (True, "budget") and words in result.error_message


def test_a_run_within_its_limits_goes_well(tmp_path: Path) -> None:
    script = "tell('used', 0.02, 2, True); tell('used', 0.03, 3, False)"
    script += "; tell('result', 'yes', False, {'total_cost_usd': 0.03})"
    result, _ = seen_of(run_of(Counting(script), tmp_path, max_cost_usd=0.03, max_turns=3))
    assert (result.is_error, result.output) == (False, "yes")


SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


@pytest.mark.parametrize(
    "found, words",
    [({}, "it is no JSON"), ({"structured": {"m": 1}}, "'n' is a required property"),
     ({"structured": {"n": "7"}}, "is not of type 'integer'"), ({"structured": {"n": 7}}, "")],
)  # fmt: skip
@requirement("D-18")
def test_an_answer_that_does_not_follow_its_schema_is_a_failure(tmp_path: Path, found: dict, words: str) -> None:
    class Answering(Scripted):
        capabilities = Capabilities(output_schema=True)

        def parse(self, line: str, state: dict) -> list[Event]:
            return [ended("prose", **found)]

    result, _ = seen_of(run_of(Answering("tell('done')"), tmp_path, output_schema=SCHEMA))
    assert result.is_error is bool(words) and words in (result.error_message or "")
    assert result.error_category == ("schema_mismatch" if words else None) and result.output == "prose"
    assert result.result_json == found.get("structured")


def test_what_only_a_launch_finds_impossible_is_said_in_its_own_words(tmp_path: Path) -> None:
    class Unable(Scripted):
        def launch(self, query, folder):
            raise Unsupported("scripted cannot be kept from writing here")

    result, _ = seen_of(run_of(Unable(""), tmp_path))
    words = "scripted cannot be kept from writing here"
    assert (result.error_category, result.error_message) == ("unsupported", words)


# ------------------------------------------------------------------------------------------ dispatch


def test_a_dispatch_refuses_before_there_is_a_task(ground: Ground) -> None:
    lead = ground.session("lead", "identity:p mode:gateway")
    asked = {"harness": "process", "spawner": "process", "command": "touch made"}
    with ground.store() as store:
        for more in ({"mode": "read-only"}, {"max_cost_usd": 1.0}):
            with pytest.raises(Refused, match="process cannot be given"):
                carry_out(store, lead, DispatchRequest("Do it", **asked, **more))
        assert store.database.rows("SELECT * FROM tasks") == []
        answer = carry_out(store, lead, DispatchRequest("Do it", **asked, model="m", completion_wait_seconds=20))
    assert answer["warnings"] == ["process does not heed the model"] and answer["completion"]["task_status"] == "done"


def test_the_tool_refuses_too(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWARM_HARNESS_PROCESS", "touch made")
    with Server(ground) as server:
        server.call("register", {"directory": ground.scope, "label": "mode:gateway"})
        said = server.call("dispatch", {"title": "Do it", "harness": "process", "mode": "read-only"})
        assert "process cannot be given mode read-only" in json.dumps(said)
    assert ground.sql("SELECT * FROM tasks") == [] and not (ground.repo / "made").exists()


def test_a_limit_is_not_passed_by_what_rounding_adds() -> None:
    """A share of a budget reaches its program as text: 0.35, for 0.34999999999999987."""
    query = Query("p", "/", max_cost_usd=1.5 - 0.4 - 0.75)
    assert limit_passed(query._replace(max_cost_usd=0.34999999999999987), 0.35) == ""
    assert "at most $0.35" in limit_passed(query, 0.36)
