"""The record of faults inside hooks, which themselves stay silent. Its size is bounded.

One JSON object a line: ``{"at": unix seconds, "runtime", "hook", "fault"}``. `swarm-mcp doctor` shows the newest.
"""

import os
import time

from swarm_hook_core.state import append_line, state_dir

LIMIT_BYTES = 128 * 1024
HOUR = 3600


def fault_log() -> str:
    """Path of the record; the one before it has ``.1`` appended."""
    return os.path.join(state_dir(), "faults.jsonl")


def record(runtime: str, hook: str, fault: "str | BaseException") -> None:
    """Add one line. Never raises, since the caller has no one to tell."""
    try:
        if isinstance(fault, BaseException):
            fault = describe(fault)
        from swarm_hook_core.json_text import dumps

        line = dumps({"at": int(time.time()), "runtime": runtime, "hook": hook, "fault": fault[:500]})
        append_line(fault_log(), line, LIMIT_BYTES)
    except Exception:  # there is no one left to tell
        return


def record_hourly(runtime: str, hook: str, fault: "str | BaseException") -> None:
    """Record a fault that every check would meet: once an hour at most."""
    try:
        if time.time() - os.stat(fault_log()).st_mtime < HOUR:
            return
    except OSError:
        pass  # no fault yet
    record(runtime, hook, fault)


def describe(error: BaseException) -> str:
    """An exception in one line."""
    return " ".join(f"{type(error).__name__}: {error}".split())
