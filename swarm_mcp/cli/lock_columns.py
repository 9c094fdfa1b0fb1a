"""Columns of a lock in listings beyond file, holder and note: mode, time left, agent, fence, length of the queue."""

from __future__ import annotations

from swarm_hook_core.naming import agent_name
from swarm_hook_core.wording import duration
from swarm_mcp.store import Store
from swarm_mcp.views import short

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

HEADERS = ("mode", "left", "agent", "fence", "waits")


def counted(store: Store, rows: Iterable[dict]) -> Iterator[dict]:
    """Yield `rows` of a listing, with the length of the queue (``waiting``) of each lock that has one."""
    return with_waiting(rows, store.queue.lengths())


def with_waiting(rows: Iterable[dict], waiting: dict[str, int]) -> Iterator[dict]:
    """As `counted`; `waiting` maps the ids of locks to the lengths of their queues (``queue.lengths``)."""
    return ({**row, "waiting": waiting[row["id"]]} if row["id"] in waiting else row for row in rows)


def cells(row: dict, now: float) -> tuple:
    """The values of `HEADERS` for a row of a listing."""
    fence = row.get("fence") or ""
    return (_mode(row), _left(row, now), _agent(row), str(fence), row.get("waiting") or "")


def suffix(row: dict, now: float) -> str:
    """The same at the end of a line, empty for the lock that the contract knows: exclusive, for good, of a session."""
    agent = _agent(row)
    agent = agent if agent.endswith(")") or not agent else f"agent {agent}"
    left = f"{_left(row, now)} left" if "lapses_in" in row else ""
    expected = _left(row, now) if not left and row.get("expected_end") else ""
    waits = f"{row['waiting']} waiting" if row.get("waiting") else ""
    parts = [part for part in (_mode(row), agent, left, expected, waits) if part]
    return f"  [{', '.join(parts)}]" if parts else ""


def _agent(row: dict) -> str:
    """The agent of the session that holds the lock: the beginning of its id, or its name for a command; empty for the
    session.
    """
    agent = row.get("agent") or ""
    name = agent_name(agent) if agent else ""
    return short(agent) if name.startswith("agent ") else name


def _mode(row: dict) -> str:
    kinds = (("pattern", "pattern"), ("repository", "all work trees"), ("team_fence", "all machines"))
    known = [words for name, words in kinds if row.get(name)]
    if "all machines" in known and "all work trees" in known:
        known.remove("all work trees")
    return " ".join(filter(None, [row.get("mode") or "", *known]))


def _left(row: dict, now: float) -> str:
    if "lapses_in" in row:
        return duration(row["lapses_in"])
    if isinstance(row.get("expected_end"), (int, float)):
        away = row["expected_end"] - now
        return f"about {duration(away)}" if away > 0 else "overdue"
    return ""
