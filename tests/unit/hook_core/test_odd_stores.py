"""Odd stores and state folders, and foreign things planted in them: no hook breaks, locks hold, no note is lost."""

import contextlib
import json
import os
import resource
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.fixtures import time_limit, without_privileges
from support.scenes import ME, PEER, Scene
from support.sessions import argv, ready_store
from support.shared_scenes import Shared, in_both_clients
from support.store_files import SHAPES, text_of
from support.traced import Player, checkout

from swarm_hook_core import protected, session_memory, settings
from swarm_hook_core.hooks import SessionEvent
from swarm_hook_core.repository import tree_over
from swarm_hook_core.state import NotOrdinary, config_path, open_private, read_private, state_dir, turn_mark
from swarm_hook_core.traces import head, journal, journal_name, place_of
from swarm_hook_core.traces.versions import steps
from swarm_hook_core.watching import edits, records
from swarm_mcp.doctor import last_fault, recorded_faults
from swarm_mcp.domain import Session
from swarm_mcp.hooks import protection_watch, session_hooks
from swarm_mcp.store import Store

pytestmark = pytest.mark.slow


@pytest.fixture
def runtime() -> str:
    return "claude-code"


@pytest.fixture
def scene(runtime: str, tmp_path: Path, checks_have_time: None) -> Iterator[Shared]:
    """A scene with a write by each session."""
    made = Shared(tmp_path / "look", runtime)
    with made.environment():
        made.begin_example()
        yield made


def edit(scene: Scene, path: str = "sub/deep.md") -> bytes:
    """Return the payload of an edit."""
    return scene.payload(*scene.edit_of(str(scene.work / path)))


def answer(scene: Scene, payload: bytes, before: Callable[[], None] | None = None) -> str:
    """Return the answer of a hook of the client, `before` in its process: it ends well, and says nothing or one thing."""
    done = subprocess.run(
        argv(scene.runtime, "pre_tool_use"), input=payload, capture_output=True, check=False, timeout=time_limit(30),
        preexec_fn=before,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, b"")
    if done.stdout:
        json.loads(done.stdout)
    return done.stdout.decode()


def _replaced(make: Callable[[Path], object]) -> Callable[[Scene], None]:
    def spoil(scene: Scene) -> None:
        for path in scene.store.parent.glob("*"):
            path.unlink()
        make(scene.store)

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


def _linked_folder(scene: Scene) -> None:
    moved = scene.store.parent.with_name("elsewhere")
    scene.store.parent.rename(moved)
    scene.store.parent.symlink_to(moved)


def _owned_by_another(scene: Scene) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root gives files away")
    os.chown(scene.store, 12345, 12345)


