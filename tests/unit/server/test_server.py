"""The MCP server over real pipes: its tools, the session of a call, and its end."""

import json
import os
import re
import time
from pathlib import Path

import pytest
from support.fixtures import SWARM, Ground, Sleeper
from support.requirement import requirement
from support.serving import INITIALIZE, INITIALIZED, Server, ask, call, lines, loaded, one_shot

import swarm_mcp
from swarm_hook_core.process import start_time
from swarm_mcp.domain import STATUSES
from swarm_mcp.server import service
from swarm_mcp.server.tools import all_tools, instances
from swarm_mcp.store import Store

pytestmark = pytest.mark.slow

ME = (os.getpid(), start_time(os.getpid()))
# Codex asks a person, if there is one, before it calls a destructive tool, or one without a word that it only reads.
HINTS = {
    "destructiveHint": {"remove_instance", "kv_delete", "try"},
    "readOnlyHint": {
        "list_instances", "whoami", "get_task", "list_tasks", "get_file_lock", "explain_lock", "lock_history", "kv_get",
        "kv_list", "swarm_status",
    },
}  # fmt: skip
ROW = ["id", "scope", "directory", "root", "file_root", "pid", "label", "adopted", "lease_until"]
NOT_REGISTERED = "Not registered. Call register first."


@pytest.fixture
def server(ground: Ground):
    with Server(ground) as running:
        yield running


def test_a_model_sees_at_most_30_tools_and_a_front_end_all(ground: Ground, server: Server):
    shown = {tool["name"] for tool in server.ask("tools/list")["tools"]}
    assert len(shown) <= 30 and shown < set(all_tools()) and {"explain_lock", "list_tasks"} <= shown
    assert not {"resolve_workspace_handle", "peek_peer", "remove_instance"} & shown
    server.call("register", {"directory": ground.scope})
    assert server.call("list_instances")["structuredContent"]["items"]  # an old client calls it by its name
    number = server.begin("tools/call", {"name": "no_such_tool"})
    unknown = server.answer_to(number)["error"]["message"]
    assert "explain_lock" in unknown and "peek_peer" not in unknown


def test_no_words_for_models_name_a_tool_that_is_not_listed():
    root = Path(__file__).resolve().parents[3]
    tools = all_tools().values()
    unlisted = {tool.name for tool in tools if not tool.is_listed}
    texts = {tool.name: json.dumps(tool.described()) for tool in tools if tool.is_listed}
    texts.update({path.name: path.read_text() for path in root.glob("skills/**/*.md")})
    texts["guidance"] = "".join([instances.JOINED, service.SETUP, service.PROTOCOL, *instances.ROLES.values()])
    named = {place: found for place, text in texts.items() if (found := unlisted & set(re.findall(r"\w+", text)))}
    # The skill `swarm` and shell commands have a word in common with a tool.
    assert {place: found - {"deregister"} for place, found in named.items() if found - {"deregister"}} == {}


def test_tools_are_listed_with_what_they_do(ground: Ground):
    """The record of the contract and ``deviations`` have their names."""
    with Server(ground, [*SWARM, "serve", "--all-tools"]) as server:
        assert server.welcome["serverInfo"]["version"] == swarm_mcp.__version__ and server.welcome["instructions"]
        tools = {tool["name"]: tool for tool in server.ask("tools/list")["tools"]}
    hinted = {hint: {name for name, tool in tools.items() if tool["annotations"][hint]} for hint in HINTS}
    assert hinted == HINTS
    for name, tool in tools.items():
        hints = tool["annotations"]
        assert (hints["idempotentHint"] or not hints["readOnlyHint"]) and not hints["openWorldHint"], name
        assert tool["description"] and tool["inputSchema"]["type"] == "object"
        assert tool["inputSchema"]["additionalProperties"] is False
        assert all(entry["description"] for entry in tool["inputSchema"]["properties"].values()), name


