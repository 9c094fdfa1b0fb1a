"""The work tracker as shared values have it."""

from __future__ import annotations

import json
import time

import pytest
from support.fixtures import Ground

from swarm_mcp.errors import SwarmError


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
