"""The bounded record of what went wrong inside hooks, which must themselves stay silent.

One JSON object a line: ``{"at": unix seconds, "runtime", "hook", "fault"}``. `swarm-mcp doctor`
shows the newest.
"""

import os
import time

from swarm_hook_core.state import FAULT_LOG, append_line, state_dir

LIMIT_BYTES = 128 * 1024


def fault_log() -> str:
    """Path of the record; the one before it has ``.1`` appended."""
    return os.path.join(state_dir(), FAULT_LOG)


def record(runtime: str, hook: str, fault: str) -> None:
    """Add one line. Never raises: there is nobody left to tell."""
    try:
        from swarm_hook_core.json_text import dumps

        line = dumps({"at": int(time.time()), "runtime": runtime, "hook": hook, "fault": fault[:500]})
        append_line(fault_log(), line, LIMIT_BYTES)
    except Exception:
        return


def describe(error: BaseException) -> str:
    """An exception in one line."""
    return " ".join(f"{type(error).__name__}: {error}".split())