@requirement("A-47")
def test_a_session_works_with_the_tools_from_joining_to_unlocking(ground: Ground, server: Server):
    for tool, arguments in (("whoami", {}), ("bootstrap", {}), ("lock_file", {"file": "x"}), ("unlock_file", {"file": "x"}),
                            ("get_file_lock", {"file": "x"})):  # fmt: skip
        assert server.text(tool, arguments) == NOT_REGISTERED

    mine = server.call("register", {"directory": ground.scope, "label": "identity:p role:planner"})
    row = mine["structuredContent"]
    assert list(row) == ROW and json.loads(mine["content"][0]["text"]) == row and len(mine["content"]) >= 2
    assert (row["scope"], row["label"]) == (ground.scope, "identity:p role:planner")
    assert server.value("register", {"directory": "/else", "label": "other"}) == row
    assert server.value("whoami") == row

    peer = ground.session("peer", "identity:p peer")
    stranger = ground.session("stranger", "identity:q secret-name")
    assert server.value("lock_file", {"file": "src/a.py", "reason": "refactor"})["ok"] is True
    again = server.value("lock_file", {"file": "src/a.py"})
    assert list(again) == ["ok", "id"]  # of the contract's own call; with an option of ours it has a number
    assert list(server.value("lock_file", {"file": "src/a.py", "mode": "exclusive"})) == ["ok", "id", "fence", "locks"]
    assert ground.swarm("lock", "src/a.py", "--as", peer["id"]).code == 1

    ground.lock(peer, "theirs.py", "note")
    conflict = server.value("lock_file", {"file": "theirs.py"})
    assert conflict["active"]["owner"]["label"] == "identity:p peer" and conflict["active"]["active_tasks"] == []
    assert server.text("unlock_file", {"file": "theirs.py"}).startswith("Unlocked ")
    assert server.value("get_file_lock", {"file": "theirs.py"})["active"]["instance_id"] == peer["id"]
    ground.lock(stranger, "hidden.py", "secret-note")
    hidden = {"hidden": True, "reason": "cross_identity", "file": f"{ground.scope}/hidden.py"}
    assert server.value("get_file_lock", {"file": "hidden.py"})["active"] == hidden
    assert server.value("lock_file", {"file": "hidden.py"})["active"] == hidden

    kept = server.value("bootstrap")
    assert kept["instance"] == {**row, "lease_until": kept["instance"]["lease_until"]}, "renewed by the locks above"
    assert [one["id"] for one in kept["peers"]] == [peer["id"]] and "secret" not in json.dumps(kept)

    assert server.text("unlock_file", {"file": "src/a.py"}).startswith("Unlocked ")
    assert server.value("get_file_lock", {"file": "src/a.py"})["active"] is None


def test_wrong_calls_are_errors_and_the_server_goes_on(ground: Ground, server: Server):
    server.value("register", {"directory": ground.scope})
    wrong = [
        ("register", {}), ("lock_file", {}), ("lock_file", {"file": 7}), ("lock_file", {"file": None}),
        ("lock_file", {"file": ["a"]}), ("lock_file", {"file": "a", "exclusive": "yes"}), ("lock_file", {"file": "a", "odd": 1}),
        ("bootstrap", {"mark_read": 1}), ("no_such_tool", {}), ("lock_file", {"file": ""}), ("lock_file", {"file": "a\0b"}),
        ("unlock_file", {"file": "  "}), ("lock_file", {"file": "\ud800"}),
    ]  # fmt: skip
    for tool, arguments in wrong:
        answer = server.call(tool, arguments)
        assert "error" in answer or answer.get("isError") is True, (tool, arguments, answer)
        assert "Traceback" not in json.dumps(answer)
    server.send({"jsonrpc": "2.0", "method": "no/such/notification", "params": {"x": [1]}})
    server.process.stdin.write(b"this is no JSON\n\n[]\n")
    assert server.value("lock_file", {"file": "x" * 3000})["ok"] is True
    assert len(ground.sql("SELECT id FROM context")) == 1


def test_the_client_process_tells_which_session_calls(ground: Ground, server: Server):
    hooked = ground.session("s1", "hooked", client=ME)
    assert server.value("whoami")["id"] == hooked["id"]
    assert server.value("register", {"directory": "/else"})["id"] == hooked["id"]
    assert server.value("lock_file", {"file": "f"})["ok"] is True
    assert ground.sql("SELECT instance_id FROM context") == [{"instance_id": hooked["id"]}]
    with Sleeper() as other:
        ground.session("s2", "of another client", client=other.identity)
        assert server.value("whoami")["id"] == hooked["id"]
    # The client begins another session in the same process, as /clear does; the first one ends.
    newer = ground.session("s3", "newer", client=ME)
    assert server.text("whoami") == NOT_REGISTERED  # two may be meant, so neither is taken
    ground.swarm("deregister", "--runtime", "claude-code", "--session-id", "s1")
    assert server.value("whoami")["id"] == newer["id"]
    # Sessions of hooks end by their own hook, not with the server.
    server.close_input()
    assert server.ended_within(60) == 0
    assert ground.sql("SELECT id FROM instances WHERE id = ?", newer["id"])


def test_a_variable_that_a_client_has_not_filled_in_is_none(ground: Ground, monkeypatch: pytest.MonkeyPatch):
    """Hermes hands ``${NAME}`` of its settings on as it stands where there is no such variable."""
    monkeypatch.setenv("SWARM_MCP_SCOPE", "${SWARM_MCP_SCOPE}")
    with Server(ground) as server:
        assert server.value("register", {"directory": str(ground.repo)})["scope"] == ground.scope


