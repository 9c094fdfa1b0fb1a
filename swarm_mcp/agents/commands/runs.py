"""The list of runs of agent command lines, and the transcript of one."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable

from swarm_hook_core.json_text import dumps
from swarm_mcp.agents.commands.run import Live
from swarm_mcp.agents.harness.events import Event
from swarm_mcp.agents.harness.narration import transcript
from swarm_mcp.agents.harness.record import events_in
from swarm_mcp.answers.views import short
from swarm_mcp.answers.work import outcome
from swarm_mcp.cli.arguments import ABSOLUTE, JSON, SCOPE, TASKS, WORKER, Arguments, Option, Usage, Word, verb
from swarm_mcp.cli.output import flush, listing, say, show_with_list
from swarm_mcp.cli.words import AFTER, Reader, dollars, printed_page, say_page, span
from swarm_mcp.domain import ENDED, STATES, Run
from swarm_mcp.errors import SwarmError
from swarm_mcp.folders import current_scope
from swarm_mcp.store import Store

DEFAULT_LIMIT = 20
POLL_SECONDS = 0.5


@verb(
    Usage(
        Option("--state STATE", "only those in this state", choices=STATES),
        Option("--limit N", f"at most N (default: {DEFAULT_LIMIT}; -1 for all)"),
        AFTER,
        ABSOLUTE,
        SCOPE,
        JSON,
    ),
    group=WORKER,
)
def runs(args: Arguments) -> int:
    """runs: the agent runs of this scope, the newest first

    Lists the runs that `swarm-mcp worker run` and `swarm-mcp worker dispatch` have started, with the outcome, the cost
    if it is known, and the task. Runs are kept for a month.

    example: swarm-mcp worker runs --state running
    """
    scope, wanted = current_scope(args.value("--scope")), args.value("--state")
    with Store(read_only=True) as store:
        found = printed_page(
            args, lambda after: store.runs.walk(scope, wanted, after), lambda row: row,
            lambda: store.runs.count(scope, wanted), default=DEFAULT_LIMIT,
        )  # fmt: skip
        reader = Reader(args, store)
    return say_page(args, found, lambda: _table(list(map(Run, found.rows)), reader))


def _table(rows: list[Run], reader: Reader) -> None:
    cells, plain = [], []
    for row in rows:
        state, begun, task = outcome(row), reader.when(row.started_at), short(row.task_id or "")
        end = row.ended_at or int(time.time())
        if row.state == ENDED:
            end = row.ended_at or row.updated_at
        took = cost = ""
        if row.started_at:
            took = span(end - row.started_at)
        if row.cost_usd is not None:
            cost = dollars(row.cost_usd)
        cells.append((short(row.id), state, row.harness, row.model, task, begun, took, cost))
        plain.append(
            f"  {short(row.id)}  [{state}]  {row.harness}  task={task or '-'}"
            f"  {begun}  {took or '-'}  cost={cost or 'unknown'}"
        )
    headers = ("id", "state", "harness", "model", "task", "begun", "took", "cost")
    listing(headers, cells, plain, empty="(no runs)")


@verb(
    Usage(
        Word(
            "TASK|RUN",
            "the task or the run, by an id or its beginning (swarm-mcp worker runs); of a task the newest is shown, and"
            " without it the newest of all",
            source=TASKS,
            optional=True,
        ),
        Option("--follow", "go on until the run has ended", also="-f"),
        SCOPE,
        JSON,
    ),
    group=WORKER,
)
def logs(args: Arguments) -> int:
    """logs: the transcript of an agent run

    Prints the transcript, as `swarm-mcp worker run --watch` does, and at the end the path of the record. --json prints
    the run and its transcript, with --follow one entry of the transcript on each line. SWARM_DEBUG=1 also shows entries
    without a meaning to swarm.

    example: swarm-mcp worker logs 4f1c2b7e -f
    """
    follow = args.given("--follow")
    with Store(read_only=True) as store:
        scope = current_scope(args.value("--scope"))
        if args.words:
            row = store.runs.find(scope, args.words[0])
        else:
            newest = next(store.runs.walk(scope), None)
            if newest is None:
                raise SwarmError("no agent has run here")
            row = newest[1]
    if follow:
        row = _begun(row)
    if not row.record and row.state == ENDED:
        raise SwarmError(f"run {row.id} has no record")
    if not row.record:
        raise SwarmError(f"run {row.id} has no record yet; --follow waits")
    running = _Running(row.id, follow)
    if args.json:
        return _as_json(row, events_in(row.record, running.is_running), follow)
    live = Live.at_terminal(
        sys.stdout, counts=follow, folder=row.cwd or "", model=row.model or "", began=row.started_at
    )

    def is_running() -> bool:
        live.tick()
        return running.is_running()

    for event in events_in(row.record, is_running):
        live.show(event)
        if live.is_closed:
            return 0
    live.close()
    state = row.state
    if follow:
        state = ENDED
    say(f"run {row.id} ({row.harness}, {state}), record: {row.record}")
    return 0


def _as_json(row: Run, events: Iterable[Event], follow: bool) -> int:
    if not follow:
        show_with_list({"run": row, "record": row.record}, "transcript", transcript(events))
        return 0
    for entry in transcript(events):
        say(dumps(entry))
        flush()
    return 0


def _begun(row: Run) -> Run:
    """Wait until the run has a record, or has ended; return its row then."""
    while row.state != ENDED and not row.record:
        time.sleep(POLL_SECONDS)
        row = _row(row.id) or row
    return row


def _row(run_id: str) -> Run | None:
    with Store(read_only=True) as store:
        return store.runs.get(run_id)


class _Running:
    """The state of a run that is followed. It asks the store at most twice a second."""

    def __init__(self, run_id: str, follow: bool):
        self._run_id, self._asked_at, self._is_running = run_id, -POLL_SECONDS, follow

    def is_running(self) -> bool:
        """Return True while the run goes on; always False unless it is followed."""
        now = time.monotonic()
        if self._is_running and now - self._asked_at >= POLL_SECONDS:
            self._asked_at = now
            row = _row(self._run_id)
            self._is_running = row is not None and row.state != ENDED
        return self._is_running
