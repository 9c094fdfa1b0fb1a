"""Stores and state folders in every odd shape: the program hands over, or is silent where the check is, too.

It never crashes, and it ends by itself.
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.first_look import CONTRACT, HANDED_OVER, ME, PEER, PROGRAM, Scene
from support.fixtures import without_privileges
from support.shared_scenes import Shared, files_below, in_both_clients, put_back
from support.store_files import SHAPES, text_of

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not PROGRAM, reason="no program: make native")]
SECONDS = 30  # a call that hangs; the program itself gives up after one second


@pytest.fixture
def runtime() -> str:
    return "claude-code"


@pytest.fixture
def scene(runtime: str, tmp_path: Path, checks_have_time: None) -> Iterator[Shared]:
    """A scene with a write by each session; the program is silent about an edit of ``sub/deep.md``."""
    made = Shared(tmp_path / "look", runtime)
    with made.environment():
        made.begin_example()
        yield made


def edit(scene: Scene, path: str = "sub/deep.md") -> bytes:
    """Return the payload of an edit."""
    return scene.payload(*scene.edit_of(str(scene.work / path)))


def is_silent(scene: Scene, payload: bytes, before: Callable[[], None] | None = None) -> bool:
    """Run the program, `before` in its process; it is silent, or hands the payload over."""
    check = ["/bin/sh", "-c", f"cat; exit {HANDED_OVER}"]
    done = subprocess.run(
        [PROGRAM, CONTRACT, scene.runtime, *check], input=payload, capture_output=True, check=False, timeout=SECONDS,
        preexec_fn=before,
    )  # fmt: skip
    assert (done.returncode, done.stdout) in ((0, b""), (HANDED_OVER, payload)), done
    return done.returncode == 0


def agrees(scene: Shared, before: Callable[[], None] | None = None) -> bool:
    """Ask the program, and the check if it was silent. Return the program's silence."""
    kept = files_below(scene.state)
    found = is_silent(scene, edit(scene), before)
    if found:
        put_back(scene.state, kept)
        assert scene.asks(edit(scene)) == (0, "")
    return found


# ------------------------------------------------------------------------------------------------ the store


def _replaced(make: Callable[[Path], object]) -> Callable[[Scene], None]:
    def spoil(scene: Scene) -> None:
        for path in scene.store.parent.glob("*"):
            path.unlink()
        make(scene.store)

    return spoil


def _cut(share: float) -> Callable[[Scene], None]:
    def spoil(scene: Scene) -> None:
        os.truncate(scene.store, int(scene.store.stat().st_size * share))

    return spoil


def _overwritten(page: int) -> Callable[[Scene], None]:
    def spoil(scene: Scene) -> None:
        with scene.store.open("r+b") as file:
            file.seek(page * 4096 + 8)
            file.write(os.urandom(400))

    return spoil


def _sql(*statements: str) -> Callable[[Scene], None]:
    def spoil(scene: Scene) -> None:
        with contextlib.closing(sqlite3.connect(scene.store, isolation_level=None)) as store:
            for statement in statements:
                store.execute(statement)

    return spoil


def _beside(ending: str, data: bytes) -> Callable[[Scene], None]:
    def spoil(scene: Scene) -> None:
        Path(f"{scene.store}{ending}").write_bytes(data)

    return spoil


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made, contextlib.chdir(path.parent):
        made.bind(path.name)


def _to_elsewhere(scene: Scene) -> None:
    moved = scene.store.with_name("elsewhere.db")
    scene.store.rename(moved)
    scene.store.symlink_to(moved)


def _linked_folder(scene: Scene) -> None:
    moved = scene.store.parent.with_name("elsewhere")
    scene.store.parent.rename(moved)
    scene.store.parent.symlink_to(moved)


def _owned_by_another(scene: Scene) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root gives files away")
    os.chown(scene.store, 12345, 12345)


