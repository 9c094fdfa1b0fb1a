"""The two ways of showing a run while it goes on: a counting line, or with --watch every event."""

from __future__ import annotations

import sys

from swarm_mcp.agents.commands.live import Counts, Live
from swarm_mcp.agents.harness.events import Event
from swarm_mcp.cli.progress import Progress


class CountedRun:
    """A run without --watch: one step on standard error, with totals at a terminal."""

    def __init__(self, as_json: bool, run_id: str, harness: str):
        self._progress = Progress(as_json, aside=True, margin="swarm-mcp run: ")
        self._counts, self._has_begun = Counts(), False
        self._words = f"{harness} is working (swarm-mcp logs {run_id[:8]} -f)"

    def note(self, event: Event) -> None:
        """Count one event."""
        self._counts.add(event)

    def tick(self) -> None:
        """Update the line."""
        if not self._has_begun:
            self._has_begun = True
            self._progress.begin(self._words)
        self._progress.note("  ".join([self._words, *self._counts.words()]))

    def close(self) -> None:
        """Take the line away."""
        self._progress.end()
        self._progress.__exit__()


class WatchedRun:
    """A run with --watch: every event, and at a terminal a line of totals below."""

    def __init__(self, as_json: bool, folder: str, model: str):
        stream = sys.stdout
        if as_json:
            stream = sys.stderr
        self._live = stream and Live.at_terminal(stream, folder=folder, model=model)

    def note(self, event: Event) -> None:
        """Show one event."""
        if self._live:
            self._live.show(event)

    def tick(self) -> None:
        """Update the line of totals."""
        if self._live:
            self._live.tick()

    def close(self) -> None:
        """Take the line of totals away."""
        if self._live:
            self._live.close()
