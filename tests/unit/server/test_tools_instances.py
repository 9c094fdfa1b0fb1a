"""The tools about sessions: joining, looking around, leaving, and removing others only when that is meant."""

import json
import os

import pytest
from support.fixtures import Ground, Sleeper
from support.toolbox import TOOLS, Hands

from swarm_hook_core.process import start_time
from swarm_mcp.server.calling_session import register_preassigned
from swarm_mcp.server.tool import NOT_REGISTERED
from swarm_mcp.server.tools.instances import ROLES

pytestmark = pytest.mark.slow

ROW = ["id", "scope", "directory", "root", "file_root", "pid", "label", "adopted", "lease_until"]
ME = (os.getpid(), start_time(os.getpid()))


@pytest.fixture
def hands(ground: Ground) -> tuple[Hands, Hands, Hands]:
    """Two sessions of identity p and one of q."""
    labels = (("1", "identity:p role:planner"), ("2", "identity:p role:implementer"), ("3", "identity:q secret-name"))
    return tuple(Hands(ground, ground.session(name, label)) for name, label in labels)


@pytest.mark.parametrize("role", ["planner", "implementer", "reviewer", "researcher", "generalist", ""])
def test_register_answers_with_the_row_and_what_to_do(ground: Ground, role: str):
    label = f"identity:p role:{role}" if role else "identity:p"
    answer = Hands(ground, client=ME).answer("register", directory=ground.scope, label=label)
    assert list(answer.value) == ROW
    assert (answer.value["label"], answer.value["directory"]) == (label, ground.scope)
    assert len(answer.notes) == (2 if role in ROLES else 1)
    assert "bootstrap" in answer.notes[0]
    if role in ROLES:
        assert f"role is {role}" in answer.notes[1] and "`swarm-mcp`" in answer.notes[1]
    assert sum(map(len, answer.notes)) < 1600, "it stands in every session's context"


def test_what_models_are_told_names_tools_that_there_are(ground: Ground):
    import re

    from swarm_mcp.server.tools import instances

    told = " ".join([instances.JOINED, *instances.ROLES.values()])
    words = set(re.findall(r"\b[a-z]+(?:_[a-z]+)+\b", told)) | {"bootstrap", "deregister", "broadcast"}
    arguments = {name for tool in TOOLS.values() for name in tool.properties}
    assert words <= set(TOOLS) | arguments, words - set(TOOLS) - arguments


def test_a_pane_is_published_with_the_registration(ground: Ground, monkeypatch):
    monkeypatch.setenv("HERDR_PANE_ID", "p_7")
    row = Hands(ground, client=ME).value("register", directory=ground.scope)
    (entry,) = ground.sql("SELECT key, value FROM kv")
    assert entry["key"] == f"identity/workspace/herdr/{row['id']}" and json.loads(entry["value"])["pane_id"] == "p_7"
    assert ground.swarm("instances", "--json").json[0]["pane_id"] == "p_7"


def test_register_adopts_a_waiting_instance_with_whatever_the_session_held(ground: Ground, hands):
    mine, peer, _ = hands
    waiting = ground.plain("role:reviewer waiting", lease_seconds=600)
    ground.lock(mine.row, "f")
    ground.add("messages", scope=ground.scope, sender="x", recipient=mine.row["id"], content="hello")
    ground.add("tasks", id="t", scope=ground.scope, type="fix", title="T", requester="x", assignee=mine.row["id"],
               status="in_progress")  # fmt: skip
    row = mine.value("register", directory=ground.scope, adopt_instance_id=waiting["id"])
    assert (row["id"], row["label"]) == (waiting["id"], "role:reviewer waiting")
    assert ground.sql("SELECT id FROM instances WHERE id = ?", mine.row["id"]) == []
    assert ground.sql("SELECT instance_id FROM context") == [{"instance_id": row["id"]}]
    assert ground.sql("SELECT recipient FROM messages") == [{"recipient": row["id"]}]
    assert ground.sql("SELECT status, assignee FROM tasks") == [{"status": "in_progress", "assignee": row["id"]}]
    assert ground.session("1", "identity:p role:planner")["id"] == row["id"], "the session is this instance from now on"
    assert peer.value("get_file_lock", file="f")["active"]["instance_id"] == row["id"]


