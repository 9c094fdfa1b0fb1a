"""What commands print."""

from __future__ import annotations

import sys
import time

from swarm_hook_core.payload import dumps
from swarm_mcp.store.removal import STALE_SECONDS


def say(text: str = "") -> None:
    """One line on standard output; what the terminal cannot show is escaped, not fatal."""
    stream = sys.stdout
    if stream is None:  # started with standard output closed
        return
    encoding = getattr(stream, "encoding", None) or "utf-8"
    stream.write(text.encode(encoding, "backslashreplace").decode(encoding) + "\n")


def show(value: object) -> None:
    """A value as indented JSON."""
    say(dumps(value, indent=2))


def moment(seconds: int) -> str:
    """Unix seconds as a UTC date and time."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(seconds))


def presence(row: dict, now: int) -> str:
    """``working``, ``idle`` or ``live`` with the seconds since the last sign of life."""
    age = max(0, now - (row.get("last_seen") or row["heartbeat"]))
    if row.get("last_seen") is not None:
        return f"{row.get('state') or 'live'} ({age}s)"
    return f"{'live' if age <= STALE_SECONDS else 'stale'} ({age}s)"
