"""Pipes, links, folders and endless files in place of the hooks' own files: hooks do not wait for them, locks hold, and
traces count.
"""

import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.sessions import ready_store
from support.traced import Player, checkout

from swarm_hook_core import scratch, settings, unheard
from swarm_hook_core.hooks import SessionEvent
from swarm_hook_core.state import NotOrdinary, config_path, open_private, read_private, state_dir, turn_mark
from swarm_hook_core.traces import journal, journal_name, place_of
from swarm_hook_core.watching import records
from swarm_mcp.doctor.faults import recorded_faults
from swarm_mcp.domain.session import Session
from swarm_mcp.store import Store

pytestmark = pytest.mark.slow

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
def test_beside_what_is_no_journal_the_others_count(plant: Callable[[Path], object], ground: Path) -> None:
    me, peer = Player("codex", ground), Player("codex", ground)
    me.runs("cat notes.md")
    peer.edits("notes.md", "beta", "PEER")
    replaced(Path(place_of(str(ground)), journal_name("codex", "planted")), plant)
    assert me.runs("echo mine > notes.md").startswith("denied: ")
    assert me.runs("git stash").startswith("denied: ")


@planted
def test_who_finds_something_else_in_the_place_of_its_journal_begins_anew(
    plant: Callable[[Path], object], ground: Path
) -> None:
    me, peer = Player("codex", ground), Player("codex", ground)
    me.runs("cat notes.md")
    peer.edits("other.md", "beta", "PEER")
    replaced(Path(place_of(str(ground)), journal_name("codex", peer.session_id)), plant)
    peer.edits("notes.md", "beta", "PEER")
    assert me.runs("echo mine > notes.md").startswith("denied: ")


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
def test_locks_hold_whatever_is_planted_in_the_state_folder(plant: Callable[[Path], object], ground: Path) -> None:
    me, holder, peer = (Player("claude-code", ground) for _ in range(3))
    with Store() as store:
        store.locks.acquire(Session(holder.row), str(ground / "notes.md"))
    me.runs("cat notes.md other.md")
    peer.edits("other.md", "beta", "PEER")
    me.runs("make")  # is watched
    me.runs("echo x > notes.md")  # is denied, and counted
    event = SessionEvent(me.session_id, str(ground))
    unheard.keep(me.core.config, event, "words")
    scratch.save(me.core.config, me.session_id, instance_id="x")
    scratch.begin_turn(me.core.config, me.session_id, "turn")
    found = [Path(folder, name) for folder, _folders, names in os.walk(state_dir()) for name in names]
    names = ["busy", "command", "config-fault", "faults.jsonl", "repeated-denials.jsonl", "kernel/probe", "team/told/x"]
    assert len(found) > 4
    for path in dict.fromkeys([*found, *(Path(state_dir(), name) for name in names)]):
        replaced(path, plant)
    assert me.runs("echo x > notes.md").startswith("denied: ")
    assert holder.runs("sed -i s/alpha/A/ notes.md") == ""
    assert scratch.load(me.core.config, me.session_id) == {}
    assert not scratch.tried_lately(me.core.config, me.session_id, 60, 0)
    unheard.take(me.core.config, event)
    for name in records.names_of(me.session_id):
        assert records.take(me.session_id, name) is None
    settings._record_once("a fault", "a state", "config-fault")
    recorded_faults()


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
