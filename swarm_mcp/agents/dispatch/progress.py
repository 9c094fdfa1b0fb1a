"""How far a supervised run is, in a line for its task."""

from __future__ import annotations

import time

from swarm_mcp.agents.harness import events
from swarm_mcp.agents.harness.events import Event
from swarm_mcp.domain.task import Task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

PAUSE_SECONDS = 30.0  # between two reports
LONGEST = 300  # characters
LONGEST_NAME = 80  # of a tool
WORKERS_WORD_SECONDS = 300  # seconds that the worker's own report counts


class Progress:
    """Listens to a run; any thread may tell it of events."""

    def __init__(self, harness: str, clock: Callable[[], float] = time.monotonic):
        self._harness = harness
        self._clock = clock
        self._said = self._calls = 0
        self._last_call = self._last_words = ""
        self._context = ""
        self._written: str | None = None
        self._due = 0.0
        self.session_id = ""
        self.model = ""

    def listen(self, event: Event) -> None:
        """Take one event of the run."""
        data = event.data
        if event.kind == events.SESSION_INIT:
            self.session_id, self.model = str(data.get("session_id") or ""), str(data.get("model") or "")
        elif event.kind == events.TOOL_START:
            self._calls += 1
            self._last_call = " ".join(str(data.get("tool_name") or "").split())[:LONGEST_NAME]
        elif event.kind == events.MESSAGE and data.get("role") == "assistant" and not data.get("thinking"):
            self._last_words = " ".join(str(data.get("content") or "").split()) or self._last_words
        elif event.kind == events.CONTEXT_USAGE and isinstance(data.get("context_percent"), (int, float)):
            self._context = f"{data['context_percent']:.0f} % of its context used"

    def summary(self) -> str:
        """Return how far the run is."""
        text = f"{self._harness} is at work"
        if self._calls:
            text = f"{self._calls} tool call{'' if self._calls == 1 else 's'}, the last {self._last_call}"
        if self._context:
            text += f"; {self._context}"
        if self._last_words:
            return f"{self._last_words[: LONGEST - len(text) - 3]} ({text})"
        return text

    def due(self, task: Task, now: int) -> str:
        """Return the summary if a report is due and the worker has made none itself, else empty.

        `task` is the task now, `now` Unix seconds. A returned summary counts as reported.
        """
        if self._clock() < self._due or not (self._calls or self._last_words):
            return ""
        self._due = self._clock() + PAUSE_SECONDS
        current, at = task.progress_summary, task.progress_updated_at
        own = current in (None, self._written)
        if not own and isinstance(at, (int, float)) and now - at < WORKERS_WORD_SECONDS:
            return ""
        text = self.summary()
        if text == current:
            return ""
        self._written = text
        return text

    def reported(self, text: str) -> None:
        """Note that something else has been reported in this run's name."""
        self._written = text
        self._due = 0.0
