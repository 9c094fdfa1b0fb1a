"""Level ``turn``: the first session to write a file in a turn has it, even at the same moment."""

import errno
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from support import turns
from support.altered import Failing
from support.fixtures import FOLDERS
from support.sessions import hook_core, new_session

from swarm_hook_core.hooks import ToolCall
from swarm_hook_core.lookup import Peers
from swarm_hook_core.state import has_turn_files, turn_mark
from swarm_hook_core.traces import TURN, turn_files
from swarm_hook_core.traces.trail import Trail
from swarm_hook_core.traces.turn_files import TurnFiles
from swarm_mcp.store import Store
from swarm_mcp.store.sessions import Registration


class World:
    """A store, and sessions in one folder."""

    def __init__(self, store: Store, folder: Path):
        self.store, self.folder = store, folder
        self.config = hook_core("codex").config
        self.me, self.peer = self.join(), self.join()
        self.file = str(folder / "a.py")

    def join(self) -> str:
        session_id = new_session()
        self.store.instances.register(Registration(str(self.folder), runtime="codex", session_id=session_id))
        return session_id

    def check(self, session: str, *files: str, agent: str = "") -> TurnFiles:
        """Take files as a call at level `turn` does."""
        call = ToolCall("Edit", {}, session, str(self.folder), agent=agent)
        found = TurnFiles("codex", call, self.store.as_hooks_read_it(), time.time_ns())
        found.take(Trail(self.config, call, TURN), files or [self.file])
        return found

    def denied(self, session: str, *files: str, agent: str = "") -> list[str]:
        """Return the files that keep such a call out; it takes back what it has noted then."""
        asked = self.check(session, *files, agent=agent)
        met = [held.file for held in asked.on(files or (self.file,))]
        if met:
            asked.take_back()
        return met


@pytest.fixture
def world(tmp_path: Path):
    with Store() as store:
        yield World(store, tmp_path.resolve())


def test_the_first_to_write_has_the_file(world: World) -> None:
    assert not has_turn_files() and turn_files.lasting(time.time_ns()) == []
    assert world.denied(world.me) == [] and has_turn_files()
    assert world.denied(world.peer) == [world.file]
    (one,) = turns.held()
    assert one.is_of("codex", world.me) and (one.file, one.tool) == (world.file, "Edit")
    assert oct(os.stat(turn_mark()).st_mode)[-3:] == "600"


def test_it_is_met_as_a_lock_of_its_session(world: World) -> None:
    world.check(world.peer)
    mine = world.check(world.me, world.file, f"{world.folder}/b")
    assert turns.holders() == [world.peer], "of several files all are taken, or none"
    (held,) = Peers(mine.reader, "x", time.time())._live(mine.on([world.file, f"{world.folder}/b"]))
    assert (held.file, held.mode, held.note) == (world.file, "auto", "editing it in this turn")
    assert held.instance_id == world.store.instances.of_session("codex", world.peer).id


def test_who_has_met_another_is_denied_though_that_turn_ends_meanwhile(world: World) -> None:
    """Else it would write without having the file, and a third session could take it."""
    world.check(world.peer)
    mine = world.check(world.me)
    turn_files.end("codex", world.peer)
    assert [held.file for held in mine.on([world.file])] == [world.file] and mine.on([f"{world.folder}/b"]) == []


def test_a_further_write_renews_it(world: World) -> None:
    turns.write(("codex", world.me), world.file, ago=5)
    (first,) = turns.held()
    assert world.denied(world.me) == []
    (again,) = turns.held()
    assert again.at == first.at and again.written > first.written


def test_what_a_session_has_its_agents_may_write_but_not_the_other_way_round(world: World) -> None:
    other = f"{world.folder}/b"
    assert world.denied(world.me) == world.denied(world.me, agent="a") == []
    assert [one.agent for one in turns.held()] == [""]
    assert world.denied(world.me, other, agent="a") == []
    assert world.denied(world.me, other) == world.denied(world.me, other, agent="b") == [other]


