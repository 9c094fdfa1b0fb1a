"""Shared values: scope-wide, owned by the first identity that sets them."""

from __future__ import annotations

from swarm_hook_core.labels import token
from swarm_mcp.errors import SwarmError
from swarm_mcp.store import events


class KeyValues:
    """The embedded store's key-value pairs."""

    def __init__(self, store):
        self.store = store

    def items(self, scope: str, prefix: str = "") -> list[dict]:
        """``{key, updated_at}`` of every key with this exact prefix, by key."""
        return self.store.rows(
            "SELECT key, updated_at FROM kv WHERE scope = ? AND substr(key, 1, ?) = ? ORDER BY key",
            (scope, len(prefix), prefix),
        )

    def get(self, scope: str, key: str, viewer: str | None = None) -> dict | None:
        """``{value, updated_at, owner_identity}``; None also where `viewer`'s identity may not read it."""
        row = self.store.row(
            "SELECT value, updated_at, owner_identity FROM kv WHERE scope = ? AND key = ?", (scope, key)
        )
        if row and viewer is not None and row["owner_identity"] not in (None, viewer):
            return None
        return row

    def put(self, instance: dict, key: str, value: str) -> None:
        """Set a value. Raises SwarmError where another identity owns the key."""
        with self.store.writing():
            self._owned(instance, key)
            self.write(instance, key, value)

    def append(self, instance: dict, key: str, value: str) -> int:
        """Add one JSON value to the list under `key`; the list's new length.

        What was there and is no list becomes its first item. Raises SwarmError on invalid JSON.
        """
        import json

        try:
            item = json.loads(value, parse_constant=_refuse)
        except (ValueError, RecursionError) as error:
            raise SwarmError(f"the value is not JSON: {error}") from None
        with self.store.writing():
            row = self._owned(instance, key)
            items = []
            if row:
                try:
                    items = json.loads(row["value"])
                except ValueError:
                    items = row["value"]
                items = items if isinstance(items, list) else [items]
            items.append(item)
            text = json.dumps(items, separators=(",", ":"), ensure_ascii=False)
            self._store(instance, key, text)
            payload = {"appended": value, "length": len(items)}
            events.add(self.store, instance["scope"], "kv.appended", instance["id"], key, payload)
        return len(items)

    def delete(self, instance: dict, key: str) -> bool:
        """Remove a key; whether it was there. Raises SwarmError where another identity owns it."""
        with self.store.writing():
            row = self._owned(instance, key)
            if row:
                self.store.change("DELETE FROM kv WHERE scope = ? AND key = ?", (instance["scope"], key))
                self.touch(instance["scope"])
                payload = {"prior_value": row["value"], "prior_length": len(row["value"])}
                events.add(self.store, instance["scope"], "kv.deleted", instance["id"], key, payload)
        return row is not None

    def write(self, instance: dict, key: str, value: str) -> None:
        """Inside a transaction: set a value, with its event."""
        self._store(instance, key, value)
        payload = {"value": value, "length": len(value)}
        events.add(self.store, instance["scope"], "kv.set", instance["id"], key, payload)

    def erase(self, key: str) -> None:
        """Inside a transaction: remove a key from every scope, whoever owns it."""
        for row in self.store.rows("SELECT scope FROM kv WHERE key = ?", (key,)):
            self.store.change("DELETE FROM kv WHERE scope = ? AND key = ?", (row["scope"], key))
            self.touch(row["scope"])

    def _owned(self, instance: dict, key: str) -> dict | None:
        row = self.get(instance["scope"], key)
        owner, mine = (row or {}).get("owner_identity"), _identity(instance)
        if owner and owner != mine:
            raise SwarmError(f"the key {key} belongs to another identity")
        return row

    def _store(self, instance: dict, key: str, value: str) -> None:
        self.store.change(
            "INSERT INTO kv (scope, key, value, owner_identity, updated_at) VALUES (?, ?, ?, ?, ?)"
            " ON CONFLICT (scope, key) DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at,"
            " owner_identity = coalesce(owner_identity, excluded.owner_identity)",
            (instance["scope"], key, value, _identity(instance), self.store.now()),
        )
        self.touch(instance["scope"])

    def touch(self, scope: str) -> None:
        """Inside a transaction: note that something in a scope has changed, for those who wait for that."""
        self.store.change(
            "INSERT INTO kv_scope_updates (scope, changed_at) VALUES (?, ?)"
            " ON CONFLICT (scope) DO UPDATE SET changed_at = max(excluded.changed_at, changed_at + 1)",
            (scope, self.store.now_ms()),
        )


def _refuse(name: str):
    raise ValueError(f"{name} is not JSON")


def _identity(instance: dict) -> str | None:
    name = token(instance["label"] or "", "identity")
    return f"identity:{name}" if name else None