@pytest.mark.thorough
def test_the_call_itself_may_name_its_session(ground: Ground, server: Server):
    parent, child = (
        ground.session("parent", runtime="codex", client=ME),
        ground.session("child", runtime="codex", client=ME),
    )
    assert server.value("whoami", sessionId="parent")["id"] == parent["id"]
    assert server.value("whoami", threadId="child")["id"] == child["id"]
    # A sub-agent's thread has a name of its own inside its parent's session.
    assert server.value("whoami", sessionId="parent", threadId="child")["id"] == parent["id"]
    assert server.value("whoami", threadId="nobody", sessionId="child")["id"] == child["id"]
    assert server.text("whoami", sessionId="paren") == NOT_REGISTERED
    assert server.value("lock_file", {"file": "f"}, sessionId="child")["ok"] is True
    assert server.value("lock_file", {"file": "f"}, sessionId="parent")["active"]["instance_id"] == child["id"]
    for odd in (7, None, ["parent"], {"a": 1}, ""):
        assert server.text("whoami", sessionId=odd) == NOT_REGISTERED


def test_a_session_of_another_implementations_hooks_is_taken_over_where_it_is_the_only_one(
    ground: Ground, server: Server
):
    """Such hooks leave a leased row with a session in its label, and no name of the session."""
    ground.store().close()

    def left_by_hooks(name: str) -> None:
        ground.add("instances", id=name, scope=ground.scope, directory=ground.scope, root=ground.scope, pid=1,
                   label=f"codex session:{name}", adopted=0, lease_until=int(time.time()) + 600)  # fmt: skip

    left_by_hooks("other")
    left_by_hooks("another")
    assert server.text("whoami") == NOT_REGISTERED, "which of two is meant is not guessed"
    ground.sql("DELETE FROM instances WHERE id = 'another'")
    assert server.value("whoami")["id"] == "other"
    assert server.value("lock_file", {"file": "f"})["ok"] is True
    assert server.value("register", {"directory": "/else", "label": "x"})["label"] == "codex session:other"


@pytest.mark.thorough
def test_it_ends_with_its_input_and_takes_its_registration_along(ground: Ground, server: Server):
    row = server.value("register", {"directory": ground.scope, "label": "own"})
    assert server.value("lock_file", {"file": "f"})["ok"] is True
    assert ground.sql("SELECT id FROM instances") == [{"id": row["id"]}]
    server.close_input()
    assert server.ended_within(60) == 0
    for table in ("instances", "context", "swarm_sessions"):
        assert ground.sql(f"SELECT * FROM {table}") == []
    assert b"Traceback" not in server.process.stderr.read()


def test_it_survives_a_store_that_cannot_be_opened(ground: Ground, server: Server):
    Path(ground.database).parent.mkdir(parents=True, exist_ok=True)
    Path(ground.database).write_bytes(b"no database at all" * 100)
    answer = server.call("register", {"directory": ground.scope})
    assert answer["isError"] is True and ground.database in answer["content"][0]["text"]
    os.unlink(ground.database)
    assert server.value("register", {"directory": ground.scope})["scope"] == ground.scope


def read(server: Server, uri: str):
    """A resource's JSON."""
    (content,) = server.ask("resources/read", {"uri": uri})["contents"]
    assert (content["uri"], content["mimeType"]) == (uri, "application/json")
    return json.loads(content["text"])


def updated(server: Server) -> str:
    """Return the URI of the next notice of a change."""
    message = server.next_message(60)
    assert message and message["method"] == "notifications/resources/updated", message
    return message["params"]["uri"]