def test_only_what_a_denied_call_has_noted_is_taken_back(world: World) -> None:
    world.check(world.me).take_back()
    assert turns.held() == []
    before = world.check(world.me)
    world.check(world.me).take_back()
    assert turns.holders() == [world.me], "an earlier write has taken it"
    world.check(world.me)
    before.take_back()
    assert turns.holders() == [world.me], "another call has written it since"


def test_files_below_a_folder_are_found(world: World) -> None:
    for name in ("sub/a", "sub/deep/b", "subway"):
        turns.write(("codex", world.peer), f"{world.folder}/{name}")
    mine = world.check(world.me, f"{world.folder}/c")
    assert sorted(held.file for held in mine.under([f"{world.folder}/sub/"])) == [
        f"{world.folder}/sub/a",
        f"{world.folder}/sub/deep/b",
    ]
    assert world.check(world.peer, f"{world.folder}/d").under([f"{world.folder}/sub"]) == []


@pytest.mark.parametrize("ago", [601, -86400])
def test_it_is_void_ten_minutes_after_the_last_write_and_in_the_far_future(world: World, ago: float) -> None:
    """A clock may have been set back."""
    turns.write(("codex", world.me), world.file, ago=ago)
    assert world.denied(world.peer) == [] and world.denied(world.me) == [world.file]


@pytest.mark.parametrize("ago", [595, 700])
def test_its_holder_s_own_is_renewed_though_it_is_void_or_nearly(world: World, ago: float) -> None:
    turns.write(("codex", world.me), world.file, ago=ago)
    assert world.denied(world.me) == [] and world.denied(world.peer) == [world.file]


def test_one_that_is_nearly_void_gives_way_to_who_has_taken_it(world: World) -> None:
    """That one's clock may have been a little ahead."""
    turns.write(("codex", world.me), world.file, ago=595)
    turns.write(("codex", world.peer), world.file)
    assert world.denied(world.me) == [world.file] and world.denied(world.peer) == []


@pytest.mark.parametrize("how", ["never registered", "left"])
def test_of_a_session_that_is_not_there_it_is_taken_for_good(how: str, world: World) -> None:
    """If that session is resumed, it does not have the file still."""
    gone = world.join() if how == "left" else new_session()
    turns.write(("codex", gone), world.file)
    if how == "left":
        world.store.instances.remove(world.store.instances.of_session("codex", gone).id)
        turns.write(("codex", gone), world.file)
    assert world.denied(world.me) == [] and turns.holders() == [world.me]


@pytest.mark.parametrize("is_first", [False, True])
def test_who_was_killed_between_note_and_look_has_nothing_and_keeps_the_holder_from_nothing(
    world: World, is_first: bool
) -> None:
    """The two may have noted it in any order, if a process was stopped among them."""
    killed = {"session": ("codex", world.peer), "path": world.file, "passed": False}
    if is_first:
        turns.write(**killed, ago=5)
    turns.write(("codex", world.me), world.file)
    if not is_first:
        turns.write(**killed)
    for _ in range(2):
        assert world.denied(world.me) == [] and world.denied(world.peer) == [world.file]
    assert world.file in world.denied(world.join())


def test_a_folder_is_not_taken(world: World) -> None:
    world.check(world.me, str(world.folder))
    assert turns.held() == []


@pytest.mark.parametrize("text", [b"", b"{", b"1 takes", b"1 takes - Edit\0", b"\xff takes \xff"])
def test_torn_entries_hold_nothing_and_hide_none(world: World, text: bytes) -> None:
    world.check(world.peer)
    (one,) = turns.held()
    with open(one.journal, "ab") as journal:
        journal.write(b"\n" + text + b"\n")
    assert turns.holders() == [world.peer] and world.denied(world.me) == [world.file]


def test_a_file_whose_name_is_not_utf_8_can_be_taken(world: World) -> None:
    odd = os.fsdecode(os.fsencode(str(world.folder)) + b"/\xff")
    assert world.denied(world.me, odd) == [] and world.denied(world.peer, odd) == [odd]


