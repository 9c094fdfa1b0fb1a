"""Every earlier shape of a store's file is updated without loss, through all interruptions."""

import sqlite3
from pathlib import Path

import pytest
from support import many_processes as crowd
from support.fixtures import Ground
from support.store_files import SHAPES, columns, has_the_contract, make, text_of

from swarm_mcp.store import Store, schema

pytestmark = pytest.mark.slow

BACKFILLED = {("instances", "scope"), ("instances", "root"), ("instances", "file_root"), ("tasks", "changed_at")}


@pytest.fixture(params=SHAPES)
def shape(request, ground: Ground) -> str:
    """A store of that shape, with rows in it."""
    make(ground, request.param)
    return str(request.param)


def contents(database: str) -> dict[str, list[dict]]:
    """Every row of every table, in order."""
    connection = sqlite3.connect(database)
    connection.row_factory = sqlite3.Row
    try:
        names = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {
            name: [dict(row) for row in connection.execute(f"SELECT * FROM {name} ORDER BY rowid")]
            for name in sorted(names)
        }
    finally:
        connection.close()


def kept(before: dict, after: dict) -> None:
    """Fail unless each row of `before` is in `after`, with each value it had."""
    for table, rows in before.items():
        if table in ("sqlite_sequence", "swarm_schema") or (table == "kv_scope_updates" and not rows):
            continue
        assert len(after[table]) == len(rows), table
        for old, new in zip(rows, after[table]):
            for name, value in old.items():
                changed = (table, name) in BACKFILLED and value in ("", 0)
                assert changed or new[name] == value, f"{table}.{name}: {value!r} became {new[name]!r}"


def test_the_shapes_differ_and_none_is_current(ground: Ground):
    assert len(SHAPES) == 11
    ground.store().close()
    wanted = {table: set(columns(ground, table)) for table in schema.TABLES}
    indexed = indexes(ground.database)
    for shape in SHAPES:
        connection = sqlite3.connect(":memory:")
        connection.executescript(text_of(shape))
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        found = {
            table: {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}
            for table in tables & set(wanted)
        }
        assert found != wanted or indexes_of(connection) != indexed, shape
        assert not schema.is_current(connection), shape
        connection.close()


@pytest.mark.sampled
def test_nothing_is_lost_and_everything_works(ground: Ground, shape: str):
    before = contents(ground.database)
    ground.store().close()
    has_the_contract(ground)
    kept(before, contents(ground.database))
    assert set(columns(ground, "swarm_upkeep")) == {"what", "done_at", "place"}
    assert {"id", "file", "holder_id", "kept", "altered_at"} <= set(columns(ground, "swarm_alterations"))
    row, peer = ground.session("new", "new"), ground.session("peer", "peer")
    with ground.store() as store:
        store.locks.acquire(row, "mine")
        store.kv.put(row, "key", "value")
        task = store.tasks.request(row, {"type": "fix", "title": "new"})["task"]
        assert store.tasks.claim_next(peer)["task"]["id"] == task["id"]
        store.messages.send(row, peer["id"], "hello")
        assert [message["content"] for message in store.messages.take(peer)] == ["hello"]
        store.cleanup.clean()
    assert ground.integrity() == "ok"


@pytest.mark.sampled
def test_the_file_is_then_as_a_new_one_and_a_second_opening_changes_nothing(ground: Ground, shape: str, tmp_path: Path):
    new = str(tmp_path / "new.db")
    Store(new).close()
    ground.store().close()
    assert columns_by_table(ground.database) == columns_by_table(new)
    assert indexes(ground.database) == indexes(new)
    before = contents(ground.database)
    ground.store().close()
    assert contents(ground.database) == before


def columns_by_table(database: str) -> dict[str, set[str]]:
    """The names of the columns of each of the store's tables."""
    connection = sqlite3.connect(database)
    try:
        return {table: {row[1] for row in connection.execute(f"PRAGMA table_info({table})")} for table in schema.TABLES}
    finally:
        connection.close()


def indexes(database: str) -> set[str]:
    """The names of the indexes of a store's file that are ours."""
    connection = sqlite3.connect(database)
    try:
        return indexes_of(connection)
    finally:
        connection.close()


def indexes_of(connection: sqlite3.Connection) -> set[str]:
    """Return the indexes of an open file."""
    rows = connection.execute("SELECT name FROM sqlite_master WHERE type = 'index' AND name LIKE 'swarm_%'")
    return {name for (name,) in rows}


def test_two_locks_on_one_file_are_parted_in_favour_of_the_first(ground: Ground):
    rival = (
        "INSERT INTO context (id, scope, instance_id, file, type, content)"
        " VALUES ('l2', '/s', 'i2', '/s/f', 'lock', 'late');"
    )
    twin = "UPDATE tasks SET idempotency_key = 'key';"
    make(ground, "scoped", rival + twin)
    ground.store().close()
    has_the_contract(ground)
    assert [row["id"] for row in ground.sql("SELECT id FROM context")] == ["l1"]
    assert [row["idempotency_key"] for row in ground.sql("SELECT idempotency_key FROM tasks ORDER BY id")] == [
        "key",
        None,
    ]


