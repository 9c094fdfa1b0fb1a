"""What goes with a session when it leaves, in one transaction with the row itself."""

from __future__ import annotations

from swarm_hook_core.labels import token
from swarm_hook_core.liveness import RECLAIM_SECONDS
from swarm_mcp.store import events
from swarm_mcp.views import known_as

STALE_SECONDS = 30


def remove(store, row: dict, reason: str) -> None:
    """Remove instance `row`: free its locks and tasks, drop its mail and published identity.

    `reason` is ``deregistered`` or ``reclaimed``. Call inside a transaction.
    """
    instance_id = row["id"]
    store.denials.forget(instance_id)
    store.change("DELETE FROM swarm_notices WHERE instance_id = ?", (instance_id,))
    store.change("DELETE FROM swarm_lapses WHERE instance_id = ?", (instance_id,))
    store.locks.drop(store.locks.of(instance_id), reason)
    if store.row("SELECT 1 FROM tasks LIMIT 1"):  # what hooks start loads no more than it needs
        from swarm_mcp.store import task_departures

        task_departures.leave(store, row, reason)
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
    if "role:planner" in (row["label"] or ""):
        store.planner.leave(row)


def announce(store, row: dict, by: dict) -> None:
    """Inside that transaction: tell the peers of session `by` that it has removed instance `row`."""
    theirs, own = (token(label or "", "identity") for label in (row["label"], by["label"]))
    known = theirs in ("", own)  # its peers may be of other identities than the removed one
    name = known_as(row) if known and row["label"] else f"instance {row['id']}"
    content = f"[auto] {name} was removed by {known_as(by)}: its locks are free and its tasks open again."
    store.messages.announce(by, content)
