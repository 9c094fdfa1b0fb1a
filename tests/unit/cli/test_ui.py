"""Orders to a user interface: queued, waited for, listed. The interface is another process on the same file."""

import json
import time

import pytest
from support import many_processes as crowd
from support.fixtures import Ground

from swarm_mcp.store import user_interface

COLUMNS = [
    "id", "scope", "created_by", "kind", "payload", "status", "claimed_by", "result", "error", "created_at",
    "started_at", "completed_at",
]  # fmt: skip
MOVE = ("ui", "move", "--target", "n", "--x", "1", "--y", "2")

# Takes the next order as an interface does, and ends it as it is told.
INTERFACE = """
gate()
with Store() as store:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        row = store.database.row("SELECT * FROM ui_commands WHERE status = 'pending'")
        if row:
            break
        time.sleep(0.005)
    with store.database.writing():
        store.database.change(
            "UPDATE ui_commands SET status = 'running', claimed_by = 'ui', started_at = unixepoch() WHERE id = ?",
            (row["id"],),
        )
    time.sleep(arguments["seconds"])
    with store.database.writing():
        store.database.change(
            "UPDATE ui_commands SET status = ?, result = ?, error = ?, completed_at = unixepoch() WHERE id = ?",
            (arguments["status"], arguments.get("result"), arguments.get("error"), row["id"]),
        )
    report({"payload": json.loads(row["payload"])})
"""


def test_an_order_is_one_row(ground: Ground):
    ann = ground.session("1")
    done = ground.swarm(*MOVE, "--wait", "0", "--as", ann["id"])
    assert (done.code, done.out) == (0, f"#1  [pending]  move_node  scope={ground.scope}\n")
    row = ground.swarm("ui", "get", "1", "--json").json
    assert list(row) == COLUMNS
    assert row == {
        "id": 1, "scope": ground.scope, "created_by": ann["id"], "kind": "move_node",
        "payload": {"target": "n", "x": 1, "y": 2}, "status": "pending", "claimed_by": None, "result": None,
        "error": None, "created_at": row["created_at"], "started_at": None, "completed_at": None,
    }  # fmt: skip
    assert ground.swarm("ui", "list", "--json").json == [row]
    (stored,) = ground.sql("SELECT payload FROM ui_commands")
    assert json.loads(stored["payload"]) == row["payload"]


@pytest.mark.parametrize(
    "argv, kind, payload",
    [
        (["move", "--target", "n", "--x", "-1.5", "--y", "2e2"], "move_node", {"target": "n", "x": -1.5, "y": 200}),
        (["organize"], "organize_nodes", {"kind": "grid"}),
        (["organize", "--kind", "tree"], "organize_nodes", {"kind": "tree"}),
        (["prompt", "--target", "n", "say", "this"], "send_prompt", {"target": "n", "text": "say this", "enter": True}),
        (["prompt", "--target", "n", "x", "--no-enter"], "send_prompt", {"target": "n", "text": "x", "enter": False}),
        (["spawn", "/a/b/../c"], "spawn_shell", {"cwd": "/a/c"}),
        (
            ["spawn", "/a", "--harness", "codex", "--role", "reviewer", "--label", "x y"],
            "spawn_shell", {"cwd": "/a", "harness": "codex", "role": "reviewer", "label": "x y"},
        ),
    ],
)  # fmt: skip
def test_every_kind_of_order(ground: Ground, argv: list[str], kind: str, payload: dict):
    row = ground.swarm("ui", *argv, "--wait", "0", "--json").json
    assert (row["kind"], row["payload"], row["created_by"], row["scope"]) == (kind, payload, None, ground.scope)


@pytest.mark.parametrize(
    "outcome, code, lines",
    [
        ({"status": "done", "result": '{"instance_id": "i"}'}, 0, ['  result: {"instance_id": "i"}']),
        ({"status": "done", "result": "as it is"}, 0, ["  result: as it is"]),
        ({"status": "done"}, 0, []),
        ({"status": "failed", "error": "no such node"}, 1, ["  error: no such node"]),
    ],
)  # fmt: skip
def test_the_outcome_is_waited_for(ground: Ground, outcome: dict, code: int, lines: list[str]):
    ground.session("1")
    with crowd.Crowd(INTERFACE, [{"seconds": 0.2, **outcome}]) as interface:
        interface.start()
        begun = time.monotonic()
        done = ground.swarm(*MOVE, "--wait", "60")
        assert time.monotonic() - begun < 60, "it does not sit out the time it may wait"
        (member,) = interface.finish()
    assert member.err == "" and member.reports[0]["payload"] == {"target": "n", "x": 1, "y": 2}
    assert done.code == code
    assert done.out.splitlines() == [f"#1  [{outcome['status']}]  move_node  scope={ground.scope}", *lines]


