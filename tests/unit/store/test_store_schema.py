"""The store's file: as the contract has it when new, mended when old, refused when newer, safe when many begin at once."""

import hashlib
import os
import sqlite3
import stat
import subprocess
from pathlib import Path

import pytest
from support import many_processes as crowd
from support.fixtures import BARE_PYTHON, FOLDERS, SWARM, Ground, time_limit, without_privileges
from support.listings import rows_of
from support.store_files import CONTRACT, FIRST, columns, has_the_contract, make

from swarm_hook_core.lookup.sqlite import StoreReader
from swarm_mcp.errors import StoreUnavailable
from swarm_mcp.store import Store, driver, schema

pytestmark = pytest.mark.slow


def digest(path: str) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def test_a_new_file_is_as_one_that_was_upgraded(ground: Ground):
    upgraded = schema._in_memory()
    schema._build(upgraded)
    everything = "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name"
    with Store() as store:
        filled = store.database.connection.execute(everything).fetchall()
        assert filled == upgraded.execute(everything).fetchall()
        assert schema._differences(schema._in_memory()) != [] and store.database.column("PRAGMA user_version") == [1]


def test_a_new_file_is_the_contracts(ground: Ground):
    ground.store().close()
    has_the_contract(ground)
    assert ground.sql("PRAGMA auto_vacuum") == [{"auto_vacuum": 2}]
    assert ground.sql("PRAGMA page_size") == [{"page_size": schema.PAGE_BYTES}]
    assert list(columns(ground, "instances"))[-1] == "lease_until"
    assert set(columns(ground, "tasks")) == set(CONTRACT["tasks"])  # others print all of it
    assert Path(ground.database).parent.stat().st_mode & 0o077 == 0


def test_what_others_write_by_the_contract_is_accepted_and_bounded(ground: Ground):
    ground.store().close()
    ground.add("context", id="1", scope="/s", instance_id="i", file="/f", type="lock", content="")
    ground.add("context", id="2", scope="/s", instance_id="i", file="/f", type="note", content="")
    ground.add("context", id="3", scope="/t", instance_id="i", file="/f", type="lock", content="")
    ground.add("tasks", id="1", scope="/s", type="fix", title="", requester="i", idempotency_key="k")
    ground.add("tasks", id="2", scope="/s", type="fix", title="", requester="i")
    ground.add("tasks", id="3", scope="/s", type="fix", title="", requester="i")
    ground.add("ui_commands", scope="/s", kind="any", payload="{}")
    broken = (
        ("context", {"id": "4", "scope": "/s", "instance_id": "j", "file": "/f", "type": "lock", "content": ""}),
        ("tasks", {"id": "4", "scope": "/s", "type": "fix", "title": "", "requester": "i", "idempotency_key": "k"}),
        ("ui_commands", {"scope": "/s", "kind": "any", "payload": "{}", "status": "odd", "claimed_by": "x"}),
        ("ui_commands", {"scope": "/s", "kind": "any", "payload": "{}", "status": "running"}),
        ("ui_commands", {"scope": "/s", "kind": "any", "payload": "{}", "started_at": 1}),
        ("ui_commands", {"scope": "/s", "kind": "any", "payload": "{}", "status": "done", "claimed_by": "x"}),
    )
    for table, row in broken:
        with pytest.raises(driver.load().IntegrityError):
            ground.add(table, **row)


def test_sixteen_processes_create_the_file_at_once(ground: Ground):
    body = "gate()\nwith Store() as store:\n    report(store.database.row('SELECT count(*) AS n FROM instances')['n'])"
    members = crowd.run(body, [None] * 16)
    assert [(member.code, member.reports, member.err) for member in members] == [(0, [0], "")] * 16
    has_the_contract(ground)
    assert ground.sql("SELECT count(*) AS n FROM swarm_schema") == [{"n": 1}]
    assert ground.integrity() == "ok"


