"""The number of workers at once: slots, the queue before them, and the leftovers of killed workers."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.altered import Clocks
from support.requirement import requirement

from swarm_mcp.agents.dispatch import slots
from swarm_mcp.agents.dispatch.slots import Slot

HOLDER = """
import sys
sys.path[:0] = {path!r}
from swarm_mcp.agents.dispatch.slots import Slot
slot = Slot()
print(slot.take(), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def cap(monkeypatch: pytest.MonkeyPatch):
    """Set how many may run at once; every slot that a test makes is given back at its end."""
    made: list[Slot] = []

    def of(most: object, count: int, within: str = "") -> list[Slot]:
        monkeypatch.setenv("SWARM_MAX_WORKERS", str(most))
        made.extend(Slot(within) for _ in range(count))
        return made[-count:]

    yield of
    for slot in made:
        slot.release()


@requirement("A-28")
def test_no_more_than_the_cap(cap) -> None:
    one, two, three = cap(2, 3)
    assert [slot.take() for slot in (one, two, three)] == [True, True, False]
    assert one.take(), "whoever has a place keeps it"
    one.release()
    one.release()
    assert three.take() and not one.take()


def test_the_oldest_ticket_is_served_first(cap) -> None:
    holder, *waiting = cap(1, 4)
    assert holder.take()
    assert [slot.take() for slot in waiting] == [False, False, False]
    holder.release()
    assert [slot.take() for slot in reversed(waiting)] == [False, False, True]
    waiting[0].release()
    waiting[1].release()  # it gives up
    assert waiting[2].take()


def test_a_stopped_waiter_blocks_nobody(cap, clocks: Clocks) -> None:
    """A silent waiter is passed over, and is first again once it asks."""
    holder, stopped, waiting, late = cap(1, 4)
    assert [slot.take() for slot in (holder, stopped, waiting)] == [True, False, False]
    holder.release()
    assert not waiting.take()
    clocks.stop("wall")
    clocks.ahead(wall=slots.SILENT_SECONDS + 1)
    assert waiting.take()
    assert [slot.take() for slot in (late, stopped)] == [False, False]
    waiting.release()
    assert not late.take() and stopped.take()


@pytest.mark.parametrize(("value", "most"), [("", 4), ("7", 7), ("0", 0), ("-1", 4), ("many", 4), ("²", 4)])
def test_the_cap_as_it_is_set(monkeypatch: pytest.MonkeyPatch, value: str, most: int) -> None:
    monkeypatch.setenv("SWARM_MAX_WORKERS", value)
    assert slots.most() == most


def test_without_a_cap_nobody_waits_and_nothing_is_written(cap) -> None:
    assert all(slot.take() for slot in cap(0, 20))
    assert not Path(os.environ["SWARM_STATE_DIR"]).exists()


def test_a_worker_has_a_place_for_one_of_its_own(cap) -> None:
    (outer,) = cap(1, 1)
    assert outer.take()
    first, second = cap(1, 2, within="w1")
    (stranger,) = cap(1, 1, within="w2")
    assert (first.take(), second.take(), stranger.take()) == (True, False, True)
    first.release()
    assert second.take()
    slots.forget("w1")
    slots.forget("w1")
    folder = Path(os.environ["SWARM_STATE_DIR"], "slots")
    assert sorted(path.name for path in folder.iterdir()) == ["1", "line", "within-w2"]


def test_a_killed_worker_leaves_neither_slot_nor_ticket(cap) -> None:
    cap(1, 1)
    program = [sys.executable, "-c", HOLDER.format(path=sys.path)]
    processes = [subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(1)]
    try:
        assert processes[0].stdout.readline() == b"True\n"
        processes.append(subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE))
        assert processes[1].stdout.readline() == b"False\n"
        (mine,) = cap(1, 1)
        assert not mine.take()
        line = Path(os.environ["SWARM_STATE_DIR"], "slots", "line")
        assert len(list(line.iterdir())) == 2
    finally:
        for process in processes:
            process.kill()
            process.communicate()
    assert mine.take(), "the one before has gone from the line, and the holder from its place"
    assert list(line.iterdir()) == []
