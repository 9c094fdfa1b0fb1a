"""The list of runs of agent command lines, and the transcript of one."""

from __future__ import annotations

import sys
import time

from swarm_mcp.cli.arguments import ABSOLUTE, JSON, SCOPE, TASKS, WORKERS, Arguments, Option, Usage, Word, verb
from swarm_mcp.cli.output import flush, listing, say, show, show_with_list
from swarm_mcp.cli.pages import AFTER, printed_page, say_rest
from swarm_mcp.cli.reader import Reader
from swarm_mcp.domain.run import ENDED, STATES, Run
from swarm_mcp.errors import SwarmError
from swarm_mcp.folders import current_scope
from swarm_mcp.overview.work import outcome
from swarm_mcp.store import Store
from swarm_mcp.views import short

DEFAULT_LIMIT = 20


@verb(
    Usage(
        Option("--state STATE", "only those in this state", choices=STATES),
        Option("--limit N", f"at most N (default: {DEFAULT_LIMIT}; -1 for all)"),
        AFTER,
        ABSOLUTE,
        SCOPE,
        JSON,
    ),
    group=WORKERS,
)
def runs(args: Arguments) -> int:
    """runs: the agent runs of this scope, the newest first

    Lists the runs that `swarm-mcp run` and `swarm-mcp dispatch` have started, with the outcome, the cost if it is
    known, and the task. Runs are kept for a month.

    example: swarm-mcp runs --state running
    """
    scope, wanted = current_scope(args.value("--scope")), args.value("--state")
    with Store(read_only=True) as store:
        found = printed_page(
            args, lambda after: store.runs.walk(scope, wanted, after), lambda row: row,
            lambda: store.runs.count(scope, wanted), default=DEFAULT_LIMIT,
        )  # fmt: skip
        reader = Reader(args, store)
    rows = [Run(row) for row in found.rows]
    if args.json:
        show(rows)
        say_rest(args, found)
        return 0
    now = int(time.time())
    cells, plain = [], []
    for row in rows:
        state, begun = outcome(row), reader.when(row.started_at)
        cost = None if row.cost_usd is None else f"${row.cost_usd:.4f}"
        until = row.ended_at or (row.updated_at if row.state == ENDED else now)
        took = _span(until - row.started_at) if row.started_at else None
        task = short(row.task_id) if row.task_id else None
        cells.append((short(row.id), state, row.harness, row.model, task, begun, took, cost))
        plain.append(
            f"  {short(row.id)}  [{state}]  {row.harness}  task={task or '-'}"
            f"  {begun}  {took or '-'}  cost={cost or 'unknown'}"
        )
    headers = ("id", "state", "harness", "model", "task", "begun", "took", "cost")
    listing(headers, cells, plain, empty="(no runs)")
    say_rest(args, found)
    return 0


def _span(seconds: float) -> str:
    whole = max(0, int(seconds))
    return f"{whole}s" if whole < 60 else f"{whole // 60}m{whole % 60:02d}s"


POLL_SECONDS = 0.5


@verb(
    Usage(
        Word(
            "TASK|RUN",
            "the task or the run, by an id or its beginning: swarm-mcp runs lists them; of a task the newest is shown",
            source=TASKS,
        ),
        Option("--follow", "go on until the run has ended", also="-f"),
        SCOPE,
        JSON,
    ),
    group=WORKERS,
)
def logs(args: Arguments) -> int:
    """logs: the transcript of an agent run

    Prints the transcript, as `swarm-mcp run --watch` does, and at the end the path of the record. --json prints the run
    and its transcript, with --follow one entry of the transcript on each line. SWARM_DEBUG=1 also shows entries without
    a meaning to swarm.

    example: swarm-mcp logs 4f1c2b7e -f
    """
    from swarm_mcp.harness.record import events_in

    follow = args.given("--follow")
    row = _found(current_scope(args.value("--scope")), args.words[0])
    if follow:
        row = _begun(row)
    if not row.record:
        raise SwarmError(f"run {row.id} has no record" + ("" if row.state == "ended" else " yet; --follow waits"))
    is_alive = _Alive(row.id) if follow else lambda: False
    if args.json:
        return _as_json(row, events_in(row.record, is_alive), follow)
    from swarm_mcp.cli.live import Live

    live = Live.at_terminal(
        sys.stdout, counts=follow, folder=row.cwd or "", model=row.model or "", began=row.started_at
    )

    def is_live() -> bool:
        live.tick()
        return is_alive()

    for event in events_in(row.record, is_live):
        live.show(event)
        if live.is_closed:
            return 0
    live.close()
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
    """True while the run goes on; it asks the store at most twice a second."""

    def __init__(self, run_id: str):
        self._run_id, self._looked, self._alive = run_id, 0.0, True

    def __call__(self) -> bool:
        now = time.monotonic()
        if self._alive and now - self._looked >= POLL_SECONDS:
            self._looked = now
            row = _row(self._run_id)
            self._alive = row is not None and row.state != "ended"
        return self._alive
