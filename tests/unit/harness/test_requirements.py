"""The options of `run` and `dispatch`, and requests beyond a harness's abilities: refused before anything starts."""

import json
import os
from pathlib import Path

import pytest
from support.files import folder_at
from support.fixtures import Ground
from support.harness_fixtures import MAKERS, Scripted, run_of, seen_of
from support.outside_packages import command, installed_packages, package
from support.requirement import requirement
from support.serving import Server

from swarm_mcp.agents.dispatch.dispatch import carry_out
from swarm_mcp.agents.dispatch.request import DispatchRequest
from swarm_mcp.agents.harness import registry
from swarm_mcp.agents.harness.adapter import Capabilities, left_out, limit_passed, require_possible
from swarm_mcp.agents.harness.events import CONTEXT_USAGE, Event
from swarm_mcp.agents.harness.events import result as ended
from swarm_mcp.agents.harness.outcome import Unsupported
from swarm_mcp.agents.harness.query import McpServer, Query
from swarm_mcp.agents.harness.registry import ADAPTERS
from swarm_mcp.domain import new_id
from swarm_mcp.errors import Refused
from swarm_mcp.store import Store

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


def test_a_dispatch_refuses_before_there_is_a_task(ground: Ground, store: Store) -> None:
    lead = ground.session("lead", "identity:p mode:gateway")
    asked = {"harness": "process", "spawner": "process", "command": "touch made"}
    for more in ({"mode": "read-only"}, {"max_cost_usd": 1.0}):
        with pytest.raises(Refused, match="process cannot be given"):
            carry_out(store, lead, DispatchRequest("Do it", **asked, **more))
    assert store.database.rows("SELECT * FROM tasks") == []
    answer = carry_out(store, lead, DispatchRequest("Do it", **asked, model="m", completion_wait_seconds=20))
    assert answer["warnings"] == ["process does not heed the model"] and answer["completion"]["task_status"] == "done"


@pytest.mark.thorough
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


# Answers with the query that it was launched with.
ECHO = """
import json
from swarm_mcp.agents.harness import events
from swarm_mcp.agents.harness.adapter import Capabilities, HarnessAdapter, Launch


class Echo(HarnessAdapter):
    name, label = "echo", "Echo"
    instructions, doc = "It is there.", "Use when it is tested.\\nDo not use when it is not."
    session_pattern = "[a-z]+"
    capabilities = Capabilities(*[True] * len(Capabilities._fields))

    def launch(self, query, folder):
        told = {**query._asdict(), "mcp_servers": {n: s.to_dict() for n, s in query.mcp_servers.items()}}
        return Launch(("/bin/cat",), stdin=json.dumps(told), env={"IGNORED": "1"})

    def parse(self, line, state):
        return [events.session_init("one"), events.result(line, structured={"told": line})]
"""
SERVERS = {"mcpServers": {
    "docs": {"command": "docs", "args": ["--x"], "env": {"DOCS_TOKEN": "${GIVEN}", "AT": "${PLACE}"}, "cwd": "/srv"},
    "web": {"type": "http", "url": "http://127.0.0.1:1/${PLACE}", "headers": {"X-Key": "k"}},
}}  # fmt: skip
OPTION_SCHEMA = {"type": "object", "required": ["told"]}


@pytest.fixture
def program(tmp_path: Path) -> list[str]:
    installed = installed_packages(tmp_path)
    package(installed, "echo_harness", ECHO, "echo = echo_harness:Echo")
    return command(installed)


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """The flags that `run` and `dispatch` both take."""
    skill = folder_at(tmp_path / "knots")
    (skill / "SKILL.md").write_text("---\nname: knots\ndescription: Ties knots\n---\n")
    (tmp_path / "servers.json").write_text(json.dumps(SERVERS))
    (tmp_path / "schema.json").write_text(json.dumps(OPTION_SCHEMA))
    return [
        "--system-prompt", "Be brief.", "--skill", str(skill), "--schema", str(tmp_path / "schema.json"),
        "--env", "GIVEN=token-given-12", "--mcp-config", str(tmp_path / "servers.json"),
    ]  # fmt: skip


def environment() -> dict[str, str]:
    return {**os.environ, "PLACE": "here", "SWARM_MCP_ALLOW_SPAWN": "1"}


