"""Waiters learn of every commit by any process, soon, and at no cost while nothing happens."""

import os
import sys
import threading
import time
from pathlib import Path

import pytest
from support.fixtures import Ground
from support.many_processes import Crowd

from swarm_mcp.store import Store, driver, values
from swarm_mcp.store import changes as store_changes
from swarm_mcp.store.changes import GAP_SECONDS, POLL_SECONDS, Changes, FileEvents, events_of

pytestmark = pytest.mark.slow

WATCHED = sys.platform.startswith("linux") or sys.platform == "darwin"
KINDS = {"watched": events_of, "polled": FileEvents}


def commit(path: str) -> None:
    with Store(path) as store, store.database.writing():
        values.touch(store.database, "/s")


@pytest.fixture(params=sorted(KINDS))
def changes(request: pytest.FixtureRequest, ground: Ground):
    ground.store().close()
    with Changes(ground.database, KINDS[request.param]) as made:
        yield made


@pytest.mark.skipif(not WATCHED, reason="here nothing tells of writes, and looks are counted by time")
def test_each_commit_by_another_process_wakes_without_a_look_at_the_clock(ground: Ground, limits) -> None:
    limits(store_changes, REST_SECONDS=3600.0)
    me = ground.session("me")
    with Changes(ground.database) as changes:
        for number in range(5):
            done = ground.process("kv", "set", "k", str(number), "--as", me["id"])
            assert done.code == 0, done.err
            assert changes.wait(60) is True
            while changes.wait(0.3):  # a command may commit more than once
                pass


def test_the_system_is_asked_to_tell(ground: Ground) -> None:
    ground.store().close()
    with Changes(ground.database) as changes:
        assert (changes._events.rest > POLL_SECONDS) is WATCHED


def test_waiting_costs_nothing(ground: Ground) -> None:
    ground.store().close()
    with Changes(ground.database) as changes:
        changes.wait(0.1)
        before = time.process_time()
        assert changes.wait(3) is False
        assert time.process_time() - before < 0.03


def test_a_flood_is_one_piece_of_news_at_a_time(ground: Ground) -> None:
    ground.store().close()
    body = """
from swarm_mcp.store import values
store = Store(arguments["path"])
gate()
end = time.monotonic() + 0.6
while time.monotonic() < end:
    with store.database.writing():
        values.touch(store.database, "/s")
"""
    with Changes(ground.database) as changes, Crowd(body, [{"path": ground.database}]) as crowd:
        crowd.start()
        begun, answers = time.monotonic(), 0
        while changes.wait(0.5):
            answers += 1
        took = time.monotonic() - begun
        assert all(member.code == 0 for member in crowd.finish())
    assert 1 < answers <= took / GAP_SECONDS + 1


def test_what_is_rolled_back_wakes_nobody(changes: Changes) -> None:
    with pytest.raises(KeyError), Store(changes.path) as store:
        # Until now only opened: that is no change either.
        with store.database.writing():
            values.touch(store.database, "/s")
            raise KeyError
    assert changes.wait(0.3) is False


def test_a_store_that_comes_later(ground: Ground) -> None:
    assert not os.path.exists(os.path.dirname(ground.database))
    with Changes(ground.database) as changes:
        assert changes.wait(0.1) is False
        ground.store().close()
        assert changes.wait(60) is True
        while changes.wait(0.3):  # the making of a store is several commits
            pass
        commit(ground.database)
        assert changes.wait(60) is True


@pytest.mark.parametrize("how", ["file", "folder"])
def test_a_store_that_is_replaced(ground: Ground, how: str) -> None:
    ground.store().close()
    with Changes(ground.database) as changes:
        folder = Path(ground.database).parent
        if how == "folder":
            folder.rename(folder.with_name("old"))
        else:
            for path in folder.iterdir():
                path.rename(path.with_name("old-" + path.name))
        ground.store().close()
        assert changes.wait(60) is True
        while changes.wait(0.3):
            pass
        commit(ground.database)
        assert changes.wait(60) is True


@pytest.mark.sampled
@pytest.mark.parametrize("mode", ["DELETE", "TRUNCATE", "WAL"])
def test_any_kind_of_journal(ground: Ground, mode: str) -> None:
    ground.store().close()
    connection = driver.load().connect(ground.database, isolation_level=None)
    assert connection.execute(f"PRAGMA journal_mode = {mode}").fetchone()[0] == mode.lower()
    connection.close()
    with Changes(ground.database) as changes:
        for _ in range(5):
            commit(ground.database)
            assert changes.wait(60) is True
            assert changes.wait(0.3) is False, "a commit is told once"


def test_reading_does_not_disturb_a_writer_of_a_rollback_journal(ground: Ground) -> None:
    ground.store().close()
    ground.sql("PRAGMA journal_mode = DELETE")
    with Changes(ground.database) as changes:
        holder = driver.load().connect(ground.database, isolation_level=None)
        holder.execute("BEGIN EXCLUSIVE")
        holder.execute("INSERT INTO kv (scope, key, value) VALUES ('s', 'k', '')")
        assert changes.wait(0.2) is False, "it cannot look, and does not fail"
        holder.execute("COMMIT")
        holder.close()
        assert changes.wait(60) is True


def test_stop_ends_a_wait_without_end(changes: Changes) -> None:
    answers: list[bool] = []
    waiter = threading.Thread(target=lambda: answers.append(changes.wait(None)))
    waiter.start()
    time.sleep(0.1)
    changes.stop()
    waiter.join(60)
    assert answers == [False]
    commit(changes.path)
    assert changes.wait(60) is False, "and all that come later"


def test_nothing_is_left_open(ground: Ground) -> None:
    ground.store().close()
    if not os.path.isdir("/proc/self/fd"):
        pytest.skip("counts open files where the system lists them, in /proc")
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        changes = Changes(ground.database)
        changes.wait(0)
        changes.close()
    assert len(os.listdir("/proc/self/fd")) == before


def test_where_the_system_gives_no_more_watches(ground: Ground, failing) -> None:
    for kind in ("Inotify", "Kqueue"):
        failing(store_changes, kind, OSError(24, "inotify_init1"))
    ground.store().close()
    with Changes(ground.database) as changes:
        assert changes._events.rest == POLL_SECONDS
        commit(ground.database)
        assert changes.wait(60) is True
