"""What the command line and the MCP server ask of a store, whatever keeps it.

The embedded store (``connection.Store`` and the groups beside it) is the one implementation today.
Rows are dicts with the contract's column names; times are Unix seconds. Methods raise
``SwarmError``s, in particular ``StoreUnavailable``.
"""

from __future__ import annotations

from typing import Protocol


class Instances(Protocol):
    """Sessions that take part."""

    def register(self, request) -> dict:
        """Add or adopt an instance (``registration.Registration``); its row."""

    def remove(self, instance_id: str, reason: str) -> bool:
        """Remove an instance and whatever it holds; whether it was there."""

    def get(self, instance_id: str) -> dict | None:
        """One row."""

    def in_scope(self, scope: str) -> list[dict]:
        """Live rows of a scope, in order of registration."""

    def of_session(self, runtime: str, session_id: str) -> dict | None:
        """The row of a runtime's session."""


class Locks(Protocol):
    """Files that are held."""

    def acquire(self, instance: dict, file: str, note: str, exclusive: bool, task_id: str | None) -> dict:
        """Take a lock; its row. Raises LockRefused."""

    def release(self, instance: dict, file: str) -> int:
        """Give up this instance's lock on a file; how many rows went."""

    def held(self, scope: str | None, viewer_identity: str) -> list[dict]:
        """Locks of a scope with their owners as `viewer_identity` may see them, oldest first."""

    def on(self, file: str) -> list[dict]:
        """Locks on one file, in whatever scope."""


class KeyValues(Protocol):
    """Shared values, owned by the identity that first set them. Writes raise Refused where that is another one."""

    def items(self, scope: str, prefix: str, viewer: str | None) -> list[dict]:
        """Keys with their times, as far as `viewer` (None: everybody) may read them."""

    def get(self, scope: str, key: str, viewer: str | None) -> dict | None:
        """One value."""

    def put(self, instance: dict, key: str, value: str) -> None:
        """Set a value."""

    def append(self, instance: dict, key: str, value: str) -> int:
        """Add one JSON value to a list; its length."""

    def delete(self, instance: dict, key: str) -> bool:
        """Remove a key; whether it was there."""