def test_an_old_file_is_migrated_without_loss(ground: Ground):
    make(ground, FIRST)
    ground.store().close()
    has_the_contract(ground)
    (instance,) = ground.sql("SELECT * FROM instances")
    assert (instance["id"], instance["pid"], instance["label"], instance["adopted"]) == ("i1", 7, "old", 1)
    assert instance["scope"] == instance["root"] == instance["file_root"] == "/old"
    assert [row["content"] for row in ground.sql("SELECT * FROM messages")] == ["hello"]
    assert [row["changed_at"] for row in ground.sql("SELECT * FROM tasks")] == [1_000_000]
    assert [(row["id"], row["file"], row["content"]) for row in ground.sql("SELECT * FROM context")] == [
        ("l1", "/old/f", "note")
    ]
    assert ground.sql("SELECT scope, key, value, owner_identity, updated_at FROM kv ORDER BY key") == [
        {"scope": "", "key": "a", "value": "1", "owner_identity": None, "updated_at": 50},
        {"scope": "", "key": "b", "value": "2", "owner_identity": None, "updated_at": 60},
    ]
    assert ground.sql("SELECT * FROM kv_scope_updates") == [{"scope": "", "changed_at": 60_000}]
    assert "kv_without_scope" not in {row["name"] for row in ground.sql("SELECT name FROM sqlite_master")}
    row = ground.session("s", "new")
    assert ground.swarm("kv", "set", "a", "3", "--as", row["id"]).code == 0  # at once, not at the next start
    assert ground.lock(row, "f")["file"] == f"{ground.scope}/f"


def contract_only_file(ground: Ground) -> None:
    """The current file of another implementation: the contract's part of ours and nothing else."""
    ground.store().close()
    for (name,) in [(row["name"],) for row in ground.sql("SELECT name FROM sqlite_master WHERE name LIKE 'swarm%'")]:
        kind = "INDEX" if name.endswith("_idx") else "TABLE"
        ground.sql(f"DROP {kind} IF EXISTS {name}")  # a table takes its indexes along
    extra = set(columns(ground, "context")) - set(CONTRACT["context"])
    for name in extra:
        ground.sql(f"ALTER TABLE context DROP COLUMN {name}")
    assert extra


def test_a_foreign_file_gains_ours_and_keeps_its_rows(ground: Ground):
    contract_only_file(ground)
    ground.stranger("i1")
    ground.add("context", id="l", scope="/s", instance_id="i1", file=f"{ground.scope}/f", type="lock", content="theirs")
    assert ground.swarm("lock", "f", "--as", ground.session("s")["id"]).code == 1
    has_the_contract(ground)
    assert ground.sql("SELECT content FROM context") == [{"content": "theirs"}]


def test_even_a_reader_upgrades_a_foreign_file(ground: Ground):
    contract_only_file(ground)
    ground.stranger("i1")
    assert [row["id"] for row in ground.swarm("instances", "--json").json] == ["i1"]


def test_a_newer_file_is_refused_in_one_line_and_left_alone(ground: Ground):
    ground.session("s")
    ground.sql("PRAGMA user_version = 2")
    before = digest(ground.database)
    for argv in (["instances"], ["register"], ["lock", "f"], ["cleanup"], ["kv", "list", "--json"]):
        done = ground.swarm(*argv)
        assert (done.code, done.out) == (1, "") and done.err.count("\n") == 1, done
        assert "version 2" in done.err and "upgrade" in done.err
    assert digest(ground.database) == before
    assert ground.swarm("doctor", "--no-clients").code == 1


@pytest.mark.parametrize("content", [b"this is no database", b"SQLite format 3\0" + b"\xff" * 4096])
def test_a_broken_file_is_refused_in_one_line_and_left_alone(ground: Ground, content: bytes):
    Path(ground.database).parent.mkdir()
    Path(ground.database).write_bytes(content)
    for argv in (["instances"], ["register"]):
        done = ground.swarm(*argv)
        assert (done.code, done.out) == (1, "") and done.err.count("\n") == 1 and ground.database in done.err, done
    assert Path(ground.database).read_bytes() == content


def test_an_interrupted_migration_leaves_the_old_file_as_it_was(ground: Ground, monkeypatch: pytest.MonkeyPatch):
    make(ground, FIRST)
    monkeypatch.setitem(schema.INDEXES, "broken_idx", "no_such_table(x)")
    with pytest.raises(StoreUnavailable):
        Store(ground.database)
    assert ground.sql("SELECT key FROM kv ORDER BY key") == [{"key": "a"}, {"key": "b"}]
    assert "scope" not in columns(ground, "kv") and "scope" not in columns(ground, "instances")
    monkeypatch.undo()
    Store(ground.database).close()
    assert "scope" in columns(ground, "kv")


