"""User interfaces: the pane in which a session can be seen, and orders to the interface that shows it.

A published pane is a kv value, ``{schema_version, backend, handle_kind, handle, pane_id}`` with ``workspace_id``,
``tab_id``, ``socket_path`` if known and the pane's earlier names in ``handle_aliases`` and ``pane_aliases``: a pane
that is moved gets a new name and still answers to the old one. An order is claimed by an external interface, which
reports the outcome.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from swarm_hook_core.json_text import dumps, loads
from swarm_hook_core.process import runs_app_server
from swarm_mcp.domain import Session, UiCommand
from swarm_mcp.errors import SwarmError
from swarm_mcp.store import cursors, session_table, values
from swarm_mcp.store.database import Database, Transaction, object_in, range_end

_VARIABLES = {"workspace_id": "HERDR_WORKSPACE_ID", "tab_id": "HERDR_TAB_ID", "socket_path": "HERDR_SOCKET_PATH"}
_OLDER = "identity/herdr/"  # where panes were published once
_NAMES = ("backend", "handle_kind", "handle")
# The columns of the holder's pane that a lock and its owner show.
PANE_COLUMNS = ("workspace_backend", "workspace_handle", "pane_id")
# All fields of a pane's value; `details` is free.
PUBLISHED = (
    "schema_version", "backend", "handle_kind", "handle", "pane_id", "handle_aliases", "pane_aliases", "socket_path",
    "workspace_id", "tab_id", "details",
)  # fmt: skip
UI_STATES = ("pending", "running", "done", "failed")  # of an order
UI_ENDED = ("done", "failed")


def publish(tx: Transaction, row: Session, pane: dict[str, str]) -> None:
    """Inside a transaction: make `pane` (from `pane_in`) known as this instance's, where it is news."""
    known = published(tx, row.id)
    if known and pane["pane_id"] in pane_handles(known) and _same_server(known, pane):
        return  # also where the pane has been moved since: the environment keeps the name it had at first
    value = {"schema_version": 1, "backend": "herdr", "handle_kind": "pane", "handle": pane["pane_id"], **pane}
    values.write(tx, row, _key(row.id), dumps(value))


def republish(db: Database, row: Session, environment: Mapping[str, str], client_pid: int = 0) -> None:
    """Make known the pane that `environment` names, if instance `row` has published another one or nothing.

    `client_pid` is the client with that environment: a client's shared background server has the environment of the
    terminal that happened to start it, which says nothing about this session.
    """
    pane = pane_in(environment)
    if pane and not (client_pid and runs_app_server(client_pid)):
        with db.writing() as tx:
            publish(tx, row, pane)


def withdraw(tx: Transaction, instance_id: str) -> None:
    """Inside a transaction: forget the pane of an instance that has gone."""
    for key in (_key(instance_id), f"{_OLDER}{instance_id}"):
        values.erase(tx, key)


def repair(db: Database, row: Session, known: dict[str, Any], found: dict[str, str]) -> bool:
    """Write back the present name of a pane; return True if it is new.

    `known` is the value that instance `row` had published; `found` has ``pane_id``, ``workspace_id``, ``tab_id`` as its
    workspace tells them. Nothing is written if the session has published anew meanwhile.
    """
    if found["pane_id"] == known["handle"]:
        return False
    now = {name: text for name, text in found.items() if text}
    value = {"schema_version": 1, **known, **now, "handle": found["pane_id"]}
    earlier = sorted(pane_handles(known) - {found["pane_id"]})
    value.update(handle_aliases=earlier, pane_aliases=earlier)
    with db.writing() as tx:
        if published(tx, row.id) != known or session_table.get(tx, row.id) is None:
            return False
        values.write(tx, row, _key(row.id), dumps(value))
    return True


def published(tx: Transaction, instance_id: str) -> dict[str, Any]:
    """Return the pane that an instance has published, empty without a sensible one."""
    rows = tx.rows(
        "SELECT k.value FROM instances i JOIN kv k ON k.scope = i.scope AND k.key IN (?, ?)"
        " WHERE i.id = ? ORDER BY k.key DESC",
        (_key(instance_id), f"{_OLDER}{instance_id}", instance_id),
    )
    return next(filter(None, (_pane_of(row.value) for row in rows)), {})