STORES: dict[str, Callable[[Scene], None]] = {
    "a pipe": _replaced(os.mkfifo),
    "a device": _replaced(lambda path: path.symlink_to("/dev/zero")),
    "a link to itself": _replaced(lambda path: path.symlink_to(path.name)),
    "a link to another store": lambda scene: scene.store.rename(scene.store.with_name("x")).with_name("swarm.db").symlink_to("x"),
    "empty": _replaced(lambda path: path.touch()),
    "a socket": _replaced(_socket),
    "a linked folder": _linked_folder,
    "another database": _replaced(lambda path: sqlite3.connect(path).executescript("CREATE TABLE instances (id)").close()),
    **{f"page {page} torn": _overwritten(page) for page in (1, 2, 5, 10, 30)},
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


# Its rows can be read as well as ever.
READABLE = (
    "a linked folder", "no notices", "rollback journal", "another page size", "an empty log", "a shared map of garbage",
)  # fmt: skip
# Nothing in them can be read, so every call passes.
CLOSED = ("a pipe", "a socket", "a device", "a link to itself", "a link to another store", "header torn")


@pytest.mark.parametrize("privileged", [True, False])
@pytest.mark.parametrize(("case", "runtime"), in_both_clients(STORES))
@pytest.mark.sampled
def test_an_odd_store(scene: Shared, case: str, privileged: bool) -> None:
    scene.locks(scene.peer, scene.work / "sub/deep.md")
    STORES[case](scene)
    told = answer(scene, edit(scene), None if privileged else without_privileges)
    if case in READABLE:
        assert '"deny"' in told
    assert case not in CLOSED or (told == "" and recorded_faults())


@pytest.mark.parametrize(("shape", "runtime"), in_both_clients(SHAPES))
@pytest.mark.sampled
def test_the_store_of_an_earlier_release(scene: Shared, shape: str) -> None:
    _replaced(lambda path: sqlite3.connect(path).executescript(text_of(shape)).close())(scene)
    answer(scene, edit(scene))


def test_a_log_that_was_left_by_a_killed_writer(scene: Shared) -> None:
    """Its newest commit is in the log alone; the map beside it may be missing."""
    leaves = (
        "import os, sqlite3, sys; c = sqlite3.connect(sys.argv[1], isolation_level=None);"
        "c.execute('UPDATE context SET type = ?', ('lock',)); os._exit(0)"
    )
    for has_map in (True, False):
        scene.begin_example()
        scene.locks(scene.peer, scene.work / "sub/deep.md")
        scene.execute("UPDATE context SET type = 'note'")
        assert '"deny"' not in answer(scene, edit(scene))  # words about the lock that has gone may come now or later
        subprocess.run([sys.executable, "-c", leaves, scene.store], check=True)
        assert Path(f"{scene.store}-wal").stat().st_size
        if not has_map:
            Path(f"{scene.store}-shm").unlink()
        assert '"deny"' in answer(scene, edit(scene)), "the lock is in the log alone"


def _small_files(limit: int) -> Callable[[], None]:
    def before() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    return before


@pytest.mark.parametrize("limit", [0, 100, 700, 1500, 4096])
@pytest.mark.parametrize("name", ["sub/deep.md", "new.md"])
@pytest.mark.sampled
def test_a_full_disk(scene: Shared, limit: int, name: str) -> None:
    """As a limit of file sizes has it. Nothing that was noted before is lost, and the next call is noted in whole."""
    (scene.work / "sub/deep.md").write_text("x\n" * 2000)
    before = {who: scene.journal(who).read_bytes() for who in (ME, PEER)}
    answer(scene, edit(scene, name), _small_files(limit))
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
@pytest.mark.sampled
def test_an_odd_state_folder(scene: Shared, case: str) -> None:
    """A lock holds, also without root's right to ignore permissions."""
    scene.locks(scene.peer, scene.work / "sub/deep.md")
    try:
        STATES[case](scene)
        assert '"deny"' in answer(scene, edit(scene), without_privileges)
        assert '"deny"' in answer(scene, edit(scene))
    finally:
        for folder in (scene.state, scene.place, scene.work / "sub", *scene.state.glob("kept/*/*")):
            if folder.is_dir():
                folder.chmod(0o700)


ENDLESS = 1 << 40  # bytes of a sparse file: reading all of it would exhaust the memory


def sparse(path: Path) -> None:
    path.touch()
    os.truncate(path, ENDLESS)


PLANTED: dict[str, Callable[[Path], object]] = {
    "pipe": os.mkfifo,
    "endless device": lambda path: os.symlink("/dev/zero", path),
    "link": lambda path: os.symlink("/etc/passwd", path),
    "empty folder": os.mkdir,
    "endless file": sparse,
}
planted = pytest.mark.parametrize("plant", PLANTED.values(), ids=PLANTED)


@pytest.fixture(autouse=True)
def nothing_hangs() -> Iterator[None]:
    """A call that waits for a pipe's other end is interrupted, so that the test fails instead of standing still."""

    def give_up(_number: int, _frame: object) -> None:
        raise AssertionError("it waits for ever")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(120)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def ground(tmp_path: Path, checks_have_time: None) -> Path:
    ready_store()
    return checkout(tmp_path.resolve() / "work", "notes.md", "other.md")


def replaced(path: Path, plant: Callable[[Path], object]) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    elif os.path.lexists(path):
        path.unlink()
    path.parent.mkdir(parents=True, exist_ok=True)
    plant(path)


@planted
@pytest.mark.parametrize("whose", ["another's", "its own"])
@pytest.mark.sampled
def test_beside_what_is_no_journal_the_others_count_and_a_journal_of_ones_own_begins_anew(
    plant: Callable[[Path], object], ground: Path, whose: str
) -> None:
    me, peer = Player("codex", ground), Player("codex", ground)
    me.runs("cat notes.md")
    peer.edits("other.md", "beta", "PEER")
    name = journal_name("codex", "planted" if whose == "another's" else peer.session_id)
    replaced(Path(place_of(str(ground)), name), plant)
    peer.edits("notes.md", "beta", "PEER")
    assert me.runs("echo mine > notes.md").startswith("denied: ")
    assert me.runs("git stash").startswith("denied: ")


@planted
def test_who_finds_something_else_in_the_place_of_the_turns_mark_puts_it_right(
    plant: Callable[[Path], object], ground: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SWARM_AUTO", "turn")
    me, peer = Player("codex", ground), Player("codex", ground)
    peer.edits("other.md", "beta", "PEER")
    replaced(Path(turn_mark()), plant)
    assert peer.edits("notes.md", "beta", "PEER") == ""
    assert me.runs("echo mine > notes.md").startswith("denied: ")


@planted
@pytest.mark.sampled
def test_locks_hold_whatever_is_planted_in_the_state_folder(plant: Callable[[Path], object], ground: Path) -> None:
    me, holder, peer = (Player("claude-code", ground) for _ in range(3))
    with Store() as store:
        store.locks.acquire(Session(holder.row), str(ground / "notes.md"))
    me.runs("cat notes.md other.md")
    peer.edits("other.md", "beta", "PEER")
    me.runs("make")  # is watched
    me.runs("echo x > notes.md")  # is denied, and counted
    event = SessionEvent(me.session_id, str(ground))
    session_memory.keep_words(me.core.config, event, "words")
    session_memory.save(me.core.config, me.session_id, instance_id="x")
    session_memory.begin_turn(me.core.config, me.session_id, "turn")
    found = [Path(folder, name) for folder, _folders, names in os.walk(state_dir()) for name in names]
    names = ["busy", "command", "config-fault", "faults.jsonl", "repeated-denials.jsonl", "kernel/probe", "team/told/x"]
    assert len(found) > 4
    for path in dict.fromkeys([*found, *(Path(state_dir(), name) for name in names)]):
        replaced(path, plant)
    assert me.runs("echo x > notes.md").startswith("denied: ")
    assert holder.runs("sed -i s/alpha/A/ notes.md") == ""
    assert session_memory.load(me.core.config, me.session_id) == {}
    assert not session_memory.tried_lately(me.core.config, me.session_id, 60, 0)
    kept = Path(session_memory._words_folder())
    session_memory.take_words(me.core.config, event)
    assert not kept.exists() or any(path.is_dir() for path in kept.iterdir())
    for name in records.names_of(me.session_id):
        assert records.take(me.session_id, name) is None
    settings._record_once("a fault", "a state", "config-fault")
    recorded_faults()


@planted
def test_no_reader_waits_for_the_other_end_of_a_pipe(plant: Callable[[Path], object], ground: Path) -> None:
    """Files of ours that only some events read, and git's own."""
    me = Player("claude-code", ground)
    event = SessionEvent(me.session_id, str(ground))
    git = ground / ".git"
    of_state = {
        protection_watch.NAME: lambda _path: protection_watch._read(),
        "marks": lambda path: session_hooks._is_as_it_was(str(path), Store()),
        "faults.jsonl": lambda path: last_fault(path.parent),
        os.path.relpath(session_memory._mail_file(me.core.config, event.session_id), state_dir()): (
            lambda _path: session_memory.is_mail_due(me.core.config, event, me.core.config.runtime_name, 1)
        ),
        os.path.relpath(edits._path(me.session_id), state_dir()): lambda _path: edits._taken(me.session_id),
    }
    of_git = {
        "config": lambda _path: protected.hooks_path(str(git)),
        "hooks/pre-commit": lambda path: protected._is_guards(str(path)),
        "packed-refs": lambda _path: head.commit_of(tree_over(str(ground)), "refs/heads/gone"),
        "logs/HEAD": lambda _path: steps.contents_since(str(ground / "notes.md"), 0),
    }
    for folder, readers in ((Path(state_dir()), of_state), (git, of_git)):
        for name, read in readers.items():
            replaced(folder / name, plant)
            with contextlib.suppress(OSError):
                read(folder / name)


@planted
def test_a_file_of_ours_is_an_ordinary_one(plant: Callable[[Path], object], tmp_path: Path) -> None:
    path = tmp_path / "file"
    plant(path)
    if path.is_file() and not path.is_symlink():
        assert len(read_private(str(path), 10)) == 10
        assert len(journal.read(str(path))) < 2 * journal.LARGEST
        return
    for flags in (os.O_RDONLY, os.O_WRONLY | os.O_APPEND, os.O_RDWR | os.O_CREAT):
        with pytest.raises(NotOrdinary, match="no ordinary file"):
            open_private(str(path), flags)
    with pytest.raises(NotOrdinary):
        journal.read(str(path))
    assert journal.folder_of(str(path)) == ""


def test_of_a_journal_that_is_too_long_the_owner_and_the_newest_count(tmp_path: Path) -> None:
    path = tmp_path / "codex.one"
    entry = b"5 wrote - Bash\0/w/%06d\0x\n"
    path.write_bytes(b"\n1 session - codex\0one\0/w\n" + b"".join(entry % n for n in range(journal.LARGEST // 20)))
    data = journal.read(str(path))
    assert journal.owner_of(data) == ("codex", "one") and len(data) <= journal.LARGEST + journal.HEAD
    assert journal.newest(data, f"/w/{journal.LARGEST // 20 - 1:06d}", ("wrote",)) is not None


@pytest.mark.parametrize("kind", ["pipe", "endless device", "empty folder", "endless file"])
def test_settings_that_are_no_file_are_said_and_a_link_to_one_is_followed(kind: str, tmp_path: Path) -> None:
    path = Path(config_path())
    replaced(path, PLANTED[kind])
    assert settings.read(str(path)).faults
    (tmp_path / "mine.json").write_text('{"auto": "turn"}')
    replaced(path, lambda place: os.symlink(tmp_path / "mine.json", place))
    assert not settings.read(str(path)).faults
