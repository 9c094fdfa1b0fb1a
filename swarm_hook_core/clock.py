"""Time: the clock that leases go by, and the processor time that a check may take.

The time of day can be set, forwards and backwards; this cannot. It counts from another beginning after each start
of the machine, so it is only ever compared together with `boot`.
"""

from __future__ import annotations

import sys
import time
from typing import Any

if sys.platform.startswith("linux"):
    _CLOCK = getattr(time, "CLOCK_BOOTTIME", None)
else:
    _CLOCK = None
if _CLOCK is None:
    _CLOCK = getattr(time, "CLOCK_MONOTONIC", None)  # on macOS this one counts sleep


def now() -> float:
    """Seconds since the machine started."""
    if _CLOCK is None:
        return time.monotonic()
    return time.clock_gettime(_CLOCK)


def awake() -> float:
    """Return the seconds since the machine started, without sleep: a closed lid makes no session silent."""
    return time.monotonic()


def boot(host: str) -> str:
    """Return the id of this start of the machine from ``process.host_id()``; empty if it has none."""
    if host.count("/") >= 2:
        return host.split("/")[1]
    return ""


def left(lease: Any, host: str, wall_now: float) -> float | None:
    """Return the seconds until a lease lapses, negative after that; None for a lock without a lease.

    `lease` is ``(ttl, renewed, booted, wall_until)``, with `ttl` in seconds. `renewed` is the holder's last sign of
    life, by this clock, in the start `booted`. After another start of the machine `wall_until` (Unix seconds) counts
    instead.
    """
    ttl, renewed, booted, wall_until = lease
    if not isinstance(ttl, (int, float)):
        return None
    if isinstance(renewed, (int, float)) and booted == boot(host):
        return renewed + ttl - now()
    if isinstance(wall_until, (int, float)):
        return wall_until - wall_now
    return 0.0


# The processor time that the check of one call may take, all its parts together.
#
# It is the time of this thread, so that a busy machine changes no answer. A part that runs out of time becomes a guess:
# the call goes ahead, and the files that it may write are compared afterwards.

SECONDS = 0.010  # from the first look at the call to the last lock
LEAST_SECONDS = 0.003  # of each part, even if the parts before it have used up the time
SECONDS_TO_LOAD = 0.010  # added to that, for importing the readers of programs


class Budget:
    """The time of one check. It begins now, and ends when the thread has taken processor time until `end`.

    Work that keeps no call waiting may have more `seconds`.
    """

    __slots__ = ("end", "to_load", "imported")

    def __init__(self, seconds: float = 0.0):
        self.end = time.thread_time() + (seconds or SECONDS)
        self.to_load = SECONDS_TO_LOAD
        self.imported = 0.0  # seconds that went into nothing but importing

    def part(self, seconds: float | None = None) -> float:
        """Return when a part of the check that begins now is over: after `seconds`, or when the budget ends."""
        now = time.thread_time()
        if seconds is None:
            until = self.end
        else:
            until = min(self.end, now + seconds)
        return max(until, now + LEAST_SECONDS)

    def forgive_import(self, seconds: float) -> float:
        """Extend the budget by `seconds` that went into imports alone, and return them.

        They are many without bytecode, and on a slow machine. A caller that imports something in passing has more time
        then.
        """
        self.imported += seconds
        self.to_load += seconds
        self.end += seconds
        return seconds

    def forgive(self, seconds: float) -> float:
        """Extend the budget by `seconds` that also went into an import, up to a limit; return the extension."""
        seconds = min(seconds, self.to_load)
        self.to_load -= seconds
        self.end += seconds
        return seconds