@pytest.mark.parametrize("which", ["missing", "elsewhere", "a peer", "itself"])
def test_what_cannot_be_adopted_leaves_the_registration_as_it_is(ground: Ground, hands, which: str):
    mine, peer, _ = hands
    elsewhere = ground.plain("x", directory="/else", scope=ground.scope, lease_seconds=600)
    wanted = {"missing": "nobody", "elsewhere": elsewhere["id"], "a peer": peer.row["id"], "itself": mine.row["id"]}[
        which
    ]
    before = ground.sql("SELECT id FROM instances ORDER BY id")
    assert mine.value("register", directory=ground.scope, adopt_instance_id=wanted)["id"] == mine.row["id"]
    assert ground.sql("SELECT id FROM instances ORDER BY id") == before


@pytest.mark.parametrize("force", [False, True])
def test_a_live_peer_is_a_persons_to_remove(ground: Ground, hands, force: bool):
    mine, peer, _ = hands
    ground.lock(peer.row, "f")
    refused = mine.value("remove_instance", instance_id=peer.row["id"], force=force)
    assert list(refused) == ["error"] and "Only a person can remove it" in refused["error"]
    assert mine.value("lock_file", file="f")["active"]["instance_id"] == peer.row["id"], "nothing has happened to it"
    tried = ground.sql("SELECT actor FROM events WHERE type = 'protection.attempted'")
    assert tried == ([{"actor": mine.row["id"]}] if force else [])


def test_nobody_removes_itself_or_what_is_not_here(ground: Ground, hands):
    mine, *_ = hands
    far = ground.session("far", "identity:p", scope="/far")
    assert (
        mine.text("remove_instance", instance_id=mine.row["id"], force=True)
        == "Cannot remove yourself. Use deregister instead."
    )
    for wanted in ("nope", far["id"], mine.row["id"][:8]):
        assert (
            mine.text("remove_instance", instance_id=wanted, force=True) == f"Instance {wanted} not found in this scope"
        )
    assert len(ground.sql("SELECT id FROM instances")) == 4


def test_the_peers_of_whoever_removes_a_session_are_told(ground: Ground, hands):
    mine, peer, stranger = hands
    with Sleeper() as client:
        gone = ground.session("3", "identity:q", client=client.identity)
        nobody = ground.session("4", "no identity", client=client.identity)
    assert mine.text("remove_instance", instance_id=gone["id"]).startswith(f"Removed instance {gone['id']}.")
    assert mine.text("remove_instance", instance_id=nobody["id"]).startswith('Removed instance "no identity" ')
    first, second = (message["content"] for message in peer.value("poll_messages"))
    assert first.startswith(f"[auto] instance {gone['id']} was removed by planner ")
    assert second.startswith(f'[auto] "no identity" {nobody["id"][:8]} (instance {nobody["id"]}) was removed by ')
    told = ground.sql("SELECT actor, subject, payload FROM events WHERE type = 'message.broadcast' ORDER BY id")
    assert [(row["actor"], row["subject"]) for row in told] == [(mine.row["id"], None)] * 2
    assert [json.loads(row["payload"])["recipients"] for row in told] == [1, 1]
    assert mine.value("poll_messages") == []


SAMPLES = {"string": "x", "number": 1, "integer": 1, "array": [], "object": {}, "boolean": True}
# Only these tools work without joining; calls that wait are asked through a server, in their own tests.
JOINED = sorted(set(TOOLS) - {"register", "dispatch", "wait_for_activity", "request_human_input", "try"})


@pytest.mark.parametrize("name", JOINED)
@pytest.mark.sampled
def test_no_tool_serves_who_is_not_registered(ground: Ground, name: str):
    kinds = {needed: TOOLS[name].properties[needed].get("type", "string") for needed in TOOLS[name].required}
    answer = Hands(ground).answer(name, **{needed: SAMPLES[kind] for needed, kind in kinds.items()})
    assert (answer.text, answer.is_error) == (NOT_REGISTERED, False)
    assert ground.sql("SELECT id FROM events") == []


@pytest.fixture
def reserved(monkeypatch, ground: Ground) -> str:
    monkeypatch.setenv("SWARM_MCP_INSTANCE_ID", "reserved")
    monkeypatch.setenv("SWARM_MCP_DIRECTORY", ground.scope)
    monkeypatch.setenv("SWARM_MCP_LABEL", "identity:p role:planner")
    return "reserved"


