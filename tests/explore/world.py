"""The memory that the server and its processes share (``schedule.h``), and the library's functions on it."""

import ctypes
import os
import re
from typing import Any, NamedTuple

PROCESSES, TASKS, STEPS, DECISIONS, SAID = 4, 16, 30000, 512, 32768
ACTIONS = ("go on", "switch", "kill", "fail", "jump", "pause", "write a part")
SWITCH, KILL, FAIL, JUMP, PAUSE, SHORT = range(1, 7)
ALL_DONE, KILLED, DEADLOCK, TOO_LONG, STUCK, DIED = range(1, 7)


LIMIT_SECONDS = 120  # of real time, for one schedule
EVENTS = ("", "all done", "killed", "all wait for each other", "too many steps", "nothing moves", "a process has died")


PID = re.compile(r"\.\d{2,7}\.(?=tmp|taken|$)")

PLACE = re.compile(r"(traces|kept|heads)/[0-9a-f]+\.[0-9a-f]+")  # named after an inode


class Task(ctypes.Structure):
    _fields_ = [
        ("word", ctypes.c_uint32),
        *((name, ctypes.c_int32) for name in ("state", "process", "number")),
        ("is_midway", ctypes.c_uint32),
        *((name, ctypes.c_int64) for name in ("wakes_at", "paused")),
        *((name, ctypes.c_uint64) for name in ("semaphore", "random")),
    ]


class Decided(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int32) for name in ("task", "number", "action", "value")]


class Step(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_int32) for name in ("task", "number", "call", "action", "value", "result", "process")),
        ("now", ctypes.c_int64),
        ("path", ctypes.c_char * 100),
    ]


def place_of(step: Step) -> str:
    """Return the path of a step, without its parts that differ from run to run."""
    return PLACE.sub(r"\1/PLACE", PID.sub(".PID.", step.path.decode(errors="replace")))[:72]


class Shared(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_uint32) for name in ("word", "event", "event_process", "is_virtual")),
        *((name, ctypes.c_int32) for name in ("token", "reads", "has_power_cuts", "limit_seconds")),
        *((name, ctypes.c_int64) for name in ("now", "offset")),
        ("random", ctypes.c_uint64),
        ("chances", ctypes.c_uint32 * len(ACTIONS)),
        ("left", ctypes.c_int32 * len(ACTIONS)),
        *((name, ctypes.c_int32) for name in ("is_replay", "decisions", "steps", "root_length")),
        ("tasks", Task * TASKS),
        ("decided", Decided * DECISIONS),
        ("root", ctypes.c_char * 256),
        ("job", ctypes.c_char * 4096),
        ("said", ctypes.c_char * SAID),
        ("log", Step * STEPS),
    ]


class Decision(NamedTuple):
    """An action other than to go on: at the `number`-th stop of a task, ``SWITCH`` to task `value` for one."""

    task: int
    number: int
    action: int
    value: int


class World:
    """The shared memory in the file at `path`; `library` is preloaded into this process."""

    def __init__(self, library: str, path: str, root: str):
        self.library: Any = ctypes.CDLL(library, use_errno=True)
        self.library.explore_open.restype = ctypes.c_void_p
        self.library.explore_call.restype = ctypes.c_char_p
        self.library.explore_now.restype = self.library.explore_paused.restype = ctypes.c_int64
        self.library.explore_digest.restype = ctypes.c_uint64
        self.library.explore_reset.argtypes = (ctypes.c_int, ctypes.c_uint64)
        self.preloaded, self.path = library, path
        if os.path.exists(path):
            os.unlink(path)  # of a server before: its clock would be this one's
        address = self.library.explore_open(path.encode())
        if not address:
            raise OSError(ctypes.get_errno(), path)
        self.shared: Any = Shared.from_address(address)
        self.shared.limit_seconds = LIMIT_SECONDS
        self.shared.root, self.shared.root_length = root.encode(), len(root.encode())

    def say(self, *words: object) -> None:
        """Let a process of a schedule tell of a deed. Its words outlive it, and their order is that of the schedule."""
        self.library.explore_say(" ".join(map(str, words)).encode())

    def said(self) -> list[tuple[int, list[str]]]:
        """Return the words of all processes, in the order of the schedule: (process, words)."""
        lines = self.shared.said.decode().splitlines()
        return [(int(line[0]), line.split(" ")[2:]) for line in lines]

    def moments(self) -> list[int]:
        """Return the moment of each of these words, in nanoseconds."""
        return [int(line.split(" ")[1]) for line in self.shared.said.decode().splitlines()]

    def decisions(self) -> list[Decision]:
        """Return the decisions of the last schedule."""
        shared = self.shared
        return [Decision(one.task, one.number, one.action, one.value) for one in shared.decided[: shared.decisions]]

    def decide(self, decisions: list[Decision]) -> None:
        """Have the next schedule take these decisions, and no others."""
        self.shared.is_replay, self.shared.decisions = 1, len(decisions)
        for place, decision in enumerate(decisions):
            self.shared.decided[place] = tuple(decision)

    def digest(self) -> int:
        """Return a digest of the steps of the last schedule: the same for the same seed."""
        digest: int = self.library.explore_digest()
        return digest

    def told(self) -> list[tuple[int, int, list[str]]]:
        """Return the words of all processes with their moments, ``dies`` where one was killed, ``errs`` where a call failed."""
        found = [(moment, process, words) for (process, words), moment in zip(self.said(), self.moments())]
        words = {KILL: ["dies"], FAIL: ["errs"]}
        found += [(step.now, step.process, words[step.action]) for step in self._steps() if step.action in words]
        return sorted(found, key=lambda one: one[0])

    def killed(self) -> set[int]:
        """Return the processes that were killed in the last schedule, in any of their threads."""
        return {step.process for step in self._steps() if step.action == KILL}

    def _steps(self) -> list[Step]:
        return list(self.shared.log[: self.shared.steps])

    def steps(self) -> list[str]:
        """Return the stops of the last schedule, one a line."""
        names: dict[int, str] = {}
        lines = []
        for step in self._steps():
            if step.call not in names:
                names[step.call] = self.library.explore_call(step.call).decode()
            action = "" if not step.action else f"  [{ACTIONS[step.action]} {step.value}]"
            place = place_of(step)
            lines.append(f"{step.now / 1e6:10.3f} ms  {step.task}.{step.number:<4} {names[step.call]} {place}{action}")
        return lines
