"""Values with a meaning to the coordinator: the planner that owns a scope's plan, and a task's entry in a work tracker."""

import json
import time

import pytest
from support import many_processes as crowd
from support.fixtures import Ground, Sleeper

from swarm_mcp.errors import SwarmError
from swarm_mcp.store import Store

KEY = "owner/planner"


def owner(ground: Ground, scope: str = "") -> str | None:
    """The instance that the key names."""
    rows = ground.sql("SELECT value FROM kv WHERE scope = ? AND key = ?", scope or ground.scope, KEY)
    return json.loads(rows[0]["value"])["instance_id"] if rows else None


def test_the_first_planner_takes_the_plan_and_a_second_leaves_it_alone(ground: Ground):
    ground.session("w", "role:implementer")
    assert owner(ground) is None
    before = int(time.time() * 1000)
    first = ground.session("1", "identity:a role:planner mode:gateway")
    (row,) = ground.sql("SELECT * FROM kv")
    value = json.loads(row["value"])
    assert list(value) == ["instance_id", "label", "assigned_at"]
    assert (value["instance_id"], value["label"]) == (first["id"], first["label"])
    assert before <= value["assigned_at"] <= time.time() * 1000
    assert row["owner_identity"] is None, "every identity can read who plans"
    ground.session("2", "identity:b role:planner")
    ground.session("1", "identity:a role:planner mode:gateway")
    assert ground.sql("SELECT * FROM kv") == [row], "neither a rival nor a renewal touches it"
    events = ground.sql("SELECT actor, subject FROM events WHERE type LIKE 'kv.%'")
    assert events == [{"actor": None, "subject": KEY}]


@pytest.mark.parametrize("label", ["role:planners", "xrole:planner", "planner", "role:Planner", "role: planner", ""])
def test_only_the_exact_word_makes_a_planner(ground: Ground, label: str):
    ground.session("1", label)
    assert owner(ground) is None


@pytest.mark.parametrize(
    "value",
    [
        "",
        "nonsense",
        "[]",
        "7",
        "null",
        '{"instance_id": 7}',
        '{"label": "x"}',
        '{"instance_id": "nobody"}',
        "[" * 10000,
    ],
)
def test_a_value_that_names_no_planner_is_replaced(ground: Ground, value: str):
    ground.store().close()
    ground.add("kv", scope=ground.scope, key=KEY, value=value, owner_identity="identity:x")
    row = ground.session("1", "role:planner")
    assert owner(ground) == row["id"]
    assert ground.sql("SELECT owner_identity FROM kv")[0]["owner_identity"] is None


@pytest.mark.parametrize(
    ("columns", "keeps"),
    [({}, True), ({"label": "role:reviewer"}, False), ({"scope": "/else"}, False), ({"heartbeat": 1}, False)],
)
def test_the_owner_is_a_live_planner_of_the_scope(ground: Ground, columns: dict, keeps: bool):
    """Also where another implementation keeps the books."""
    ground.store().close()
    ground.stranger("them", **{"label": "role:planner", **columns})
    ground.add("kv", scope=ground.scope, key=KEY, value='{"instance_id": "them"}')
    row = ground.session("1", "role:planner")
    assert owner(ground) == ("them" if keeps else row["id"])


@pytest.mark.parametrize("way", ["deregister", "death", "foreign removal"])
def test_the_eldest_planner_follows(ground: Ground, way: str):
    with Sleeper() as client:
        first = ground.session("1", "role:planner", client=client.identity)
        ground.session("w", "role:implementer")
        younger, elder = ground.session("2", "role:planner"), ground.session("3", "identity:b role:planner")
        ground.session("far", "role:planner", scope="/far")
        ground.sql("UPDATE instances SET registered_at = registered_at - 100 WHERE id = ?", elder["id"])
        if way == "deregister":
            ground.swarm("deregister", "--runtime", "claude-code", "--session-id", "1")
    if way == "foreign removal":
        ground.sql("DELETE FROM instances WHERE id = ?", first["id"])
        assert owner(ground) == first["id"], "nobody has looked since"
        ground.session("2", "role:planner")
        assert owner(ground) == younger["id"], "the next planner to show itself takes what is nobody's"
    else:
        ground.session("another")
        assert owner(ground) == elder["id"]
        assert (
            json.loads(ground.sql("SELECT value FROM kv WHERE scope = ?", ground.scope)[0]["value"])["label"]
            == elder["label"]
        )
    assert owner(ground, "/far") is not None


