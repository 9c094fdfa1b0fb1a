"""Where everything that leaves a run goes through: scrubbed, written into the record, handed to the listeners."""

from __future__ import annotations

import time
from collections.abc import Callable

from swarm_hook_core import faults
from swarm_mcp.harness.events import RAW_LOG, RAW_STDERR, Event
from swarm_mcp.harness.record import Record
from swarm_mcp.harness.scrub import Scrubber

RUNTIME = "swarm-run"  # in the fault log


class EventSink:
    """The record and the listeners of one run. Listeners are called in the run's own thread, in order."""

    def __init__(self):
        self.scrubber = Scrubber()
        self.record: Record | None = None
        self._events: list[Callable[[Event], object]] = []
        self._logs: list[Callable[[str, str], object]] = []
        self._metas: list[Callable[[dict], object]] = []

    def on_event(self, listener: Callable[[Event], object]) -> None:
        """Call `listener` with every event."""
        self._events.append(listener)

    def on_log(self, listener: Callable[[str, str], object]) -> None:
        """Call `listener` with ``("stdout" | "stderr", line)`` for each line, as it was written but for secrets."""
        self._logs.append(listener)

    def on_meta(self, listener: Callable[[dict], object]) -> None:
        """Call `listener` with the metadata of each child, before it is started."""
        self._metas.append(listener)

    def meta(self, found: dict) -> None:
        """Hand on what is about to be started."""
        shown = self.scrubber.data(found)
        if self.record:
            self.record.metadata(shown)
        _call(self._metas, shown)

    def event(self, event: Event) -> None:
        """Hand on an event."""
        self._pass_on(Event(event.kind, self.scrubber.data(event.data), event.at or time.time()))

    def line(self, stream: str, line: str) -> None:
        """Hand on a line that the child wrote."""
        shown = self.scrubber.text(line)
        kind = RAW_LOG if stream == "stdout" else RAW_STDERR
        self._pass_on(Event(kind, {"content": shown}, time.time()))
        _call(self._logs, stream, shown + "\n")

    def flush(self) -> None:
        """Let readers of the record see what has happened so far."""
        if self.record:
            self.record.flush()

    def close(self) -> None:
        """Close the record, and report its fault if it had one."""
        if self.record:
            self.record.close()
            if self.record.fault:
                faults.record(RUNTIME, "record", self.record.fault)

    def _pass_on(self, event: Event) -> None:
        if self.record:
            self.record.event(event)
        _call(self._events, event)


def _call(listeners: list, *words: object) -> None:
    for listener in tuple(listeners):
        try:
            listener(*words)
        except Exception as error:  # one that fails must not keep the others, or the run, from going on
            faults.record(RUNTIME, "listener", f"{type(error).__name__}: {error}")
