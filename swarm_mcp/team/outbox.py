"""Messages to sessions of other machines, which wait here to be posted; and the form of documents.

A document names files by their *places*, from the top of a work tree: each machine has its own folders.
"""

from __future__ import annotations

import json

from swarm_mcp.domain.message import task_and_text
from swarm_mcp.domain.record import new_id
from swarm_mcp.domain.session import REMOTE, SYSTEM

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from swarm_mcp.store import Store
    from swarm_mcp.store.database import Transaction

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

    `told`, `file`: as for ``notices.post``. Where the message is in our words, the files that it names are told by
    their places.
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
