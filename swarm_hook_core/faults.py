"""The bounded record of what went wrong inside hooks, which must themselves stay silent.

One JSON object a line: ``{"at": unix seconds, "runtime", "hook", "fault"}``. `swarm-mcp doctor`
shows the newest.
"""

import os
import time

from swarm_hook_core.state import append_line, state_dir

LIMIT_BYTES = 128 * 1024
HOUR = 3600


def fault_log() -> str:
    """Path of the record; the one before it has ``.1`` appended."""
    return os.path.join(state_dir(), "faults.jsonl")


def record(runtime: str, hook: str, fault: str) -> None:
    """Add one line. Never raises: there is nobody left to tell."""
    try:
        from swarm_hook_core.json_text import dumps

        line = dumps({"at": int(time.time()), "runtime": runtime, "hook": hook, "fault": fault[:500]})
        append_line(fault_log(), line, LIMIT_BYTES)
    except Exception:
        return


def record_hourly(runtime: str, hook: str, fault: str) -> None:
    """As `record`, for what every check would record: only where nothing has been for an hour."""
    try:
        if time.time() - os.stat(fault_log()).st_mtime < HOUR:
            return
    except OSError:
        pass  # no fault yet
    record(runtime, hook, fault)


def describe(error: BaseException) -> str:
    """An exception in one line."""
    return " ".join(f"{type(error).__name__}: {error}".split())