def test_nobody_there_is_no_failure_and_costs_the_time_given(ground: Ground, listening):
    ground.session("1")
    looks = listening(user_interface, "get")
    begun = time.monotonic()
    done = ground.swarm(*MOVE, "--wait", "0.5", "--json")
    assert (done.code, done.json["status"]) == (0, "pending")
    assert time.monotonic() - begun >= 0.5
    assert len(looks) <= 4, "waiting is not looking again and again"


def test_only_gateways_spawn(ground: Ground, monkeypatch):
    worker, gateway = ground.session("1", "worker"), ground.session("2", "x mode:gateway")
    text = ground.swarm("ui", "spawn", "/a", "--wait", "0", "--as", worker["id"])
    assert (text.code, text.out) == (1, "") and "mode:gateway" in text.err
    refusal = ground.swarm("ui", "spawn", "/a", "--wait", "0", "--as", worker["id"], "--json")
    assert refusal.code == 1 and list(refusal.json) == ["error"]
    assert ground.sql("SELECT * FROM ui_commands") == []
    assert ground.swarm("ui", "spawn", "/a", "--wait", "0", "--as", gateway["id"]).code == 0
    monkeypatch.setenv("SWARM_MCP_ALLOW_SPAWN", "1")
    assert ground.swarm("ui", "spawn", "/a", "--wait", "0", "--as", worker["id"]).code == 0


def test_listing_by_status_scope_and_number(ground: Ground):
    assert ground.swarm("ui", "list").out == "(no ui commands)\n"
    for place in (ground.scope, ground.scope, str(ground.folder)):
        ground.swarm(*MOVE, "--wait", "0", "--scope", place)
    failed = "status = 'failed', claimed_by = 'u', completed_at = 1, error = 'why'"
    ground.sql(f"UPDATE ui_commands SET {failed} WHERE id = 1")
    assert [row["id"] for row in ground.swarm("ui", "list", "--json").json] == [2, 1]
    assert [row["id"] for row in ground.swarm("ui", "commands", "--json", "--limit", "1").json] == [2]
    assert [row["id"] for row in ground.swarm("ui", "--json", "--status", "failed").json] == [1]
    assert ground.swarm("ui", "list", "--status", "failed").out.splitlines() == [
        f"#1  [failed]  move_node  scope={ground.scope}", "  error: why",
    ]  # fmt: skip


def test_what_an_interface_wrote_may_be_anything(ground: Ground):
    ground.session("1")
    ground.swarm(*MOVE, "--wait", "0")
    ground.sql("UPDATE ui_commands SET payload = 'no json', result = '[1' WHERE id = 1")
    row = ground.swarm("ui", "get", "1", "--json").json
    assert (row["payload"], row["result"]) == ("no json", "[1")


@pytest.mark.parametrize(
    "argv",
    [
        ["zzz"], ["get"], ["get", "x"], ["get", "9" * 30], ["list", "--status", "open"], ["spawn"], ["prompt", "x"],
        ["prompt", "--target", "n"], ["move", "--x", "1", "--y", "1"], ["move", "--target", "n", "--x", "1"],
        ["move", "--target", "n", "--x", "nan", "--y", "1"], ["move", "--target", "n", "--x", "inf", "--y", "1"],
        ["organize", "--wait", "-1"], ["organize", "--as", "nobody"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_what_is_missing_or_wrong_is_said_in_one_line(ground: Ground, argv: list[str]):
    ground.session("1")
    done = ground.swarm("ui", *argv)
    code = 2 - bool({"nobody", "open"} & set(argv))
    assert (done.code, done.out) == (code, "") and len(done.err.splitlines()) == 1
    assert ground.sql("SELECT * FROM ui_commands") == []