READS = (
    ["instances"], ["whoami"], ["locks"], ["inspect"], ["kv", "list"], ["kv", "get", "k"], ["roles"], ["status"],
    ["cleanup", "--dry-run"], ["doctor", "--no-clients"],
)  # fmt: skip


def furnished(ground: Ground) -> dict:
    row = ground.plain("me")
    ground.lock(row, "f", "note")
    assert ground.swarm("kv", "set", "k", "v").code == 0
    return row


def test_reading_writes_nothing(ground: Ground):
    furnished(ground)
    before = digest(ground.database)
    for argv in READS:
        assert ground.swarm(*argv).code == 0, argv
    assert digest(ground.database) == before
    log = Path(ground.database + "-wal")
    assert not log.exists() or log.stat().st_size == 0


def test_reading_what_is_not_there_creates_nothing(ground: Ground):
    for argv in READS[:1] + READS[2:5] + READS[6:8]:
        assert ground.swarm(*argv).code == 0, argv
    assert not os.path.exists(os.path.dirname(ground.database))


def closed(ground: Ground):
    """Make the store and its folder read-only."""
    folder = Path(ground.database).parent
    for path in folder.iterdir():
        path.chmod(0o444)
    folder.chmod(0o555)
    return folder


@pytest.fixture
def sandbox(ground: Ground):
    """A furnished store that cannot be written, nor its folder."""
    row = furnished(ground)
    folder = closed(ground)
    yield row
    folder.chmod(0o755)


def test_reading_works_in_a_sandbox_and_writing_says_why_not(ground: Ground, sandbox):
    for argv in READS[:8] + READS[9:]:
        done = ground.process(*argv, preexec_fn=without_privileges)
        assert done.code == 0 and done.err == "", (argv, done)
    assert ground.process("locks", "--json", preexec_fn=without_privileges).json[0]["content"] == "note"
    looked = ground.process("doctor", "--no-clients", "--json", preexec_fn=without_privileges).json["checks"]
    # Programs outside of the sandbox write there: this process's inability is reported, and nothing is broken.
    assert {check["name"]: check["status"] for check in looked if check["name"] in ("database", "state")} == {
        "database": "warn", "state": "warn",
    }  # fmt: skip
    for argv in (["lock", "g"], ["register"], ["kv", "set", "k", "w"], ["deregister"], ["cleanup"]):
        done = ground.process(*argv, preexec_fn=without_privileges)
        assert (done.code, done.out) == (1, "") and done.err.count("\n") == 1, (argv, done)
    assert sorted(path.name for path in Path(ground.database).parent.iterdir()) == ["swarm.db"]


def test_a_pending_log_is_read_in_a_sandbox(ground: Ground):
    furnished(ground)
    # The last writer dies before it can fold its log into the file.
    body = (
        "store = Store()\ngate()\nwith store.database.writing():\n"
        "    store.database.change(\"UPDATE context SET content = 'from the log'\")\nos.kill(os.getpid(), 9)"
    )
    assert [member.code for member in crowd.run(body, [None])] == [-9]
    assert os.path.getsize(ground.database + "-wal")
    folder = closed(ground)
    try:
        done = ground.process("locks", "--json", preexec_fn=without_privileges)
        assert done.code == 0 and [lock["content"] for lock in done.json] == ["from the log"], done
        folder.chmod(0o755)
        os.unlink(ground.database + "-shm")
        folder.chmod(0o555)
        done = ground.process("locks", "--json", preexec_fn=without_privileges)
        # Without the log's index nothing may be read past it: the answer, or an error; never the old state.
        assert (done.code == 1 and done.err.count("\n") == 1) or done.json[0]["content"] == "from the log", done
    finally:
        folder.chmod(0o755)
    for path in folder.iterdir():
        path.chmod(0o644)
    assert [row["content"] for row in ground.sql("SELECT content FROM context")] == ["from the log"]


def test_a_foreign_file_in_a_sandbox_is_refused_in_one_line(ground: Ground):
    contract_only_file(ground)
    folder = closed(ground)
    try:
        done = ground.process("instances", preexec_fn=without_privileges)
    finally:
        folder.chmod(0o755)
    assert (done.code, done.out) == (1, "") and done.err.count("\n") == 1, done


