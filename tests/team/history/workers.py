"""The sessions of one machine in a storm: they take places, hold them, check that they still do, and release them.

It runs in a process of its own, so that it can be stopped as a whole, and writes its observations to a file at its end.
"""

import json
import os
import random
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, Protocol

from support.history import Held, Look

from swarm_hook_core import clock

WORLD = ["src/a.py", "src/b.py", "src/deep/c.py", "docs/x.md"]
PLACES = ["src/a.py", "src", "src/b.py", "src/deep", "docs/x.md", "src/*.py", "*.md"]
MODES = ("exclusive", "exclusive", "exclusive", "shared")
HOLD_SECONDS = (0.05, 0.3, 1.0, 4.5)  # each hold lasts up to one of these: the last ones outlive a lease in a storm


class Taken(NamedTuple):
    """A session's grant: its fence, and True if every live replica has it."""

    fence: int
    settled: bool


class Machine(Protocol):
    """One machine of a team, driven by several threads at once."""

    sessions: list[str]
    pause: float  # seconds between two looks at all files

    def take(self, session: str, place: str, mode: str) -> Taken | None:
        """Return the grant, unless another session holds some of it, or the team cannot be asked."""

    def holds(self, session: str, place: str, fence: int) -> bool:
        """Return True if the session may still believe that it holds that grant."""

    def give_back(self, session: str, place: str, fence: int) -> None:
        """Release the grant, now or when the team can be reached again."""

    def look(self, file: str) -> tuple[float, set[str]]:
        """Return the end of this machine's freshness (boot clock), and the sessions with locks on `file`."""


def begun(report: Path) -> Path:
    """Return the file that is there once the machine that writes `report` has begun."""
    return report.with_suffix(".begun")


def work(machine: Machine, is_over: Callable[[], bool], report: Path, seed: int) -> None:
    """Have every session of `machine` take and release until `is_over`, and write down all observations."""
    begun(report).touch()
    history: list[Held] = []
    settled: list[Held] = []
    looks: list[Look] = []
    counts: Counter[str] = Counter()
    threads = [
        threading.Thread(
            target=_session, args=(machine, one, is_over, random.Random(f"{seed} {one}"), history, settled, counts)
        )
        for one in machine.sessions
    ]
    threads.append(threading.Thread(target=_onlooker, args=(machine, is_over, looks, counts)))
    threading.excepthook = _ends_all
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    report.write_text(json.dumps({"history": history, "settled": settled, "looks": looks, "counts": counts}))


def _ends_all(failure: threading.ExceptHookArgs) -> None:
    """Fail the whole machine after a failed thread: a storm without deeds proves nothing."""
    traceback.print_exception(failure.exc_type, failure.exc_value, failure.exc_traceback)
    os._exit(1)


def _session(
    machine: Machine, session: str, is_over: Callable[[], bool], chance: random.Random,
    history: list[Held], settled: list[Held], counts: Counter[str],
) -> None:  # fmt: skip
    while not is_over():
        place, mode = chance.choice(PLACES), chance.choice(MODES)
        asked = clock.now()
        taken = machine.take(session, place, mode)
        if taken is None:
            counts["refused"] += 1
            time.sleep(chance.random() * 0.1)
            continue
        began = ended = clock.now()
        until = began + chance.random() * chance.choice(HOLD_SECONDS)
        while not is_over():
            now = clock.now()  # before the look: its result was true then
            if not machine.holds(session, place, taken.fence):
                counts["lapsed"] += 1
                break
            ended = now
            if now > until:
                break
            time.sleep(0.003)
        held = Held(session, place, taken.fence, asked, began, ended, mode)
        counts["held"] += 1
        if ended > began:
            history.append(held)
            if taken.settled:
                settled.append(held)
        machine.give_back(session, place, taken.fence)
        time.sleep(chance.random() * 0.03)


def _onlooker(machine: Machine, is_over: Callable[[], bool], looks: list[Look], counts: Counter[str]) -> None:
    """Look at every file over and over, as hooks of sessions on this machine that hold nothing would."""
    while not is_over():
        for file in WORLD:
            began = clock.now()
            fresh_until, holders = machine.look(file)
            ended = clock.now()
            counts["looks"] += 1
            if ended < fresh_until:
                counts["fresh looks"] += 1
                if not holders:  # without holders, there was no conflict to miss
                    looks.append(Look(f"an onlooker beside {machine.sessions[0]}", file, began, ended, True, True))
        time.sleep(machine.pause)