def assert_handed_over(told: dict, tmp_path: Path) -> None:
    assert "Be brief." in told["append_system_prompt"] and str(tmp_path / "knots") in told["skills"]
    assert told["output_schema"] == OPTION_SCHEMA
    docs, web = told["mcp_servers"]["docs"], told["mcp_servers"]["web"]
    assert (docs["command"], docs["args"], docs["cwd"]) == ("docs", ["--x"], "/srv")
    # The value of a variable that is named like a secret is in no answer.
    assert docs["env"]["AT"] == "here" and docs["env"]["DOCS_TOKEN"].startswith("[REDACTED")
    assert web["url"] == "http://127.0.0.1:1/here" and web["headers"]["X-Key"] == "k"


def test_run(ground: Ground, program: list[str], files: list[str], tmp_path: Path) -> None:
    beside = folder_at(tmp_path / "beside")
    flags = ("--max-cost", "2", "--max-turns", "3", "--add-dir", str(beside), "--json")
    done = ground.process("run", "--harness", "echo", *files, *flags, "x", program=program, env=environment())
    result = done.json
    assert not result["is_error"], done
    told = json.loads(result["output"])
    assert_handed_over(told, tmp_path)
    assert (told["max_cost_usd"], told["max_turns"], told["additional_directories"]) == (2.0, 3, [str(beside)])
    assert (told["fork_session"], told["resume_session_id"], result["usage_basis"]) == (False, "", "per_run")
    again = ("run", "--harness", "echo", "--resume", result["run_id"], "--fork", "--json", "x")
    told = json.loads(ground.process(*again, program=program).json["output"])
    assert (told["fork_session"], told["resume_session_id"]) == (True, "one")
    # By its bare id the session is one of the folder that its last run was in, and that is said.
    done = ground.process(
        "run", "--harness", "echo", "--resume", "one", "--directory", str(beside), "x", program=program
    )
    assert done.code == 0 and f"session one worked in {ground.repo}" in done.err and "a new session begins" in done.err
    done = ground.process("run", "--harness", "echo", "--resume", "lost", "--json", "x", program=program)
    assert json.loads(done.json["output"])["resume_session_id"] == "lost"
    assert "swarm-mcp run: session lost was to be continued, and session one began" in done.err


def test_the_answer_by_schema_is_the_answer(ground: Ground, program: list[str]) -> None:
    done = ground.process("run", "--harness", "echo", "x", program=program)
    assert set(json.loads(done.out)) == {"told"}


@pytest.mark.thorough
def test_dispatch(ground: Ground, program: list[str], files: list[str], tmp_path: Path) -> None:
    words = ("dispatch", "Do it", "--harness", "echo", *files, "--completion-wait", "60", "--json")
    answer = ground.process(*words, program=program, env=environment()).json
    ended = answer["completion"]
    assert ended["task_status"] == "done", answer
    told = json.loads(json.loads(ended["result"])["told"])
    assert_handed_over(told, tmp_path)
    assert told["task_id"] == answer["task_id"] and told["env"]["GIVEN"].startswith("[REDACTED")
    assert int(told["env"]["SWARM_WAKE_MESSAGE_ID"]) > 0 and told["env"]["SWARM_WAKE_REASON"] == "task_assigned"


@pytest.mark.parametrize(("flags", "why"), [
    (("--mcp-config", "/none/such"), "cannot be read"), (("--mcp-config", "list.json"), 'has no "mcpServers"'),
    (("--mcp-config", "odd.json"), "'odd' has neither a command nor an address"), (("--template", "/no"), "cannot be"),
    (("--fork",), "--fork wants --resume"), (("--add-dir",), "--add-dir"),
])  # fmt: skip
def test_what_cannot_be_meant_is_refused(ground: Ground, flags: tuple[str, ...], why: str) -> None:
    (ground.repo / "list.json").write_text('{"servers": {}}')
    (ground.repo / "odd.json").write_text('{"mcpServers": {"odd": {"type": "ws", "url": "ws://x"}}}')
    done = ground.swarm("run", "--harness", "loop", "x", *flags)
    assert done.code in (1, 2) and done.out == "" and why in done.err, done


