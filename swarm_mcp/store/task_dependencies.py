"""What waits for what: whether a task may begin, and what the end of one means for others.

A dependency that has been deleted counts as done: ended tasks are kept for a day only, and those that
failed have cancelled their dependents long before. A task names only tasks that were there before it,
so there are no circles; chains may be long, so nothing here calls itself.
"""

from __future__ import annotations

from swarm_mcp.store import task_locks as locks
from swarm_mcp.store import task_rows as rows
from swarm_mcp.store import task_states as states

SYSTEM = "system"
_NAMES = rows.ITEMS.format("tasks.depends_on")
_WAITING = f"tasks.status IN ('{states.BLOCKED}', '{states.APPROVAL_REQUIRED}')"
# Ids of the tasks of scope ?1 that wait for task ?2, or for one that does, and so on; ?2 itself is the first.
_REACHED = (
    "WITH RECURSIVE pairs(dependency, waiting) AS MATERIALIZED (SELECT needed.value, tasks.rowid"
    f" FROM tasks, {_NAMES} needed WHERE scope = ?1 AND {_WAITING}),"
    " reached(id) AS (SELECT ?2 UNION SELECT tasks.id FROM reached"
    " CROSS JOIN pairs ON pairs.dependency = reached.id"
    f" CROSS JOIN tasks ON tasks.rowid = pairs.waiting AND {rows.SOUND})"
    " SELECT id FROM reached"
)


class Standing:
    """How a task stands with its dependencies: `met`, waiting, or `failed` (the id of one that came to nothing).

    `gone` is the first one that has been deleted, `status` that of the failed one; both else empty.
    """

    __slots__ = ("met", "failed", "status", "gone")

    def __init__(self, met: bool, failed: str = "", status: str = "", gone: str = ""):
        self.met = met
        self.failed = failed
        self.status = status
        self.gone = gone


def statuses(store, ids: list[str]) -> dict[str, str]:
    """Status by id of those tasks that are there."""
    found = store.rows(f"SELECT id, status FROM tasks WHERE id IN {rows.AMONG}", (states.as_json(ids),))
    return {row["id"]: row["status"] for row in found}


def standing(store, task: dict) -> Standing:
    """How `task` stands now."""
    needed = task["depends_on"] or []
    known = statuses(store, needed) if needed else {}
    gone = next((task_id for task_id in needed if task_id not in known), "")
    for task_id in needed:
        if known.get(task_id) in (states.FAILED, states.CANCELLED):
            return Standing(False, task_id, known[task_id], gone)
    return Standing(all(known.get(task_id, states.DONE) == states.DONE for task_id in needed), gone=gone)


def ready_status(task: dict) -> str:
    """The status of a task that nothing keeps from being done."""
    return states.CLAIMED if task["assignee"] else states.OPEN


def because_of(cause: Standing) -> str:
    """The result of a task that a failed dependency has cancelled."""
    return f"[auto] Cancelled: it depends on task {cause.failed}, which is {cause.status}"


def settle(store, ended: dict) -> list[dict]:
    """Inside a transaction: what the end of a task means for those that wait for it; those that may begin now."""
    if ended["status"] == states.DONE:
        return _resume(store, _dependents(store, ended), ended["id"])
    cancel_dependents(store, ended)
    return []


def cancel_dependents(store, ended: dict) -> None:
    """Inside a transaction: cancel whatever depends on a task that came to nothing, however far down."""
    if not _dependents(store, ended):  # which is found far sooner
        return
    reached = [row["id"] for row in store.rows(_REACHED, (ended["scope"], ended["id"]))]
    tasks = {task["id"]: task for task in rows.find(store, f"id IN {rows.AMONG}", (states.as_json(reached),))}
    over = {ended["id"]: ended["status"]}
    for task_id in reached[1:]:  # each behind the one by which it was reached
        cause = next((one for one in tasks[task_id]["depends_on"] or () if one in over), "")
        if cause:  # else it is no list that another program left there
            over[task_id] = _cancel(store, tasks[task_id], Standing(False, cause, over[cause]))["status"]


def settle_vanished(store, scope: str | None) -> list[dict]:
    """Inside a transaction: let go of tasks that nothing keeps blocked any more; those that may begin now.

    That is where dependencies have been deleted, or ended while another program forgot to look.
    """
    condition, values = ("tasks.scope = ? AND ", [scope]) if scope is not None else ("", [])
    dependency = f"FROM {_NAMES} needed JOIN tasks other ON other.id = needed.value WHERE other.status"
    due = rows.find(
        store,
        f"{condition}{_WAITING} AND status = '{states.BLOCKED}' AND (NOT EXISTS (SELECT 1 {dependency} <> 'done')"
        f" OR EXISTS (SELECT 1 {dependency} IN ('failed', 'cancelled'))) AND {rows.SOUND} ORDER BY {rows.ORDER}",
        values,
    )
    return _resume(store, due, "")


def _dependents(store, task: dict) -> list[dict]:
    # Most lists are told apart by a look for the bare id; one that JSON may spell otherwise is in every text.
    plain = task["id"] if task["id"].replace("-", "").isalnum() and task["id"].isascii() else ""
    return rows.find(
        store,
        f"scope = ? AND {_WAITING} AND instr(depends_on, ?)"
        f" AND EXISTS (SELECT 1 FROM {_NAMES} needed WHERE needed.value = ?) AND {rows.SOUND} ORDER BY {rows.ORDER}",
        (task["scope"], plain, task["id"]),
    )


def _resume(store, tasks: list[dict], trigger: str) -> list[dict]:
    resumed = []
    for task in tasks:
        now = standing(store, task)
        if now.failed:
            # Another program let it fail and left its dependents alone; or it was cancelled just above.
            if rows.get(store, task["scope"], task["id"])["status"] not in states.TERMINAL:
                cancel_dependents(store, _cancel(store, task, now))
        elif now.met and task["status"] == states.BLOCKED:
            target = ready_status(task)
            payload = {"trigger": trigger or now.gone or (task["depends_on"] or [""])[-1], "status": target}
            payload["prior_status"] = task["status"]
            resumed.append(states.move(store, task, target, "unblock", SYSTEM, payload))
    return resumed


def _cancel(store, task: dict, cause: Standing) -> dict:
    result = because_of(cause)
    payload = {"trigger": cause.failed, "reason": "dependency_failed", "result": result}
    payload.update(prior_status=task["status"], dependency_status=cause.status)
    moved = states.move(store, task, states.CANCELLED, "cascade", SYSTEM, payload, result=result)
    locks.release(store, moved)
    return moved