@pytest.mark.parametrize(
    ("release", "safe"),
    [
        ((3, 6, 23), False), ((3, 7, 0), False), ((3, 34, 1), False), ((3, 40, 1), False), ((3, 44, 5), False), ((3, 44, 6), True),
        ((3, 44, 7), True), ((3, 45, 0), False), ((3, 50, 6), False), ((3, 50, 7), True), ((3, 50, 8), True),
        ((3, 51, 0), False), ((3, 51, 2), False), ((3, 51, 3), True), ((3, 52, 0), False), ((3, 53, 0), True),
        ((3, 60, 0), True), ((4, 0, 0), True),
    ],
)  # fmt: skip
def test_which_releases_keep_every_commit(release: tuple[int, int, int], safe: bool):
    assert driver.wal_is_safe(release) is safe


def mode(ground: Ground) -> str:
    return ground.sql("PRAGMA journal_mode")[0]["journal_mode"]


def test_a_process_reads_and_writes_by_one_copy_of_sqlite(ground: Ground):
    """The locks of two would undo each other's, and one cuts the log's index that the other has mapped."""
    ground.store().close()
    assert StoreReader(ground.database).driver is driver.load()


@pytest.mark.parametrize(("release", "expected"), [("3.51.2", "delete"), ("3.40.1", "delete"), ("3.51.3", "wal")])
def test_the_release_decides_the_journal(ground: Ground, monkeypatch: pytest.MonkeyPatch, release: str, expected: str):
    monkeypatch.setattr(schema, "version", lambda _: tuple(int(part) for part in release.split(".")))
    ground.store().close()
    monkeypatch.undo()
    assert mode(ground) == expected


@pytest.fixture
def without_pysqlite3(tmp_path: Path) -> list[str]:
    """The command in an environment that has everything but pysqlite3."""
    site = tmp_path / "site"
    site.mkdir()
    ours = Path(schema.__file__).parents[2]
    for package in ("swarm_mcp", "swarm_hook_core"):
        (site / package).symlink_to(ours / package)
    places = [Path(folder) for folder in FOLDERS if (Path(folder) / "sqlite_utils").is_dir()]
    for place in places:
        for entry in place.iterdir():
            if not entry.name.startswith("pysqlite3") and not (site / entry.name).exists():
                (site / entry.name).symlink_to(entry)
    rest = [folder for folder in FOLDERS if Path(folder) not in places and not (Path(folder) / "pysqlite3").is_dir()]
    folders = [str(site), *rest]
    return [
        *BARE_PYTHON,
        "-c",
        f"import sys; sys.path[:0] = {folders!r}; from swarm_mcp.cli.main import main; sys.exit(main())",
    ]


def test_without_pysqlite3_an_affected_library_uses_a_rollback_journal(ground: Ground, without_pysqlite3: list[str]):
    done = ground.process("register", "--label", "me", "--json", program=without_pysqlite3)
    assert done.code == 0, done
    expected = "wal" if driver.wal_is_safe(sqlite3.sqlite_version_info) else "delete"
    assert mode(ground) == expected
    has_the_contract(ground)
    for argv in (["lock", "f", "--note", "n"], ["locks"], ["kv", "append", "k", "1"], ["unlock", "f"], ["instances"]):
        assert ground.process(*argv, program=without_pysqlite3).code == 0, argv
    (check,) = [
        check
        for check in ground.process("doctor", "--no-clients", "--json", program=without_pysqlite3).json["checks"]
        if check["name"] == "sqlite"
    ]
    assert (check["status"], check["details"]["sqlite"]) == ("ok", sqlite3.sqlite_version)
    assert check["details"]["journal_mode"] == expected


def modes(ground: Ground) -> dict[str, str]:
    """Return the permissions of the store, of its folder, and of SQLite's files beside it."""
    file = Path(ground.database)
    found = {path.name: oct(stat.S_IMODE(path.lstat().st_mode)) for path in file.parent.glob(f"{file.name}*")}
    return {**found, "folder": oct(stat.S_IMODE(file.parent.stat().st_mode))}


