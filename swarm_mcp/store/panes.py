"""Where a session can be seen: the workspace pane it published."""

from __future__ import annotations

from swarm_hook_core.payload import loads


def with_pane(store, shown: dict, instance_id: str = "") -> dict:
    """`shown`, with the pane of this instance (default: ``shown["id"]``) where it published one."""
    key = f"identity/workspace/herdr/{instance_id or shown['id']}"
    row = store.row("SELECT value FROM kv WHERE key = ?", (key,))
    if not row:
        return shown
    try:
        value = loads(row["value"])
    except ValueError:
        return shown
    if isinstance(value, dict):
        shown["workspace_backend"] = value.get("backend")
        shown["workspace_handle"] = value.get("handle")
        shown["handle_kind"] = value.get("handle_kind")
        shown["pane_id"] = value.get("pane_id")
    return shown
