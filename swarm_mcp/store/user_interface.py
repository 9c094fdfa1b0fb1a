"""User interfaces: the pane in which a session can be seen, and orders to the interface that shows it.

A published pane is a kv value, ``{schema_version, backend, handle_kind, handle, pane_id}`` with
``workspace_id``, ``tab_id``, ``socket_path`` where known and the pane's earlier names in
``handle_aliases`` and ``pane_aliases``: a pane that is moved gets a new name and still answers to the
old one. An order is claimed by an external interface, which reports what came of it.
"""

from __future__ import annotations

import time

from swarm_hook_core.json_text import dumps, loads
from swarm_mcp.domain.message import UiCommand
from swarm_mcp.domain.session import Session
from swarm_mcp.errors import SwarmError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from swarm_mcp.store.database import Database
    from swarm_mcp.store.session_table import SessionTable
    from swarm_mcp.store.values import KeyValues

_VARIABLES = {"workspace_id": "HERDR_WORKSPACE_ID", "tab_id": "HERDR_TAB_ID", "socket_path": "HERDR_SOCKET_PATH"}
_OLDER = "identity/herdr/"  # where panes were published once
_NAMES = ("backend", "handle_kind", "handle")
# What a lock and its owner show of the holder's pane.
PANE_COLUMNS = ("workspace_backend", "workspace_handle", "pane_id")
# All that a pane's value may say; `details` is whatever its publisher likes.
PUBLISHED = (
    "schema_version", "backend", "handle_kind", "handle", "pane_id", "handle_aliases", "pane_aliases", "socket_path",
    "workspace_id", "tab_id", "details",
)  # fmt: skip
UI_STATES = ("pending", "running", "done", "failed")  # of an order
UI_ENDED = ("done", "failed")


def pane_in(environment) -> dict[str, str]:
    """Return the pane an environment names: ``pane_id``, ``workspace_id``, ``tab_id``, ``socket_path``; or nothing."""
    pane = (environment.get("HERDR_PANE_ID") or environment.get("HERDR_PANE") or "").strip()
    if not pane:
        return {}
    more = {name: environment[variable] for name, variable in _VARIABLES.items() if environment.get(variable)}
    return {"pane_id": pane, **more}


class Panes:
    """The panes that sessions have published."""

    def __init__(self, db: Database, sessions: SessionTable, values: KeyValues):
        self._db = db
        self._sessions = sessions
        self._values = values

    def publish(self, row: Session, pane: dict[str, str]) -> None:
        """Inside a transaction: make `pane` (from `pane_in`) known as this instance's, where it is news."""
        known = self.published(row.id)
        if known and pane["pane_id"] in pane_handles(known) and _same_server(known, pane):
            return  # also where the pane has been moved since: the environment keeps the name it had at first
        value = {"schema_version": 1, "backend": "herdr", "handle_kind": "pane", "handle": pane["pane_id"], **pane}
        self._values.write(row, _key(row.id), dumps(value))

    def republish(self, row: Session, environment, client_pid: int = 0) -> None:
        from swarm_hook_core.process import runs_app_server

        pane = pane_in(environment)
        if pane and not (client_pid and runs_app_server(client_pid)):
            with self._db.writing():
                self.publish(row, pane)

    def withdraw(self, instance_id: str) -> None:
        """Inside a transaction: forget what an instance that has gone had published."""
        for key in (_key(instance_id), f"{_OLDER}{instance_id}"):
            self._values.erase(key)

    def repair(self, row: Session, known: dict, found: dict[str, str]) -> bool:
        if found["pane_id"] == known["handle"]:
            return False
        now = {name: text for name, text in found.items() if text}
        value = {"schema_version": 1, **known, **now, "handle": found["pane_id"]}
        earlier = sorted(pane_handles(known) - {found["pane_id"]})
        value.update(handle_aliases=earlier, pane_aliases=earlier)
        with self._db.writing():
            if self.published(row.id) != known or self._sessions.get(row.id) is None:
                return False
            self._values.write(row, _key(row.id), dumps(value))
        return True

    def published(self, instance_id: str) -> dict:
        rows = self._db.rows(
            "SELECT k.value FROM instances i JOIN kv k ON k.scope = i.scope AND k.key IN (?, ?)"
            " WHERE i.id = ? ORDER BY k.key DESC",
            (_key(instance_id), f"{_OLDER}{instance_id}", instance_id),
        )
        return next(filter(None, (_pane_of(row.value) for row in rows)), {})

    def with_session(self, shown: dict) -> dict:
        value = self.published(shown["id"])
        if value:
            shown.update(pane_summary(value))
        return shown

    def with_lock(self, shown: dict) -> dict:
        return _beside_pane(shown, self.published(shown["instance_id"]))

    def with_locks(self, shown: Iterable[dict]) -> Iterator[dict]:
        known = self.all_published()
        for lock in shown:
            pane = known.get(lock["instance_id"])
            yield lock if pane is None or lock.get("hidden") else _beside_pane(lock, pane)

    def all_published(self) -> dict[str, dict]:
        """Return what each instance has published, by its id."""
        found: dict[str, dict] = {}
        for prefix in (_OLDER, _key("")):  # what a session has under both it says under the second
            rows = self._db.rows(
                f"SELECT i.id, k.value FROM kv k JOIN instances i ON i.id = substr(k.key, {len(prefix) + 1})"
                " WHERE k.key >= ? AND k.key < ? AND k.scope = i.scope",
                (prefix, prefix[:-1] + "0"),
            )
            found.update((row.id, pane) for row in rows if (pane := _pane_of(row.value)))
        return found


