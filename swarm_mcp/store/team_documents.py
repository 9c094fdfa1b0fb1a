"""What machines of a team share besides locks, as this store has it: messages, tasks and values.

Each is a *document* on the team's server, with a kind and a key. ``swarm_team_documents`` says which of them the server
has, at which version, and what was here when both were last the same; how the rows here differ from that is what this
machine has to post (``swarm_mcp.team.documents``). A message to a session of another machine waits there, with version
0, until it is posted; one that came from elsewhere is remembered by its key, so that it is delivered once.

All that writes does so inside a transaction.
"""

from __future__ import annotations

from swarm_mcp.domain.message import SYSTEM, KeyValue
from swarm_mcp.domain.record import Record
from swarm_mcp.domain.session import TEAM
from swarm_mcp.domain.task import TERMINAL, Task
from swarm_mcp.store import events
from swarm_mcp.store.team_outbox import MESSAGE, ask_to_wake

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from contextlib import AbstractContextManager
    from typing import Any

    from swarm_mcp.domain.session import Session
    from swarm_mcp.store.database import Database
    from swarm_mcp.store.messages import Messages
    from swarm_mcp.store.notices import Notices
    from swarm_mcp.store.session_table import SessionTable
    from swarm_mcp.store.tasks import Tasks
    from swarm_mcp.store.values import KeyValues

TASK, VALUE = "task", "value"
REMEMBERED_SECONDS = 2 * 86400  # that a message was delivered: longer than the server has it
# Values about windows and panes of this machine's own screen.
OWN_VALUES = ("identity/herdr/", "identity/workspace/herdr/")


class Known(Record):
    """A row of ``swarm_team_documents``; `body` is JSON text, None where there is nothing here that it says."""

    __slots__ = ()

    kind: str
    key: str
    version: int
    body: str | None