def test_without_a_planner_left_the_key_goes(ground: Ground, store: Store):
    row = ground.session("1", "role:planner")
    (before,) = ground.sql("SELECT changed_at FROM kv_scope_updates")
    store.instances.remove(row["id"])
    assert owner(ground) is None
    assert ground.sql("SELECT changed_at FROM kv_scope_updates")[0]["changed_at"] > before["changed_at"]
    (event,) = ground.sql("SELECT * FROM events WHERE type = 'kv.deleted'")
    assert (event["actor"], event["subject"]) == (None, KEY)
    assert row["id"] in json.loads(event["payload"])["prior_value"]


@pytest.mark.slow
def test_one_owner_among_twelve_planners_that_come_and_go(ground: Ground):
    ground.store().close()
    body = """
store = Store()
gate()
for number in range(6):
    name = f"{arguments[1]}-{number}"
    row = store.instances.register(
        Registration(arguments[0], label="role:planner", runtime="codex", session_id=name, lease_seconds=60)
    )
    if not store.planner.owner(row["scope"]):
        report("nobody plans although I am here")
    if number < 5:
        store.instances.remove(row["id"])
report(row["id"])
"""
    members = crowd.run(body, [[ground.scope, number] for number in range(12)])
    assert [(member.code, member.err, len(member.reports)) for member in members] == [(0, "", 1)] * 12
    left = {row["id"] for row in ground.sql("SELECT id FROM instances")}
    assert left == {member.reports[0] for member in members} and owner(ground) in left


def test_a_link_is_a_shared_value(ground: Ground, store: Store) -> None:
    row = ground.session("s", "identity:p")
    before = time.time() * 1000
    assert store.tracker.entry(row, "linear", "t1") is None
    stored = store.tracker.link(row, "linear", "t1", "ENG-1", "https://tracker.example/1")
    assert store.tracker.entry(row, "linear", "t1") == stored
    plain = store.tracker.link(row, "linear", "t2", "ENG-2")
    (found, _) = ground.sql("SELECT * FROM kv WHERE key LIKE 'tracker/%' ORDER BY key")
    assert (found["key"], found["scope"]) == ("tracker/linear/p/t1", ground.scope)
    assert found["owner_identity"] == "identity:p"
    assert json.loads(found["value"]) == stored
    assert list(stored) == ["identifier", "url", "linked_at"]
    assert list(plain) == ["identifier", "linked_at"]
    assert before - 1 <= stored["linked_at"] <= time.time() * 1000 + 1


@pytest.mark.parametrize(("label", "provider"), [("role:x", "linear"), ("identity:p", "a/b"), ("identity:p", "")])
def test_a_link_needs_an_identity_and_a_provider(ground: Ground, store: Store, label: str, provider: str) -> None:
    row = ground.session("s", label)
    with pytest.raises(SwarmError):
        store.tracker.link(row, provider, "t1", "ENG-1")
    assert store.tracker.entry(row, provider, "t1") is None


@pytest.mark.parametrize("value", ["not json", "[1]", '{"identifier": 3}', "{}"])
def test_a_link_that_somebody_spoiled_is_none(ground: Ground, value: str, store: Store) -> None:
    row = ground.session("s", "identity:p")
    ground.add("kv", scope=ground.scope, key="tracker/linear/p/t1", value=value)
    assert store.tracker.entry(row, "linear", "t1") is None
