"""Orders to an external user interface, which claims them and reports what came of it."""

from __future__ import annotations

import time

from swarm_hook_core.json_text import dumps, loads
from swarm_mcp.domain.message import UiCommand
from swarm_mcp.errors import SwarmError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_mcp.store.database import Database

STATES = ("pending", "running", "done", "failed")
ENDED = ("done", "failed")


class UiCommands:
    """The embedded store's queue of user interface commands.

    Rows are as in ``ui_commands``, with ``payload`` and ``result`` parsed (text that is not JSON as it is).
    """

    def __init__(self, db: Database):
        self._db = db

    def enqueue(self, scope: str, created_by: str | None, kind: str, payload: dict) -> UiCommand:
        """Add one command, ``spawn_shell``, ``send_prompt``, ``move_node`` or ``organize_nodes``; its row."""
        with self._db.writing():
            self._db.change(
                "INSERT INTO ui_commands (scope, created_by, kind, payload, created_at) VALUES (?, ?, ?, ?, ?)",
                (scope, created_by, kind, dumps(payload), self._db.now()),
            )
            row = self._db.row("SELECT * FROM ui_commands WHERE id = last_insert_rowid()", (), UiCommand)
        return _parsed(row or UiCommand())

    def get(self, command_id: int) -> UiCommand | None:
        """One command."""
        row = self._db.row("SELECT * FROM ui_commands WHERE id = ?", (command_id,), UiCommand)
        return _parsed(row) if row else None

    def recent(self, scope: str, status: str = "", limit: int = 20) -> list[UiCommand]:
        """The newest `limit` commands of a scope, newest first; a negative limit means all.

        Raises SwarmError where `status` is none of ``STATES``.
        """
        if status and status not in STATES:
            raise SwarmError(f"{status[:40]!r} is not a status of a ui command; choose from {', '.join(STATES)}")
        condition, values = ("scope = ? AND status = ?", (scope, status)) if status else ("scope = ?", (scope,))
        sql = f"SELECT * FROM ui_commands WHERE {condition} ORDER BY id DESC LIMIT ?"
        rows = self._db.rows(sql, (*values, limit), UiCommand)
        return [_parsed(row) for row in rows]

    def outcome(self, command_id: int, seconds: float) -> UiCommand:
        """The command once it is done or has failed, or as it is after `seconds`.

        Sleeps until some process commits to the store. Raises SwarmError where the command is gone.
        """
        from swarm_mcp.store.changes import Changes

        end = time.monotonic() + seconds
        with Changes(self._db.path) as changes:
            while True:
                row = self.get(command_id)
                if row is None:
                    raise SwarmError(f"ui command {command_id} is not there any more")
                left = end - time.monotonic()
                if row["status"] in ENDED or left <= 0:
                    return row
                changes.wait(left)


def _parsed(row: UiCommand) -> UiCommand:
    shown = dict(row)
    for name in ("payload", "result"):
        if isinstance(shown[name], str):
            try:
                shown[name] = loads(shown[name])
            except (ValueError, RecursionError):
                pass  # another program's words, shown as they are
    return UiCommand(shown)
