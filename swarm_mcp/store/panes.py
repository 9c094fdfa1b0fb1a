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


def instance_with_pane(store, shown: dict) -> dict:
    """An instance as listed, with the pane it published, if any."""
    value = _published(store, shown["id"])
    if value:
        shown.update(workspace_backend=value["backend"], workspace_handle=value["handle"])
        shown.update(handle_kind=value["handle_kind"], pane_id=value.get("pane_id"))
    return shown


def lock_with_pane(store, shown: dict) -> dict:
    """A lock as listed, with the pane that its holder published, if any."""
    value = _published(store, shown["instance_id"])
    if value:
        names = ("backend", "handle_kind", "handle", "pane_id", "workspace_id", "tab_id")
        whole = {name: value[name] for name in names if name in value}
        shown["workspace"] = {"key": _key(shown["instance_id"]), **whole, "workspace_handle": value["handle"]}
        shown.update(workspace_backend=value["backend"], workspace_handle=value["handle"], pane_id=value.get("pane_id"))
    return shown


def _published(store, instance_id: str) -> dict:
    row = store.row("SELECT value FROM kv WHERE key = ?", (_key(instance_id),))
    try:
        value = loads(row["value"]) if row else None
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict) or not {"backend", "handle_kind", "handle"} <= value.keys():
        return {}
    return value


def _key(instance_id: str) -> str:
    return f"identity/workspace/herdr/{instance_id}"
