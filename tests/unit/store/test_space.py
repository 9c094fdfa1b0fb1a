"""The end of a burst: the file and the log come back to their sizes, without delays and without losses."""

import os
import resource
import signal
import time

import pytest
from support import many_processes as crowd
from support.fixtures import Ground

from swarm_mcp.store import Store, cleanup, database, driver, reactions, session_table
from swarm_mcp.store.database import Database
from swarm_mcp.store.schema import PAGE_BYTES

pytestmark = pytest.mark.slow

FEW_PAGES = 40  # beside free ones: events of the cleaning itself
DAY = 86400


def pages(ground: Ground) -> int:
    with ground.store() as store:
        store.database.rows("PRAGMA wal_checkpoint(TRUNCATE)")
        return os.path.getsize(ground.database) // PAGE_BYTES


def burst(ground: Ground, rows: int) -> None:
    """Add so many due events, messages and ended tasks."""
    numbers = f"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows})"
    old = int(time.time()) - 2 * DAY
    with ground.store() as store, store.database.writing():
        for sql in (
            f"INSERT INTO events (scope, type, payload, created_at) SELECT '/s', 'kv.set', hex(randomblob(60)), {old} FROM n",
            "INSERT INTO messages (scope, sender, recipient, content, created_at)"
            f" SELECT '/s', 'x', 'y', hex(randomblob(60)), {old} FROM n",
            "INSERT INTO tasks (id, scope, type, title, requester, status, updated_at)"
            f" SELECT hex(randomblob(16)), '/s', 'fix', 'x', 'x', 'done', {old} FROM n",
        ):
            store.database.change(f"{numbers} {sql}")