def take(ground: Ground, client: tuple[int, str] = ME, session_id: str = "") -> dict | None:
    with ground.store() as store:
        return register_preassigned(store, client, session_id)


def test_without_a_reserved_id_a_server_registers_nothing(ground: Ground, monkeypatch):
    monkeypatch.setenv("SWARM_MCP_INSTANCE_ID", " ")
    assert take(ground) is None and ground.sql("SELECT id FROM instances") == []


def test_a_server_makes_the_instance_reserved_for_it(ground: Ground, reserved: str):
    row = take(ground, session_id="mcp-1")
    assert (row["id"], row["label"], row["scope"]) == (reserved, "identity:p role:planner", ground.scope)
    assert ground.sql("SELECT runtime, session_id, client_pid FROM swarm_sessions") == [
        {"runtime": "mcp", "session_id": "mcp-1", "client_pid": ME[0]}
    ]
    assert take(ground)["id"] == reserved, "a server that is started again by the same client finds it"
    assert len(ground.sql("SELECT id FROM instances")) == 1


def test_a_server_adopts_what_waits_for_it_and_leaves_it_where_it_is(ground: Ground, reserved: str):
    ground.plain("role:worker", preassigned_id=reserved, directory="/else", scope="/else/scope", lease_seconds=600)
    row = take(ground)
    assert (row["id"], row["directory"], row["scope"]) == (reserved, "/else", "/else/scope")
    assert row["label"] == "identity:p role:planner"
    payloads = [
        json.loads(event["payload"]) for event in ground.sql("SELECT payload FROM events WHERE subject = ?", reserved)
    ]
    assert [payload["adopted"] for payload in payloads if "adopted" in payload] == [False, True]
    with Sleeper() as client:
        ground.sql("UPDATE swarm_sessions SET client_pid = ?, client_start = ?", *client.identity)
        assert ground.swarm("instances", "--scope", "/else/scope", "--json").json != []
    assert ground.swarm("instances", "--scope", "/else/scope", "--json").json == [], (
        "and it lives and dies with its client"
    )


def test_hooks_and_server_of_one_client_are_one_session_in_either_order(ground: Ground, reserved: str):
    first = take(ground)
    assert ground.session("s", "identity:p role:planner", client=ME, preassigned_id=reserved)["id"] == first["id"]
    assert take(ground)["id"] == reserved
    assert ground.sql("SELECT runtime, session_id FROM swarm_sessions") == [
        {"runtime": "claude-code", "session_id": "s"}
    ]


def test_the_instance_of_another_live_client_is_not_taken(ground: Ground, reserved: str):
    with Sleeper() as client:
        theirs = ground.session("s", "theirs", client=client.identity, preassigned_id=reserved)
        assert take(ground) is None
        assert ground.sql("SELECT id, label FROM instances") == [{"id": theirs["id"], "label": "theirs"}]
    assert take(ground)["id"] == reserved, "once that has died, it is free again"


@pytest.mark.slow
@pytest.mark.thorough
def test_one_of_sixteen_servers_gets_the_reserved_instance(ground: Ground, reserved: str):
    from support import many_processes as crowd

    ground.store().close()
    body = """
from swarm_hook_core.process import start_time
from swarm_mcp.server.calling_session import register_preassigned
store = Store()
gate()
row = register_preassigned(store, (os.getpid(), start_time(os.getpid())))
report(bool(row))
sys.stdin.readline()
"""
    with crowd.Crowd(body, [None] * 16) as members:
        members.start()
        found = [process.stdout.readline() for process in members.processes]
        rows = ground.sql("SELECT id FROM instances")
    assert found.count("true\n") == 1 and found.count("false\n") == 15 and rows == [{"id": reserved}]


def test_deregister_leaves_nothing_behind(ground: Ground, hands):
    mine, peer, _ = hands
    ground.lock(mine.row, "f")
    told = mine.text("deregister")
    assert told.startswith(f"Deregistered instance {mine.row['id']}.")
    assert mine.text("whoami") == mine.text("deregister") == "Not registered. Call register first."
    assert peer.value("lock_file", file="f")["ok"] is True
