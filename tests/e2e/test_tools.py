"""Every tool of the server, called once by each client's model, and nothing refused on the way."""

import json

import pytest
from support.requirement import requirement

from .client import Client
from .coordinator import PEER_NAME

TASK = {"type": "implement", "title": "one", "idempotency_key": "one", "files": ["notes.md"]}
BATCH = [
    {"type": "fix", "title": "two", "idempotency_key": "two"},
    {"type": "test", "title": "three", "idempotency_key": "three", "depends_on": ["$1"]},
    {"type": "other", "title": "four", "idempotency_key": "four", "approval_required": True},
]
# Tool, arguments, and a word that the answer must contain.
CALLS = (
    ("whoami", {}, "«me»"),
    ("register", {"directory": "/"}, "«me»"),
    ("bootstrap", {"mark_read": False}, "how are you"),
    ("send_message", {"recipient": "«peer»", "content": "hello"}, "«peer»"),
    ("prompt_peer", {"recipient": "«peer»", "message": "look"}, "message_sent"),
    ("broadcast", {"content": "to all"}, "1"),
    ("poll_messages", {}, "how are you"),
    ("request_task", TASK, "task_id"),
    ("request_task_batch", {"tasks": BATCH}, "task_ids"),
    ("list_tasks", {"status": "blocked"}, "three"),
    ("claim_task", {"task_id": "«one»"}, "true"),
    ("report_progress", {"task_id": "«one»", "summary": "half way"}, "true"),
    ("request_human_input", {"task_id": "«one»", "question": "Which?", "wait_seconds": 0}, "No answer yet"),
    ("complete_task", {"task_id": "«one»", "summary": "all of it"}, "done"),
    ("claim_next_task", {"types": ["fix"]}, "two"),
    ("complete_task", {"task_id": "«two»", "summary": "that too"}, "done"),
    ("get_task", {"task_id": "«three»"}, "open"),
    ("approve_task", {"task_id": "«four»"}, "open"),
    ("lock_file", {"file": "notes.md", "reason": "once"}, "true"),
    ("explain_lock", {"file": "notes.md", "instance_id": "«peer»"}, "swarm lock blocked"),
    ("unlock_file", {"file": "notes.md"}, "notes.md"),
    ("lock_file", {"file": "notes.md", "reason": "again"}, "true"),
    ("transfer_lock", {"file": "notes.md", "to": "«peer»", "note": "yours now"}, "«peer»"),
    ("request_lock", {"file": "notes.md", "reason": "back, please"}, "«peer»"),
    ("kv_set", {"key": "k", "value": "[1]"}, "k"),
    ("kv_get", {"key": "k"}, "[1]"),
    ("swarm_status", {}, "next_action"),
    ("wait_for_activity", {"timeout_seconds": 1}, "timeout"),
    ("dispatch", {"title": "somebody else's", "spawn": False}, "gateway"),
    ("undo", {"dry_run": True}, "patch"),
)


def test_the_list_above_is_whole() -> None:
    from swarm_mcp.server.tools import all_tools

    listed = {tool.name for tool in all_tools().values() if tool.is_listed}
    assert {name for name, _, _ in CALLS} | {"commit"} == listed


@pytest.mark.ways("install")
@requirement("A-47")
def test_every_listed_tool(client: Client) -> None:
    coordinator, words = client.ground.coordinator, client.models.words
    peer = coordinator.register_peer()
    words["peer"] = lambda: peer
    words["me"] = lambda: coordinator.sessions()[0]["id"]

    def task(title: str) -> str:
        return next(row["id"] for row in coordinator.json("tasks") if row["title"] == title)

    words.update({title: lambda title=title: task(title) for title in ("one", "two", "three", "four")})
    calls = client.swarm_tools(*((name, arguments) for name, arguments, _ in CALLS))
    ahead = len(calls) - len(CALLS)  # the client's preparations before a call
    known: dict[str, str] = {"peer": peer}
    first_words = ahead + 1
    with client.held("work", *calls, at=first_words) as live:
        known["me"] = coordinator.sessions()[0]["id"]
        coordinator.text("send", "--to", known["me"], "--as", peer, "how are you")
        live.go_on()
    results = client.results("work")
    assert len(results) == len(calls), results[-1]
    for (name, _, word), result in zip(CALLS, results[ahead:], strict=True):
        for label, value in known.items():
            word = word.replace(f"«{label}»", value)
        assert word in result.replace("\\n", "\n").replace('\\"', '"'), f"{name}: {result}"
    coordinator.text("deregister", "--as", peer, "--force")  # a person's command, not the model's
    assert coordinator.json("instances") == []
    assert all(PEER_NAME not in json.dumps(row) for row in coordinator.locks())