def with_session(tx: Transaction, shown: dict[str, Any]) -> dict[str, Any]:
    """Return a session as listed, with the pane it published, if any."""
    value = published(tx, shown["id"])
    if value:
        shown.update(pane_summary(value))
    return shown


def with_lock(tx: Transaction, shown: dict[str, Any]) -> dict[str, Any]:
    """Return a lock as listed, with the pane that its holder published, if any."""
    return _beside_pane(shown, published(tx, shown["instance_id"]))


def with_locks(tx: Transaction, shown: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield locks as listed, as `with_lock` does; hidden ones stay so. Panes are asked for once for all."""
    known = all_published(tx)
    for lock in shown:
        pane = known.get(lock["instance_id"])
        yield lock if pane is None or lock.get("hidden") else _beside_pane(lock, pane)


def all_published(tx: Transaction) -> dict[str, dict[str, Any]]:
    """Return the pane of each instance that has published one, by its id."""
    found: dict[str, dict[str, Any]] = {}
    for prefix in (_OLDER, _key("")):  # a value under the second key wins
        rows = tx.rows(
            f"SELECT i.id, k.value FROM kv k JOIN instances i ON i.id = substr(k.key, {len(prefix) + 1})"
            " WHERE k.key >= ? AND k.key < ? AND k.scope = i.scope",
            (prefix, range_end(prefix)),
        )
        found.update((row.id, pane) for row in rows if (pane := _pane_of(row.value)))
    return found


def enqueue(db: Database, scope: str, created_by: str | None, kind: str, payload: dict[str, Any]) -> UiCommand:
    """Add one command, ``spawn_shell``, ``send_prompt``, ``move_node`` or ``organize_nodes``; its row."""
    with db.writing() as tx:
        number = tx.insert(
            "INSERT INTO ui_commands (scope, created_by, kind, payload, created_at) VALUES (?, ?, ?, ?, ?)",
            (scope, created_by, kind, dumps(payload), tx.now()),
        )
        return get(tx, number) or UiCommand()


def get(tx: Transaction, command_id: int) -> UiCommand | None:
    """Return one command."""
    row = tx.row("SELECT * FROM ui_commands WHERE id = ?", (command_id,), UiCommand)
    if row:
        return _parsed(row)
    return None


def recent(tx: Transaction, scope: str, status: str = "", limit: int = 20) -> list[UiCommand]:
    """Return the newest `limit` commands of a scope, newest first; a negative limit means all.

    Raises SwarmError where `status` is none of ``UI_STATES``.
    """
    condition, values = _in_state(scope, status)
    sql = f"SELECT * FROM ui_commands WHERE {condition} ORDER BY id DESC LIMIT ?"
    rows = tx.rows(sql, (*values, limit), UiCommand)
    return [_parsed(row) for row in rows]


def walk(tx: Transaction, scope: str, status: str = "", after: str = "") -> Iterator[tuple[str, UiCommand]]:
    """Yield the commands of `recent`, all of them, as pages of a listing take them."""
    condition, values = _in_state(scope, status)

    def read(behind: str, place: list[Any], number: int) -> list[UiCommand]:
        sql = f"SELECT * FROM ui_commands WHERE {condition} {behind} ORDER BY id DESC LIMIT {number}"
        return tx.rows(sql, (*values, *place), UiCommand)

    for place, row in cursors.rows_after(after, (int,), "AND id < ?", read, lambda row: [row.id]):
        yield place, _parsed(row)


def count(tx: Transaction, scope: str, status: str = "") -> int:
    """Return how many commands `walk` has."""
    condition, values = _in_state(scope, status)
    return tx.count(f"ui_commands WHERE {condition}", *values)


def outcome(tx: Transaction, command_id: int, seconds: float) -> UiCommand:
    """Return the command once it is done or has failed, or as it is after `seconds`.

    Sleeps until some process commits to the store. Raises SwarmError where the command is gone.
    """
    from swarm_mcp.store.changes import Changes

    end = time.monotonic() + seconds
    with Changes(tx.path) as changes:
        while True:
            row = get(tx, command_id)
            if row is None:
                raise SwarmError(f"ui command {command_id} is not there any more")
            left = end - time.monotonic()
            if row.status in UI_ENDED or left <= 0:
                return row
            changes.wait(left)


def pane_in(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the pane an environment names: ``pane_id``, ``workspace_id``, ``tab_id``, ``socket_path``; or nothing."""
    pane = (environment.get("HERDR_PANE_ID") or environment.get("HERDR_PANE") or "").strip()
    if not pane:
        return {}
    more = {name: environment[variable] for name, variable in _VARIABLES.items() if environment.get(variable)}
    return {"pane_id": pane, **more}


def pane_handles(value: dict[str, Any]) -> set[str]:
    """Return every name a published pane has or had."""
    names = {value["handle"], value.get("pane_id")}
    for key in ("handle_aliases", "pane_aliases"):
        if isinstance(value.get(key), list):
            names.update(name for name in value[key] if isinstance(name, str))
    return {name for name in names if isinstance(name, str) and name}


def pane_summary(value: dict[str, Any]) -> dict[str, Any]:
    """Return a published pane as answers show it."""
    shown = {"workspace_backend": value["backend"], "workspace_handle": value["handle"]}
    return {**shown, "handle_kind": value["handle_kind"], "pane_id": value.get("pane_id")}


def whole_pane(instance_id: str, value: dict[str, Any]) -> dict[str, Any]:
    """Return a published pane with all that was published of it, and its key."""
    return {"key": _key(instance_id), **{name: value[name] for name in PUBLISHED if name in value}}


def _in_state(scope: str, status: str) -> tuple[str, tuple[Any, ...]]:
    """Return the condition, and its values, of a scope's orders. Raises SwarmError for no status of one."""
    if status and status not in UI_STATES:
        raise SwarmError(f"{status[:40]!r} is not a status of a ui command; choose from {', '.join(UI_STATES)}")
    if status:
        return ("scope = ? AND status = ?", (scope, status))
    return ("scope = ?", (scope,))


def _same_server(known: dict[str, Any], pane: dict[str, str]) -> bool:
    return not pane.get("socket_path") or known.get("socket_path") == pane["socket_path"]


def _pane_of(text: str) -> dict[str, Any]:
    """Return the pane in a value of the store; empty for another value."""
    value = object_in(text)
    # The older key's value names the pane alone.
    value = {"backend": "herdr", "handle_kind": "pane", "handle": value.get("pane_id"), **value}
    if not all(isinstance(value[name], str) and value[name] for name in _NAMES):
        return {}
    if value["handle_kind"] == "pane" and not (isinstance(value.get("pane_id"), str) and value["pane_id"]):
        value["pane_id"] = value["handle"]  # a front end looks for either
    return value


def _beside_pane(lock: dict[str, Any], pane: dict[str, Any]) -> dict[str, Any]:
    """Return a lock as listed with the pane of its holder, if any."""
    if pane:
        names = (*_NAMES, "pane_id", "workspace_id", "tab_id")
        whole = {name: pane[name] for name in names if name in pane}
        lock["workspace"] = {"key": _key(lock["instance_id"]), **whole, "workspace_handle": pane["handle"]}
        lock.update(workspace_backend=pane["backend"], workspace_handle=pane["handle"], pane_id=pane.get("pane_id"))
    return lock


def _key(instance_id: str) -> str:
    return f"identity/workspace/herdr/{instance_id}"


def _parsed(row: UiCommand) -> UiCommand:
    shown = dict(row)
    for name in ("payload", "result"):
        if isinstance(shown[name], str):
            try:
                shown[name] = loads(shown[name])
            except (ValueError, RecursionError):
                pass  # another program's words, shown as they are
    return UiCommand(shown)
