"""The checks of `swarm-mcp doctor`: this installation, its store, each client's enforcement; hooks' recorded faults."""

from __future__ import annotations

import os
from typing import Any, cast

from swarm_hook_core.json_text import loads
from swarm_hook_core.state import LIMIT_BYTES, fault_log, read_private


def recorded_faults() -> list[dict[str, Any]]:
    """Return the recorded faults of hooks, oldest first: ``{at, runtime, hook, fault}``."""
    rows = []
    for path in (fault_log() + ".1", fault_log()):
        try:
            lines = read_private(path, 4 * LIMIT_BYTES).decode("utf-8", "replace").splitlines()
        except OSError:
            continue  # not written yet, or not ours to read
        for line in lines:
            try:
                row = loads(line)
            except (ValueError, RecursionError):
                continue  # cut short by a rotation, or not a line of ours
            if isinstance(row, dict) and isinstance(row.get("at"), (int, float)) and 0 <= row["at"] < 2**40:
                rows.append({"at": row["at"], **{name: str(row.get(name)) for name in ("runtime", "hook", "fault")}})
    return rows


def last_fault(folder: str | os.PathLike[str]) -> str:
    """Return the last fault in the record of a state folder, or an empty text."""
    try:
        text = read_private(os.path.join(folder, "faults.jsonl"), 2 * LIMIT_BYTES).decode(errors="replace")
        row = loads(text.splitlines()[-1])
        return str(cast("dict[str, Any]", row)["fault"])
    except (OSError, ValueError, LookupError, TypeError, RecursionError):  # no fault was recorded
        return ""
