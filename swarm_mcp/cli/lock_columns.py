"""What listings say of a lock beyond file, holder and note: its mode, time, agent, fence, and who waits for it."""

from __future__ import annotations

from swarm_hook_core.decision import duration
from swarm_mcp.views import short

HEADERS = ("mode", "left", "agent", "fence", "waits")


def counted(store, rows: list[dict]) -> list[dict]:
    """`rows` of a listing, each with the number that wait for it (``waiting``) where somebody does."""
    waiting = store.queue.waiting()
    if not waiting:
        return rows
    from swarm_mcp.store.lock_reach import meet, reach_in

    found = []
    for row in rows:
        lock = store.row("SELECT file, path_key, pattern, base, repository FROM context WHERE id = ?", (row["id"],))
        reach = reach_in(lock) if lock else None
        holder = (row["instance_id"], row.get("agent", ""))
        others = [one for one in waiting if (one["instance_id"], one["agent"]) != holder]
        behind = [one for one in others if reach and any(meet(reach, wanted) for wanted in one["reaches"])]
        found.append({**row, "waiting": len(behind)} if behind else row)
    return found


def cells(row: dict, now: float) -> tuple:
    """The values of `HEADERS` for a row of a listing."""
    fence = row.get("fence") or ""
    return (_mode(row), _left(row, now), short(row.get("agent") or ""), str(fence), row.get("waiting") or "")


def suffix(row: dict, now: float) -> str:
    """The same at the end of a line, empty for the lock that the contract knows: exclusive, for good, of a session."""
    agent = f"agent {short(row['agent'])}" if row.get("agent") else ""
    left = f"{_left(row, now)} left" if "lapses_in" in row else ""
    expected = _left(row, now) if not left and row.get("expected_end") else ""
    waits = f"{row['waiting']} waiting" if row.get("waiting") else ""
    parts = [part for part in (_mode(row), agent, left, expected, waits) if part]
    return f"  [{', '.join(parts)}]" if parts else ""


def _mode(row: dict) -> str:
    kinds = (("pattern", "pattern"), ("repository", "all work trees"))
    return " ".join(filter(None, [row.get("mode") or "", *(words for name, words in kinds if row.get(name))]))


def _left(row: dict, now: float) -> str:
    if "lapses_in" in row:
        return duration(row["lapses_in"])
    if isinstance(row.get("expected_end"), (int, float)):
        away = row["expected_end"] - now
        return f"about {duration(away)}" if away > 0 else "overdue"
    return ""