@pytest.mark.parametrize("umask", [0, 0o22, 0o777])
def test_a_new_store_is_its_user_s_alone_from_its_first_moment(ground: Ground, umask: int):
    before = os.umask(umask)
    try:
        with ground.store() as store:
            store.database.row("SELECT 1")
            found = modes(ground)
    finally:
        os.umask(before)
    assert found.pop("folder") == "0o700" and set(found.values()) == {"0o600"} and "swarm.db" in found, found


def test_an_older_store_is_closed_by_the_next_writer_and_a_reader_changes_nothing(ground: Ground):
    folder = Path(ground.database).parent
    with ground.store():
        folder.chmod(0o755)
        for path in folder.glob("*.db*"):
            path.chmod(0o644)
        with ground.store(read_only=True):
            assert set(modes(ground).values()) == {"0o644", "0o755"}
        with ground.store():
            found = modes(ground)
    assert found.pop("folder") == "0o755", "a person chose that folder"
    assert set(found.values()) == {"0o600"}, found


def test_the_usual_folder_is_ours(ground: Ground, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("SWARM_DB_PATH")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    usual = tmp_path / "home" / ".swarm-mcp"
    usual.mkdir(parents=True, mode=0o755)
    assert ground.swarm("register").code == 0
    assert stat.S_IMODE(usual.stat().st_mode) == 0o700
    usual.rename(tmp_path / "elsewhere")
    (tmp_path / "elsewhere").chmod(0o755)
    usual.symlink_to(tmp_path / "elsewhere")
    assert ground.swarm("locks").code == 0, "a folder may lead elsewhere"
    assert ground.swarm("register").code == 0
    assert stat.S_IMODE((tmp_path / "elsewhere").stat().st_mode) == 0o755, "which is a person's own folder"


@pytest.mark.parametrize("leads_to", ["a store", "another file", "nothing"])
def test_a_link_in_the_store_s_place_is_not_followed(ground: Ground, tmp_path: Path, leads_to: str):
    file, target = Path(ground.database), tmp_path / "target"
    if leads_to == "a store":
        with ground.store():
            pass
        file.rename(target)
    elif leads_to == "another file":
        target.write_text("precious\n")
    file.parent.mkdir(exist_ok=True)
    file.symlink_to(target)
    before = target.read_bytes() if target.exists() else None
    for words in (["kv", "set", "k", "v"], ["kv", "list"], ["locks"], ["register"], ["status"]):
        done = ground.swarm(*words)
        assert done.code == 1 and "is a symbolic link" in done.err and done.err.count("\n") == 1, done
        assert f"set SWARM_DB_PATH to {target}" in done.err
    assert (target.read_bytes() if target.exists() else None) == before
    assert sorted(os.listdir(file.parent)) == [file.name] or target.parent == file.parent


@pytest.mark.parametrize("kind", ["pipe", "folder"])
def test_what_is_no_file_in_the_store_s_place_is_not_opened(ground: Ground, kind: str):
    """To open a pipe would wait for ever."""
    Path(ground.database).parent.mkdir(parents=True, exist_ok=True)
    (os.mkfifo if kind == "pipe" else os.mkdir)(ground.database)
    for words in (["status"], ["register"]):
        done = subprocess.run([*SWARM, *words], cwd=ground.repo, capture_output=True, text=True, timeout=time_limit(60))
        assert done.returncode == 1 and "is no file" in done.stderr, done


def test_a_store_that_becomes_a_link_is_not_followed(ground: Ground, tmp_path: Path, store: Store):
    os.rename(ground.database, tmp_path / "moved")
    os.symlink(tmp_path / "moved", ground.database)
    with pytest.raises(StoreUnavailable, match="symbolic link"):
        rows_of(store.kv.walk("/s"))


def test_a_missing_store_reads_as_an_empty_one_table_by_table(tmp_path: Path):
    with Store(str(tmp_path / "none.db"), read_only=True) as store:
        for table in schema.all_tables():
            rows = [[0]] if table == "swarm_fence" else []
            assert [list(row.values()) for row in store.database.rows(f"SELECT * FROM {table}")] == rows, table
        indexes = set(store.database.column("SELECT name FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL"))
        assert indexes == {*schema.all_indexes(), *schema.UNIQUE_INDEXES}
        with pytest.raises(StoreUnavailable):
            store.database.rows("SELECT * FROM strangers")
    assert list(tmp_path.iterdir()) == []
