"""Shared values, and what is kept as such: panes, the planner, work trackers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from support.memory_store.tables import Part
from swarm_hook_core.json_text import dumps, loads
from swarm_hook_core.labels import token
from swarm_mcp.domain.message import KeyValue
from swarm_mcp.domain.session import Session
from swarm_mcp.errors import Refused, SwarmError
from swarm_mcp.store.user_interface import pane_handles, pane_in, pane_summary
from swarm_mcp.store.values import appended_to, compact_json

PLANNER = "owner/planner"


class Values(Part):
    def _items(self, scope: str, prefix: str, viewer: str | None) -> list[KeyValue]:
        rows = [value for (place, key), value in sorted(self.memory.values.items()) if place == scope]
        return [
            KeyValue(key=row.key, updated_at=row.updated_at)
            for row in rows
            if row.key.startswith(prefix) and self._open(row, viewer)
        ]

    def walk(
        self, scope: str, prefix: str = "", viewer: str | None = None, after: str = ""
    ) -> Iterator[tuple[str, KeyValue]]:
        return self.behind(after, (str,), self._items(scope, prefix, viewer), lambda row: [row.key])

    def count(self, scope: str, viewer: str | None = None, prefix: str = "") -> int:
        return len(self._items(scope, prefix, viewer))

    def get(self, scope: str, key: str, viewer: str | None = None) -> KeyValue | None:
        row = self.memory.values.get((scope, key))
        return row if row and self._open(row, viewer) else None

    def put(self, instance: Session, key: str, value: str) -> None:
        self._write(instance, key, value)

    def append(self, instance: Session, key: str, value: str) -> int:
        known = self.get(instance["scope"], key)
        text, length = appended_to(known and known.value, compact_json(value))
        self._write(instance, key, text)
        return length

    def delete(self, instance: Session, key: str) -> bool:
        self._owned(instance, key)
        self.memory.add_event(instance["scope"], "kv.deleted", instance["id"], key)
        return self.memory.values.pop((instance["scope"], key), None) is not None

    def _write(self, instance: Session, key: str, value: str) -> None:
        if not key.strip():
            raise SwarmError("a key needs a name")
        known = self._owned(instance, key)
        owner = known.owner_identity if known and known.owner_identity else self._identity(instance)
        row = KeyValue(key=key, value=value, updated_at=self.store.now(), owner_identity=owner)
        self.memory.values[instance["scope"], key] = row
        self.memory.add_event(instance["scope"], "kv.set", instance["id"], key)

    def _owned(self, instance: Session, key: str) -> KeyValue | None:
        row = self.memory.values.get((instance["scope"], key))
        if row and not self._open(row, self._identity(instance) or ""):
            raise Refused("KV key is owned by another identity")
        return row

    def _identity(self, instance: Session) -> str | None:
        name = token(instance["label"] or "", "identity")
        return f"identity:{name}" if name else None

    def _open(self, row: KeyValue, viewer: str | None) -> bool:
        return viewer is None or row.owner_identity in (None, viewer)


class Panes(Part):
    def republish(self, row: Session, environment: Mapping[str, str], client_pid: int = 0) -> None:
        pane = pane_in(environment)
        if pane:
            self.publish(row, pane)

    def publish(self, row: Session, pane: dict[str, str]) -> None:
        known = self.published(row.id)
        if not known or pane["pane_id"] not in pane_handles(known):
            value = {"schema_version": 1, "backend": "herdr", "handle_kind": "pane", "handle": pane["pane_id"], **pane}
            self._put(row, value)

    def repair(self, row: Session, known: dict, found: dict[str, str]) -> bool:
        if found["pane_id"] == known["handle"] or self.published(row.id) != known:
            return False
        earlier = sorted(pane_handles(known) - {found["pane_id"]})
        self._put(row, {**known, **found, "handle": found["pane_id"], "handle_aliases": earlier})
        return True

    def published(self, instance_id: str) -> dict:
        row = self.store.instances.get(instance_id)
        value = self.store.kv.get(row.scope, self._key(instance_id)) if row else None
        return loads(value.value) if value else {}

    def all_published(self) -> dict[str, dict]:
        known = {name: self.published(name) for name in self.memory.sessions}
        return {name: value for name, value in known.items() if value}

    def with_session(self, shown: dict) -> dict:
        value = self.published(shown["id"])
        return {**shown, **pane_summary(value)} if value else shown

    def with_lock(self, shown: dict) -> dict:
        value = self.published(shown["instance_id"])
        return {**shown, "pane_id": value["pane_id"], "workspace": value} if value else shown

    def with_locks(self, shown: Iterable[dict]) -> Iterator[dict]:
        return (one if one.get("hidden") else self.with_lock(one) for one in shown)

    def _put(self, row: Session, value: dict) -> None:
        self.store.kv.put(row, self._key(row.id), dumps(value))

    def _key(self, instance_id: str) -> str:
        return f"identity/workspace/herdr/{instance_id}"


class Planner(Part):
    def owner(self, scope: str) -> dict | None:
        value = self._recorded(scope)
        row = self.store.instances.live(value["instance_id"]) if value else None
        return value if row and row.scope == scope and self._plans(row) else None

    def settle(self, row: Session, before: Session | None) -> None:
        """Give a plan that nobody owns to a planner that has just joined; take it from one that plans no more."""
        if before and self._plans(before) and (before.scope != row.scope or not self._plans(row)):
            self.leave(before)
        if self._plans(row) and not self.owner(row.scope):
            self._assign(row)

    def leave(self, row: Session) -> None:
        """Give the plan of a session that has left to the eldest planner."""
        value = self._recorded(row.scope)
        if value and value["instance_id"] == row.id:
            peers = [peer for peer in self.store.instances.in_scope(row.scope) if peer.id != row.id]
            planners = [peer for peer in peers if self._plans(peer)]
            del self.memory.values[row.scope, PLANNER]
            if planners:
                self._assign(planners[0])

    def _assign(self, row: Session) -> None:
        value = dumps({"instance_id": row.id, "label": row.label, "assigned_at": self.store.now() * 1000})
        self.memory.values[row.scope, PLANNER] = KeyValue(
            key=PLANNER, value=value, updated_at=self.store.now(), owner_identity=None
        )

    def _recorded(self, scope: str) -> dict | None:
        row = self.memory.values.get((scope, PLANNER))
        return loads(row.value) if row else None

    def _plans(self, row: Session) -> bool:
        return "role:planner" in (row.label or "").split()


class Tracker(Part):
    def of(self, instance: Session) -> dict | None:
        for name in (token(instance["label"] or "", "identity"), "default"):
            row = self.store.kv.get(instance["scope"], f"config/work_tracker/{name}") if name else None
            if row:
                return {"key": row.key, "value": loads(row.value), "updated_at": row.updated_at}
        return None

    def link(self, instance: Session, provider: str, task_id: str, identifier: str, url: str = "") -> dict:
        entry = {"identifier": identifier, **({"url": url} if url else {}), "linked_at": self.store.now() * 1000}
        self.store.kv.put(instance, self._key(instance, provider, task_id), dumps(entry))
        return entry

    def entry(self, instance: Session, provider: str, task_id: str) -> dict | None:
        if not token(instance["label"] or "", "identity"):
            return None
        row = self.store.kv.get(instance["scope"], self._key(instance, provider, task_id))
        return loads(row.value) if row else None

    def _key(self, instance: Session, provider: str, task_id: str) -> str:
        identity = token(instance["label"] or "", "identity")
        if not identity:
            raise SwarmError("a session without an identity has no tracker to link a task to")
        return f"tracker/{provider}/{identity}/{task_id}"