STORES: dict[str, Callable[[Scene], None]] = {
    "gone": _replaced(lambda path: None),
    "empty": _replaced(lambda path: path.touch()),
    "no store": _replaced(lambda path: path.write_bytes(b"not a store\n" * 999)),
    "random": _replaced(lambda path: path.write_bytes(b"SQLite format 3\0" + os.urandom(20000))),
    "a folder": _replaced(lambda path: path.mkdir()),
    "a pipe": _replaced(os.mkfifo),
    "a socket": _replaced(_socket),
    "a link to nothing": _replaced(lambda path: path.symlink_to("nowhere")),
    "a device": _replaced(lambda path: path.symlink_to("/dev/zero")),
    "a link": _to_elsewhere,
    "a linked folder": _linked_folder,
    "another database": _replaced(lambda path: sqlite3.connect(path).executescript("CREATE TABLE instances (id)").close()),
    **{f"cut at {share}": _cut(share) for share in (0.001, 0.1, 0.5, 0.9, 0.999)},
    **{f"page {page} torn": _overwritten(page) for page in (*range(1, 12), 20, 30, 40)},
    "header torn": _overwritten(0),
    "a later version": _sql("PRAGMA user_version = 2"),
    "version 0": _sql("PRAGMA user_version = 0"),
    "no sessions": _sql("DROP TABLE swarm_sessions"),
    "no notices": _sql("DROP TABLE swarm_notices"),
    "a column less": _sql("DROP INDEX swarm_lock_agent_idx", "ALTER TABLE context DROP COLUMN agent"),
    "rollback journal": _sql("PRAGMA journal_mode = DELETE"),
    "another page size": _sql("PRAGMA journal_mode = DELETE", "PRAGMA page_size = 512", "VACUUM"),
    "UTF-16": _replaced(lambda path: sqlite3.connect(path).executescript("PRAGMA encoding = 'UTF-16'; CREATE TABLE x (y)").close()),
    "a log of garbage": _beside("-wal", os.urandom(5000)),
    "an empty log": _beside("-wal", b""),
    "a shared map of garbage": _beside("-shm", os.urandom(32768)),
    "a journal of garbage": _beside("-journal", os.urandom(5000)),
    "unreadable": lambda scene: scene.store.chmod(0),
    "read-only": lambda scene: scene.store.chmod(0o400),
    "another user's": _owned_by_another,
    "foreign types": _sql("UPDATE instances SET directory = x'00ff', root = 7, file_root = 1.5"),
    "ids as numbers": _sql("UPDATE swarm_sessions SET session_id = 7"),
}  # fmt: skip


@pytest.mark.parametrize("privileged", [True, False])
@pytest.mark.parametrize(("case", "runtime"), in_both_clients(STORES))
def test_an_odd_store(scene: Shared, case: str, privileged: bool) -> None:
    STORES[case](scene)
    if not is_silent(scene, edit(scene), None if privileged else without_privileges) or not privileged:
        return
    scene.begin_example()
    STORES[case](scene)
    agrees(scene)


@pytest.mark.parametrize(("shape", "runtime"), in_both_clients(SHAPES))
def test_the_store_of_an_earlier_release(scene: Shared, shape: str) -> None:
    """With the sessions of the scene in it, where that release knew sessions."""
    rows = {table: _rows(scene.store, table) for table in ("instances", "swarm_sessions")}
    _replaced(lambda path: sqlite3.connect(path).executescript(text_of(shape)).close())(scene)
    for table, found in rows.items():
        for row in found:
            known = {column for _at, column, *_ in _query(scene.store, f"PRAGMA table_info({table})")}
            kept = {name: value for name, value in row.items() if name in known}
            if kept:
                scene.insert(table, **kept)
    agrees(scene)


def _query(store: Path, statement: str) -> list[tuple]:
    with contextlib.closing(sqlite3.connect(store)) as connection:
        return connection.execute(statement).fetchall()


def _rows(store: Path, table: str) -> list[dict[str, object]]:
    with contextlib.closing(sqlite3.connect(store)) as connection:
        connection.row_factory = sqlite3.Row
        return [dict(row) for row in connection.execute(f"SELECT * FROM {table}")]


HOLDS = (
    "import sqlite3, sys; c = sqlite3.connect(sys.argv[1], isolation_level=None); c.execute(f'PRAGMA journal_mode = {sys.argv[2]}');"
    "c.execute(f'BEGIN {sys.argv[3]}'); c.execute('UPDATE instances SET heartbeat = 1'); print('held', flush=True); input()"
)


@pytest.mark.parametrize(("mode", "kind"), [("WAL", "IMMEDIATE"), ("DELETE", "IMMEDIATE"), ("DELETE", "EXCLUSIVE")])
def test_a_busy_store(scene: Shared, mode: str, kind: str) -> None:
    with _program(HOLDS, str(scene.store), mode, kind):
        found = is_silent(scene, edit(scene))
    assert not (found and kind == "EXCLUSIVE")


def test_a_log_that_was_left_by_a_killed_writer(scene: Shared) -> None:
    """Its newest commit is in the log alone; the map beside it may be missing."""
    leaves = (
        "import os, sqlite3, sys; c = sqlite3.connect(sys.argv[1], isolation_level=None);"
        "c.execute('INSERT INTO swarm_notices (message_id, instance_id) VALUES (1, ?)', (sys.argv[2],)); os._exit(0)"
    )
    for has_map in (True, False):
        scene.begin_example()
        subprocess.run([sys.executable, "-c", leaves, scene.store, scene.me["id"]], check=True)
        assert Path(f"{scene.store}-wal").stat().st_size
        if not has_map:
            Path(f"{scene.store}-shm").unlink()
        assert not is_silent(scene, edit(scene)), "a notice for the session is in the log"


