"""The events of a run, out of its records: also while they are being written."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator

from swarm_mcp.harness.events import RAW_STDERR, Event
from swarm_mcp.harness.record import METADATA, STDERR

PAUSE_SECONDS = 0.2  # between two looks at a record that may grow
PIECE = 1 << 16
LONGEST_LINE = 32 << 20


def events_in(record: str, is_live: Callable[[], bool] = lambda: False) -> Iterator[Event]:
    """The events of the run that `record` belongs to, oldest first; lines that are none are passed over.

    Each attempt of a run has a file of its own in one folder, and all of them are read. While `is_live` says that the
    run goes on, the end is waited at for more.
    """
    done: list[str] = []
    while True:
        live = is_live()  # asked before looking: what is written meanwhile is still found
        path = next((found for found in files_of(record) if found not in done), "")
        if path:
            done.append(path)
            with open(path, "rb") as file:
                yield from _events(file, lambda: is_live() and files_of(record)[-1:] == [path])
        elif not live:
            return
        else:
            time.sleep(PAUSE_SECONDS)


def files_of(record: str) -> list[str]:
    """The files of the run that `record` belongs to, oldest first.

    Their names begin with the time; of one second, the later ones have a number behind them.
    """
    folder = os.path.dirname(record)
    try:
        found = [name for name in os.listdir(folder) if name.endswith(".jsonl")]
    except OSError:
        return []
    found.sort(key=lambda name: (name.partition("-")[0], len(name), name))
    return [os.path.join(folder, name) for name in found]


def event_of(line: dict) -> Event | None:
    """The event that a line of a record has; None for metadata, and for what is none."""
    kind, at = line.get("type"), line.get("timestamp")
    if not isinstance(kind, str) or kind == METADATA:
        return None
    data = {name: value for name, value in line.items() if name not in ("type", "timestamp")}
    at = float(at) if isinstance(at, (int, float)) and not isinstance(at, bool) else 0.0
    return Event(RAW_STDERR if kind == STDERR else kind, data, at)


def _events(file, may_grow: Callable[[], bool]) -> Iterator[Event]:
    rest = b""
    while True:
        growing = may_grow()
        piece = file.read(PIECE)
        *lines, rest = (rest + piece).split(b"\n")
        yield from _parsed(lines)
        if len(rest) > LONGEST_LINE:
            rest = b""
        if not piece:
            if not growing:
                yield from _parsed([rest])
                return
            time.sleep(PAUSE_SECONDS)


def _parsed(lines: list[bytes]) -> Iterator[Event]:
    for line in lines:
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            continue
        event = event_of(found) if isinstance(found, dict) else None
        if event:
            yield event
