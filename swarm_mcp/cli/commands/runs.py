"""runs: agents that were run in this scope, the newest first

Those that `swarm-mcp run` and `swarm-mcp dispatch` started: what became of each, what it cost where that is
known, and which task it was for. They are kept for a month.

example: swarm-mcp runs --state running
"""

from __future__ import annotations

import time

from swarm_mcp.cli.arguments import JSON, SCOPE, Arguments, Option, Usage
from swarm_mcp.cli.output import listing, moment, show
from swarm_mcp.domain.run import ENDED, STATES, Run
from swarm_mcp.scope import current_scope
from swarm_mcp.store import Store
from swarm_mcp.views import short

DEFAULT_LIMIT, MOST = 20, 10000

USAGES = (
    Usage(
        Option("--state STATE", "only those in this state", choices=STATES),
        Option("--limit N", f"at most N (default: {DEFAULT_LIMIT})"),
        SCOPE,
        JSON,
    ),
)


def run(args: Arguments) -> int:
    """List runs."""
    wanted = args.value("--state")
    limit = max(0, args.number("--limit", DEFAULT_LIMIT))
    with Store(read_only=True) as store:
        rows = store.runs.recent(current_scope(args.value("--scope")), MOST if wanted else limit)
    rows = [row for row in rows if not wanted or row.state == wanted][:limit]
    if args.json:
        show(rows)
        return 0
    now = int(time.time())
    cells, plain = [], []
    for row in rows:
        result = row.result or {}
        outcome, begun = _outcome(row, result), moment(row.started_at)
        cost = None if row.cost_usd is None else f"${row.cost_usd:.4f}"
        until = row.ended_at or (row.updated_at if row.state == ENDED else now)
        took = _span(until - row.started_at) if row.started_at else None
        task = short(row.task_id) if row.task_id else None
        cells.append((short(row.id), outcome, row.harness, row.model, task, begun, took, cost))
        plain.append(
            f"  {short(row.id)}  [{outcome}]  {row.harness}  task={task or '-'}"
            f"  {begun}  {took or '-'}  cost={cost or 'unknown'}"
        )
    headers = ("id", "state", "harness", "model", "task", "time", "took", "cost")
    listing(headers, cells, plain, empty="(no runs)")
    return 0


def _outcome(row: Run, result: dict) -> str:
    """The state; of one that has ended, how it did."""
    if row.state != ENDED:
        return f"{row.state}, {row.control} asked" if row.control else row.state
    if not result:
        return ENDED
    return f"failed: {result.get('error_category') or 'unknown'}" if result.get("is_error") else "done"


def _span(seconds: float) -> str:
    whole = max(0, int(seconds))
    return f"{whole}s" if whole < 60 else f"{whole // 60}m{whole % 60:02d}s"
