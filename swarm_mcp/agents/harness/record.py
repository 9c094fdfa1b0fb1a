"""The path of all output of a run: scrubbed, recorded, handed to listeners; and the reading of records.

The record is a private file of JSON lines, metadata first, then every event in order. Events have the form of
``Event.to_dict``, except for lines of standard error, ``{"type": "stderr", "content", "timestamp"}``; `event_of` makes
events of them again. `events_in` reads a run's records, also while they are being written.
"""

from __future__ import annotations

import json
import os
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

from swarm_hook_core import state
from swarm_hook_core.state import make_private, state_dir, write_all
from swarm_mcp.agents.harness.events import RAW_LOG, RAW_STDERR, AnyEvent, Event, custom, typed
from swarm_mcp.agents.harness.query import parse_object
from swarm_mcp.agents.harness.scrub import Scrubber

METADATA, STDERR = "metadata", "stderr"
LARGEST_RECORD = 256 * 1024 * 1024  # bytes; beyond, raw lines are left out
FLUSH_BYTES = 65536


def default_folder() -> str:
    """Return where records lie by default."""
    return os.path.join(state_dir(), "runs")


class Record:
    """One file, ``<folder>/<run id>/<time>-<first 8 of the task's or run's id>.jsonl``, mode 0600.

    Nothing here raises: a full disk must not end a run. `fault` is the first error. The lines are also added to the
    file `copy`, if one is named.
    """

    def __init__(self, folder: str, run_id: str, name: str, copy: str = ""):
        self.fault = ""
        self._handle = self._copied = -1
        self._copy = copy
        self._waiting: list[bytes] = []
        self._bytes = 0
        self._written = 0
        self._full = False
        stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        self._place = os.path.join(folder or default_folder(), run_id)
        self._name = f"{stamp}-{name[:8]}"
        self.path = os.path.join(self._place, f"{self._name}.jsonl")

    def open(self) -> None:
        """Make the file. Where one of its name is there already, `path` is another one from now on."""
        try:
            if self._copy:
                self._copied = os.open(self._copy, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        except OSError as error:
            self.fault = f"{self._copy}: {error.strerror or error}"
        try:
            make_private(self._place)
            for number in range(2, 1000):
                try:
                    self._handle = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
                    return
                except FileExistsError:
                    self.path = os.path.join(self._place, f"{self._name}-{number}.jsonl")
        except OSError as error:
            self.fault = self.fault or str(error)

    def metadata(self, found: dict[str, Any]) -> None:
        """Write the first line."""
        self._add({"type": METADATA, **found})
        self.flush()

    def event(self, event: Event) -> None:
        """Add one event; it is written with the next `flush`, or when enough has come together."""
        if self._full and event.kind in (RAW_LOG, RAW_STDERR):
            return
        shown = event.to_dict()
        if event.kind == RAW_STDERR:
            shown["type"] = STDERR
        self._add(shown)

    def flush(self) -> None:
        """Write the waiting lines."""
        data, self._waiting, self._bytes = b"".join(self._waiting), [], 0
        for handle in (self._handle, self._copied):
            try:
                if data and handle >= 0:
                    write_all(handle, data)
            except OSError as error:
                self.fault = self.fault or str(error)
        self._written += len(data)
        if self._written > LARGEST_RECORD and not self._full:
            self._full = True
            full = custom("swarm.record_full", {"bytes": self._written})
            self._add(full._replace(at=time.time()).to_dict())

    def close(self) -> None:
        """Write the waiting lines, and close the file. Idempotent."""
        self.flush()
        handles, self._handle, self._copied = (self._handle, self._copied), -1, -1
        for handle in handles:
            if handle >= 0:
                os.close(handle)

    def _add(self, shown: dict[str, Any]) -> None:
        try:
            line = json.dumps(shown, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
        except (TypeError, ValueError, RecursionError) as error:
            line = json.dumps({"type": "custom", "name": "swarm.unwritten", "data": str(error)[:200]}).encode() + b"\n"
        self._waiting.append(line)
        self._bytes += len(line)
        if self._bytes >= FLUSH_BYTES:
            self.flush()


def read(path: str) -> Iterator[dict[str, Any]]:
    """Yield the lines of a record as objects, without a last one that is still being written."""
    with open(path, encoding="utf-8", errors="replace") as file:
        for line in file:
            found = parse_object(line)
            if found:
                yield found


PAUSE_SECONDS = 0.2  # between two looks at a record that may grow
PIECE = 1 << 16
LONGEST_LINE = 32 << 20


def events_in(record: str, is_live: Callable[[], bool] = lambda: False) -> Iterator[AnyEvent]:
    """Yield the events of the run that `record` belongs to, oldest first; other lines are passed over.

    Each attempt of a run has a file of its own in one folder, and all of them are read. While `is_live` says that the
    run goes on, the end is waited at for more.
    """
    done: list[str] = []
    while True:
        live = is_live()  # asked before the look: lines written meanwhile are still found
        path = next((found for found in files_of(record) if found not in done), "")
        if path:
            done.append(path)
            with open(path, "rb") as file:
                yield from _events(file, record, is_live)
        elif not live:
            return
        else:
            time.sleep(PAUSE_SECONDS)


def files_of(record: str) -> list[str]:
    """Return the files of the run that `record` belongs to, oldest first.

    Their names begin with the time; of one second, the later ones have a number behind them.
    """
    folder = os.path.dirname(record)
    try:
        found = [name for name in os.listdir(folder) if name.endswith(".jsonl")]
    except OSError:  # no record yet
        return []
    found.sort(key=lambda name: (name.partition("-")[0], len(name), name))
    return [os.path.join(folder, name) for name in found]


def event_of(line: dict[str, Any]) -> AnyEvent | None:
    """Return the event in a line of a record; None for metadata and anything else."""
    kind, at = line.get("type"), line.get("timestamp")
    if not isinstance(kind, str) or kind == METADATA:
        return None
    data = {name: value for name, value in line.items() if name not in ("type", "timestamp")}
    if isinstance(at, (int, float)) and not isinstance(at, bool):
        at = float(at)
    else:
        at = 0.0
    return typed(Event(RAW_STDERR if kind == STDERR else kind, data, at))


def _events(file: BinaryIO, record: str, is_live: Callable[[], bool]) -> Iterator[AnyEvent]:
    rest = b""
    while True:
        growing = is_live() and files_of(record)[-1:] == [file.name]
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


def _parsed(lines: list[bytes]) -> Iterator[AnyEvent]:
    for line in lines:
        event = event_of(parse_object(line))
        if event:
            yield event


RUNTIME = "swarm-run"  # in the fault log


class EventSink:
    """The record and the listeners of one run. Listeners are called in the run's own thread, in order.

    `waiting` has events of other threads, for the run's to hand on.
    """

    def __init__(self) -> None:
        self.waiting: deque[Event] = deque()
        self.scrubber = Scrubber()
        self.record: Record | None = None
        self._events: list[Callable[[AnyEvent], object]] = []
        self._logs: list[Callable[[str, str], object]] = []
        self._metas: list[Callable[[dict[str, Any]], object]] = []

    def on_event(self, listener: Callable[[AnyEvent], object]) -> None:
        """Call `listener` with every event."""
        self._events.append(listener)

    def on_log(self, listener: Callable[[str, str], object]) -> None:
        """Call `listener` with ``("stdout" | "stderr", line)`` for each line, as it was written but for secrets."""
        self._logs.append(listener)

    def on_meta(self, listener: Callable[[dict[str, Any]], object]) -> None:
        """Call `listener` with the metadata of each child, before it is started."""
        self._metas.append(listener)

    def meta(self, found: dict[str, Any]) -> None:
        """Hand on the metadata of a start."""
        shown = self.scrubber.data(found)
        if self.record:
            self.record.metadata(shown)
        _call(self._metas, shown)

    def event(self, event: Event) -> None:
        """Hand on an event."""
        self._pass_on(Event(event.kind, self.scrubber.data(event.data), event.at or time.time()))

    def line(self, stream: str, line: str, told: bool = False) -> None:
        """Hand on a line of the child's output; `told`: other events tell it too."""
        shown = self.scrubber.text(line)
        if stream == "stdout":
            kind = RAW_LOG
        else:
            kind = RAW_STDERR
        self._pass_on(Event(kind, {"content": shown, **({"told": True} if told else {})}, time.time()))
        _call(self._logs, stream, shown + "\n")

    def flush(self) -> None:
        """Show the events so far to readers of the record."""
        if self.record:
            self.record.flush()

    def close(self) -> None:
        """Close the record, and report its fault if it had one."""
        if self.record:
            self.record.close()
            if self.record.fault:
                state.record(RUNTIME, "record", self.record.fault)

    def _pass_on(self, event: Event) -> None:
        if self.record:
            self.record.event(event)
        _call(self._events, typed(event))


def _call(listeners: list[Any], *words: object) -> None:
    for listener in tuple(listeners):
        try:
            listener(*words)
        except Exception as error:  # one that fails must not keep the others, or the run, from going on
            if str(getattr(listener, "__module__", "")).partition(".")[0] == "swarm_mcp":
                state.record(RUNTIME, "listener", f"{type(error).__name__}: {error}")
            else:
                # Log that a caller's own listener has raised: by default that stands on standard error, with where it
                # was
                import logging

                name = getattr(listener, "__qualname__", type(listener).__name__)
                logging.getLogger("swarm_mcp.agents.harness").error(
                    "the listener %s of a run has raised", name, exc_info=True
                )
