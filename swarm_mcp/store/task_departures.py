"""What becomes of tasks when the session that had them leaves."""

from __future__ import annotations

from swarm_hook_core.untrusted_text import label, quoted
from swarm_mcp.store import events
from swarm_mcp.store import task_rows as rows
from swarm_mcp.store import task_states as states
from swarm_mcp.visibility import may_meet

# The scopes that have tasks, hopping along an index: a session may have moved to another one since.
_SCOPES = (
    "WITH RECURSIVE places(scope) AS (SELECT min(scope) FROM tasks"
    " UNION ALL SELECT (SELECT min(scope) FROM tasks WHERE tasks.scope > places.scope) FROM places"
    " WHERE places.scope IS NOT NULL)"
    " SELECT scope FROM places WHERE scope IS NOT NULL"
)
# Who holds tasks of a scope without being registered, hopping from holder to holder; the order is that of
# the index on what is held, which has nothing else in it.
_HOLDER = (
    f"SELECT assignee FROM tasks WHERE {rows.SOUND} AND scope = ?1 AND status IN ('claimed', 'in_progress')"
    " AND assignee"
)
_NEXT = f"ORDER BY assignee, {rows.ORDER} LIMIT 1"
_GHOSTS = (
    f"WITH RECURSIVE holders(id) AS (SELECT ({_HOLDER} IS NOT NULL {_NEXT})"
    f" UNION ALL SELECT ({_HOLDER} > holders.id {_NEXT}) FROM holders WHERE holders.id IS NOT NULL)"
    " SELECT id FROM holders WHERE id IS NOT NULL AND id NOT IN (SELECT id FROM instances)"
)
_NAMED_LIMIT = 5
_AT_ONCE = 100


def leave(store, row: dict, reason: str) -> None:
    """Inside a transaction: free the tasks of instance `row`, which is being removed for `reason`.

    What it was doing is open again; what still waits only loses its name. Where it was ``reclaimed``
    the others of its scope are told.
    """
    released = []
    for place in store.rows(_SCOPES):
        released += [release(store, task) for task in _held(store, place["scope"], row["id"])]
        _unassign(store, place["scope"], row["id"])
    if released and reason == "reclaimed":
        _tell(store, row, released)


def vacate(store, row: dict) -> None:
    """Inside a transaction: instance `row` goes to work in another scope, and leaves its tasks of this one behind."""
    for task in _held(store, row["scope"], row["id"]):
        release(store, task)
    _unassign(store, row["scope"], row["id"])


def release(store, task: dict) -> dict:
    """Inside a transaction: a task whose session has gone is open to anyone again.

    How far it came is still worth knowing; that its session was stuck, and when it meant to report, is not.
    """
    payload = {"status": states.OPEN, "prior_status": task["status"], "result": None, "reason": "assignee_gone"}
    over = {"assignee": None, "blocked_reason": None, "expected_next_update_at": None}
    return states.move(store, task, states.OPEN, "release", "system", payload, **over)


def abandoned(store, scope: str) -> list[dict]:
    """Some tasks that are claimed or in progress for nobody: another program's rows, or what it left behind."""
    found = _held(store, scope, None)
    for ghost in store.rows(_GHOSTS, (scope,)):
        if len(found) < _AT_ONCE:
            found += _held(store, scope, ghost["id"])
    return found[:_AT_ONCE]


def _held(store, scope: str, instance_id: str | None) -> list[dict]:
    condition = f"{rows.SOUND} AND scope = ? AND assignee IS ? AND status IN ('claimed', 'in_progress')"
    return rows.find(store, f"{condition} ORDER BY {rows.ORDER}", (scope, instance_id))


def _unassign(store, scope: str, instance_id: str) -> None:
    """No transition: the status stays."""
    waiting = rows.find(
        store,
        "scope = ? AND status IN ('blocked', 'approval_required') AND +assignee = ?",
        (scope, instance_id),
    )
    for task in waiting:
        store.change(
            "UPDATE tasks SET assignee = NULL, updated_at = ?, changed_at = ? WHERE id = ?",
            (store.now(), states.stamp(store, scope), task["id"]),
        )


def _tell(store, row: dict, released: list[dict]) -> None:
    """One message to each session that is still there and may know of the one that has gone."""
    peers = [
        peer["id"]
        for peer in store.instances.in_scope(row["scope"])
        if peer["id"] != row["id"] and may_meet(row["label"], peer["label"])
    ]
    if not peers:
        return
    named = [f"{quoted(task['title'])} (task_id: {task['id']})" for task in released[:_NAMED_LIMIT]]
    if len(released) > _NAMED_LIMIT:
        named.append(f"{len(released) - _NAMED_LIMIT} more")
    who = label(row["label"] or row["id"])
    content = f"[auto] Session {who} has gone. Open again: {', '.join(named)}. claim_task takes one over."
    for peer in peers:
        store.change(
            "INSERT INTO messages (scope, sender, recipient, content, created_at) VALUES (?, 'system', ?, ?, ?)",
            (row["scope"], peer, content, store.now()),
        )
    payload = {"content": content, "recipients": len(peers), "length": events.length(content)}
    payload.update(reason="instance_stale_reclaimed", released_tasks=len(released))
    events.add(store, row["scope"], "message.broadcast", "system", None, payload)
