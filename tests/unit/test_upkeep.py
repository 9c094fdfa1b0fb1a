"""What falls due with time goes, nothing else does, and a dry run says so without doing it."""

from __future__ import annotations

import time

import pytest
from ground import Ground, Sleeper

from swarm_mcp.cli.commands.cleanup import COUNTERS

HOUR, DAY = 3600, 86400
TABLES = ("instances", "swarm_sessions", "messages", "tasks", "context", "events", "kv", "kv_scope_updates")


def everything(ground: Ground) -> dict:
    return {table: ground.sql(f"SELECT * FROM {table} ORDER BY 1, 2") for table in TABLES}


@pytest.fixture
def cluttered(ground: Ground) -> Ground:
    """A store with one of everything that is due, beside one that is not, in the scopes /a and /b."""
    now = int(time.time())
    sessions = {scope: ground.session(f"live{scope}", directory=scope) for scope in ("/a", "/b")}
    for scope, live in sessions.items():
        ground.lock(live, f"{scope}/kept")
    for scope, live in sessions.items():
        gone = ground.stranger(f"gone{scope}", scope, heartbeat=now - 61)
        rows = [
            ("context", {"id": f"1{scope}", "instance_id": gone, "file": f"{scope}/gone", "type": "lock", "content": ""}),
            ("context", {"id": f"2{scope}", "instance_id": "nobody", "file": f"{scope}/orphan", "type": "lock", "content": ""}),
            ("context", {"id": f"3{scope}", "instance_id": live["id"], "file": f"{scope}/x", "type": "note", "content": ""}),
            ("context", {"id": f"4{scope}", "instance_id": live["id"], "file": "/__swarm/spawn/old", "type": "lock",
                         "content": "", "task_id": f"young{scope}"}),
            ("context", {"id": f"5{scope}", "instance_id": live["id"], "file": "/__swarm/spawn/new", "type": "lock",
                         "content": "", "task_id": f"open{scope}"}),
            ("context", {"id": f"6{scope}", "instance_id": live["id"], "file": "/aaswarm/file", "type": "lock",
                         "content": "", "task_id": f"young{scope}"}),
            ("messages", {"sender": "x", "recipient": live["id"], "content": "old", "created_at": now - HOUR - 5}),
            ("messages", {"sender": "x", "recipient": live["id"], "content": "new", "created_at": now - HOUR + 60}),
            ("messages", {"sender": "x", "recipient": gone, "content": "to the gone", "created_at": now}),
            ("tasks", {"id": f"old{scope}", "type": "fix", "title": "", "requester": "x", "status": "done",
                       "updated_at": now - DAY - 5}),
            ("tasks", {"id": f"young{scope}", "type": "fix", "title": "", "requester": "x", "status": "failed",
                       "updated_at": now - DAY + 60}),
            ("tasks", {"id": f"open{scope}", "type": "fix", "title": "", "requester": "x", "status": "open",
                       "updated_at": now - 9 * DAY}),
            ("tasks", {"id": f"claimed{scope}", "type": "fix", "title": "", "requester": "x", "status": "claimed", "assignee": gone}),
            ("tasks", {"id": f"blocked{scope}", "type": "fix", "title": "", "requester": "x", "status": "blocked", "assignee": gone}),
            ("events", {"type": "kv.set", "created_at": now - DAY - 5}),
            ("events", {"type": "kv.set", "created_at": now - DAY + 60}),
            ("kv", {"key": "progress/nobody", "value": "", "updated_at": now - HOUR - 5}),
            ("kv", {"key": "progress/fresh", "value": "", "updated_at": now - HOUR + 60}),
            ("kv", {"key": f"progress/{live['id']}", "value": "", "updated_at": now - 9 * HOUR}),
            ("kv", {"key": "plan/nobody", "value": "", "updated_at": now - 2 * HOUR}),
            ("kv", {"key": "plan/latest", "value": "", "updated_at": now - 9 * HOUR}),
            ("kv", {"key": "config/x", "value": "", "updated_at": now - 9 * HOUR}),
            ("kv", {"key": "identity/herdr/nobody", "value": "", "updated_at": now - 2 * HOUR}),
            ("kv", {"key": f"identity/workspace/herdr/{gone}", "value": "", "updated_at": now}),
        ]  # fmt: skip
        with ground.store() as store, store.writing():
            for table, row in rows:
                columns = {"scope": scope, **row}
                marks = ", ".join("?" * len(columns))
                store.change(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})", tuple(columns.values()))
    return ground


EXPECTED = {
    "instances_reclaimed": 1, "tasks_reopened": 1, "task_assignees_cleared": 1, "locks_deleted": 2,
    "terminal_spawn_locks_deleted": 1, "messages_deleted": 1, "terminal_tasks_deleted": 1,
    "non_lock_context_rows_deleted": 1, "events_deleted": 1, "kv_deleted": 3, "identity_rows_deleted": 1,
}  # fmt: skip


