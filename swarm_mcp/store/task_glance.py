"""The tasks of a scope in an answer that stays small: the most urgent, the newest endings, what has just changed.

A scope may hold 100 000 tasks. Who wants all of them lists them; who is woken by one wants that one.
"""

from __future__ import annotations

from swarm_mcp.domain import task as states
from swarm_mcp.store import task_rows

SHOWN = 50  # of each status that is not an end
ENDED_SHOWN = 20
CHANGED_SHOWN = 200
MANY = 1000  # of one status; fewer are sorted faster than found among the others by time


def counts(store, viewer: dict, sight: task_rows.Sight) -> dict[str, int]:
    """Number of tasks of each status, those left out that another identity hides."""
    whose = "requester, assignee" if sight.strangers else "'' AS requester, '' AS assignee"
    groups = "status, requester, assignee" if sight.strangers else "status"
    rows = store.rows(
        f"SELECT status, {whose}, count(*) AS n FROM tasks WHERE scope = ? GROUP BY {groups}", (viewer["scope"],)
    )
    found = dict.fromkeys(states.STATUSES, 0)
    for row in rows:
        if row["status"] in found and sight.sees(row):
            found[row["status"]] += row["n"]
    return found


def glance(store, viewer: dict, changed_after: int | None = None) -> dict:
    """Tasks by status, as ``Tasks.current`` groups them, and ``terminal_counts``.

    Of each status the first 50 (20 of those that end it), besides whatever changed after `changed_after`
    (``changed_at``, milliseconds). What is left out is counted in ``not_shown``: {status: number}.
    """
    sight = task_rows.Sight(store, viewer)
    known = counts(store, viewer, sight)
    grouped: dict[str, list[dict]] = {status: [] for status in states.STATUSES}
    for task in _changed(store, viewer, changed_after):
        if task["status"] in grouped and sight.sees(task):
            grouped[task["status"]].append(task)
    for status, tasks in grouped.items():
        there = {task["id"] for task in tasks}
        for task in _first(store, viewer, status, known[status]) if known[status] > len(tasks) else ():
            if task["id"] not in there and sight.sees(task):
                tasks.append(task)
        if status in states.TERMINAL:
            tasks.sort(key=lambda task: task["changed_at"], reverse=True)
        else:
            tasks.sort(key=lambda task: (-task["priority"], task["created_at"], task["id"]))
    left = {status: known[status] - len(tasks) for status, tasks in grouped.items() if known[status] > len(tasks)}
    ended = {status: known[status] for status in states.TERMINAL}
    return {**grouped, "terminal_counts": ended, **({"not_shown": left} if left else {})}


def _changed(store, viewer: dict, after: int | None) -> list[dict]:
    if after is None:
        return []
    # The same millisecond again: what it held then may have been seen without what came last in it.
    condition = f"scope = ? AND changed_at >= ? ORDER BY changed_at DESC LIMIT {CHANGED_SHOWN}"
    return task_rows.find(store, condition, (viewer["scope"], after))


def _first(store, viewer: dict, status: str, count: int) -> list[dict]:
    # As a literal, so that the index on open tasks alone serves too. It is one of our own words.
    condition = f"scope = ? AND status = '{status}'"
    if status not in states.TERMINAL:
        return task_rows.find(store, f"{condition} ORDER BY {task_rows.ORDER} LIMIT {SHOWN}", (viewer["scope"],))
    if count > MANY:
        condition = f"scope = ? AND +status = '{status}'"  # through the index on changed_at
    return task_rows.find(store, f"{condition} ORDER BY changed_at DESC LIMIT {ENDED_SHOWN}", (viewer["scope"],))
