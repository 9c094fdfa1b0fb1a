"""The harness acp without an agent: a turn of the protocol as events, questions, sessions, and a run through the relay."""

import json
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.files import folder_at, text_at
from support.fixtures import Ground

from swarm_mcp.agents.harness import registry
from swarm_mcp.agents.harness.adapter import PermissionServer
from swarm_mcp.agents.harness.bridge import PERMISSION, TOKEN, argv_of
from swarm_mcp.agents.harness.events import Event
from swarm_mcp.agents.harness.query import YOLO, McpServer
from swarm_mcp.errors import Refused
from swarm_mcp.harness import PermissionRequest, Query, Run

pytestmark = pytest.mark.slow
acp = registry.get("acp")
SECRET = "hunter2-hunter2-hunter2"
OPTIONS = [{"optionId": f"id of {kind}", "kind": kind} for kind in ("allow_always", "allow_once", "reject_once")]
# Its argument: method -> `result` or `error`, and messages `before` and `after` it. A request among these is answered
# before the next message. At the end of a turn it tells all that it has heard.
AGENT = """
import json, sys
given, heard = json.loads(sys.argv[1]), []
def tell(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
    if "id" in message and "method" in message:
        heard.append(json.loads(sys.stdin.readline()))
def said(text):
    update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}
    return {"method": "session/update", "params": {"sessionId": "s-1", "update": update}}
print("no message")
for line in sys.stdin:
    asked = json.loads(line)
    heard.append(asked)
    found = given.get(asked["method"], {})
    for message in found.get("before", ()):
        tell(message)
    if asked["method"] == "session/prompt":
        tell(said(json.dumps(heard)))
    known = {"session/new": {"sessionId": "s-1"}, "session/prompt": {"stopReason": "end_turn"}}
    answer = {"result": known.get(asked["method"], {}), **{k: found[k] for k in found if k in ("result", "error")}}
    tell({"id": asked["id"], **({"error": answer["error"]} if "error" in answer else answer)})
    for message in found.get("after", ()):
        tell(message)
"""


def update(event: str, **more: Any) -> dict[str, Any]:
    return {"method": "session/update", "params": {"sessionId": "s-1", "update": {"sessionUpdate": event, **more}}}


def chunk(text: str, kind: str = "message") -> dict[str, Any]:
    return update(f"agent_{kind}_chunk", content={"type": "text", "text": text})


def question(number: int, options: list[dict[str, str]] = OPTIONS, **call: Any) -> dict[str, Any]:
    params = {"sessionId": "s-1", "options": options, "toolCall": {"toolCallId": f"t{number}", **call}}
    return {"id": number, "method": PERMISSION, "params": params}


class Turn:
    """A turn of the scripted agent behind the bridge: `code`, `events`, and the messages that the agent has `heard`."""

    def __init__(self, folder: Path, given: dict[str, Any], server: PermissionServer | None = None, **more: Any):
        settings = {
            "argv": [sys.executable, "-c", AGENT, json.dumps(given)], "cwd": str(folder), "session": "", "servers": [],
            "modes": ["default", "read-only"], "allows_all": False, "permissions": "", **more,
        }  # fmt: skip
        env = {"PATH": "/usr/bin:/bin", "http_proxy": "http://127.0.0.1:9", "VALUE_1": SECRET}
        if server:
            settings["permissions"] = server.server.url
            env[TOKEN] = server.server.headers["Authorization"]
        path = text_at(folder.parent / "acp.json", json.dumps(settings))
        done = subprocess.run(argv_of("acp", str(path)), input="say", env=env, text=True,
                              capture_output=True)  # fmt: skip
        state: dict[str, Any] = {}
        self.code = done.returncode
        self.events: list[Event] = [event for line in done.stdout.splitlines() for event in acp.parse(line, state)]
        self.events += acp.finish(state)
        texts = [event.data["content"] for event in self.events if event.kind == "message"]
        self.heard: list[dict[str, Any]] = json.loads(texts[-1]) if texts and texts[-1].startswith("[") else []

    def requests(self) -> list[str]:
        return [message["method"] for message in self.heard if "method" in message]

    def options(self) -> list[str | None]:
        """The options that were chosen; None where the question was cancelled."""
        return [message["result"]["outcome"].get("optionId") for message in self.heard if "result" in message]

    def kinds(self) -> list[str]:
        return [event.kind if event.kind != "custom" else event.data["name"] for event in self.events]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return folder_at(tmp_path / "work")


