"""What goes with a session when it leaves, in one transaction with the row itself."""

from __future__ import annotations

from swarm_hook_core.liveness import RECLAIM_SECONDS
from swarm_mcp.store import events

STALE_SECONDS = 30


def remove(store, row: dict, reason: str) -> None:
    """Remove instance `row`: free its locks and tasks, drop its mail and published identity.

    `reason` is ``deregistered`` or ``reclaimed``. Call inside a transaction.
    """
    instance_id, now = row["id"], store.now()
    for lock in store.rows("SELECT file, scope FROM context WHERE instance_id = ? AND type = 'lock'", (instance_id,)):
        payload = {"released": 1, "reason": reason}
        events.add(store, lock["scope"], "context.lock_released", instance_id, lock["file"], payload)
    # With its type, so that the index on holders serves; rows of other types are legacy, and upkeep's.
    store.change("DELETE FROM context WHERE instance_id = ? AND type = 'lock'", (instance_id,))
    store.change(
        "UPDATE tasks SET status = 'open', assignee = NULL, updated_at = ?, changed_at = ?"
        " WHERE assignee = ? AND status IN ('claimed', 'in_progress')",
        (now, store.now_ms(), instance_id),
    )
    store.change(
        "UPDATE tasks SET assignee = NULL, updated_at = ?, changed_at = ?"
        " WHERE assignee = ? AND status IN ('blocked', 'approval_required')",
        (now, store.now_ms(), instance_id),
    )
    store.change("DELETE FROM messages WHERE scope = ? AND recipient = ?", (row["scope"], instance_id))
    for key in (f"identity/workspace/herdr/{instance_id}", f"identity/herdr/{instance_id}"):
        store.kv.erase(key)
    store.change("DELETE FROM swarm_sessions WHERE instance_id = ?", (instance_id,))
    store.change("DELETE FROM instances WHERE id = ?", (instance_id,))
    if reason == "reclaimed":
        payload = {"label": row["label"], "pid": row["pid"], "last_heartbeat": row["heartbeat"]}
        payload.update(stale_threshold_secs=STALE_SECONDS, reclaim_threshold_secs=RECLAIM_SECONDS)
        events.add(store, row["scope"], "instance.stale_reclaimed", "system", instance_id, payload)
    else:
        payload = {"label": row["label"], "pid": row["pid"]}
        events.add(store, row["scope"], "instance.deregistered", instance_id, instance_id, payload)
