"""logs: what an agent that was run did, from its record

Prints the transcript as `run --watch` does, and last where the record is. --json prints the run and its
transcript; with --follow one entry of the transcript on each line. SWARM_DEBUG=1 shows also what has no
meaning to us.

example: swarm-mcp logs 4f1c2b7e -f
"""

from __future__ import annotations

import os
import sys
import time

from swarm_mcp.cli.arguments import JSON, SCOPE, TASKS, Arguments, Option, Usage, Word
from swarm_mcp.cli.output import flush, say, show_with_list
from swarm_mcp.domain.run import Run
from swarm_mcp.errors import SwarmError
from swarm_mcp.scope import current_scope

POLL_SECONDS = 0.5

USAGES = (
    Usage(
        Word(
            "TASK|RUN",
            "the task or the run: a task, of which the newest run is shown, or a run (swarm-mcp runs lists them); the"
            " beginning of an id will do",
            source=TASKS,
        ),
        Option("--follow", "go on until the run has ended", also="-f"),
        SCOPE,
        JSON,
    ),
)


def run(args: Arguments) -> int:
    """Print the transcript of one run."""
    from swarm_mcp.harness.record import events_in

    follow = args.given("--follow")
    row = _found(current_scope(args.value("--scope")), args.words[0])
    if follow:
        row = _begun(row)
    if not row.record:
        raise SwarmError(f"run {row.id} has no record" + ("" if row.state == "ended" else " yet; --follow waits"))
    events = events_in(row.record, _Alive(row.id) if follow else lambda: False)
    if args.json:
        return _as_json(row, events, follow)
    from swarm_mcp.cli import colour
    from swarm_mcp.cli.live import Live

    live = Live(sys.stdout, colour=colour.wanted(), debug=bool(os.environ.get("SWARM_DEBUG")))
    for event in events:
        live.show(event)
        if live.is_closed:
            return 0
    state = row.state if not follow else "ended"
    say(f"run {row.id} ({row.harness}, {state}), record: {row.record}")
    return 0


def _as_json(row: Run, events, follow: bool) -> int:
    from swarm_hook_core.json_text import dumps
    from swarm_mcp.harness.transcript import transcript

    if not follow:
        show_with_list({"run": row, "record": row.record}, "transcript", transcript(events))
        return 0
    for entry in transcript(events):
        say(dumps(entry))
        flush()
    return 0


def _found(scope: str, reference: str) -> Run:
    from swarm_mcp.store import Store

    with Store(read_only=True) as store:
        return store.runs.find(scope, reference)


def _begun(row: Run) -> Run:
    """The row once it says where the record is, or the run has ended."""
    while row.state != "ended" and not row.record:
        time.sleep(POLL_SECONDS)
        row = _row(row.id) or row
    return row


def _row(run_id: str) -> Run | None:
    from swarm_mcp.store import Store

    with Store(read_only=True) as store:
        return store.runs.get(run_id)


class _Alive:
    """Whether the run goes on; looked up no more than twice a second."""

    def __init__(self, run_id: str):
        self._run_id, self._looked, self._alive = run_id, 0.0, True

    def __call__(self) -> bool:
        now = time.monotonic()
        if self._alive and now - self._looked >= POLL_SECONDS:
            self._looked = now
            row = _row(self._run_id)
            self._alive = row is not None and row.state != "ended"
        return self._alive