def test_it_outlives_the_rotation_of_its_journal(world: World) -> None:
    world.check(world.me)
    (one,) = turns.held()
    os.replace(one.journal, one.journal + ".1")
    assert world.denied(world.peer) == [world.file]


def test_a_full_disk_takes_nothing(world: World, failing: Failing) -> None:
    failing(Trail, "append", OSError(errno.ENOSPC, "full"))
    with pytest.raises(OSError, match="full"):
        world.check(world.me)
    assert turns.held() == []


SCRIPT = f"""
import os, signal, sys, time
sys.path[:0] = {FOLDERS!r}
from support.sessions import hook_core
from swarm_hook_core.hooks import ToolCall
from swarm_hook_core.traces import TURN, turn_files
from swarm_hook_core.traces.trail import Trail
from swarm_mcp.store import Store
session, folder, what = sys.argv[1:4]
config, store = hook_core("codex").config, Store()
call = ToolCall("Edit", {{}}, session, folder)

def take(file):
    asked = turn_files.TurnFiles("codex", call, store.as_hooks_read_it(), time.time_ns())
    asked.take(Trail(config, call, TURN), [file])
    return not asked.on([file])
"""
KILLED = """
turn_files.TurnFiles._found = lambda self: os.kill(os.getpid(), signal.SIGSTOP if what == "stop" else signal.SIGKILL)
take(folder + "/a.py")
"""
RACE = """
for number in range(100):
    while time.time() < float(what) + number * 0.005:
        pass
    print(number, int(take(f"{folder}/{number}")))
"""


def test_a_process_that_is_killed_while_it_takes_a_file_keeps_nobody_waiting(world: World) -> None:
    argv = [sys.executable, "-c", SCRIPT + KILLED, world.peer, str(world.folder), "kill"]
    assert subprocess.run(argv).returncode == -signal.SIGKILL
    begun = time.monotonic()
    assert world.denied(world.me, f"{world.folder}/b") == []
    assert time.monotonic() - begun < 0.4


def test_one_that_is_stopped_there_is_waited_for_no_longer_than_a_moment(world: World) -> None:
    """Two that take a file meanwhile cannot both have it, though no lock keeps them apart."""
    argv = [sys.executable, "-c", SCRIPT + KILLED, world.peer, str(world.folder), "stop"]
    stopped = subprocess.Popen(argv)
    try:
        assert os.waitpid(stopped.pid, os.WUNTRACED)[1]
        other = f"{world.folder}/b"
        assert world.denied(world.me, other) == [] and world.denied(world.join(), other) == [other]
        assert world.denied(world.me) == [world.file], "it has noted that it takes this one"
    finally:
        stopped.kill()
        stopped.wait()


def test_of_two_that_write_first_at_one_moment_one_has_the_file(world: World) -> None:
    start = str(time.time() + 1.5)
    words = [sys.executable, "-c", SCRIPT + RACE]
    both = [
        subprocess.Popen([*words, session, str(world.folder), start], stdout=subprocess.PIPE, text=True)
        for session in (world.me, world.peer)
    ]
    one, other = ([line.split() for line in process.communicate()[0].splitlines()] for process in both)
    assert len(one) == len(other) == 100
    for (number, has), (same, has_too) in zip(one, other, strict=True):
        assert number == same and {has, has_too} == {"0", "1"}, (number, has, has_too)


def test_whoever_looks_while_turns_come_and_go_meets_whole_ones_or_none(world: World) -> None:
    ended = threading.Event()

    def come_and_go() -> None:
        with Store() as store:
            mine = World(store, world.folder)
            while not ended.is_set():
                mine.check(mine.me)
                turn_files.end("codex", mine.me)

    thread = threading.Thread(target=come_and_go)
    thread.start()
    try:
        for _ in range(300):
            assert len(turns.held()) <= 1 and {one.file for one in turns.held()} <= {world.file}
    finally:
        ended.set()
        thread.join()