@pytest.fixture
def hurried_clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock of the store that is ahead by the seconds in the list, and more at each pass of `settle`."""
    ahead = [0.0]
    monkeypatch.setattr(Database, "now", lambda self: int(time.time() + ahead[0]))
    return ahead


def settle(ground: Ground, clock: list[float], most: int = 400) -> int:
    """Make passes, each as soon as it is time, until nothing is left; how many that took."""
    with ground.store() as store:
        for number in range(1, most):
            clock[0] += max(1.0, store.cleanup.due_in())
            assert store.cleanup.some()
            if store.cleanup.due_in() > cleanup.BACKLOG_SECONDS:
                return number
    raise AssertionError(f"after {most} passes there is still something left")


def test_a_file_comes_back_to_the_size_that_it_had_before_a_burst(ground: Ground, hurried_clock: list[float]):
    live = ground.session("s")
    ground.lock(live, "f")
    before = pages(ground)
    burst(ground, 2000)
    assert pages(ground) > 2 * before + FEW_PAGES
    settle(ground, hurried_clock)
    assert pages(ground) <= before + cleanup.SPARE_PAGES + FEW_PAGES
    assert ground.integrity() == "ok"
    assert [row["file"] for row in ground.sql("SELECT file FROM context")] == [f"{ground.scope}/f"]


def test_cleanup_that_was_asked_for_gives_back_all_at_once(ground: Ground):
    ground.session("s")
    before = pages(ground)
    burst(ground, 2000)
    ground.swarm("cleanup")
    assert os.path.getsize(ground.database) // PAGE_BYTES <= before + cleanup.SPARE_PAGES + FEW_PAGES


def test_a_step_moves_no_more_pages_than_there_is_time_for(ground: Ground, listening, limits, hurried_clock):
    ground.session("s")
    burst(ground, 2000)
    ground.sql("DELETE FROM events")
    limits(cleanup, SECONDS=1e-9)
    asked = listening(Database, "rows")
    with ground.store() as store:
        assert cleanup.Space(store.database).give_back()
    assert [call.given[1] for call in asked].count(f"PRAGMA incremental_vacuum({cleanup.PAGES_AT_ONCE})") <= 1


def test_the_log_is_cut_when_nobody_reads_it_and_left_alone_when_somebody_does(ground: Ground, store: Store):
    ground.session("s")
    log = ground.database + "-wal"
    reader = driver.load().connect(f"file:{ground.database}?mode=ro", uri=True, isolation_level=None)
    burst(ground, 2000)
    long = os.path.getsize(log)
    assert long > cleanup.LOG_BYTES
    reader.execute("BEGIN")
    before = reader.execute("SELECT count(*) FROM events").fetchone()
    with store.database.writing():
        store.database.change("DELETE FROM events WHERE id % 2")
    cleanup.Space(store.database).shorten_log(False)
    assert os.path.getsize(log) >= long
    assert reader.execute("SELECT count(*) FROM events").fetchone() == before
    reader.execute("ROLLBACK")
    cleanup.Space(store.database).shorten_log(False)
    assert os.path.getsize(log) == 0
    assert reader.execute("SELECT count(*) FROM events").fetchone()[0] <= before[0] // 2 + 1
    reader.close()


def test_a_log_of_ordinary_length_is_left_alone(ground: Ground):
    ground.session("s")
    with ground.store() as store, ground.store() as other:
        with other.database.writing():
            other.database.change("INSERT INTO kv (scope, key, value) VALUES ('/s', 'k', '1')")
        size = os.path.getsize(ground.database + "-wal")
        cleanup.Space(store.database).shorten_log(False)
        assert 0 < size == os.path.getsize(ground.database + "-wal")


def another_programs(ground: Ground, rows: int) -> None:
    """Make the store as a program would that does not lay its file out for shrinking."""
    ground.store().close()
    connection = driver.load().connect(ground.database, isolation_level=None)
    connection.execute("PRAGMA journal_mode = DELETE")
    connection.execute("PRAGMA auto_vacuum = NONE")
    connection.execute("VACUUM")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.close()
    assert ground.sql("PRAGMA auto_vacuum") == [{"auto_vacuum": 0}]
    burst(ground, rows)


def test_a_file_of_another_program_is_laid_out_anew_once_it_holds_little(ground: Ground, hurried_clock: list[float]):
    ground.session("s")
    before = pages(ground)
    another_programs(ground, 2000)
    ground.lock(ground.session("t"), "f")
    rows = ground.sql("SELECT rowid, id FROM context")
    settle(ground, hurried_clock)
    assert ground.sql("PRAGMA auto_vacuum") == [{"auto_vacuum": 2}]
    assert pages(ground) <= before + cleanup.SPARE_PAGES + FEW_PAGES
    assert ground.sql("SELECT rowid, id FROM context") == rows  # a check may be reading by these just now
    assert ground.integrity() == "ok"


def test_a_large_file_of_another_program_is_not_written_anew(ground: Ground, limits, hurried_clock: list[float]):
    limits(cleanup, REWRITTEN_PAGES=10)
    ground.session("s")
    another_programs(ground, 2000)
    settle(ground, hurried_clock)
    assert ground.sql("PRAGMA auto_vacuum") == [{"auto_vacuum": 0}]
    assert ground.integrity() == "ok"


_PASSES = """
import time
from support import crashing
from swarm_mcp.store.database import Database
from swarm_mcp.store.schema import PAGE_BYTES
ahead = [0.0]
Database.now = lambda self: int(time.time() + ahead[0])
path, last = arguments
gate()
def life(store, say):
    store.database.connection = crashing.Mortal(store.database.connection, last)
    for _ in range(60):
        ahead[0] += 40
        store.cleanup.some()
    say("through", store.database.connection.left)
