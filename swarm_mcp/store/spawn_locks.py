"""One spawn at a time: an exclusive lock for each role and dispatch key of a scope.

It is a lock like others, on ``/__swarm/spawn/<role>/<16 hex digits of the key's SHA-256>``, so that other
implementations on the same file honour it. What it holds as its note says how far the spawn has come, so
that one whose dispatcher was killed, or whose worker never came up, does not block the next for ever.
"""

from __future__ import annotations

import hashlib
import os

from swarm_hook_core.json_text import dumps, loads
from swarm_hook_core.process import gone, start_time
from swarm_mcp.domain.lock import MUTEX_PREFIX, Lock
from swarm_mcp.domain.record import new_id
from swarm_mcp.domain.task import TERMINAL
from swarm_mcp.store import events

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_mcp.domain.session import Session
    from swarm_mcp.store.database import Database
    from swarm_mcp.store.lock_finder import LockFinder
    from swarm_mcp.store.session_table import SessionTable

# A worker that has not registered by then will not: its terminal was closed, or it never started.
ARRIVAL_SECONDS = 600
STARTING, STARTED = "starting", "started"


class SpawnLocks:
    """Locks of that kind."""

    def __init__(self, db: Database, finder: LockFinder, sessions: SessionTable):
        self._db = db
        self._finder = finder
        self._sessions = sessions

    def take(self, instance: Session, name: str, task_id: str, worker_id: str) -> Lock | None:
        with self._db.writing():
            self._sessions.require(instance.id)
            held = self.holder(instance.scope, name)
            if held and not self.is_void(held):
                return None
            self._delete(instance.scope, name, "spawn_void")
            row = {
                "id": new_id(),
                "scope": instance.scope,
                "instance_id": instance.id,
                "file": name,
                "task_id": task_id,
            }
            by = [self._db.here, os.getpid(), start_time(os.getpid())]
            row["content"] = _note(STARTING, {"by": by, "instance_id": worker_id})
            self._db.change(
                "INSERT INTO context (id, scope, instance_id, file, type, content, task_id, created_at)"
                " VALUES (?, ?, ?, ?, 'lock', ?, ?, ?)",
                (row["id"], row["scope"], row["instance_id"], name, row["content"], task_id, self._db.now()),
            )
            payload = {"id": row["id"], "content": row["content"]}
            events.add(self._db, row["scope"], "context.lock_acquired", instance.id, name, payload)
            return Lock(row)

    def started(self, row: Lock, facts: dict) -> None:
        with self._db.writing():
            self._db.change("UPDATE context SET content = ? WHERE id = ?", (_note(STARTED, facts), row.id))

    def release(self, row: Lock, reason: str) -> None:
        with self._db.writing():
            self._release(row, reason)

    def _release(self, row: Lock, reason: str) -> None:
        if self._db.change("DELETE FROM context WHERE id = ?", (row.id,)):
            payload = {"released": 1, "reason": reason, "task_id": row.task_id}
            events.add(self._db, row.scope, "context.lock_released", row.instance_id, row.file, payload)

    def holder(self, scope: str, name: str) -> Lock | None:
        return next((row for row in self._finder.on(name) if row.scope == scope), None)

    def worker_of(self, row: Lock) -> Session | None:
        reserved = reserved_in(row)
        return self._sessions.live(reserved) if reserved else None

    def is_void(self, row: Lock) -> bool:
        """Tell whether the spawn under a lock is provably over without a worker."""
        task = self._db.row("SELECT status FROM tasks WHERE id = ?", (row.task_id,))
        if task is None or task.status in TERMINAL:
            return True
        note = _read(row)
        if self.worker_of(row):
            return False
        if note.get("stage") == STARTING:
            return self._is_gone(note.get("by"))
        if self._is_gone(note.get("supervisor")):
            return True
        command = note.get("ui_command_id")
        if isinstance(command, int):
            found = self._db.row("SELECT status FROM ui_commands WHERE id = ?", (command,))
            if found is None or found.status == "failed":
                return True
            if found.status != "done":
                return False  # the queue's reader may yet come
        return note.get("stage") == STARTED and self._db.now() - row.created_at > ARRIVAL_SECONDS

    def _delete(self, scope: str, name: str, reason: str) -> None:
        for row in self._db.rows(
            "SELECT id, scope, instance_id, file, task_id FROM context WHERE scope = ? AND file = ? AND type = 'lock'",
            (scope, name),
            Lock,
        ):
            self._release(row, reason)

    def _is_gone(self, process: object) -> bool:
        """Tell whether a process ``[host, pid, start time]`` has provably ended."""
        if not isinstance(process, list) or [type(part) for part in process] != [str, int, str]:
            return False
        host, pid, started = process
        return gone(host, pid, started, self._db.here)


def name_of(role: str, key: str) -> str:
    """Return the lock's file for a role and a dispatch key."""
    digest = hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{MUTEX_PREFIX}spawn/{role}/{digest[:16]}"


def reserved_in(row: Lock) -> str:
    """Return the instance id that is reserved for the worker started under a lock; empty where none is noted."""
    reserved = _read(row).get("instance_id")
    return reserved if isinstance(reserved, str) else ""


def _note(stage: str, facts: dict) -> str:
    return dumps({"stage": stage, **facts})


def _read(row: Lock) -> dict:
    try:
        value = loads(row.content)
    except (ValueError, RecursionError):
        value = None
    return value if isinstance(value, dict) else {}