def test_what_is_due_goes_and_is_counted(cluttered: Ground):
    report = cluttered.swarm("cleanup", "--json").json
    assert {name: report[name] for name in EXPECTED} == {name: 2 * count for name, count in EXPECTED.items()}
    assert (report["dry_run"], report["mode"], report["scope"]) == (False, "manual", None)
    assert abs(report["at"] - time.time()) < 60
    assert sorted(report["kv_keys_deleted"]) == sorted(
        f"{scope}:{key}" for scope in ("/a", "/b") for key in ("progress/nobody", "plan/nobody", "identity/herdr/nobody")
    )
    left = everything(cluttered)
    assert {row["id"][:4] for row in left["instances"]}.isdisjoint({"gone"}) and len(left["instances"]) == 2
    assert sorted(row["file"] for row in left["context"]) == sorted(
        ["/a/kept", "/b/kept", *["/__swarm/spawn/new"] * 2, *["/aaswarm/file"] * 2]
    )
    assert [row["content"] for row in left["messages"]] == ["new"] * 2
    assert {row["id"]: (row["status"], row["assignee"]) for row in left["tasks"] if row["scope"] == "/a"} == {
        "young/a": ("failed", None), "open/a": ("open", None), "claimed/a": ("open", None), "blocked/a": ("blocked", None),
    }  # fmt: skip
    assert {row["key"].partition("/")[0] for row in left["kv"]} == {"progress", "plan", "config"}
    assert len([row for row in left["kv"] if row["scope"] == "/a"]) == 4
    events = {row["type"] for row in left["events"] if row["type"].startswith("cleanup.")}
    assert events == {
        f"cleanup.{what}_deleted"
        for what in ("orphan_locks", "terminal_spawn_locks", "messages", "terminal_tasks", "non_lock_context_rows", "events", "kv")
    }


def test_a_second_cleaning_finds_nothing(cluttered: Ground):
    cluttered.swarm("cleanup")
    report = cluttered.swarm("cleanup", "--json").json
    assert {name: report[name] for name in EXPECTED} == dict.fromkeys(EXPECTED, 0)


@pytest.mark.parametrize("scope", [[], ["--scope", "/a"]])
def test_a_dry_run_tells_the_same_and_changes_nothing(cluttered: Ground, scope: list[str]):
    before = everything(cluttered)
    told = cluttered.swarm("cleanup", "--dry-run", "--json", *scope).json
    assert everything(cluttered) == before
    done = cluttered.swarm("cleanup", "--json", *scope).json
    assert told.pop("dry_run") is True and done.pop("dry_run") is False
    del told["at"], done["at"]
    assert told == done
    assert everything(cluttered) != before


def test_one_scope_leaves_the_others_alone(cluttered: Ground, monkeypatch):
    def of_b() -> dict:
        rows = {table: [row for row in rows if row.get("scope") == "/b"] for table, rows in everything(cluttered).items()}
        return {table: found for table, found in rows.items() if found}

    before = of_b()
    assert len(before) >= 6
    monkeypatch.setenv("SWARM_MCP_SCOPE", "/a")
    report = cluttered.swarm("cleanup", "--json").json
    assert report["scope"] == "/a"
    assert {name: report[name] for name in EXPECTED} == EXPECTED
    assert of_b() == before


def test_text_has_a_heading_and_the_counters(cluttered: Ground):
    told, done = cluttered.swarm("cleanup", "--dry-run").out, cluttered.swarm("cleanup").out
    assert told.splitlines()[0] == "would clean all scopes" and done.splitlines()[0] == "cleaned all scopes"
    assert told.splitlines()[1:] == done.splitlines()[1:]
    assert len(done.splitlines()) == 1 + len(COUNTERS)
    assert all(f"  {name.replace('_', ' ')}: {2 * EXPECTED[name]}" in done for name in COUNTERS)


def test_a_killed_session_is_counted_and_its_clock_moves(ground: Ground):
    with Sleeper() as client:
        row = ground.session("s", client=client.identity)
        ground.lock(row, "f")
        ground.add("kv", scope=ground.scope, key=f"identity/workspace/herdr/{row['id']}", value="{}")
    before = ground.sql("SELECT changed_at FROM kv_scope_updates")
    report = ground.swarm("cleanup", "--json").json
    assert (report["instances_reclaimed"], report["locks_deleted"], report["identity_rows_deleted"]) == (1, 1, 1)
    assert ground.sql("SELECT changed_at FROM kv_scope_updates") != before
    assert ground.sql("SELECT * FROM swarm_sessions") == []


def test_nothing_of_a_quiet_live_session_falls_due(ground: Ground):
    with Sleeper() as client:
        row = ground.session("s", client=client.identity)
        ground.lock(row, "f")
        ground.backdate(row, 20 * HOUR)
        before = everything(ground)
        report = ground.swarm("cleanup", "--json").json
        assert sum(value for name, value in report.items() if name in EXPECTED) == 0
        assert everything(ground) == before
