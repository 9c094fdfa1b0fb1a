"""Documents of a team, as this store has them: messages, tasks and values that its machines share besides locks.

A *document* is on the team's server, with a kind and a key. ``swarm_team_documents`` has for each its version on the
server, and its state here when both were last the same; the difference to the present rows is to be posted
(``swarm_mcp.team.documents``). A message to a session of another machine waits there, with version 0, until it is
posted; a message from elsewhere is remembered by its key, so that it is delivered once.

All changes happen inside a transaction.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from swarm_mcp.domain import REMOTE, SYSTEM, TERMINAL, KeyValue, Record, Session, Task, length, new_id, task_and_text
from swarm_mcp.store import Store, messages, session_table, task_reading, tasks, values
from swarm_mcp.store.database import Transaction

# Messages to sessions of other machines, which wait here to be posted; and the form of documents.
#
# A document names files by their *places*, from the top of a work tree: each machine has its own folders.

MESSAGE = "message"  # the kind of document


def canonical(body: object) -> str:
    """Return JSON text that is the same for the same value."""
    return json.dumps(body, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def place_in(path: str, tops: Iterable[str]) -> str | None:
    """Return `path` from the top of the one of these work trees that it lies in; None outside of them."""
    for top in sorted(tops, key=len, reverse=True):
        if path == top:
            return ""
        if path.startswith(top + "/"):
            return path[len(top) + 1 :]
    return None


def path_at(place: object, top: str) -> str | None:
    """Return the path of a `place` in the work tree with this `top`; None for a value that is no place."""
    if not isinstance(place, str) or "\0" in place:
        return None
    if place == "":
        return top
    if any(part in ("", ".", "..") for part in place.split("/")):
        return None
    return f"{top}/{place}"


def repository_of(tx: Transaction, recipient_id: str) -> str | None:
    """Return the repository in which a session works on another machine; None for sessions of this one."""
    row = tx.row(
        "SELECT t.repository FROM swarm_sessions s JOIN instances i ON i.id = s.instance_id"
        " JOIN swarm_team_trees t ON t.top = i.scope WHERE s.instance_id = ? AND s.runtime = ?",
        (recipient_id, REMOTE),
    )
    if row:
        return str(row.repository)
    return None


def send_away(tx: Transaction, sender: str, recipient: str, content: str, told: bool, file: str) -> bool:
    """Have a message posted to a session of another machine. Return True if it works in a repository that is shared.

    `told`, `file`: as for ``messages.post_notice``. Where the message is in our words, the files that it names are told
    by their places.
    """
    repository = repository_of(tx, recipient)
    if repository is None:
        return False
    rows = tx.rows("SELECT top FROM swarm_team_trees WHERE repository = ?", (repository,))
    tops = sorted((row.top for row in rows), key=len, reverse=True)
    if task_and_text(content)[1].startswith("[auto] "):
        for top in tops:
            content = content.replace(f"{top}/", "")
    body: dict[str, object] = {"sender": "" if sender == SYSTEM else sender, "recipient": recipient, "content": content}
    if told:
        body.update(told=True, file=place_in(file, tops))
    _let_be_posted(tx, repository, body)
    return True


def ask_to_wake(store: Store, sender: str, recipient: str, task_id: str, force: bool) -> None:
    """Have a session of another machine woken there for mail of `sender`, about this task; `force`: even while busy.

    It is told as a message without content, and so comes after that mail.
    """
    with store.database.writing() as tx:
        repository = repository_of(tx, recipient)
        if repository is not None:
            body: dict[str, object] = {"sender": sender, "recipient": recipient, "content": ""}
            _let_be_posted(tx, repository, {**body, "wake": True, "task": task_id, "force": force})


def _let_be_posted(tx: Transaction, repository: str, body: dict[str, object]) -> None:
    tx.change(
        "INSERT INTO swarm_team_documents (repository, kind, key, version, body, noted_at) VALUES (?, ?, ?, 0, ?, ?)",
        (repository, MESSAGE, new_id(), canonical(body), tx.now()),
    )


TASK, VALUE = "task", "value"
REMEMBERED_SECONDS = 2 * 86400  # that a message was delivered: longer than the server has it
# Values about windows and panes of this machine's own screen.
OWN_VALUES = ("identity/herdr/", "identity/workspace/herdr/")


class Known(Record):
    """A row of ``swarm_team_documents``; `body` is JSON text, None if nothing here corresponds."""

    __slots__ = ()

    kind: str
    key: str
    version: int
    body: str | None


def known(tx: Transaction, repository: str, kind: str, key: str) -> Known | None:
    """Return the row of a document, or None."""
    return tx.row(
        "SELECT kind, key, version, body FROM swarm_team_documents WHERE repository = ? AND kind = ? AND key = ?",
        (repository, kind, key),
        Known,
    )


def all_known(tx: Transaction, repository: str, kind: str) -> dict[str, Known]:
    """Return the rows of documents of a kind, by their keys."""
    rows = tx.rows(
        "SELECT kind, key, version, body FROM swarm_team_documents WHERE repository = ? AND kind = ?",
        (repository, kind),
        Known,
    )
    return {row.key: row for row in rows}


def note(tx: Transaction, repository: str, kind: str, key: str, version: int, body: str | None) -> None:
    """Write down the server's version, and the state here at that time."""
    tx.change(
        "INSERT OR REPLACE INTO swarm_team_documents (repository, kind, key, version, body, noted_at)"
        " VALUES (?, ?, ?, ?, ?, ?)",
        (repository, kind, key, version, body, tx.now()),
    )