@requirement("C-19")
def test_a_template(ground: Ground) -> None:
    (ground.repo / "words.txt").write_text("You are {{agentId}} ({{run.harness}}): {{message}} {{nothing.there}}.")
    flags = ("--harness", "process", "--command", "cat", "--template", "words.txt")
    done = ground.swarm("run", *flags, "mend {{agentId}}")
    (row,) = ground.swarm("runs", "--json").json
    assert done.out == f"You are {row['instance_id']} (process): mend {{{{agentId}}}} .\n", done


@pytest.mark.thorough
def test_the_tool_takes_the_same(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    """Senseless options are refused before there is a task; the rest reaches the worker."""
    monkeypatch.setenv("SWARM_HARNESS_PROCESS", "sh -c 'printf %s $GIVEN'")
    with Server(ground) as server:
        server.call("register", {"directory": ground.scope, "label": "mode:gateway"})
        given = {"title": "Do it", "harness": "process", "skills": ["none/such"]}
        assert "is no skill" in json.dumps(server.call("dispatch", given))
        given = {"title": "Do it", "harness": "process", "mcp_servers": {"odd": {}}}
        assert "neither a command nor an address" in json.dumps(server.call("dispatch", given))
        answer = server.call("dispatch", {"title": "Do it", "harness": "list"})["structuredContent"]
        assert answer["status"] == "harnesses" and answer["default"] == "claude"
        advice = {one["name"]: one["use_when"] for one in answer["harnesses"]}
        assert set(ADAPTERS) <= set(advice) and all("Do not use when" in words for words in advice.values())
        assert next(one for one in answer["harnesses"] if one["name"] == "loop")["installed"] is True
        assert ground.sql("SELECT * FROM tasks") == []
        given = {"title": "Do it", "harness": "process", "output_schema": {"type": "object"}}
        assert "cannot be given a schema" in json.dumps(server.call("dispatch", given))
        given = {"title": "Do it", "harness": "process", "env": {"GIVEN": "seven"}, "completion_wait_seconds": 60}
        assert '"seven"' in json.dumps(server.call("dispatch", given))


def test_a_worker_gives_no_other_a_command_by_way_of_a_server(ground: Ground, store: Store) -> None:
    """As with --command: it would run outside of its own mode."""
    lead = ground.session("lead", "identity:p mode:gateway")
    ground.add(
        "swarm_runs", id="run-1", scope=ground.scope, instance_id=lead["id"], harness="codex", cwd=ground.scope,
        state="running", started_at=1, updated_at=1,
    )  # fmt: skip
    for more in ({"mcp_servers": {"x": {"command": "sh"}}}, {"env": {"PATH": "/tmp"}}):
        with pytest.raises(Refused, match="can give another neither MCP servers nor variables"):
            carry_out(store, lead, DispatchRequest("Do it", harness="codex", **more))


@requirement("A-30")
@pytest.mark.thorough
def test_folder_and_model_belong_to_the_task(ground: Ground, program: list[str]) -> None:
    """A later worker of the task works in the folder, and with the model, of the first; options of the dispatch itself
    come before.
    """
    lead = ground.session("lead", "identity:p mode:gateway")
    place = folder_at(ground.repo / "sub")
    record = ground.folder / "record.jsonl"
    record.write_text(json.dumps({"type": "metadata", "model": "m-1", "effort": "low", "mode": "read-only"}) + "\n")

    def told(*flags: str) -> dict:
        with ground.store() as store:
            task = store.tasks.request(lead, {"type": "fix", "title": f"Do it {flags}"})["task"]
            spec = {"scope": ground.scope, "harness": "echo", "cwd": str(place), "task_id": task["id"], "id": new_id()}
            run = store.runs.begin({**spec, "record": str(record), "requester": lead["id"], "instance_id": "gone"})
            store.runs.update(run.id, state="ended", result={"error_message": "killed"})
        words = ("dispatch", "--resume", task["id"], "--completion-wait", "60", "--json", "--as", lead["id"], *flags)
        answer = ground.process(*words, program=program, env=environment()).json
        return json.loads(json.loads(answer["completion"]["result"])["told"])

    same = told("--harness", "echo")
    assert (same["cwd"], same["model"], same["effort"], same["mode"]) == (str(place), "m-1", "low", "read-only")
    named = told("--harness", "echo", "--model", "m-2", "--mode", "edit", "--directory", ground.scope)
    assert (named["cwd"], named["model"], named["effort"], named["mode"]) == (ground.scope, "m-2", "low", "edit")
