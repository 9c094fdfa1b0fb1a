"""The end of a worker's record. Only its last part is read, however long it is."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from swarm_hook_core.json_text import loads
from swarm_mcp.agents.harness.narration import to_transcript
from swarm_mcp.agents.harness.record import event_of, files_of
from swarm_mcp.answers.work import Marks, file_marks
from swarm_mcp.domain import Run

LAST_BYTES = 512 * 1024
MOST = 200  # entries


class Transcript(NamedTuple):
    """The last entries, as ``harness.narration`` has them, oldest first; `is_cut` where there were more before."""

    entries: list[dict[str, Any]]
    is_cut: bool


def last_entries(run: Run, limit: int = MOST) -> Transcript:
    """Return the end of a run's transcript; empty if the record is missing or unreadable."""
    entries: list[dict[str, Any]] = []
    if run.record:
        files = files_of(run.record)
    else:
        files = []
    left = LAST_BYTES
    for path in reversed(files):
        try:
            lines, is_whole = _last_lines(path, left)
        except OSError:  # no record yet
            continue
        entries[:0] = [entry for line in lines for entry in _entries(line)]
        left -= sum(map(len, lines))
        if len(entries) > limit or not is_whole or left <= 0:
            return Transcript(entries[-limit:], True)
    return Transcript(entries, False)


def record_marks(run: Run) -> Marks:
    """The marks of the files of a run's record: they differ once there is more in it."""
    return file_marks(files_of(run.record) if run.record else ())


def _last_lines(path: str, most: int) -> tuple[list[bytes], bool]:
    """Return the whole lines in the last `most` bytes of a file, and True if that is all of it."""
    with open(path, "rb") as file:
        size = file.seek(0, os.SEEK_END)
        begin = max(0, size - most)
        file.seek(begin)
        lines = file.read(most).split(b"\n")
    return lines[1 if begin else 0 :], begin == 0


def _entries(line: bytes) -> list[dict[str, Any]]:
    try:
        if line:
            found = loads(line.decode("utf-8", "replace"))
        else:
            found = None
    except (ValueError, RecursionError):  # a torn line
        return []
    if isinstance(found, dict):
        event = event_of(found)
    else:
        event = None
    if event:
        return to_transcript(event)
    return []
