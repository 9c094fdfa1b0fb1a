"""The options of `run`, `dispatch` and the tool of that name, as they reach a harness's adapter."""

import json
import os
from pathlib import Path

import pytest
from support.fixtures import Ground
from support.outside_packages import command, installed_packages, package
from support.requirement import requirement
from support.serving import Server

from swarm_mcp.agents.dispatch.dispatch import carry_out
from swarm_mcp.agents.dispatch.request import DispatchRequest
from swarm_mcp.agents.harness.registry import ADAPTERS
from swarm_mcp.domain.record import new_id
from swarm_mcp.errors import Refused

pytestmark = pytest.mark.slow

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
SCHEMA = {"type": "object", "required": ["told"]}


@pytest.fixture
def program(tmp_path: Path) -> list[str]:
    installed = installed_packages(tmp_path)
    package(installed, "echo_harness", ECHO, "echo = echo_harness:Echo")
    return command(installed)


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """The flags that `run` and `dispatch` both take."""
    skill = tmp_path / "knots"
    skill.mkdir()
    (skill / "SKILL.md").write_text("---\nname: knots\ndescription: Ties knots\n---\n")
    (tmp_path / "servers.json").write_text(json.dumps(SERVERS))
    (tmp_path / "schema.json").write_text(json.dumps(SCHEMA))
    return [
        "--system-prompt", "Be brief.", "--skill", str(skill), "--schema", str(tmp_path / "schema.json"),
        "--env", "GIVEN=token-given-12", "--mcp-config", str(tmp_path / "servers.json"),
    ]  # fmt: skip


def environment() -> dict[str, str]:
    return {**os.environ, "PLACE": "here", "SWARM_MCP_ALLOW_SPAWN": "1"}


def assert_handed_over(told: dict, tmp_path: Path) -> None:
    assert "Be brief." in told["append_system_prompt"] and str(tmp_path / "knots") in told["skills"]
    assert told["output_schema"] == SCHEMA
    docs, web = told["mcp_servers"]["docs"], told["mcp_servers"]["web"]
    assert (docs["command"], docs["args"], docs["cwd"]) == ("docs", ["--x"], "/srv")
    # The value of a variable that is named like a secret is in no answer.
    assert docs["env"]["AT"] == "here" and docs["env"]["DOCS_TOKEN"].startswith("[REDACTED")
    assert web["url"] == "http://127.0.0.1:1/here" and web["headers"]["X-Key"] == "k"


def test_run(ground: Ground, program: list[str], files: list[str], tmp_path: Path) -> None:
    beside = tmp_path / "beside"
    beside.mkdir()
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


def test_a_worker_gives_no_other_a_command_by_way_of_a_server(ground: Ground) -> None:
    """As with --command: it would run outside of its own mode."""
    lead = ground.session("lead", "identity:p mode:gateway")
    ground.add(
        "swarm_runs", id="run-1", scope=ground.scope, instance_id=lead["id"], harness="codex", cwd=ground.scope,
        state="running", started_at=1, updated_at=1,
    )  # fmt: skip
    with ground.store() as store:
        for more in ({"mcp_servers": {"x": {"command": "sh"}}}, {"env": {"PATH": "/tmp"}}):
            with pytest.raises(Refused, match="can give another neither MCP servers nor variables"):
                carry_out(store, lead, DispatchRequest("Do it", harness="codex", **more))


@requirement("A-30")
def test_folder_and_model_belong_to_the_task(ground: Ground, program: list[str]) -> None:
    """A later worker of the task works in the folder, and with the model, of the first; options of the dispatch itself
    come before.
    """
    lead = ground.session("lead", "identity:p mode:gateway")
    place = ground.repo / "sub"
    place.mkdir()
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