def test_a_turn_becomes_events(folder: Path) -> None:
    denial = 'failed: {"message": "swarm lock blocked edit for a: held by x 1 (note: \\"mine\\"; locked 6 s ago)."}'
    told = [
        chunk("hm", "thought"), chunk("One "), chunk(""), chunk("two."),
        update("tool_call", toolCallId="a", kind="edit", status="pending", title="Edit"),
        update("tool_call_update", toolCallId="a", status="failed", content=[
            {"type": "content", "content": {"type": "text", "text": denial}}]),
        update("tool_call_update", toolCallId="a", status="failed"),
        update("tool_call", toolCallId="b", name="fetch_it", kind="fetch", rawInput={"url": "u"}),
        update("tool_call_update", toolCallId="b", status="completed", rawOutput={"status": 200}),
        update("plan", entries=[]),
        {"method": "session/update", "params": {"sessionId": "other", "update": {"sessionUpdate": "plan"}}},
    ]  # fmt: skip
    turn = Turn(folder, {"session/prompt": {"before": told}})
    assert turn.code == 0
    assert turn.kinds() == [
        "session_init", "message", "acp.text_delta", "acp.text_delta", "message", "tool_start", "tool_end",
        "lock_denied", "tool_start", "tool_end", "acp.plan", "acp.text_delta", "message", "result",
    ]  # fmt: skip
    data = [event.data for event in turn.events]
    assert (data[0]["session_id"], data[1]["thinking"], data[4]["content"]) == ("s-1", True, "One two.")
    assert (data[5]["args"], data[6]["is_error"], data[6]["result"]) == ({"title": "Edit"}, True, denial)
    assert data[7]["data"]["message"].endswith('(note: "mine"; locked 6 s ago).')
    assert (data[8]["tool_name"], data[8]["args"], data[9]["result"]) == ("fetch_it", {"url": "u"}, '{"status": 200}')
    assert data[-1]["output"] == data[-2]["content"] and not data[-1]["is_error"]


def test_no_line_is_a_fault() -> None:
    odd: list[Any] = [None, 7, "x", [], [7], ["x"], {}, {"content": 7}, {"text": {}}]
    names = ("sessionUpdate", "toolCallId", "status", "kind", "title", "name", "content", "locations", "rawInput",
             "rawOutput", "_meta")  # fmt: skip
    usual = {"toolCallId": "a", "status": "failed", "kind": "other", "title": "x"}
    updates = [{"sessionUpdate": kind, **usual, name: value} for name in names for value in odd
               for kind in ("tool_call", "agent_message_chunk", "plan")]  # fmt: skip
    lines = [{"type": "update", "update": one} for one in (*odd, *updates)]
    lines += [{"type": "end", "reason": value, "error": value} for value in odd]
    assert all(isinstance(acp.parse(json.dumps(line), {}), list) for line in (*odd, *lines))


def test_a_refusal_in_the_agents_words_is_a_denial(folder: Path) -> None:
    turn = Turn(folder, {"session/prompt": {"before": [chunk("\n\nswarm lock blocked edit for a: held by b\n\n")]}})
    (denied,) = [event.data["data"] for event in turn.events if event.data.get("name") == "lock_denied"]
    assert denied["message"] == "swarm lock blocked edit for a: held by b"