class UiCommands:
    """The embedded store's queue of user interface commands.

    Rows are as in ``ui_commands``, with ``payload`` and ``result`` parsed (text that is not JSON as it is).
    """

    def __init__(self, db: Database):
        self._db = db

    def enqueue(self, scope: str, created_by: str | None, kind: str, payload: dict) -> UiCommand:
        with self._db.writing():
            self._db.change(
                "INSERT INTO ui_commands (scope, created_by, kind, payload, created_at) VALUES (?, ?, ?, ?, ?)",
                (scope, created_by, kind, dumps(payload), self._db.now()),
            )
            row = self._db.row("SELECT * FROM ui_commands WHERE id = last_insert_rowid()", (), UiCommand)
        return _parsed(row or UiCommand())

    def get(self, command_id: int) -> UiCommand | None:
        row = self._db.row("SELECT * FROM ui_commands WHERE id = ?", (command_id,), UiCommand)
        return _parsed(row) if row else None

    def recent(self, scope: str, status: str = "", limit: int = 20) -> list[UiCommand]:
        condition, values = _in_state(scope, status)
        sql = f"SELECT * FROM ui_commands WHERE {condition} ORDER BY id DESC LIMIT ?"
        rows = self._db.rows(sql, (*values, limit), UiCommand)
        return [_parsed(row) for row in rows]

    def walk(self, scope: str, status: str = "", after: str = "") -> Iterator[tuple[str, UiCommand]]:
        from swarm_mcp.paging import walk

        condition, values = _in_state(scope, status)

        def read(place: list | None, number: int) -> list[UiCommand]:
            behind = "AND id < ?" if place else ""
            sql = f"SELECT * FROM ui_commands WHERE {condition} {behind} ORDER BY id DESC LIMIT {number}"
            return self._db.rows(sql, (*values, *(place or ())), UiCommand)

        for place, row in walk(after, (int,), read, lambda row: [row.id]):
            yield place, _parsed(row)

    def count(self, scope: str, status: str = "") -> int:
        condition, values = _in_state(scope, status)
        row = self._db.row(f"SELECT count(*) AS n FROM ui_commands WHERE {condition}", values)
        return row.n if row else 0

    def outcome(self, command_id: int, seconds: float) -> UiCommand:
        from swarm_mcp.store.changes import Changes

        end = time.monotonic() + seconds
        with Changes(self._db.path) as changes:
            while True:
                row = self.get(command_id)
                if row is None:
                    raise SwarmError(f"ui command {command_id} is not there any more")
                left = end - time.monotonic()
                if row.status in UI_ENDED or left <= 0:
                    return row
                changes.wait(left)


def pane_handles(value: dict) -> set[str]:
    """Return every name a published pane has or had."""
    names = {value["handle"], value.get("pane_id")}
    for key in ("handle_aliases", "pane_aliases"):
        if isinstance(value.get(key), list):
            names.update(name for name in value[key] if isinstance(name, str))
    return {name for name in names if isinstance(name, str) and name}


def pane_summary(value: dict) -> dict:
    """Return a published pane as answers show it."""
    shown = {"workspace_backend": value["backend"], "workspace_handle": value["handle"]}
    return {**shown, "handle_kind": value["handle_kind"], "pane_id": value.get("pane_id")}


def whole_pane(instance_id: str, value: dict) -> dict:
    """Return a published pane with all that was published of it, and its key."""
    return {"key": _key(instance_id), **{name: value[name] for name in PUBLISHED if name in value}}


def _in_state(scope: str, status: str) -> tuple[str, tuple]:
    """Return the condition, and its values, of a scope's orders. Raises SwarmError for no status of one."""
    if status and status not in UI_STATES:
        raise SwarmError(f"{status[:40]!r} is not a status of a ui command; choose from {', '.join(UI_STATES)}")
    return ("scope = ? AND status = ?", (scope, status)) if status else ("scope = ?", (scope,))


def _same_server(known: dict, pane: dict[str, str]) -> bool:
    return not pane.get("socket_path") or known.get("socket_path") == pane["socket_path"]


def _pane_of(text: str) -> dict:
    """Return the pane that a value of the store says; empty where that is none."""
    try:
        value = loads(text)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(value, dict):
        return {}
    # The older key's value names the pane alone.
    value = {"backend": "herdr", "handle_kind": "pane", "handle": value.get("pane_id"), **value}
    if not all(isinstance(value[name], str) and value[name] for name in _NAMES):
        return {}
    if value["handle_kind"] == "pane" and not (isinstance(value.get("pane_id"), str) and value["pane_id"]):
        value["pane_id"] = value["handle"]  # a front end looks for either
    return value


def _beside_pane(lock: dict, pane: dict) -> dict:
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
