"""An open store notices changes of its file, waits its turn to write, and delays no other process."""

import os
import shutil
import threading
import time
from pathlib import Path

import pytest
from support.fixtures import Ground

from swarm_mcp.errors import StoreUnavailable
from swarm_mcp.store import Store, database, driver

pytestmark = pytest.mark.slow

fcntl = pytest.importorskip("fcntl", reason="there is no line of waiting processes without POSIX locks")


def names(store: Store) -> list[str]:
    return [row["id"] for row in store.database.rows("SELECT id FROM instances ORDER BY id")]


def remove(ground: Ground) -> None:
    for path in Path(ground.database).parent.iterdir():
        path.unlink()


@pytest.mark.parametrize("read_only", [False, True])
def test_a_replaced_file_is_the_one_that_is_used(ground: Ground, read_only: bool):
    before = ground.session("before")["id"]
    kept = str(ground.folder / "kept.db")
    with ground.store(read_only) as store:
        assert names(store) == [before]
        ground.store().close()
        shutil.copy(ground.database, kept)
        remove(ground)
        after = ground.session("after")["id"]
        assert names(store) == [after]
        os.replace(kept, ground.database)
        for ending in ("-wal", "-shm"):
            Path(ground.database + ending).unlink(missing_ok=True)
        assert names(store) == [before]


def test_a_removed_file_is_made_anew_by_the_next_write(ground: Ground):
    with ground.store() as store, store.database.writing():
        pass
    with ground.store() as store:
        remove(ground)
        with store.database.writing():
            store.database.change("INSERT INTO kv (scope, key, value) VALUES ('/s', 'k', 'v')")
        assert store.kv.get("/s", "k")["value"] == "v"
    assert ground.sql("SELECT value FROM kv") == [{"value": "v"}]


def test_a_reader_takes_a_removed_file_for_an_empty_store_and_sees_it_come_back(ground: Ground):
    with ground.store(read_only=True) as store:
        assert names(store) == [] and not os.path.exists(ground.database)
        row = ground.session("s")
        assert names(store) == [row["id"]]
        remove(ground)
        assert names(store) == [] and not os.path.exists(ground.database)


def test_a_folder_that_is_gone_is_made_anew_too(ground: Ground, store: Store):
    shutil.rmtree(os.path.dirname(ground.database))
    assert names(store) == []
    assert os.path.exists(ground.database)


def test_a_file_that_was_replaced_by_a_newer_one_is_refused_until_it_is_gone(ground: Ground, store: Store):
    remove(ground)
    ground.store().close()
    ground.sql("PRAGMA user_version = 2")
    for _ in range(2):
        with pytest.raises(StoreUnavailable, match="version 2"):
            names(store)
        with pytest.raises(StoreUnavailable, match="version 2"), store.database.writing():
            raise AssertionError("a newer file was written to")
    remove(ground)
    assert names(store) == []


def in_thread(deed) -> threading.Thread:
    thread = threading.Thread(target=deed)
    thread.start()
    return thread


def test_a_writer_waits_for_another_and_then_writes_at_once(ground: Ground, store: Store):
    wrote = []

    def write() -> None:
        with ground.store() as mine, mine.database.writing():
            wrote.append(time.monotonic())

    with store.database.writing():
        thread = in_thread(write)
        time.sleep(0.5)
        assert wrote == []
        free = time.monotonic()
    thread.join()
    assert free <= wrote[0]


def test_waiting_ends_with_a_line_that_says_why(ground: Ground):
    with ground.store() as store, Store(ground.database, busy_seconds=0.3) as hasty, store.database.writing():
        begun = time.monotonic()
        with pytest.raises(StoreUnavailable) as refused, hasty.database.writing():
            raise AssertionError("two write at once")
        assert time.monotonic() - begun >= 0.3
        assert "somebody else was writing to it for 0.3 s" in str(refused.value)
        assert names(hasty) == []  # reading goes on meanwhile


def test_a_line_that_is_held_up_holds_nobody_up(ground: Ground):
    ground.store().close()
    folder = os.open(os.path.dirname(ground.database), os.O_RDONLY)
    fcntl.flock(folder, fcntl.LOCK_EX)  # another program's, for ever
    wrote = threading.Event()

    def write() -> None:
        with ground.store() as mine, mine.database.writing():
            wrote.set()

    try:
        with ground.store() as store, store.database.writing():
            threads = [in_thread(write) for _ in range(3)]
            time.sleep(0.2)
            assert not wrote.is_set()
        for thread in threads:
            thread.join(60)
        assert wrote.is_set() and not any(thread.is_alive() for thread in threads)
    finally:
        os.close(folder)


def test_those_in_line_leave_the_store_to_whose_turn_it_is(ground: Ground):
    ground.store().close()
    first = os.open(os.path.dirname(ground.database), os.O_RDONLY)
    fcntl.flock(first, fcntl.LOCK_EX)
    line = database.Line(os.path.dirname(ground.database))
    try:
        begun = time.monotonic()
        line.pause()
        assert not line.first and time.monotonic() - begun >= database.PATIENCE
    finally:
        line.leave()
        os.close(first)


def test_who_is_in_a_hurry_stands_in_line_no_longer_than_that(ground: Ground, limits):
    limits(database, PATIENCE=600.0)
    ground.store().close()
    first = os.open(os.path.dirname(ground.database), os.O_RDONLY)
    fcntl.flock(first, fcntl.LOCK_EX)
    try:
        with Store(ground.database, busy_seconds=0.1) as store, Store(ground.database, busy_seconds=3600.0) as hasty:
            with store.database.writing():
                begun = time.monotonic()
                with pytest.raises(StoreUnavailable), hasty.database.hurried(), hasty.database.writing():
                    raise AssertionError("two write at once")
                assert time.monotonic() - begun < 300, "it would stand in line for ten minutes"
    finally:
        os.close(first)


