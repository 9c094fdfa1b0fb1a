"""Columns of a lock in listings beyond file, holder and note: mode, time left, agent, fence, length of the queue."""

from __future__ import annotations

from swarm_hook_core.naming import agent_name
from swarm_hook_core.wording import duration
from swarm_mcp.answers.views import short
from swarm_mcp.cli.words import clause
from swarm_mcp.store import Store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    Row = dict[str, Any]  # of a listing of locks

HEADERS = ("mode", "left", "agent", "fence", "waits")


def counted(store: Store, rows: Iterable[Row]) -> Iterator[Row]:
    """Yield `rows` of a listing, with the length of the queue (``waiting``) of each lock that has one."""
    return with_waiting(rows, store.queue.lengths())


def with_waiting(rows: Iterable[Row], waiting: dict[str, int]) -> Iterator[Row]:
    """As `counted`; `waiting` maps the ids of locks to the lengths of their queues (``queue.lengths``)."""
    for row in rows:
        if row["id"] in waiting:
            row = {**row, "waiting": waiting[row["id"]]}
        yield row


def cells(row: Row, now: float) -> tuple[object, ...]:
    """The values of `HEADERS` for a row of a listing."""
    fence = row.get("fence") or ""
    return (_mode(row), _left(row, now), _agent(row), str(fence), row.get("waiting") or "")


def suffix(row: Row, now: float) -> str:
    """The same at the end of a line, empty for the lock that the contract knows: exclusive, for good, of a session."""
    agent = _agent(row)
    if agent and not agent.endswith(")"):
        agent = f"agent {agent}"
    left = _left(row, now)
    if "lapses_in" in row:
        left += " left"
    parts = (_mode(row), agent, left, clause("{} waiting", row.get("waiting")))
    return clause("  [{}]", ", ".join(filter(None, parts)))


def _agent(row: Row) -> str:
    """The agent of the session that holds the lock: the beginning of its id, or its name for a command; empty for the
    session.
    """
    agent = row.get("agent") or ""
    if not agent:
        return ""
    name = agent_name(agent)
    if name.startswith("agent "):
        return short(agent)
    return name


def _mode(row: Row) -> str:
    kinds = (("pattern", "pattern"), ("repository", "all work trees"), ("team_fence", "all machines"))
    known = [words for name, words in kinds if row.get(name)]
    if "all machines" in known and "all work trees" in known:
        known.remove("all work trees")
    return " ".join(filter(None, [row.get("mode") or "", *known]))


def _left(row: Row, now: float) -> str:
    if "lapses_in" in row:
        return duration(row["lapses_in"])
    if isinstance(row.get("expected_end"), (int, float)):
        away = row["expected_end"] - now
        if away <= 0:
            return "overdue"
        return f"about {duration(away)}"
    return ""