def forget(tx: Transaction, repository: str, kind: str, key: str) -> None:
    """The server has it no more."""
    tx.change("DELETE FROM swarm_team_documents WHERE repository = ? AND kind = ? AND key = ?", (repository, kind, key))


def begin_anew(tx: Transaction, repository: str) -> None:
    """Forget all that the server has, except messages that were delivered or wait to be posted."""
    tx.change("DELETE FROM swarm_team_documents WHERE repository = ? AND kind <> ?", (repository, MESSAGE))


def forget_old(tx: Transaction, repository: str) -> None:
    """Forget messages that were delivered days ago."""
    tx.change(
        "DELETE FROM swarm_team_documents WHERE repository = ? AND kind = ? AND version > 0 AND noted_at < ?",
        (repository, MESSAGE, tx.now() - REMEMBERED_SECONDS),
    )


def unposted(tx: Transaction, repository: str) -> list[Known]:
    """Return messages to sessions of other machines that the server has not got, in the order of writing."""
    return tx.rows(
        "SELECT kind, key, version, body FROM swarm_team_documents"
        " WHERE repository = ? AND kind = ? AND version = 0 ORDER BY rowid",
        (repository, MESSAGE),
        Known,
    )


def recipient(tx: Transaction, session_id: str) -> Session | None:
    """Return a live session of this machine."""
    found = session_table.live(tx, session_id)
    if found is not None and found.runtime != REMOTE:
        return found
    return None


def deliver(tx: Transaction, recipient: Session, sender: str, content: str, told: bool, file: str) -> None:
    """A message from another machine; its recipient's next hook tells it where it is to be `told`."""
    if told and file and sender != SYSTEM and messages.unread(tx, recipient, sender, file):
        return  # it has asked for that before
    if told:
        messages.post_notice(tx, recipient, content, file, sender)
    else:
        messages.post(tx, recipient.scope, sender, recipient.id, content)


def task(tx: Transaction, task_id: str) -> Task | None:
    """Return a task of any scope, or None."""
    return next(iter(task_reading.find(tx, "id = ?", (task_id,))), None)


def tasks_since(tx: Transaction, scope: str, changed_at: int) -> list[Task]:
    """Return tasks of a scope that were changed then or later (Unix ms)."""
    is_sound = f"{task_reading.SOUND} AND typeof(changed_at) = 'integer'"
    return task_reading.find(tx, f"{is_sound} AND scope = ? AND changed_at >= ?", (scope, changed_at))


def in_order(tx: Transaction, task_ids: Iterable[str]) -> list[str]:
    """Return the ids of tasks in the order of their arrival here: each behind its dependencies."""
    rowids = {}
    for task_id in task_ids:
        row = tx.row("SELECT rowid AS number FROM tasks WHERE id = ?", (task_id,))
        rowids[task_id] = row.number if row else 0
    return sorted(rowids, key=lambda task_id: (rowids[task_id], task_id))


def assignees(tx: Transaction, scopes: Iterable[str]) -> set[str]:
    """Return the assignees of tasks of these scopes, here or elsewhere."""
    found: set[str] = set()
    for scope in scopes:
        rows = tx.rows(
            # By the index of held tasks alone; SQLite would rather look through all tasks.
            "SELECT DISTINCT assignee FROM tasks INDEXED BY swarm_task_held_idx WHERE scope = ?"
            " AND status IN ('claimed', 'in_progress') AND typeof(assignee) = 'text'",
            (scope,),
        )
        found |= {row.assignee for row in rows}
    return found


def take_task(tx: Transaction, repository: str, columns: dict[str, Any], scope: str, machine: str) -> Task:
    """Store a task as another `machine` has changed it; a new one goes to `scope`.

    `columns`: all but `scope` and `changed_at`.
    """
    before = task(tx, columns["id"])
    columns = {**columns, "idempotency_key": _free_key(tx, repository, columns, before.scope if before else scope)}
    return tasks.take_in(tx, columns, before, scope, machine)