def test_reading_and_edits_in_the_folder_are_free_and_all_else_is_refused(folder: Path, tmp_path: Path) -> None:
    (folder / "link").symlink_to(tmp_path)
    own = {"type": "diff", "path": str(folder / "a.md"), "newText": ""}
    free = [
        {"kind": "read", "title": "whatever"},
        {"kind": "edit", "locations": [{"path": "new/a.md"}]},
        {"kind": "delete", "content": [own]},
        {"kind": "other", "title": "weigh (mine MCP Server)"},
        {"kind": "other", "title": "{}", "_meta": {"toolName": "mcp__mine__weigh"}},
    ]
    refused = [
        {"kind": "edit", "content": [own], "locations": [{"path": ".git/hooks/pre-commit"}]},
        {"kind": "edit", "locations": [{"path": "../a.md"}]},
        {"kind": "move", "locations": [{"path": "a.md"}, {"path": "link/a.md"}]},
        {"kind": "edit", "title": "a.md"},
        {"kind": "edit", "locations": [{"path": "a\0b"}]},
        {"kind": "execute", "title": "weigh (mine MCP Server)"},
        {"kind": "other", "title": "weigh (theirs MCP Server)"},
        {"kind": "other", "title": "remember weigh (mine MCP Server)"},
        {},
    ]
    asked = [question(number, **call) for number, call in enumerate([*free, *refused])]
    given = {"session/prompt": {"before": asked}}
    servers = [{"name": "mine", "command": "x", "args": [], "env": []}]
    turn = Turn(folder, given, servers=servers)
    assert turn.options() == ["id of allow_once"] * len(free) + ["id of reject_once"] * len(refused)
    told = [event.data for event in turn.events if event.kind == "permission_asked"]
    assert len(told) == len(refused) and not any(data["is_allowed"] for data in told)
    assert sorted(data["tool_call_id"] for data in told) == sorted(f"t{n}" for n in range(len(free), len(asked)))
    yolo = Turn(folder, given, servers=servers, allows_all=True)
    assert yolo.options() == ["id of allow_once"] * len(asked)


def test_the_rest_is_asked_for(folder: Path) -> None:
    asked: list[PermissionRequest] = []

    def decide(request: PermissionRequest) -> bool:
        asked.append(request)
        return request.tool_name == "execute"

    told = [
        update("tool_call", toolCallId="t0", kind="execute", status="pending", title="Shell"),
        question(0, title="ls", rawInput={"command": "ls"}),
        question(1, kind="edit", title="Write", locations=[{"path": "/etc/a"}]),
        question(2, options=OPTIONS[:2], kind="fetch"),
        {"id": 9, "method": "fs/read_text_file", "params": {}},
    ]
    with PermissionServer(decide) as server:
        turn = Turn(folder, {"session/prompt": {"before": told}}, server)
    assert asked == [
        PermissionRequest("execute", {"command": "ls"}, "ls"),
        PermissionRequest("edit", {"title": "Write", "paths": ["/etc/a"]}, "Write"),
        PermissionRequest("fetch", {}, ""),
    ]
    assert turn.options() == ["id of allow_once", "id of reject_once", None]
    assert turn.heard[-1]["error"]["code"] == -32601
    assert turn.kinds()[1:4] == ["tool_start"] * 3, "a question shows that a call is under way"


@pytest.mark.parametrize(
    ("can", "method"),
    [({"loadSession": True}, "session/load"),
     ({"loadSession": True, "sessionCapabilities": {"resume": {}}}, "session/resume")],
)  # fmt: skip
def test_a_session_is_continued_and_its_past_is_not_told_again(folder: Path, can: dict, method: str) -> None:
    modes = {"availableModes": [{"id": "yolo"}, {"id": "default"}], "currentModeId": "default"}
    past = [chunk("of before"), update("tool_call", toolCallId="old", kind="edit", status="completed")]
    turn = Turn(folder, {
        "initialize": {"result": {"agentCapabilities": can}},
        method: {"before": past, "result": {"modes": modes}, "after": past},
    }, session="s-1")  # fmt: skip
    assert turn.requests() == ["initialize", method, "session/set_mode", "session/prompt"]
    assert turn.heard[1]["params"]["sessionId"] == "s-1" and turn.heard[2]["params"]["modeId"] == "default"
    assert turn.kinds() == ["session_init", "acp.text_delta", "message", "result"]


