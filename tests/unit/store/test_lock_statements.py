"""The number of statements of an uncontended lock: all other sessions wait for each of them."""

import pytest
from support.fixtures import Ground

from swarm_mcp.store import Store
from swarm_mcp.store.lock_request import request
from swarm_mcp.store.session_life import SIGN_SECONDS

ACQUIRE, RELEASE, EACH_MORE = 6, 5, 3


class Counted:
    """The statements of a store, as SQLite traces them: with BEGIN and COMMIT."""

    def __init__(self, store: Store):
        self.store = store
        self.seen: list[str] = []

    def __enter__(self) -> list[str]:
        self.store.database.connection.set_trace_callback(self.seen.append)
        return self.seen

    def __exit__(self, *_exception) -> None:
        self.store.database.connection.set_trace_callback(None)


@pytest.fixture
def me(ground: Ground) -> dict:
    (ground.repo / "src").mkdir(parents=True, exist_ok=True)
    return ground.session("me")


def elsewhere(ground: Ground) -> None:
    """Others hold much, but nothing that is asked for here."""
    other = ground.session("other")
    with ground.store() as store:
        for number in range(20):
            store.locks.acquire(other, f"src/theirs_{number}.py")
        store.locks.acquire_all(other, request(other, ["docs/**/*.md"]))
        store.locks.acquire_all(other, request(other, ["src/shared.py"], mode="shared", ttl=60.0))


@pytest.mark.parametrize("beside_others", [False, True])
@pytest.mark.parametrize("file", ["src/a.py", "new/folder/b.py", "src/"])
def test_an_acquire_that_meets_nothing_and_its_release(
    ground: Ground, store: Store, me, file: str, beside_others: bool
):
    if beside_others and file != "src/":
        elsewhere(ground)
    for _ in range(2):
        with Counted(store) as acquired:
            lock = store.locks.acquire(me, file, note="why")
        with Counted(store) as released:
            assert store.locks.release(me, file, "", lock.fence) == 1
        assert (len(acquired), len(released)) == (ACQUIRE, RELEASE), [*acquired, *released]


def test_beside_ones_own_locks_in_the_same_folder(ground: Ground, me):
    ground.lock(me, "src/")
    with ground.store() as store, Counted(store) as seen:
        store.locks.acquire(me, "src/a.py")
    assert len(seen) == ACQUIRE, seen


def test_a_lease_and_an_agent_cost_nothing_more(store: Store, me):
    wanted = request(me, ["src/a.py"], ttl=60.0, agent="one")
    with Counted(store) as acquired:
        store.locks.acquire_all(me, wanted)
    with Counted(store) as released:
        assert store.locks.release(me, "src/a.py", "one") == 1
    assert (len(acquired), len(released)) == (ACQUIRE, RELEASE)


def test_several_at_once_are_asked_about_together(ground: Ground, me):
    names = [f"src/{number}.py" for number in range(5)]
    with ground.store() as store, Counted(store) as seen:
        store.locks.acquire_all(me, request(me, names))
    assert len(seen) == ACQUIRE + EACH_MORE * 4, seen


def test_waiters_that_have_gone_cost_one_acquire_something_and_none_after_it(ground: Ground, me):
    gone = ground.session("gone")
    with ground.store() as store:
        store.queue.join(gone, request(gone, ["elsewhere"]), None)
    ground.sql("UPDATE swarm_waiters SET start = 'of another process'")
    with ground.store() as store:
        store.locks.acquire(me, "src/a.py")
        assert ground.sql("SELECT * FROM swarm_waiters") == []
        with Counted(store) as seen:
            store.locks.acquire(me, "src/b.py")
    assert len(seen) == ACQUIRE, seen


def test_a_sign_of_life_is_written_down_now_and_then(ground: Ground, me, monkeypatch):
    with ground.store() as store:
        began = store.now()
        monkeypatch.setattr(type(store.database), "now", lambda _self: began + SIGN_SECONDS + 1)
        with Counted(store) as seen:
            store.locks.acquire(me, "src/a.py")
        assert len(seen) == ACQUIRE + 2, seen
    (row,) = ground.sql("SELECT last_seen FROM swarm_sessions")
    assert row["last_seen"] == began + SIGN_SECONDS + 1


def test_a_release_by_fence_leaves_what_another_agent_holds(store: Store, me):
    (one,) = store.locks.acquire_all(me, request(me, ["f"], agent="one", mode="shared"))
    (two,) = store.locks.acquire_all(me, request(me, ["f"], agent="two", mode="shared"))
    assert store.locks.release(me, "f", "", one.fence) == 1
    assert [lock.fence for lock in store.locks.of(me["id"])] == [two.fence]
