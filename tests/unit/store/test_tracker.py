"""The work tracker as shared values have it."""

from __future__ import annotations

import json
import time

import pytest
from support.fixtures import Ground

from swarm_mcp.errors import SwarmError


def configure(ground: Ground, name: str, value: str, owner: str | None = None) -> None:
    ground.sql(
        "INSERT INTO kv (scope, key, value, owner_identity, updated_at) VALUES (?, ?, ?, ?, 77)",
        ground.scope, f"config/work_tracker/{name}", value, owner,
    )  # fmt: skip


def test_an_identitys_own_tracker_comes_before_the_default(ground: Ground) -> None:
    row = ground.session("s", "identity:p")
    with ground.store() as store:
        assert store.tracker.of(row) is None
        configure(ground, "default", "linear:server")
        found = {"key": "config/work_tracker/default", "value": "linear:server", "updated_at": 77}
        assert store.tracker.of(row) == found
        configure(ground, "p", '{"provider": "jira"}', "identity:q")
        found = {"key": "config/work_tracker/p", "value": {"provider": "jira"}, "updated_at": 77}
        assert store.tracker.of(row) == found


def test_a_session_without_identity_has_the_default_tracker(ground: Ground) -> None:
    row = ground.session("s")
    with ground.store() as store:
        configure(ground, "", "wrong")
        configure(ground, "default", '"quoted"')
        assert store.tracker.of(row)["value"] == "quoted"


def test_a_link_is_a_shared_value(ground: Ground) -> None:
    row = ground.session("s", "identity:p")
    before = time.time() * 1000
    with ground.store() as store:
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
def test_a_link_needs_an_identity_and_a_provider(ground: Ground, label: str, provider: str) -> None:
    row = ground.session("s", label)
    with ground.store() as store:
        with pytest.raises(SwarmError):
            store.tracker.link(row, provider, "t1", "ENG-1")
        assert store.tracker.entry(row, provider, "t1") is None


@pytest.mark.parametrize("value", ["not json", "[1]", '{"identifier": 3}', "{}"])
def test_a_link_that_somebody_spoiled_is_none(ground: Ground, value: str) -> None:
    row = ground.session("s", "identity:p")
    ground.add("kv", scope=ground.scope, key="tracker/linear/p/t1", value=value)
    with ground.store() as store:
        assert store.tracker.entry(row, "linear", "t1") is None
