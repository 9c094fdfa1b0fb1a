"""Due rows are removed, all others stay, and a dry run lists them without removing any."""

import json
import time

import pytest
from support import many_processes as crowd
from support.fixtures import Ground, Sleeper
from support.query_plans import scans

from swarm_mcp.cli.commands.doctor import COUNTERS
from swarm_mcp.store import Store, cleanup
from swarm_mcp.store.database import Database

pytestmark = pytest.mark.slow

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
            ("tasks", {"id": f"blocked{scope}", "type": "fix", "title": "", "requester": "x", "status": "blocked", "assignee": gone,
                       "depends_on": f'["open{scope}"]'}),
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
        with ground.store() as store, store.database.writing():
            for table, row in rows:
                columns = {"scope": scope, **row}
                marks = ", ".join("?" * len(columns))
                store.database.change(
                    f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})", tuple(columns.values())
                )
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
        f"{scope}:{key}"
        for scope in ("/a", "/b")
        for key in ("progress/nobody", "plan/nobody", "identity/herdr/nobody")
    )
    left = everything(cluttered)
    assert {row["id"][:4] for row in left["instances"]}.isdisjoint({"gone"}) and len(left["instances"]) == 2
    assert sorted(row["file"] for row in left["context"]) == sorted(
        ["/a/kept", "/b/kept", *["/__swarm/spawn/new"] * 2, *["/aaswarm/file"] * 2]
    )
    mail = [row["content"] for row in left["messages"]]
    assert mail[:2] == ["new"] * 2
    assert len(mail) == 4 and all(text.startswith("[auto]") and "claimed/" in text for text in mail[2:])
    assert {row["id"]: (row["status"], row["assignee"]) for row in left["tasks"] if row["scope"] == "/a"} == {
        "young/a": ("failed", None), "open/a": ("open", None), "claimed/a": ("open", None), "blocked/a": ("blocked", None),
    }  # fmt: skip
    assert {row["key"].partition("/")[0] for row in left["kv"]} == {"progress", "plan", "config"}
    assert len([row for row in left["kv"] if row["scope"] == "/a"]) == 4
    events = {row["type"] for row in left["events"] if row["type"].startswith("cleanup.")}
    assert events == {
        f"cleanup.{what}_deleted"
        for what in (
            "orphan_locks",
            "terminal_spawn_locks",
            "messages",
            "terminal_tasks",
            "non_lock_context_rows",
            "events",
            "kv",
        )
    }


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


def test_one_scope_leaves_the_others_alone(cluttered: Ground, monkeypatch: pytest.MonkeyPatch):
    def of_b() -> dict:
        rows = {
            table: [row for row in rows if row.get("scope") == "/b"] for table, rows in everything(cluttered).items()
        }
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
    assert done.splitlines()[1:] == [f"  {words}: {2 * EXPECTED[name]}" for name, words in COUNTERS.items()]


def test_nothing_of_a_quiet_live_session_falls_due(ground: Ground):
    with Sleeper() as client:
        row = ground.session("s", client=client.identity)
        ground.lock(row, "f")
        ground.backdate(row, 20 * HOUR)
        before = everything(ground)
        report = ground.swarm("cleanup", "--json").json
        assert sum(value for name, value in report.items() if name in EXPECTED) == 0
        assert everything(ground) == before


def later(monkeypatch, seconds: float) -> None:
    """Let the store's clock be that much ahead."""
    moved = time.time() + seconds
    monkeypatch.setattr(Database, "now", lambda self: int(moved))


def overdue(ground: Ground) -> None:
    """It is time for a pass, although a registration has just made one."""
    ground.sql("DELETE FROM swarm_upkeep WHERE what = 'pass'")


def pile_up(ground: Ground, rows: int) -> None:
    """Add so many due rows of each kind, and so many locks of a live session; then let a pass be due."""
    live = ground.session("s")
    overdue(ground)
    numbers = f"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows})"
    with ground.store() as store, store.database.writing():
        for sql in (
            "INSERT INTO messages (scope, sender, recipient, content, created_at) SELECT '/s', 'x', 'y', 'old', i FROM n",
            "INSERT INTO events (scope, type, created_at) SELECT '/s', 'kv.set', i FROM n",
            "INSERT INTO tasks (id, scope, type, title, requester, status, updated_at)"
            " SELECT printf('t%08d', i), '/s', 'fix', '', 'x', 'done', i FROM n",
            "INSERT INTO context (id, scope, instance_id, file, type, content, path_key)"
            " SELECT printf('o%08d', i), '/s', printf('nobody-%08d', i), '/s/o' || i, 'lock', '', '/s/o' || i FROM n",
            "INSERT INTO context (id, scope, instance_id, file, type, content)"
            " SELECT printf('n%08d', i), '/s', 'x', '/s/n', 'note', '' FROM n",
            "INSERT INTO kv (scope, key, value, updated_at) SELECT '/s', 'progress/' || i, '1', i FROM n",
            "INSERT INTO swarm_denials (instance_id, path_key, scope, file, holder_id, denied_at)"
            " SELECT 'i' || i, '/f', '/s', '/f', 'x', i FROM n",
            "INSERT INTO swarm_deliveries (message_id, host, pid, start, taken_at) SELECT i + 5000000, 'h', 1, 's', 1 FROM n",
        ):
            store.database.change(f"{numbers} {sql}")
        store.database.change(
            f"{numbers} INSERT INTO context (id, scope, instance_id, file, type, content, path_key)"
            f" SELECT printf('l%08d', i), '/s', '{live['id']}', '/s/l' || i, 'lock', '', '/s/l' || i FROM n"
        )


