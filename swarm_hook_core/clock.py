"""The clock that leases go by: seconds since this machine started, those it slept included.

The time of day can be set, forwards and backwards; this cannot. It counts from another beginning after each start
of the machine, so it is only ever compared together with `boot`.
"""

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


def left(lease: "Any", host: str, wall_now: float) -> "float | None":
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