def test_resources_show_what_the_session_may_see(ground: Ground, server: Server):
    listed = {item["uri"] for item in server.ask("resources/list")["resources"]}
    assert listed == {"swarm://inbox", "swarm://tasks", "swarm://instances"}
    (template,) = server.ask("resources/templates/list")["resourceTemplates"]
    assert template["uriTemplate"] == "swarm://lock{?file}" and template["description"]
    assert (read(server, "swarm://inbox"), read(server, "swarm://tasks"), read(server, "swarm://instances")) == (
        [],
        {status: [] for status in STATUSES},
        [],
    )

    me = server.value("register", {"directory": ground.scope, "label": "identity:p"})
    peer = ground.session("peer", "identity:p peer")
    ground.session("stranger", "identity:q")
    ground.add("messages", scope=ground.scope, sender=peer["id"], recipient=me["id"], content="hello")
    ground.add("tasks", id="t1", scope=ground.scope, type="fix", title="T", requester=peer["id"])
    ground.lock(peer, "dir/a file & more.py", "why")
    assert [mail["content"] for mail in read(server, "swarm://inbox")] == ["hello"]
    assert [mail["content"] for mail in read(server, "swarm://inbox")] == ["hello"], "reading marks nothing"
    assert [task["id"] for task in read(server, "swarm://tasks")["open"]] == ["t1"]
    assert [row["id"] for row in read(server, "swarm://instances")] == [me["id"], peer["id"]]
    lock = read(server, "swarm://lock?file=dir/a%20file%20%26%20more.py")
    assert lock["file"] == f"{ground.scope}/dir/a file & more.py"
    assert lock["active"]["instance_id"] == peer["id"]
    assert read(server, "swarm://lock?file=free")["active"] is None
    for uri in ("swarm://nothing", "swarm://lock", "swarm://lock?file=", "file:///etc/passwd", "swarm://inbox/x"):
        for method in ("resources/read", "resources/subscribe"):
            assert "swarm://inbox" in server.ask(method, {"uri": uri})["error"]["message"]


def test_a_subscriber_hears_of_changes_at_once_and_of_nothing_else(ground: Ground, server: Server, store: Store):
    me = server.value("register", {"directory": ground.scope})
    peer = ground.session("peer", "peer")
    uris = {"swarm://inbox", "swarm://tasks", "swarm://instances", "swarm://lock?file=f"}
    for uri in uris:
        assert "error" not in server.ask("resources/subscribe", {"uri": uri})
    ground.lock(peer, "g")  # another file is no business of this subscriber
    ground.lock(peer, "f")
    assert updated(server) == "swarm://lock?file=f"
    store.messages.send(peer, me["id"], "hello")
    assert updated(server) == "swarm://inbox"
    ground.add("tasks", id="t1", scope=ground.scope, type="fix", title="T", requester=peer["id"], changed_at=10**13)
    assert updated(server) == "swarm://tasks"
    ground.session("third", "third")
    assert updated(server) == "swarm://instances"
    server.ask("resources/unsubscribe", {"uri": "swarm://inbox"})
    store.messages.send(peer, me["id"], "again")
    ground.session("fourth", "fourth")
    assert updated(server) == "swarm://instances", "and no mail before it"


def test_prompts(server: Server):
    prompts = {prompt["name"]: prompt for prompt in server.ask("prompts/list")["prompts"]}
    assert set(prompts) == {"setup", "protocol"} and all(p["title"] and p["description"] for p in prompts.values())
    for name in prompts:
        (message,) = server.ask("prompts/get", {"name": name})["messages"]
        assert message["role"] == "user" and "bootstrap" in message["content"]["text"]
    assert "no prompt" in server.ask("prompts/get", {"name": "odd"})["error"]["message"]


def test_a_call_that_waits_holds_up_no_other_and_can_be_cancelled(ground: Ground, server: Server):
    server.value("register", {"directory": ground.scope})
    waiting = server.begin("tools/call", {"name": "wait_for_activity", "arguments": {"timeout_seconds": 0}})
    assert server.value("lock_file", {"file": "f"})["ok"] is True
    server.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": waiting}})
    assert server.ask("ping") == {}  # messages are read in order: the request is cancelled by now
    ground.lock(ground.session("peer"), "g")
    assert server.value("whoami") and server.notifications == [], "nobody waits for the result any more"


def test_first_questions_are_answered_before_the_event_loop_is_loaded(ground: Ground) -> None:
    with Server(ground) as server:
        for method in ("tools/list", "resources/list", "resources/templates/list", "prompts/list", "ping"):
            assert "error" not in server.ask(method)
        if Path("/proc/self/maps").exists():
            assert "_asyncio" not in loaded(server)
        assert "Not registered" in server.text("whoami")
        if Path("/proc/self/maps").exists():
            assert "_asyncio" in loaded(server)
            assert not {"pydantic_core", "rpds"} & loaded(server)


def test_a_client_that_sends_everything_at_once_is_answered_in_full(ground: Ground):
    asked = [{**INITIALIZE, "id": 0}, INITIALIZED, *(ask(number, "tools/list") for number in range(1, 4))]
    asked += [
        call(4, "register", directory=ground.scope),
        *(call(n, "lock_file", file="f" * 3000) for n in range(5, 40)),
    ]
    assert sorted(answer["id"] for answer in one_shot(ground, lines(*asked))) == list(range(40))


@pytest.mark.thorough
def test_an_empty_or_absent_client_is_no_trouble(ground: Ground):
    for data in (b"", b"\n\n"):
        assert one_shot(ground, data) == []
    assert "error" in one_shot(ground, b"nonsense\n")[0]
