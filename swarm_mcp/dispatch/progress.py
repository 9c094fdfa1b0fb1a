"""What a run says about its task: its events how far it is, in one line; its result how it ended."""

from __future__ import annotations

import time

from swarm_mcp.domain.task import Task
from swarm_mcp.harness import events
from swarm_mcp.harness.events import Event
from swarm_mcp.harness.outcome import TRANSIENT, RunResult

PAUSE_SECONDS = 30.0  # between two reports
LONGEST = 300  # characters
LONGEST_NAME = 80  # of a tool
WORKERS_WORD_SECONDS = 300  # how long what the worker itself has reported stands


LONGEST_RESULT = 30_000
WORDLESS = "(it ended well, and said nothing)"


class Progress:
    """Listens to a run; any thread may tell it of events."""

    def __init__(self, harness: str, clock=time.monotonic):
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
        counted = f"{self._calls} tool call{'' if self._calls == 1 else 's'}, the last {self._last_call}"
        facts = [counted] if self._calls else [f"{self._harness} is at work"]
        facts += [self._context] if self._context else []
        text = "; ".join(facts)
        return f"{self._last_words[: LONGEST - len(text) - 3]} ({text})" if self._last_words else text

    def due(self, task: Task, now: int) -> str:
        """Return the summary where it is time to report it and the worker has not done so itself, else empty.

        `task` is the task as it is, `now` Unix seconds. What is returned counts as reported.
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


def result_text(result: RunResult) -> str:
    """Return what the task is told as its result: the answer, or the error's code and words."""
    if not result.is_error:
        return result.output.strip()[:LONGEST_RESULT] or WORDLESS
    text = f"{result.error_category}: {' '.join((result.error_message or 'it did not say why').split())}"
    if result.error_category in TRANSIENT:
        text += "; it passes, and the same work may be dispatched again"
        if result.retry_not_before:
            text += " after " + time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(result.retry_not_before))
    if result.output.strip():
        text += f"\nIts last words: {result.output.strip()}"
    return text[:LONGEST_RESULT]
