"""Rows that sessions leave for each other: mail, shared values, the record of events, orders to a user interface."""

from __future__ import annotations

from swarm_mcp.domain.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_MARK = "[task:"


def task_mark(task_id: str) -> str:
    """Return the beginning of a message that belongs to a task."""
    return f"{_MARK}{task_id}]"


def of_task(task_id: str, text: str) -> str:
    """The content of a message with this `text` that belongs to a task."""
    return f"{task_mark(task_id)} {text}"


def task_and_text(content: str) -> tuple[str, str]:
    """Return the id of the task that a message with this content belongs to, empty without one, and its text."""
    if not content.startswith(_MARK) or "]" not in content:
        return "", content
    task_id, _, text = content[len(_MARK) :].partition("]")
    return task_id, text.removeprefix(" ")


def length(text: str) -> int:
    """Return the length of `text` as events give it: in UTF-16 units, as the contract counts."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


class Message(Record):
    """One message to one session; `read` is 1 once an answer with it has been written."""

    __slots__ = ()

    id: int
    sender: str
    recipient: str | None
    content: str
    created_at: int
    read: int


class Notice(Record):
    """A message that its session's next hook tells its model."""

    __slots__ = ()

    id: int
    text: str


class KeyValue(Record):
    """A shared value; `owner_identity` is ``identity:NAME`` of its first setter, None for a value without an owner."""

    __slots__ = ()

    key: str
    value: str
    updated_at: int
    owner_identity: str | None


class Event(Record):
    """One change: `type` such as ``context.lock_acquired``, its actor, its subject; `payload` is JSON text."""

    __slots__ = ()

    id: int
    scope: str
    type: str
    actor: str | None
    subject: str | None
    payload: str | None
    created_at: int


class UiCommand(Record):
    """An order to an external user interface; `payload` and `result` are parsed."""

    __slots__ = ()

    id: int
    scope: str
    created_by: str | None
    kind: str
    payload: Any
    status: str
    claimed_by: str | None
    result: Any
    error: str | None
    created_at: int
    started_at: int | None
    completed_at: int | None
