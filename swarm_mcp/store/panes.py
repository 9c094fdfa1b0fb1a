"""Where a session can be seen: the workspace pane it publishes."""

from __future__ import annotations

from swarm_hook_core.payload import dumps, loads

_VARIABLES = {"workspace_id": "HERDR_WORKSPACE_ID", "socket_path": "HERDR_SOCKET_PATH"}


def pane_in(environment) -> dict[str, str]:
    """The pane that an environment names: ``pane_id`` with ``workspace_id``, ``socket_path``; or nothing."""
    pane = (environment.get("HERDR_PANE_ID") or environment.get("HERDR_PANE") or "").strip()
    if not pane:
        return {}
    more = {name: environment[variable] for name, variable in _VARIABLES.items() if environment.get(variable)}
    return {"pane_id": pane, **more}


def publish(store, row: dict, pane: dict[str, str]) -> None:
    """Inside a transaction: make `pane` (from `pane_in`) known as this instance's, where it is news."""
    handle = pane["pane_id"]
    value = {"schema_version": 1, "backend": "herdr", "handle_kind": "pane", "handle": handle, **pane}
    key, text = _key(row["id"]), dumps(value)
    known = store.row("SELECT value FROM kv WHERE scope = ? AND key = ?", (row["scope"], key))
    if not known or known["value"] != text:
        store.kv.write(row, key, text)


def with_pane(store, shown: dict, instance_id: str = "") -> dict:
    """`shown`, with the pane of this instance (default: ``shown["id"]``) where it published one."""
    row = store.row("SELECT value FROM kv WHERE key = ?", (_key(instance_id or shown["id"]),))
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


def _key(instance_id: str) -> str:
    return f"identity/workspace/herdr/{instance_id}"
