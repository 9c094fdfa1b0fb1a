"""`swarm-mcp status`: sessions, locks, and the numbers of tasks, messages and values."""

import os
import time
from types import SimpleNamespace

import pytest
from support.fixtures import Ground
from support.world import World

from swarm_mcp.answers.people import People
from swarm_mcp.view.overview.work import work
from swarm_mcp.view.top.picture import Wish
from swarm_mcp.view.top.reading import Reader

DAY = 86400


@pytest.fixture
def checkout(ground: Ground) -> Ground:
    """Two sessions of one identity and one of another, with a lock, tasks, messages and values of each."""
    me, peer = ground.session("me", "identity:ours"), ground.session("peer", "identity:ours")
    stranger = ground.session("stranger", "identity:theirs")
    ground.lock(me, "a.txt")
    now = int(time.time())
    for number, status in enumerate(["open", "open", "in_progress", "done", "failed"]):
        ground.add(
            "tasks", id=f"task-{number}", scope=ground.scope, type="fix", title="T", requester=me["id"], status=status
        )
    ground.add("tasks", id="hidden", scope=ground.scope, type="fix", title="T", requester=stranger["id"])
    sent = [(me, peer, 0, now), (peer, me, 1, now), (peer, me, 0, now - 2 * DAY), (stranger, stranger, 0, now)]
    for sender, recipient, read, at in sent:
        ground.add(
            "messages", scope=ground.scope, sender=sender["id"], recipient=recipient["id"], content="words",
            read=read, created_at=at,
        )  # fmt: skip
    for key, owner in (("mine", "identity:ours"), ("everybody's", None), ("theirs", "identity:theirs")):
        ground.add("kv", scope=ground.scope, key=key, value="1", owner_identity=owner, updated_at=now)
    ground.add("kv", scope="/elsewhere", key="other", value="1", updated_at=now)
    return ground


def test_status_lists_the_uncommitted_files_of_sessions_and_of_a_person(world: World) -> None:
    agent = world.session("codex", "agent0")
    agent.edit("notes.md", "alpha", "AGENT")
    world.write("other.md", "a person's\n")
    world.write("sub/deep.md", world.read("sub/deep.md") + "a person's\n")
    agent.edit("sub/deep.md", "alpha", "AGENT")
    world.write("made.md", "a person's\n")
    found = {
        (os.path.basename(one["file"]), one["instance_id"]): one for one in world.swarm("status").json["uncommitted"]
    }
    assert set(found) == {
        ("notes.md", agent.id), ("sub/deep.md"[4:], agent.id), ("other.md", None), ("deep.md", None), ("made.md", None),
    }  # fmt: skip
    assert found["other.md", None]["name"] == "a person" and found["other.md", None]["at"] > time.time() - 600
    listed = [line for line in world.ground.swarm("status").out.splitlines() if "not committed, by " in line]
    assert {line.partition(":")[0].split()[3] for line in listed} == {"a", "agent0"}, listed
    (persons,) = [line for line in listed if "by a person: " in line]
    assert set(persons.partition(": ")[2].split(", ")) == {"made.md", "sub/deep.md", "other.md"}
    of_person = {(str(world.repo / name), "a person") for name in ("made.md", "sub/deep.md", "other.md")}
    with world.store() as store:
        assert of_person < {(one.path, one.name) for one in work(store, str(world.repo), People(store)).edits}, (
            "the page"
        )
    shown = Reader(str(world.repo), SimpleNamespace(value=lambda _name: "")).read(Wish())
    (table,) = [one for one in shown.tables if one.name == "Uncommitted"]
    assert of_person < {(row.file, row.cells[1]) for row in table.rows}, "the full screen"
    world.commit()
    assert world.swarm("status").json["uncommitted"] == []


def test_status_counts_tasks_messages_and_values(checkout: Ground):
    found = checkout.swarm("status", "--json").json
    assert len(found["instances"]) == 3 and len(found["locks"]) == 1
    tasks = {status: number for status, number in found["tasks"].items() if number}
    assert tasks == {"open": 3, "in_progress": 1, "done": 1, "failed": 1}
    assert set(found["tasks"]) == {
        "open", "claimed", "in_progress", "done", "failed", "cancelled", "blocked", "approval_required",
    }  # fmt: skip
    assert found["open_tasks"] == {"open": 3, "in_progress": 1}
    assert found["messages"] == {"unread": 3, "recent": 3}
    assert found["values"] == 3


def test_status_in_words_has_the_same_numbers(checkout: Ground):
    lines = checkout.swarm("status").out.splitlines()
    assert lines[1] == "3 sessions, 1 lock, 3 values"
    assert lines[2] == "tasks: 3 open, 1 in_progress, 1 done, 1 failed"
    assert lines[3] == "messages: 3 unread, 3 in the last day"


def test_another_identity_is_not_counted(checkout: Ground, monkeypatch):
    monkeypatch.setenv("SWARM_MCP_IDENTITY", "ours")
    monkeypatch.setenv("AGENT_IDENTITY", "ours")
    found = checkout.swarm("status", "--json").json
    assert found["tasks"]["open"] == 2
    assert found["messages"] == {"unread": 2, "recent": 2}
    assert found["values"] == 2


def test_an_empty_checkout_counts_nothing(ground: Ground):
    ground.session("me")
    found = ground.swarm("status", "--json").json
    assert not any(found["tasks"].values()) and found["messages"] == {"unread": 0, "recent": 0} and found["values"] == 0
    assert "\ntasks: none\nmessages: 0 unread, 0 in the last day\n" in ground.swarm("status").out