def move_task(tx: Transaction, task_id: str, scope: str) -> None:
    """Move a task to another scope; its idempotency key comes back with the team's next word about it."""
    tx.change("UPDATE tasks SET scope = ?, idempotency_key = NULL WHERE id = ?", (scope, task_id))


def _free_key(tx: Transaction, repository: str, columns: dict[str, Any], scope: str) -> str | None:
    """Return the idempotency key that a task may have in this scope: of two that were given one, the first."""
    key: str | None = columns["idempotency_key"]
    rival = tx.row(
        "SELECT id, requester FROM tasks WHERE scope = ? AND idempotency_key = ? AND id <> ?",
        (scope, key, columns["id"]),
    )
    if key is None or rival is None:
        return key
    if known(tx, repository, TASK, rival.id) is not None:
        return None
    tasks.lose_key(tx, rival.id, scope)
    requester = recipient(tx, rival.requester)
    if requester is not None:
        text = (
            f"[auto] Task {rival.id} lost its idempotency key: the team has task {columns['id']} with the same one,"
            " which another machine had posted first."
        )
        messages.post_notice(tx, requester, text)
    return key


def values_changed_at(tx: Transaction, scope: str) -> int:
    """Return when a value of this scope was last changed: another number after each change."""
    row = tx.row("SELECT changed_at FROM kv_scope_updates WHERE scope = ?", (scope,))
    if row:
        return int(row.changed_at)
    return 0


def shared_values(tx: Transaction, scope: str) -> list[KeyValue]:
    """Return the values of a scope that a team shares."""
    rows = tx.rows("SELECT key, value, owner_identity, updated_at FROM kv WHERE scope = ?", (scope,), KeyValue)
    return [row for row in rows if is_shared(row)]


def shared_value(tx: Transaction, scope: str, key: str) -> KeyValue | None:
    """Return a value of a scope, or None if it is not there or not shared."""
    row = tx.row(
        "SELECT key, value, owner_identity, updated_at FROM kv WHERE scope = ? AND key = ?", (scope, key), KeyValue
    )
    if row is not None and is_shared(row):
        return row
    return None


def was_appended(tx: Transaction, scope: str, key: str) -> bool:
    """Return True if the last change of a value here was an append."""
    row = tx.row(
        "SELECT type FROM events WHERE scope = ? AND subject = ?"
        " AND type IN ('kv.set', 'kv.appended', 'kv.deleted') ORDER BY id DESC LIMIT 1",
        (scope, key),
    )
    return row is not None and row.type == "kv.appended"


def take_value(tx: Transaction, scope: str, key: str, columns: Mapping[str, Any], machine: str) -> None:
    """Store a value as another `machine` has set it: `columns` are value, owner_identity, updated_at."""
    _write(tx, scope, key, columns)
    text = columns["value"]
    payload = {"value": text, "length": length(text), "machine": machine}
    tx.add_event(scope, "kv.set", SYSTEM, key, payload)


def append_again(tx: Transaction, scope: str, key: str, columns: Mapping[str, Any], items: list[str]) -> None:
    """Store a value as the team has it, with the `items` that were appended here meanwhile."""
    _write(tx, scope, key, {**columns, "updated_at": tx.now()})
    tx.add_event(scope, "kv.appended", SYSTEM, key, f'{{"appended": [{",".join(items)}]}}')


def _write(tx: Transaction, scope: str, key: str, columns: Mapping[str, Any]) -> None:
    tx.change(
        "INSERT OR REPLACE INTO kv (scope, key, value, owner_identity, updated_at) VALUES (?, ?, ?, ?, ?)",
        (scope, key, columns["value"], columns["owner_identity"], columns["updated_at"]),
    )
    values.touch(tx, scope)


def remove_value(tx: Transaction, scope: str, key: str) -> None:
    """Remove a value that another machine has removed."""
    values.withdraw(tx, scope, key)


def tell(tx: Transaction, session_id: str | None, text: str) -> int:
    """Add a message to a session of this machine, told by its next hook; return its id, 0 if the session has gone."""
    if session_id:
        session = recipient(tx, session_id)
    else:
        session = None
    if session is not None:
        return messages.post_notice(tx, session, text)
    return 0


def unsay(tx: Transaction, message_id: int) -> None:
    """Take a message back, unless it has been read."""
    if tx.change("DELETE FROM messages WHERE id = ? AND read = 0", (message_id,)):
        tx.change("DELETE FROM swarm_notices WHERE message_id = ?", (message_id,))


def is_shared(row: KeyValue) -> bool:
    """Return True if the team has such a value: text that this implementation has stored."""
    is_text = isinstance(row.key, str) and isinstance(row.value, str)
    return is_text and isinstance(row.owner_identity, (str, type(None))) and not row.key.startswith(OWN_VALUES)


def has_ended(task: Mapping[str, Any]) -> bool:
    return task["status"] in TERMINAL
