"""What has happened, orders to a user interface, and what falls due with time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from types import SimpleNamespace

from support.memory_store.tables import Memory, Part
from swarm_hook_core.json_text import loads
from swarm_mcp.domain.lock import MUTEX_PREFIX
from swarm_mcp.domain.message import Event, UiCommand
from swarm_mcp.domain.session import Session
from swarm_mcp.domain.task import CLAIMED, IN_PROGRESS, TERMINAL
from swarm_mcp.errors import SwarmError
from swarm_mcp.store.activity import CHANGES, LOCKS_AND_SESSIONS, Acquaintance

HOUR, DAY = 3600, 86400


class Activity(Part):
    def moment(self, _instance: Session) -> int:
        return len(self.memory.events)

    def since(self, instance: Session, before: int) -> SimpleNamespace:
        """What others have done since: ``changes`` by the contract's names."""
        names = {
            "task": "task_updates", "instance": "instance_changes", "kv": "kv_updates", "context": "lock_updates",
        }  # fmt: skip
        new = [event for event in self.memory.events[before:] if event.scope == instance["scope"]]
        groups = {event.type.partition(".")[0] for event in new if instance["id"] != event.actor}
        mail = any(event.type == "message.sent" and event.subject == instance["id"] for event in new)
        changes = [*(["new_messages"] if mail else []), *(name for group, name in names.items() if group in groups)]
        return SimpleNamespace(moment=len(self.memory.events), changes=changes)

    def sweep(self) -> None:
        self.store.leases.some()
        for row in self.store.instances.gone():
            self.store.instances.remove(row.id, "reclaimed")

    def of_locks(self, before: int | None, limit: int) -> list[Event]:
        found = [event for event in self.memory.events if event.type.startswith("context.")]
        return [event for event in found[::-1] if before is None or event.id < before][:limit]

    def timeline(
        self, scope: str, since: int, until: int, limit: int, groups: tuple[str, ...] = LOCKS_AND_SESSIONS
    ) -> list[Event]:
        found = [
            event for event in self.memory.events
            if event.type.partition(".")[0] in groups and since <= event.created_at <= until
            and scope in ("", event.scope) and not (event.subject or "").startswith(MUTEX_PREFIX)
        ]  # fmt: skip
        return found[::-1][:limit]

    def of_sessions(self, ids: list[str]) -> list[Event]:
        return [event for event in self.memory.events if event.type.startswith("instance.") and event.subject in ids]

    def acquaintance(self, label: str | None) -> Acquaintance:
        return Acquaintance(self.store.instances, label)

    def feed(self, scope: str, identity: str, last: int | None = None) -> Feed:
        known = self.acquaintance(f"identity:{identity}" if identity else None)
        return Feed(self.memory, known, scope, len(self.memory.events) if last is None else last)


class Feed:
    def __init__(self, memory: Memory, known: Acquaintance, scope: str, last: int):
        self.memory, self.known, self.scope, self.last = memory, known, scope, last

    def read(self) -> list[dict]:
        new = [event for event in self.memory.events[self.last :] if event.scope == self.scope]
        self.last = len(self.memory.events)
        self.known.learn(new)
        return [self._seen(event) for event in new]

    def _seen(self, event: Event) -> dict:
        group = event.type.partition(".")[0]
        open_to_viewer = self.known.may_meet(event.actor)
        if not open_to_viewer and group in ("message", "task", "kv"):
            return {"id": event.id}
        actor = event.actor if open_to_viewer else None
        told = {"id": event.id, "at": event.created_at, "change": CHANGES.get(group), "type": event.type}
        told.update(actor=actor, actor_label=self.known.label_of(actor) if actor else None, subject=event.subject)
        return {**told, "payload": loads(event.payload)}


class UiCommands(Part):
    def enqueue(self, scope: str, created_by: str | None, kind: str, payload: dict) -> UiCommand:
        row = dict.fromkeys(("claimed_by", "result", "error", "started_at", "completed_at"))
        row.update(id=len(self.memory.ui_commands) + 1, scope=scope, created_by=created_by, kind=kind)
        row.update(payload=payload, status="pending", created_at=self.store.now())
        self.memory.ui_commands.append(UiCommand(row))
        return self.memory.ui_commands[-1]

    def get(self, command_id: int) -> UiCommand | None:
        return next((row for row in self.memory.ui_commands if row.id == command_id), None)

    def recent(self, scope: str, status: str = "", limit: int = 20) -> list[UiCommand]:
        if status not in ("", "pending", "running", "done", "failed"):
            raise SwarmError(f"{status!r} is not a status of a ui command")
        fitting = [row for row in self.memory.ui_commands if row.scope == scope and status in ("", row.status)]
        return fitting[::-1][: limit if limit >= 0 else None]

    def walk(self, scope: str, status: str = "", after: str = "") -> Iterator[tuple[str, UiCommand]]:
        return self.behind(after, (int,), self.recent(scope, status, -1), lambda row: [row.id], falling=True)

    def count(self, scope: str, status: str = "") -> int:
        return len(self.recent(scope, status, -1))

    def outcome(self, command_id: int, seconds: float) -> UiCommand:
        end = time.monotonic() + seconds
        with self.store.changes() as changes:
            while True:
                row, left = self.get(command_id), end - time.monotonic()
                if row is None:
                    raise SwarmError(f"ui command {command_id} is not there any more")
                if row.status in ("done", "failed") or left <= 0:
                    return row
                changes.wait(left)


class Cleanup(Part):
    def some(self) -> bool:
        self.clean()
        return True

    def due_in(self) -> float:
        return 0.0

    def clean(self, scope: str | None = None, dry_run: bool = False) -> dict:
        memory, now = self.memory, self.store.now()
        gone = [row for row in self.store.instances.gone() if scope in (None, row.scope)]
        ids = {row.id for row in gone}
        theirs = [task for task in memory.tasks.values() if task.assignee in ids and task.status not in TERMINAL]
        begun = [task for task in theirs if task.status in (CLAIMED, IN_PROGRESS)]
        locks = [lock for lock, _reach in memory.locks.values() if lock.instance_id in ids]
        mail = [one for one in memory.messages if one.created_at < now - HOUR]
        ended = [task for task in memory.tasks.values() if task.status in TERMINAL and task.updated_at < now - DAY]
        counts = {
            "instances_reclaimed": len(gone), "tasks_reopened": len(begun),
            "task_assignees_cleared": len(theirs) - len(begun), "locks_deleted": len(locks),
            "messages_deleted": len(mail), "terminal_tasks_deleted": len(ended),
        }  # fmt: skip
        if not dry_run:
            for row in gone:
                self.store.instances.remove(row.id, "reclaimed")
            memory.messages = [one for one in memory.messages if one not in mail]
            memory.tasks = {task.id: task for task in memory.tasks.values() if task not in ended}
        return {"dry_run": dry_run, "mode": "manual", "scope": scope, "at": now, **counts}