@pytest.mark.parametrize(
    ("can", "error", "code"),
    [
        ({}, None, "session_not_found"),
        ({"loadSession": True}, {"message": "Internal error", "data": {"details": "none here"}}, "session_not_found"),
        ({"loadSession": True}, {"message": "Authentication required"}, "auth_failed"),
    ],
)
@pytest.mark.thorough
def test_a_session_that_is_gone(folder: Path, can: dict, error: dict | None, code: str) -> None:
    answers = {"initialize": {"result": {"agentCapabilities": can}}, "session/load": {"error": error}}
    turn = Turn(folder, answers, session="s-1")
    (ended,) = turn.events
    assert (turn.code, ended.kind, ended.data["error_category"]) == (1, "result", code)
    assert not error or ended.data["error_message"].startswith(error["message"])


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("answer", "code"),
    [({"result": {"stopReason": "max_turn_requests"}}, "budget"), ({"result": {"stopReason": "refusal"}}, "unknown"),
     ({"error": {"code": -32000, "message": "429 too many requests"}}, "rate_limited")],
)  # fmt: skip
def test_a_turn_that_fails(folder: Path, answer: dict, code: str) -> None:
    assert Turn(folder, {"session/prompt": answer}).events[-1].data["error_category"] == code


@pytest.mark.thorough
def test_an_agent_that_ends_has_failed(folder: Path) -> None:
    turns = [Turn(folder, {}, argv=[sys.executable, "-c", f"import sys; sys.exit({code})"]) for code in (4, 0)]
    assert [(turn.code, turn.events) for turn in turns] == [(4, []), (1, [])]


@pytest.mark.thorough
def test_servers_at_addresses_need_an_agent_that_takes_them(folder: Path) -> None:
    web = {"type": "http", "name": "web", "url": "http://127.0.0.1:1", "headers": [{"name": "X", "value": "VALUE_1"}]}
    refused = Turn(folder, {}, servers=[web])
    assert "no MCP servers at addresses" in refused.events[-1].data["error_message"]
    given = {"initialize": {"result": {"agentCapabilities": {"mcpCapabilities": {"http": True}}}}}
    turn = Turn(folder, given, servers=[web])
    assert turn.heard[1]["params"]["mcpServers"] == [{**web, "headers": [{"name": "X", "value": SECRET}]}]


def test_the_start_hides_values_and_needs_a_command(tmp_path: Path) -> None:
    servers = {
        "db": McpServer("run-db", ("--x",), {"DB_PASSWORD": SECRET}, "/srv"),
        "web": McpServer(url="https://x/mcp", headers={"Authorization": SECRET}),
    }
    query = Query(
        "p", str(tmp_path), command=("agent", "--acp"), mcp_servers=servers, additional_args=("-v",), mode=YOLO
    )
    launch = acp.launch(query, tmp_path)
    file = Path(launch.argv[-1])
    settings = json.loads(file.read_text())
    assert SECRET not in file.read_text() and SECRET not in "\0".join(launch.argv) and launch.stdin == "p"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert settings["argv"][-4:] == ["--", "agent", "--acp", "-v"] and settings["allows_all"]
    db, web = settings["servers"]
    assert [launch.env[one["value"]] for one in (*db["env"], *web["headers"])] == [SECRET, SECRET]
    assert (db["args"][-2:], web["type"]) == (["run-db", "--x"], "http")
    with pytest.raises(Refused, match="needs a command: --command 'gemini --acp', or SWARM_HARNESS_ACP"):
        acp.launch(Query("p", str(tmp_path)), tmp_path)


def test_a_locked_file_is_refused_in_a_run(ground: Ground) -> None:
    (ground.repo / "held.md").write_text("one\n")
    ground.lock(ground.session("peer", "holder"), "held.md")
    asked = [question(number, kind="edit", locations=[{"path": str(ground.repo / name)}])
             for number, name in enumerate(("held.md", "free.md"))]  # fmt: skip
    agent = (sys.executable, "-c", AGENT, json.dumps({"session/prompt": {"before": asked}}))
    run = Run("acp", Query("say", ground.repo, command=agent))
    told = []
    result = run.on_event(lambda event: told.append(event.data)).start().wait()
    assert result is not None and not result.is_error, result
    heard = json.loads(result.output)
    assert [one["result"]["outcome"]["optionId"] for one in heard if "result" in one] == [
        "id of reject_once", "id of allow_once",
    ]  # fmt: skip
    (denied,) = [data["data"]["message"] for data in told if data.get("name") == "lock_denied"]
    assert "held.md" in denied and "held by holder" in denied and result.session_id == "s-1"