class TeamDocuments:
    """The embedded store's part in documents."""

    def __init__(
        self,
        db: Database,
        sessions: SessionTable,
        messages: Callable[[], Messages],
        notices: Callable[[], Notices],
        values: Callable[[], KeyValues],
        tasks: Callable[[], Tasks],
    ):
        self._db = db
        self._sessions = sessions
        self._messages = messages
        self._notices = notices
        self._values = values
        self._tasks = tasks

    def writing(self) -> AbstractContextManager[object]:
        """A transaction, for several of what is below."""
        return self._db.writing()

    # ------------------------------------------------- what the server has

    def known(self, repository: str, kind: str, key: str) -> Known | None:
        return self._db.row(
            "SELECT kind, key, version, body FROM swarm_team_documents WHERE repository = ? AND kind = ? AND key = ?",
            (repository, kind, key),
            Known,
        )

    def all_known(self, repository: str, kind: str) -> dict[str, Known]:
        """Return what is known of documents of a kind, by their keys."""
        rows = self._db.rows(
            "SELECT kind, key, version, body FROM swarm_team_documents WHERE repository = ? AND kind = ?",
            (repository, kind),
            Known,
        )
        return {row.key: row for row in rows}

    def note(self, repository: str, kind: str, key: str, version: int, body: str | None) -> None:
        """Write down what the server has, and what was here then."""
        self._db.change(
            "INSERT OR REPLACE INTO swarm_team_documents (repository, kind, key, version, body, noted_at)"
            " VALUES (?, ?, ?, ?, ?, ?)",
            (repository, kind, key, version, body, self._db.now()),
        )

    def forget(self, repository: str, kind: str, key: str) -> None:
        """The server has it no more."""
        self._db.change(
            "DELETE FROM swarm_team_documents WHERE repository = ? AND kind = ? AND key = ?", (repository, kind, key)
        )

    def begin_anew(self, repository: str) -> None:
        """Forget what the server has, but which messages were delivered, or wait to be posted."""
        self._db.change("DELETE FROM swarm_team_documents WHERE repository = ? AND kind <> ?", (repository, MESSAGE))

    def forget_old(self, repository: str) -> None:
        """Forget which messages were delivered days ago."""
        self._db.change(
            "DELETE FROM swarm_team_documents WHERE repository = ? AND kind = ? AND version > 0 AND noted_at < ?",
            (repository, MESSAGE, self._db.now() - REMEMBERED_SECONDS),
        )

    # ------------------------------------------------------------ messages

    def ask_to_wake(self, sender_id: str, recipient_id: str, task_id: str, force: bool) -> None:
        """Have a session of another machine woken there: see ``team_outbox.ask_to_wake``."""
        with self._db.writing():
            ask_to_wake(self._db, sender_id, recipient_id, task_id, force)

    def unposted(self, repository: str) -> list[Known]:
        """Return messages to sessions of other machines that the server has not got, in the order of writing."""
        return self._db.rows(
            "SELECT kind, key, version, body FROM swarm_team_documents"
            " WHERE repository = ? AND kind = ? AND version = 0 ORDER BY rowid",
            (repository, MESSAGE),
            Known,
        )

    def recipient(self, session_id: str) -> Session | None:
        """Return a live session of this machine."""
        found = self._sessions.live(session_id)
        return found if found is not None and found.runtime != TEAM else None

    def deliver(self, recipient: Session, sender: str, content: str, told: bool, file: str) -> None:
        """A message from another machine; its recipient's next hook tells it where it is to be `told`."""
        if told and file and sender != SYSTEM and self._notices().unread(recipient, sender, file):
            return  # it has asked for that before
        if told:
            self._notices().post(recipient, content, file, sender)
        else:
            self._messages().post(recipient.scope, sender, recipient.id, content)

    # --------------------------------------------------------------- tasks

    def task(self, task_id: str) -> Task | None:
        """Return a task, in whatever scope it is."""
        from swarm_mcp.store.task_reading import find

        return next(iter(find(self._db, "id = ?", (task_id,))), None)

    def tasks_since(self, scope: str, changed_at: int) -> list[Task]:
        """Return tasks of a scope that were changed then or later (Unix ms)."""
        from swarm_mcp.store.task_reading import SOUND, find

        is_sound = f"{SOUND} AND typeof(changed_at) = 'integer'"
        return find(self._db, f"{is_sound} AND scope = ? AND changed_at >= ?", (scope, changed_at))

    def in_order(self, task_ids: Iterable[str]) -> list[str]:
        """Return the ids of tasks in the order in which they came to be here: each behind those that it depends on."""
        rowids = {}
        for task_id in task_ids:
            row = self._db.row("SELECT rowid AS number FROM tasks WHERE id = ?", (task_id,))
            rowids[task_id] = row.number if row else 0
        return sorted(rowids, key=lambda task_id: (rowids[task_id], task_id))

    def assignees(self, scopes: Iterable[str]) -> set[str]:
        """Return who works on tasks of these scopes, here or elsewhere."""
        found: set[str] = set()
        for scope in scopes:
            rows = self._db.rows(
                # By the index that has nothing but what is held; SQLite would rather look through all that ever was.
                "SELECT DISTINCT assignee FROM tasks INDEXED BY swarm_task_held_idx WHERE scope = ?"
                " AND status IN ('claimed', 'in_progress') AND typeof(assignee) = 'text'",
                (scope,),
            )
            found |= {row.assignee for row in rows}
        return found

    def take_task(self, repository: str, columns: dict, scope: str, machine: str) -> Task:
        """Make a task what another `machine` has made of it; a new one is put into `scope`.

        `columns`: all but `scope` and `changed_at`.
        """
        before = self.task(columns["id"])
        columns = {**columns, "idempotency_key": self._free_key(repository, columns, before.scope if before else scope)}
        return self._tasks().take_in(columns, before, scope, machine)

    def move_task(self, task_id: str, scope: str) -> None:
        """Let a task be in another scope from now on; its idempotency key comes back with what the team says of it."""
        self._db.change("UPDATE tasks SET scope = ?, idempotency_key = NULL WHERE id = ?", (scope, task_id))

    def _free_key(self, repository: str, columns: dict, scope: str) -> str | None:
        """Return the idempotency key that a task may have in this scope: of two that were given one, the first."""
        key = columns["idempotency_key"]
        rival = self._db.row(
            "SELECT id, requester FROM tasks WHERE scope = ? AND idempotency_key = ? AND id <> ?",
            (scope, key, columns["id"]),
        )
        if key is None or rival is None:
            return key
        if self.known(repository, TASK, rival.id) is not None:
            return None
        self._tasks().lose_key(rival.id, scope)
        requester = self.recipient(rival.requester)
        if requester is not None:
            text = (
                f"[auto] Task {rival.id} lost its idempotency key: the team has task {columns['id']} with the same one,"
                " which another machine had posted first."
            )
            self._notices().post(requester, text)
        return key

    # -------------------------------------------------------------- values

    def values_changed_at(self, scope: str) -> int:
        """Return when a value of this scope was last changed: another number after each change."""
        row = self._db.row("SELECT changed_at FROM kv_scope_updates WHERE scope = ?", (scope,))
        return row.changed_at if row else 0

    def values(self, scope: str) -> list[KeyValue]:
        """Return the values of a scope that a team shares."""
        rows = self._db.rows(
            "SELECT key, value, owner_identity, updated_at FROM kv WHERE scope = ?", (scope,), KeyValue
        )
        return [row for row in rows if is_shared(row)]

    def value(self, scope: str, key: str) -> KeyValue | None:
        row = self._db.row(
            "SELECT key, value, owner_identity, updated_at FROM kv WHERE scope = ? AND key = ?", (scope, key), KeyValue
        )
        return row if row is not None and is_shared(row) else None

    def was_appended(self, scope: str, key: str) -> bool:
        """Whether the last that was done to a value here was to append to it."""
        row = self._db.row(
            "SELECT type FROM events WHERE scope = ? AND subject = ?"
            " AND type IN ('kv.set', 'kv.appended', 'kv.deleted') ORDER BY id DESC LIMIT 1",
            (scope, key),
        )
        return row is not None and row.type == "kv.appended"

    def take_value(self, scope: str, key: str, columns: Mapping[str, Any], machine: str) -> None:
        """Make a value what another `machine` has made of it: `columns` are value, owner_identity, updated_at."""
        self._write(scope, key, columns)
        text = columns["value"]
        payload = {"value": text, "length": events.length(text), "machine": machine}
        events.add(self._db, scope, "kv.set", SYSTEM, key, payload)

    def append_again(self, scope: str, key: str, columns: Mapping[str, Any], items: list[str]) -> None:
        """Make a value what the team has with the `items` that were appended here meanwhile."""
        self._write(scope, key, {**columns, "updated_at": self._db.now()})
        events.add(self._db, scope, "kv.appended", SYSTEM, key, f'{{"appended": [{",".join(items)}]}}')

    def _write(self, scope: str, key: str, columns: Mapping[str, Any]) -> None:
        self._db.change(
            "INSERT OR REPLACE INTO kv (scope, key, value, owner_identity, updated_at) VALUES (?, ?, ?, ?, ?)",
            (scope, key, columns["value"], columns["owner_identity"], columns["updated_at"]),
        )
        self._values().touch(scope)

    def remove_value(self, scope: str, key: str) -> None:
        self._values().withdraw(scope, key)

    # ------------------------------------------------------------- innards

    def tell(self, session_id: str | None, text: str) -> int:
        """A message to a session of this machine, which its next hook tells; its id, 0 where the session has gone."""
        session = self.recipient(session_id) if session_id else None
        return self._notices().post(session, text) if session is not None else 0

    def unsay(self, message_id: int) -> None:
        """Take a message back, unless it has been read."""
        if self._db.change("DELETE FROM messages WHERE id = ? AND read = 0", (message_id,)):
            self._db.change("DELETE FROM swarm_notices WHERE message_id = ?", (message_id,))


def is_shared(row: KeyValue) -> bool:
    """Tell whether the team has such a value: text, as all are that no other program has left there."""
    is_text = isinstance(row.key, str) and isinstance(row.value, str)
    return is_text and isinstance(row.owner_identity, (str, type(None))) and not row.key.startswith(OWN_VALUES)


def has_ended(task: Mapping[str, Any]) -> bool:
    return task["status"] in TERMINAL
