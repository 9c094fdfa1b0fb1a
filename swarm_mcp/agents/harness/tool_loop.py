"""Noticing that an agent calls the same tools over and over: a warning first, then the end of the run."""

from __future__ import annotations

import json
from collections import deque
from hashlib import blake2b

WINDOW = 40  # calls that are remembered
WARN, STOP = "warn", "stop"
SAME = (8, 15)  # calls of one tool with the same arguments, within the window: warned at, stopped at
TURNS = (6, 12)  # calls in a row that alternate between two
# Tools with arguments that name the file, but not the change: a repeated call may well be progress.
COARSE = frozenset({"file_change"})
COARSE_SAME = (16, 24)
COARSE_TURNS = (12, 24)


class ToolLoopGuard:
    """The last calls of one run."""

    def __init__(self) -> None:
        self._calls: deque[tuple[str, bool]] = deque(maxlen=WINDOW)
        self._warned: set[tuple[str, ...]] = set()

    def saw(self, tool: str, args: object) -> tuple[str, str] | None:
        """Note a call. ``(WARN | STOP, words)`` where it is one too many; a warning is given once."""
        # A name for a call; the order of keys, however deep, makes no difference
        try:
            text = json.dumps([tool, args], sort_keys=True, default=str)
        except (TypeError, ValueError, RecursionError):
            text = f"{tool} {args!r:.4000}"
        call = (blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest(), tool in COARSE)
        self._calls.append(call)
        times = self._calls.count(call)
        found = _level(times, COARSE_SAME if call[1] else SAME)
        if found:
            return self._once(found, (call[0],), f"{tool} was called {times} times with the same arguments")
        # The number of last calls that alternate between two, and the other one of the two
        calls = list(self._calls)
        if len(calls) < 2 or calls[-1] == calls[-2]:
            turns, other = 0, ("", False)
        else:
            length = 2
            while length < len(calls) and calls[-length - 1] == calls[-length + 1]:
                length += 1
            turns, other = length, calls[-2]
        found = _level(turns, COARSE_TURNS if call[1] or other[1] else TURNS)
        if found:
            return self._once(found, tuple(sorted((call[0], other[0]))), f"the same two calls took turns {turns} times")
        return None

    def _once(self, level: str, key: tuple[str, ...], words: str) -> tuple[str, str] | None:
        if level == WARN and key in self._warned:
            return None
        self._warned.add(key)
        return level, words


def _level(times: int, limits: tuple[int, int]) -> str:
    if times >= limits[1]:
        return STOP
    if times >= limits[0]:
        return WARN
    return ""