@pytest.mark.parametrize("gone", ["folder", "threads"])
def test_where_there_is_no_line_everybody_asks_for_himself(ground: Ground, failing, gone: str):
    if gone == "folder":
        failing(database.os, "open", OSError)
    else:
        failing(database._thread, "start_new_thread", RuntimeError)
    line = database.Line(str(ground.folder))
    for _ in range(3):
        line.pause()
    line.leave()
    assert line.folder == -1


def test_leaving_the_line_leaves_nothing_open(ground: Ground):
    def descriptors() -> int:
        return len(os.listdir("/dev/fd"))

    ground.store().close()
    with ground.store() as store, Store(ground.database, busy_seconds=0.05) as hasty:
        before = descriptors()
        with store.database.writing():
            for _ in range(5):
                with pytest.raises(StoreUnavailable), hasty.database.writing():
                    pass
        for _ in range(5):
            with hasty.database.writing():
                pass
        end = time.monotonic() + 60
        while descriptors() > before and time.monotonic() < end:
            time.sleep(0.01)
        assert descriptors() == before


def test_a_turn_lasts_until_the_store_was_had_and_a_moment_longer(ground: Ground):
    ground.store().close()
    folder = os.path.dirname(ground.database)
    line = database.Line(folder)
    while not line.first:
        line.pause()
    for _ in range(5):  # the store is busy: waiting for it takes nothing off the turn
        time.sleep(database.TURN)
        assert database.is_waited_for(folder)
    line.leave()
    end = time.monotonic() + 60
    while database.is_waited_for(folder) and time.monotonic() < end:
        time.sleep(database.TURN)
    assert not database.is_waited_for(folder)


def test_whose_turn_is_over_lets_go_first_who_waits(store: Store):
    with store.database.writing():
        pass
    assert store.database.turn_ends > 0
    store.database.turn_ends = 0.0
    line = database.Line(store.database.folder)  # another process's turn
    while not line.first:
        line.pause()
    lines, begun = [], time.monotonic()
    with store.database.writing(before_waiting=lambda: lines.append(True)):
        line.leave()
    assert len(lines) == 1
    assert store.database.turn_ends > begun
    store.database.turn_ends += 600.0  # a busy machine may take longer over the rest than a turn
    with store.database.writing(before_waiting=lambda: lines.append(True)):
        pass
    assert len(lines) == 1  # this is its own turn


def test_a_failed_commit_is_taken_back_and_the_store_stays_usable(ground: Ground, store: Store):
    class Failing:
        def __init__(self, connection):
            self.connection = connection

        def execute(self, sql, *values):
            if sql == "COMMIT":
                raise driver.load().OperationalError("disk I/O error")
            return self.connection.execute(sql, *values)

        def __getattr__(self, name):
            return getattr(self.connection, name)

    sound, store.database.connection = store.database.connection, Failing(store.database.connection)
    with pytest.raises(StoreUnavailable, match="disk I/O error"), store.database.writing():
        store.database.change("INSERT INTO kv (scope, key, value) VALUES ('/s', 'k', 'v')")
    store.database.connection = sound
    assert store.kv.get("/s", "k") is None
    with store.database.writing():
        store.database.change("INSERT INTO kv (scope, key, value) VALUES ('/s', 'k', 'w')")
    assert ground.sql("SELECT value FROM kv") == [{"value": "w"}]


def test_a_commit_waits_for_readers_where_there_is_a_rollback_journal(ground: Ground, rollback_journal):
    ground.store().close()
    reader = driver.load().connect(ground.database, isolation_level=None, check_same_thread=False)
    reader.execute("BEGIN")
    reader.execute("SELECT * FROM kv").fetchall()
    threading.Timer(0.3, lambda: reader.execute("COMMIT")).start()
    begun = time.monotonic()
    with ground.store() as store, store.database.writing():
        store.database.change("INSERT INTO kv (scope, key, value) VALUES ('/s', 'k', 'v')")
    assert time.monotonic() - begun >= 0.25
    assert ground.sql("SELECT value FROM kv") == [{"value": "v"}]


def test_an_open_store_keeps_no_log_from_being_folded_in(ground: Ground):
    row = ground.session("s")
    with ground.store() as idle, ground.store(read_only=True) as reader, ground.store() as writer:
        for store in (idle, reader):
            assert names(store) == [row["id"]]
            store.database.row("SELECT * FROM events")
            list(store.locks.held(None))
        with idle.database.writing():
            pass
        for number in range(100):
            writer.kv.put(row, f"k{number}", "x" * 5000)
        blocked, pages, folded = ground.sql("PRAGMA wal_checkpoint(TRUNCATE)")[0].values()
        assert (blocked, pages, folded) == (0, 0, 0)
        assert os.path.getsize(ground.database + "-wal") == 0


def test_commits_are_synced_as_the_journal_needs(ground: Ground, request: pytest.FixtureRequest):
    with ground.store() as store:
        assert store.database.rows("PRAGMA synchronous") == [{"synchronous": 1}]
    remove(ground)
    request.getfixturevalue("rollback_journal")
    with ground.store() as store:
        assert store.database.rows("PRAGMA synchronous") == [{"synchronous": 2}]