PILES = {
    "messages": "content = 'old'", "events": "type = 'kv.set'", "tasks": "1", "context": "type = 'note'", "kv": "1",
    "swarm_denials": "1", "swarm_deliveries": "1",
}  # fmt: skip


def left(ground: Ground) -> dict[str, int]:
    counts = {
        table: ground.sql(f"SELECT count(*) AS n FROM {table} WHERE {what}")[0]["n"] for table, what in PILES.items()
    }
    counts["orphans"] = ground.sql("SELECT count(*) AS n FROM context WHERE id LIKE 'o%'")[0]["n"]
    counts["locks"] = ground.sql("SELECT count(*) AS n FROM context WHERE id LIKE 'l%'")[0]["n"]
    return counts


def test_a_pass_takes_a_little_of_each_kind_and_the_next_one_more(ground: Ground, monkeypatch, store: Store):
    pile_up(ground, 3 * cleanup.AT_ONCE)
    before = left(ground)
    for number in (1, 2, 3):
        later(monkeypatch, number * cleanup.PAUSE_SECONDS)
        assert store.cleanup.some()
        taken = {kind: before[kind] - count for kind, count in left(ground).items()}
        assert taken.pop("locks") == 0
        assert 0 <= number * cleanup.AT_ONCE - taken.pop("orphans") <= number  # the live holder was looked at too
        assert taken == dict.fromkeys(taken, number * cleanup.AT_ONCE)
    assert ground.integrity() == "ok"


def test_a_pass_says_what_it_removed(ground: Ground, store: Store):
    pile_up(ground, 1)
    assert store.cleanup.some()
    rows = ground.sql("SELECT type, payload FROM events WHERE type LIKE 'cleanup.%'")
    told = {row["type"]: row["payload"] for row in rows}
    assert set(told) == {
        f"cleanup.{what}_deleted"
        for what in ("orphan_locks", "messages", "terminal_tasks", "non_lock_context_rows", "events", "kv")
    }
    assert {(json.loads(payload)["count"], json.loads(payload)["mode"]) for payload in told.values()} == {
        (1, "periodic")
    }


def test_passes_are_rare_and_closer_together_while_something_is_left(ground: Ground, monkeypatch: pytest.MonkeyPatch):
    pile_up(ground, cleanup.AT_ONCE)
    with ground.store() as store, ground.store() as other:
        assert [store.cleanup.some(), other.cleanup.some(), store.cleanup.some()] == [True, False, False]
        later(monkeypatch, cleanup.BACKLOG_SECONDS + 1)  # it took all it may take, so there may be more
        assert [other.cleanup.some(), store.cleanup.some()] == [True, False]
        later(monkeypatch, 2 * cleanup.BACKLOG_SECONDS + 2)
        assert not store.cleanup.some()
        later(monkeypatch, cleanup.PAUSE_SECONDS + cleanup.BACKLOG_SECONDS + 2)
        assert store.cleanup.some()
        later(monkeypatch, -9 * DAY)  # a clock that was set back must not end housekeeping for days
        assert store.cleanup.some()


def test_a_pass_never_reads_a_whole_table(ground: Ground, store: Store):
    pile_up(ground, 2 * cleanup.AT_ONCE)
    found = scans(store, store.cleanup.some)
    # Reading the whole of an index with nothing but wanted rows is no reading of the table.
    small = ("swarm_legacy_idx", "swarm_task_waiting_idx")
    whole = {step for step, sql in found if not any(name in step for name in small) and not sql.endswith("LIMIT 1")}
    assert whole == set() and left(ground)["messages"] < 2 * cleanup.AT_ONCE


def test_a_busy_store_is_not_waited_for(ground: Ground):
    pile_up(ground, 1)
    with Store(ground.database, busy_seconds=3600.0) as store, ground.store() as other:
        with other.database.writing():
            assert not store.cleanup.some()
        assert store.database.busy_seconds == 3600.0
        assert store.cleanup.some()


def test_many_processes_make_one_pass(ground: Ground, monkeypatch: pytest.MonkeyPatch, store: Store):
    """A pass that meets another process in the store ends there: nobody waits for it, and the next one goes on."""
    pile_up(ground, 3 * cleanup.AT_ONCE)
    body = "store = Store()\ngate()\nreport(store.cleanup.some())"
    assert sum(member.reports[0] for member in crowd.run(body, [None] * 8)) <= 1
    before = left(ground)["messages"]
    assert before >= 2 * cleanup.AT_ONCE
    later(monkeypatch, cleanup.PAUSE_SECONDS + 1)
    assert store.cleanup.some()
    assert left(ground)["messages"] == before - cleanup.AT_ONCE


def test_a_registration_makes_the_pass_that_is_due(ground: Ground):
    """A user of hooks and the command line only has no server for it."""
    pile_up(ground, 1)
    assert left(ground)["messages"] == 1
    ground.swarm("register", "--lease-seconds", "60")
    assert left(ground)["messages"] == 0
