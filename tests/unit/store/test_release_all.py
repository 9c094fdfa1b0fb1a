"""All locks of a session, or of one of its agents, given up at once."""

import pytest
from support.fixtures import Ground

from swarm_mcp.store import Store
from swarm_mcp.store.lock_request import request

pytestmark = pytest.mark.slow


def test_all_of_a_session_go_and_nothing_else(ground: Ground, store: Store):
    me, other = ground.session("1", "me"), ground.session("2", "other")
    for file in ("a", "b/", "/__swarm/spawn/x"):
        ground.lock(me, file)
    ground.lock(other, "theirs")
    store.locks.acquire_all(me, request(me, ["*.sql"], as_pattern=True))
    store.locks.acquire_all(me, request(me, ["mine"], agent="a1"))
    assert sorted(store.locks.release_all(me)) == [f"{ground.scope}/{file}" for file in ("*.sql", "a", "b")]
    assert store.locks.release_all(me) == []
    assert [lock.file for lock in store.locks.of(me["id"])] == ["/__swarm/spawn/x", f"{ground.scope}/mine"]
    assert store.locks.release_all(me, "a1") == [f"{ground.scope}/mine"]
    assert len(store.locks.of(other["id"])) == 1