KILLED = """
from swarm_mcp.store import driver
path, last = arguments
real = driver.load()

class Deadly:
    def __getattr__(self, name):
        return getattr(real, name)

    def connect(self, *given, **named):
        connection = real.connect(*given, **named)
        if given[0] != ":memory:":  # the wanted tables, for comparison
            connection.set_trace_callback(count)
        return connection

def count(_statement):
    global last
    last -= 1
    if not last:
        os.kill(os.getpid(), 9)

driver.load = Deadly
gate()
Store(path).close()
report("done")
"""


@pytest.mark.parametrize("shape", ["first-days", pytest.param("version-1", marks=pytest.mark.thorough)])
def test_a_migration_that_is_killed_leaves_the_old_file_or_the_new_one(ground: Ground, shape: str):
    old = str(ground.folder / "old.db")
    sqlite3.connect(old).executescript(text_of(shape)).connection.close()
    new = str(ground.folder / "new.db")
    Path(new).write_bytes(Path(old).read_bytes())
    Store(new).close()
    stages = {"old": contents(old), "new": contents(new)}
    found, step = set(), 11
    for first in range(1, 400, 4 * step):
        numbers = range(first, first + 4 * step, step)
        paths = [str(ground.folder / f"{number}.db") for number in numbers]
        for path in paths:
            Path(path).write_bytes(Path(old).read_bytes())
        members = crowd.run(KILLED, [[path, number] for path, number in zip(paths, numbers)])
        for path, member in zip(paths, members):
            assert member.code in (0, -9), member.err
            left = contents(path)
            (stage,) = [name for name, wanted in stages.items() if left == wanted]
            assert stage == "new" or member.code == -9
            found.add(stage)
            Store(path).close()
            assert contents(path) == stages["new"]
        if all(member.code == 0 for member in members):
            break
    assert found == {"old", "new"}


@pytest.mark.parametrize("shape", ["half-migrated", "version-1"])
def test_many_processes_migrate_at_once(ground: Ground, shape: str):
    make(ground, shape)
    before = contents(ground.database)
    body = "gate()\nwith Store() as store:\n    report(store.database.row('SELECT count(*) AS n FROM tasks')['n'])"
    members = crowd.run(body, [None] * 4)
    assert [(member.code, member.reports, member.err) for member in members] == [(0, [2], "")] * 4
    has_the_contract(ground)
    kept(before, contents(ground.database))


def test_a_file_of_ours_is_written_by_one_that_knows_only_the_contract(ground: Ground):
    ground.session("ours", "ours")
    for statement in (
        "PRAGMA user_version = 1",
        "CREATE TABLE IF NOT EXISTS instances (id TEXT PRIMARY KEY)",
        "CREATE INDEX IF NOT EXISTS context_scope_file_idx ON context(scope, file)",
        "INSERT INTO instances (id, scope, directory, root, file_root, pid, label)"
        " VALUES ('i1', '{0}', '{0}', '{0}', '{0}', 1, 'theirs')",
        "DELETE FROM context WHERE type = 'lock' AND scope = '{0}' AND instance_id = 'i1' AND file = '{0}/f'",
        "INSERT INTO context (id, scope, instance_id, file, type, content, task_id)"
        " VALUES ('l1', '{0}', 'i1', '{0}/f', 'lock', 'theirs', NULL)",
        "INSERT INTO events (scope, type, actor, subject, payload)"
        " VALUES ('{0}', 'context.lock_acquired', 'i1', '{0}/f', '{{}}')",
        "INSERT INTO tasks (id, scope, type, title, requester, status, changed_at, tracker_required)"
        " VALUES ('t1', '{0}', 'fix', 'theirs', 'i1', 'open', 1, 0)",
        "INSERT INTO kv (scope, key, value, owner_identity, updated_at) VALUES ('{0}', 'k', '1', NULL, unixepoch())",
    ):
        ground.sql(statement.format(ground.scope))
    ours = ground.session("ours", "ours")
    refused = ground.swarm("lock", "f", "--as", ours["id"], "--json")
    assert refused.code == 1 and refused.json["active"]["content"] == "theirs"
    assert [row["path_key"] for row in ground.sql("SELECT path_key FROM context")] == [f"{ground.scope}/f"]
    with ground.store() as store:
        store.messages.send(ours, "i1", "hello")
        assert store.tasks.claim_next(ours)["task"]["id"] == "t1"
        store.kv.append(ours, "k", "2")
    # The other one reads our rows.
    (mail,) = ground.sql("SELECT scope, sender, recipient, content, read FROM messages")
    assert mail == {"scope": ground.scope, "sender": ours["id"], "recipient": "i1", "content": "hello", "read": 0}
    assert ground.sql("SELECT status, assignee, changed_at > 1 AS fresh FROM tasks") == [
        {"status": "in_progress", "assignee": ours["id"], "fresh": 1}
    ]
    assert ground.sql("SELECT value FROM kv WHERE key = 'k'") == [{"value": "[1,2]"}]
    assert ground.sql("SELECT changed_at FROM kv_scope_updates WHERE scope = ?", ground.scope) != []
    ground.sql("DELETE FROM context WHERE id = 'l1'")
    assert ground.lock(ours, "f")["instance_id"] == ours["id"]


def test_a_store_that_was_opened_by_a_newer_release_is_left_as_it_is(ground: Ground):
    ground.store().close()
    ground.sql("UPDATE swarm_schema SET version = version + 1")
    before = contents(ground.database)
    ground.store().close()
    assert contents(ground.database) == before