report(crashing.bury(*crashing.fork(path, life)))
"""


@pytest.mark.slow
@pytest.mark.slow
def test_killed_at_any_statement_it_leaves_a_whole_store(ground: Ground, limits, store: Store):
    limits(cleanup, AT_ONCE=200)
    live = ground.session("s")
    for name in "abc":
        ground.lock(live, name)
    burst(ground, 500)
    locks, last, said = ground.sql("SELECT * FROM context ORDER BY id"), 3, []
    while not said and last < 100_000:
        (member,) = crowd.run(_PASSES, [[ground.database, last]])
        assert (member.code, member.err) == (0, "")
        (said,) = member.reports
        assert ground.integrity() == "ok"
        assert ground.sql("SELECT * FROM context ORDER BY id") == locks
        last += last // 3 + 11
    assert said[0][0] == "through"
    assert ground.sql("SELECT count(*) AS n FROM messages")[0]["n"] == 0
    assert store.database.row("PRAGMA freelist_count").freelist_count <= cleanup.SPARE_PAGES


def test_with_a_full_disk_nothing_is_lost_and_nothing_is_raised(ground: Ground, store: Store):
    live = ground.session("s")
    ground.lock(live, "f")
    burst(ground, 600)
    store.database.rows("PRAGMA wal_checkpoint(TRUNCATE)")
    ground.sql("DELETE FROM swarm_upkeep")
    child = os.fork()
    if not child:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))  # no file may grow beyond, the log either
        try:
            with ground.store() as full:
                os._exit(0 if full.cleanup.some() is False else 1)
        except BaseException:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert ground.integrity() == "ok"
    assert [row["file"] for row in ground.sql("SELECT file FROM context")] == [f"{ground.scope}/f"]
    assert store.cleanup.some() or store.cleanup.due_in() > 0


def test_others_have_their_turn_between_the_steps_of_a_pass(ground: Ground, monkeypatch, hurried_clock, store: Store):
    """No step holds the store while another one is done."""
    ground.session("s")
    burst(ground, 300)
    turns, leave = [], database.Turn.__exit__

    def ended(self, *given):
        result = leave(self, *given)
        other = driver.load().connect(ground.database, timeout=0, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")  # fails at once where the store is held
        other.execute("ROLLBACK")
        other.close()
        turns.append(1)
        return result

    hurried_clock[0] += cleanup.PAUSE_SECONDS + 1
    monkeypatch.setattr(database.Turn, "__exit__", ended)
    assert store.cleanup.some()
    assert len(turns) >= 6


def test_very_many_sessions_that_have_gone_go_a_few_at_a_time(ground: Ground, limits, hurried_clock, store: Store):
    limits(session_table, LOOKED_AT_ONCE=5)
    limits(reactions, RECLAIMED_AT_ONCE=2)
    limits(cleanup, SESSIONS_AT_ONCE=3, SESSIONS_SECONDS=0, AT_ONCE=7)
    live = ground.session("s")
    old = int(time.time()) - 2 * DAY
    numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20)"
    ground.sql(
        f"{numbers} INSERT INTO instances (id, scope, directory, root, file_root, pid, registered_at, heartbeat)"
        f" SELECT 'gone' || i, '/s', '/s', '/s', '/s', 999999, {old}, {old} FROM n"
    )

    def left() -> int:
        return ground.sql("SELECT count(*) AS n FROM instances WHERE id LIKE 'gone%'")[0]["n"]

    assert len(session_table.some_gone(store.database)) == 5 and len(store.instances.gone()) == 20
    with store.database.writing():
        assert len(reactions.reclaim(store.database)) == 2
    hurried_clock[0] += 40
    assert store.cleanup.some()
    assert left() == 15
    settle(ground, hurried_clock)
    assert left() == 0
    assert [row["id"] for row in ground.sql("SELECT id FROM instances")] == [live["id"]]


def test_words_to_those_whose_file_is_free_reach_everybody_however_many_they_are(ground: Ground, limits, hurried_clock):
    limits("swarm_mcp.store.refusals", LOOKED_AT_ONCE=2)
    limits(cleanup, AT_ONCE=3)
    me, now = ground.session("s"), int(time.time())
    for number in range(10):
        ground.sql(
            "INSERT INTO swarm_denials (instance_id, path_key, scope, file, holder_id, denied_at)"
            f" VALUES ('{me['id']}', '/s/{number}', '/s', '/s/{number}', 'nobody', {now - number})"
        )
    with ground.store() as store:
        for _ in range(6):
            hurried_clock[0] += 40
            assert store.cleanup.some()
    assert ground.sql("SELECT count(*) AS n FROM swarm_denials") == [{"n": 0}]
    told = " ".join(row["content"] for row in ground.sql("SELECT content FROM messages"))
    assert all(f"/s/{number}" in told for number in range(10))
