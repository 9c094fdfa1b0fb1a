"""One spawn at a time: an exclusive lock for each role and dispatch key of a scope.

It is a lock like others, on ``/__swarm/spawn/<role>/<16 hex digits of the key's SHA-256>``, so that other
implementations on the same file honour it. Its note says how far the spawn has come. So a spawn whose dispatcher was
killed, or whose worker never came up, does not block the next for ever.
"""

from __future__ import annotations

import hashlib
import os

from swarm_hook_core.json_text import dumps
from swarm_hook_core.process import gone, start_time
from swarm_mcp.domain.lock import MUTEX_PREFIX, Lock
from swarm_mcp.domain.record import new_id
from swarm_mcp.domain.task import TERMINAL
from swarm_mcp.store import lock_finder, session_life, session_table
from swarm_mcp.store.database import object_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from swarm_mcp.domain.session import Session
    from swarm_mcp.store.database import Transaction

# A worker that has not registered by then will not: its terminal was closed, or it never started.
ARRIVAL_SECONDS = 600
STARTING, STARTED = "starting", "started"


def take(tx: Transaction, instance: Session, name: str, task_id: str, worker_id: str) -> Lock | None:
    """Return the lock, now this process's to spawn under; None if a spawn is under way.

    `worker_id` is the id reserved for the started worker. Raises SwarmError if `instance`, the session that dispatches,
    has gone.
    """
    session_life.require(tx, instance.id)
    held = holder(tx, instance.scope, name)
    if held and not is_void(tx, held):
        return None
    _delete(tx, instance.scope, name, "spawn_void")
    row = {
        "id": new_id(),
        "scope": instance.scope,
        "instance_id": instance.id,
        "file": name,
        "task_id": task_id,
    }
    by = [tx.here, os.getpid(), start_time(os.getpid())]
    row["content"] = _note(STARTING, {"by": by, "instance_id": worker_id})
    tx.change(
        "INSERT INTO context (id, scope, instance_id, file, type, content, task_id, created_at)"
        " VALUES (?, ?, ?, ?, 'lock', ?, ?, ?)",
        (row["id"], row["scope"], row["instance_id"], name, row["content"], task_id, tx.now()),
    )
    payload = {"id": row["id"], "content": row["content"]}
    tx.add_event(row["scope"], "context.lock_acquired", instance.id, name, payload)
    return Lock(row)


def started(tx: Transaction, row: Lock, facts: dict[str, Any]) -> None:
    """Note that the spawn under `row` is out of our hands; `facts` say how to ask about it."""
    tx.change("UPDATE context SET content = ? WHERE id = ?", (_note(STARTED, facts), row.id))


def release(tx: Transaction, row: Lock, reason: str) -> None:
    """Give up the lock `row` (from `take`), where it is still that one."""
    _release(tx, row, reason)


def _release(tx: Transaction, row: Lock, reason: str) -> None:
    if tx.change("DELETE FROM context WHERE id = ?", (row.id,)):
        payload = {"released": 1, "reason": reason, "task_id": row.task_id}
        tx.add_event(row.scope, "context.lock_released", row.instance_id, row.file, payload)


def holder(tx: Transaction, scope: str, name: str) -> Lock | None:
    """Return the lock of this scope as ``locks.on`` gives it, None without a live holder."""
    return next((row for row in lock_finder.on(tx, name) if row.scope == scope), None)


def worker_of(tx: Transaction, row: Lock) -> Session | None:
    """Return the worker that was started under a lock, where it has come up."""
    reserved = reserved_in(row)
    if reserved:
        return session_table.live(tx, reserved)
    return None


def is_void(tx: Transaction, row: Lock) -> bool:
    """Return True if the spawn under a lock is provably over without a worker."""
    task = tx.row("SELECT status FROM tasks WHERE id = ?", (row.task_id,))
    if task is None or task.status in TERMINAL:
        return True
    note = object_in(row.content)
    if worker_of(tx, row):
        return False
    if note.get("stage") == STARTING:
        return _is_gone(tx, note.get("by"))
    if _is_gone(tx, note.get("supervisor")):
        return True
    command = note.get("ui_command_id")
    if isinstance(command, int):
        found = tx.row("SELECT status FROM ui_commands WHERE id = ?", (command,))
        if found is None or found.status == "failed":
            return True
        if found.status != "done":
            return False  # the queue's reader may yet come
    return note.get("stage") == STARTED and tx.now() - row.created_at > ARRIVAL_SECONDS


def _delete(tx: Transaction, scope: str, name: str, reason: str) -> None:
    for row in tx.rows(
        "SELECT id, scope, instance_id, file, task_id FROM context WHERE scope = ? AND file = ? AND type = 'lock'",
        (scope, name),
        Lock,
    ):
        _release(tx, row, reason)


def _is_gone(tx: Transaction, process: object) -> bool:
    """Return True if a process ``[host, pid, start time]`` has provably ended."""
    if not isinstance(process, list) or [type(part) for part in process] != [str, int, str]:
        return False
    host, pid, started = process
    return gone(host, pid, started, tx.here)


def name_of(role: str, key: str) -> str:
    """Return the lock's file for a role and a dispatch key."""
    digest = hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{MUTEX_PREFIX}spawn/{role}/{digest[:16]}"


def reserved_in(row: Lock) -> str:
    """Return the instance id that is reserved for the worker started under a lock; empty without one."""
    reserved = object_in(row.content).get("instance_id")
    if isinstance(reserved, str):
        return reserved
    return ""


def _note(stage: str, facts: dict[str, Any]) -> str:
    return dumps({"stage": stage, **facts})
