"""The parts of a tool: name, schema, function, and answer. Each module in ``tools`` is a group of tools."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, NamedTuple, TypeVar

from swarm_mcp.answers.size import ANSWER_BYTES, ROWS_BYTES, fitted, page, sent, text_fitted
from swarm_mcp.domain import Page, Session
from swarm_mcp.errors import Refused, SwarmError
from swarm_mcp.server.calling_session import CallingSession
from swarm_mcp.store import Store

Result = TypeVar("Result")

NOT_REGISTERED = "Not registered. Call register first."


class NotRegistered(SwarmError):
    """The calling session has no instance. The server answers with `NOT_REGISTERED`, as the contract has it."""

    def __init__(self) -> None:
        super().__init__(NOT_REGISTERED)


class Answer(NamedTuple):
    """A tool's answer: `value` as structured content and JSON text, or `text` alone; then `notes`.

    ``on_sent(store)`` runs after the answer was written to the client: only then do its contents count as delivered.
    ``on_lost(store)`` runs if the client cancels the call before that. A list with more rows than fit is one `page`. A
    `whole` answer is never cut, because it was asked for by name or id; others are cut to size (``answer_size``). The
    JSON text is indented by `indent`; None: one line, as the contract has some.
    """

    value: dict[str, Any] | list[Any] | None = None
    text: str = ""
    notes: tuple[str, ...] = ()
    is_error: bool = False
    page: Page | None = None
    whole: bool = False
    indent: int | None = 2
    on_sent: Callable[..., None] | None = None
    on_lost: Callable[..., None] | None = None

    def texts(self) -> list[str]:
        """Return the text blocks of the answer: its value as JSON, or its text, then the notes."""
        first = self.text
        if self.value is not None:
            first = json.dumps(self.value, indent=self.indent, ensure_ascii=False)
        return [first, *self.notes]


def delivering(ids: list[int]) -> dict[str, Any]:
    """Return the hooks of an answer with the messages `ids`: ``Answer(..., **delivering(ids))``.

    The messages count as read once the answer is written. If it never is, the next poll gets them.
    """
    if not ids:
        return {}
    return {
        "on_sent": lambda store: store.messages.acknowledge(ids),
        "on_lost": lambda store: store.messages.put_back(ids),
    }


def answer_to(error: SwarmError) -> Answer:
    """Return the answer for an `error` of a tool. A refusal is an ordinary answer, everything else is marked as an
    error.
    """
    if isinstance(error, NotRegistered):
        return Answer(text=str(error))
    if isinstance(error, Refused):
        return Answer(error.answer)
    return Answer(text=str(error), is_error=True)


def listed(
    rows: Iterable[tuple[str, Result]],
    shown: Callable[[Result], dict[str, Any] | None],
    total: Callable[[], int],
    arguments: dict[str, Any],
) -> Answer:
    """Return the answer of a tool that lists. `arguments` may have ``limit`` and ``after``; the rest is for
    ``size.page``.
    """
    return of_page(page(rows, shown, total, after=arguments.get("after", ""), limit=arguments.get("limit")))


def of_page(found: Page, how: str = "call again with `after`: {next}") -> Answer:
    """The rows of a page, and beside them how many there are in all and `how` to get the rest."""
    if found.total is None:
        return Answer(found.rows)
    if found.next or "{next}" not in how:
        rest = f"; for the rest {how.format(next=found.next)}"
    else:
        rest = ""
    return Answer(found.rows, notes=(f"{len(found.rows)} of {found.total}{rest}",), page=found)


def bounded(answer: Answer) -> Answer:
    """`answer`, cut where it is larger than an answer may be."""
    if answer.whole:
        return answer
    if isinstance(answer.value, dict):
        return answer._replace(value=fitted(answer.value, ROWS_BYTES))
    if isinstance(answer.value, list) and answer.page is None and sent(answer.value) > ANSWER_BYTES:
        return of_page(page((("", row) for row in answer.value), dict, lambda: len(answer.value or ())), "ask for less")
    if answer.text:
        return answer._replace(text=text_fitted(answer.text))
    return answer


class Call:
    """One call of a tool, in its worker thread.

    `store` is open and belongs to the thread, `session` is the caller, `meta` is the call's ``_meta``.
    """

    def __init__(self, store: Store, session: CallingSession, meta: dict[str, Any]):
        self.store = store
        self.session = session
        self.meta = meta

    def instance(self) -> Session | None:
        """Return the instance of the calling session, or `None`."""
        return self.session.instance(self.store, self.meta)

    def member(self) -> Session:
        """The instance of the calling session. Raises NotRegistered."""
        row = self.instance()
        if row is None:
            raise NotRegistered
        return row


class WaitingCall:
    """One call of a tool that waits (an ``async def``). It touches the store only through `run`."""

    async def run(self, function: Callable[[Call], Result]) -> Result:
        """Return the result of `function`, run with a `Call` in a worker thread."""
        raise NotImplementedError

    async def changed(self, seconds: float | None) -> bool:
        """Wait for a commit to the store since this call began, or since the last `changed`. Cancellation ends it.

        Return False after `seconds` without a commit. `None` waits for ever.
        """
        raise NotImplementedError

    def when_cancelled(self, function: Callable[[Call], object]) -> None:
        """Run `function` with a `Call`, in a worker thread, if the client cancels the call."""
        raise NotImplementedError


class Tool(NamedTuple):
    """The definition of a tool.

    ``call(call, arguments) -> Answer`` gets a `Call`, or a `WaitingCall` if it is an ``async def``. `arguments` fit
    `properties` and have the defaults. A SwarmError becomes an answer (`answer_to`). A tool that `reads` changes
    nothing; a `destructive` one removes something of another session, or for good. `wait`, an ``async def``, replaces
    `call` for arguments with `wait_seconds`. A tool that is not `is_listed` is for front ends that need the whole set
    of the contract (`swarm-mcp serve --all-tools`); a model can do without. It can be called by its name all the same.
    """

    name: str
    description: str
    properties: dict[str, dict[str, Any]]
    call: Callable[..., Answer | Awaitable[Answer]]
    required: tuple[str, ...] = ()
    reads: bool = False
    idempotent: bool = False
    destructive: bool = False
    wait: Callable[..., Awaitable[Answer]] | None = None
    is_listed: bool = True

    @property
    def schema(self) -> dict[str, Any]:
        """The input schema (JSON Schema)."""
        schema = {"type": "object", "properties": self.properties, "additionalProperties": False}
        if self.required:
            return {**schema, "required": list(self.required)}
        return schema

    def described(self) -> dict[str, Any]:
        """Return the tool as clients list it.

        No tool is open-world, and few are destructive. For those, Codex asks a person, and a session without one
        (``exec``) cannot call them.
        """
        annotations = {
            "readOnlyHint": self.reads,
            "destructiveHint": self.destructive,
            "idempotentHint": self.idempotent or self.reads,
            "openWorldHint": False,
        }
        shown = {"name": self.name, "description": self.description, "inputSchema": self.schema}
        return {**shown, "annotations": annotations}


def text(description: str, **more: object) -> dict[str, Any]:
    """A string property. `more` is JSON Schema: ``default``, ``enum``."""
    return {"type": "string", "description": description, **more}


def flag(description: str, default: bool = False) -> dict[str, Any]:
    """A boolean property."""
    return {"type": "boolean", "default": default, "description": description}


def number(description: str, **more: object) -> dict[str, Any]:
    """A whole-number property. `more` is JSON Schema: ``minimum``, ``exclusiveMinimum``, ``maximum``, ``default``."""
    return {"type": "integer", "description": description, **more}


LIMIT = number("At most so many rows. Default: as many as an answer has room for.", minimum=1, maximum=1000)
AFTER = text("Continue after the rows of an earlier answer: its `next`. It stays good while rows come and go.")


def texts(description: str, **items: object) -> dict[str, Any]:
    """A list of strings. `items` is JSON Schema for each: ``enum``."""
    return {"type": "array", "items": {"type": "string", **items}, "description": description}