@contextlib.contextmanager
def _program(text: str, *words: str) -> Iterator[None]:
    running = subprocess.Popen([sys.executable, "-c", text, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert running.stdout and running.stdout.readline() == b"held\n"
    try:
        yield
    finally:
        running.kill()
        running.communicate()


# ------------------------------------------------------------------------------------------------ the state folder


def _small_files(limit: int) -> Callable[[], None]:
    def before() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    return before


@pytest.mark.parametrize("limit", [0, 100, 700, 1500, 4096])
@pytest.mark.parametrize("name", ["sub/deep.md", "new.md"])
def test_a_full_disk(scene: Shared, limit: int, name: str) -> None:
    """As a limit of file sizes has it. Nothing that was noted before is lost, and the next call is noted in whole."""
    (scene.work / "sub/deep.md").write_text("x\n" * 2000)
    before = {who: scene.journal(who).read_bytes() for who in (ME, PEER)}
    is_silent(scene, edit(scene, name), _small_files(limit))
    for who, data in before.items():
        assert scene.journal(who).read_bytes().startswith(data)
    assert scene.asks(edit(scene, name))[0] == 0
    (scene.work / name).write_text("changed\n")
    tool, given = scene.edit_of(str(scene.work / name), scene.peers_core.config.runtime_name)
    assert scene.asks(scene.payload(tool, given, PEER), is_peer=True) != (0, "")


def _piped_inputs(scene: Shared) -> None:
    (inputs,) = (scene.state / "kept").glob(f"*/*{ME}/%inputs")
    inputs.unlink()
    os.mkfifo(inputs)


STATES: dict[str, Callable[[Shared], object]] = {
    "a pipe for inputs": _piped_inputs,
    "a closed folder": lambda scene: scene.state.chmod(0o500),
    "closed journals": lambda scene: scene.place.chmod(0o500),
    "a closed journal": lambda scene: scene.journal().chmod(0o400),
    "an unreadable journal": lambda scene: scene.journal(PEER).chmod(0),
    "closed versions": lambda scene: next((scene.state / "kept").glob("*/*")).chmod(0o500),
    "an unreadable work tree": lambda scene: (scene.work / "sub").chmod(0o600),
    "an unreadable file": lambda scene: (scene.work / "sub/deep.md").chmod(0),
    "an open folder": lambda scene: scene.state.chmod(0o777),
    "an open journal": lambda scene: scene.journal().chmod(0o666),
    "no state folder": lambda scene: scene.state.rename(scene.state.with_name("aside")),
    "a file for a state folder": lambda scene: (
        scene.state.rename(scene.state.with_name("aside")),
        scene.state.touch(),
    ),
    "no journals": lambda scene: scene.place.rename(scene.place.parent / "1.1"),
    "another user's journal": lambda scene: _given_away(scene.journal(PEER)),
    "another user's own journal": lambda scene: _given_away(scene.journal()),
    "another user's folder": lambda scene: _given_away(scene.state),
}


def _given_away(path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root gives files away")
    os.chown(path, 12345, 12345)


@pytest.mark.parametrize(("case", "runtime"), in_both_clients(STATES))
def test_an_odd_state_folder(scene: Shared, case: str) -> None:
    """Also without root's right to ignore permissions."""
    try:
        STATES[case](scene)
        is_silent(scene, edit(scene), without_privileges)
        is_silent(scene, edit(scene))
    finally:
        for folder in (scene.state, scene.place, scene.work / "sub", *scene.state.glob("kept/*/*")):
            if folder.is_dir():
                folder.chmod(0o700)


def test_the_deadline_stands_where_a_client_has_blocked_its_signal(scene: Shared) -> None:
    scene.locks(scene.peer, scene.work / "sub/deep.md")
    look = "import os, signal, sys; sys.exit(signal.SIGALRM in signal.pthread_sigmask(signal.SIG_BLOCK, []))"
    done = subprocess.run(
        [PROGRAM, CONTRACT, scene.runtime, sys.executable, "-S", "-c", look], input=edit(scene), timeout=SECONDS,
        preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM]), check=False,
    )  # fmt: skip
    assert done.returncode == 0


def test_a_call_after_that_finds_the_write(scene: Shared) -> None:
    """The scene itself: the program is silent, and the peer then meets the write."""
    assert agrees(scene)
    (scene.work / "sub/deep.md").write_text("changed\n")
    tool, given = scene.edit_of(str(scene.work / "sub/deep.md"), scene.peers_core.config.runtime_name)
    assert scene.asks(scene.payload(tool, given, PEER), is_peer=True) != (0, "")
