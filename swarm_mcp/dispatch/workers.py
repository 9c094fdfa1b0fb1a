"""The sessions that work could go to, and telling one of them."""

from __future__ import annotations

from swarm_hook_core.labels import token
from swarm_mcp.actor import TERMINAL
from swarm_mcp.circle import may_meet
from swarm_mcp.dispatch.order import GENERALIST
from swarm_mcp.workspace.prompting import deliver


def find(store, requester: dict, role: str) -> dict | None:
    """The first live session with the role, else the first that is good for anything."""
    # A supervised worker has one task and ends with it; a person's shell works on none.
    busy = {run["instance_id"] for run in store.runs.live(requester["scope"])}
    peers = [
        row
        for row in store.instances.in_scope(requester["scope"])
        if row["id"] != requester["id"]
        and row["id"] not in busy
        and row["runtime"] != TERMINAL
        and may_meet(requester["label"], row["label"])
    ]
    for roles in ((role,), ("", GENERALIST)):
        for row in peers:
            if token(row["label"] or "", "role") in roles:
                return row
    return None


def assigned(store, requester: dict, task: dict) -> dict | None:
    """The live session that has the task, as far as the requester may meet it."""
    row = store.instances.live(task["assignee"]) if task["assignee"] else None
    return row if row and may_meet(requester["label"], row["label"]) else None


def tell(store, requester: dict, worker: dict, task: dict, message: str, nudge: bool, force: bool) -> dict:
    """Leave the instructions in the worker's inbox and wake it; not twice while they lie there unread.

    A supervised worker had them with its start, and is told what is new only.
    """
    content = f"[task:{task['id']}] {message}"
    told = 1 if store.runs.of_instance(worker["id"]) else 0
    with store.writing():
        waiting = store.row(
            "SELECT 1 FROM messages WHERE scope = ? AND recipient = ? AND read <= ? AND sender = ? AND content = ?",
            (requester["scope"], worker["id"], told, requester["id"], content),
        )
        if not waiting and worker["id"] != requester["id"]:
            store.messages.post(requester["scope"], requester["id"], worker["id"], content)
    return deliver(store, requester, worker["id"], content, nudge, force)
