"""One tool: what it is called, what it wants, what it does. Each group of tools is a module of these."""

from __future__ import annotations

import json

from swarm_mcp.answer_size import ANSWER_BYTES, ROWS_BYTES, fitted, sent, text_fitted
from swarm_mcp.domain.page import Page
from swarm_mcp.domain.session import Session
from swarm_mcp.errors import Refused, SwarmError
from swarm_mcp.paging import page
from swarm_mcp.store import Store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable
    from typing import Any, NamedTuple, TypeVar

    Result = TypeVar("Result")
    Arguments = dict[str, Any]
else:
    from swarm_mcp.domain.record import NamedValues as NamedTuple  # loads faster than dataclasses

NOT_REGISTERED = "Not registered. Call register first."


class NotRegistered(SwarmError):
    """The calling session has no instance. The server answers with `NOT_REGISTERED`, as the contract has it."""

    def __init__(self) -> None:
        super().__init__(NOT_REGISTERED)


class Answer(NamedTuple):
    """What a tool returns: `value` as structured content and JSON text, or `text` alone; then `notes`.

    `on_sent(store)` runs once the answer has been written to the client, and not if that fails: what
    is handed out counts as delivered only then. `on_lost(store)` runs where the client has cancelled
    the call before that. A list is the rows of a `page`, where there are more than it has room for. What was asked
    for by its name or id is `whole`, however large it is; every other answer is cut (``answer_size``).
    """

    value: dict | list | None = None
    text: str = ""
    notes: tuple[str, ...] = ()
    is_error: bool = False
    page: Page | None = None
    whole: bool = False
    on_sent: Callable[..., None] | None = None
    on_lost: Callable[..., None] | None = None

    def texts(self) -> list[str]:
        """Return the text blocks of the answer: its value as JSON, or its text, then the notes."""
        first = self.text
        if self.value is not None:
            first = json.dumps(self.value, indent=2, ensure_ascii=False)
        return [first, *self.notes]


def delivering(ids: list[int]) -> dict:
    """What becomes of the messages `ids`, which an ``Answer(..., **delivering(ids))`` hands out.

    They count as read once it has been written; where it never will be, the next poll gets them.
    """
    if not ids:
        return {}
    return {
        "on_sent": lambda store: store.messages.acknowledge(ids),
        "on_lost": lambda store: store.messages.put_back(ids),
    }


def answer_to(error: SwarmError) -> Answer:
    """What a tool that raised `error` answers: a refusal is an ordinary answer, anything else is marked as an error."""
    if isinstance(error, NotRegistered):
        return Answer(text=str(error))
    if isinstance(error, Refused):
        return Answer(error.answer)
    return Answer({"error": str(error)}, is_error=True)


def listed(
    rows: Iterable[tuple[str, Result]],
    shown: Callable[[Result], dict | None],
    total: Callable[[], int],
    arguments: dict,
) -> Answer:
    """The answer of a tool that lists, whose `arguments` may have ``limit`` and ``after``; else as ``paging.page``."""
    return of_page(page(rows, shown, total, after=arguments.get("after", ""), limit=arguments.get("limit")))


def of_page(found: Page, how: str = "call again with `after`: {next}") -> Answer:
    """The rows of a page, and beside them how many there are in all and `how` to get the rest."""
    if found.total is None:
        return Answer(found.rows)
    rest = f"; for the rest {how.format(next=found.next)}" if found.next or "{next}" not in how else ""
    return Answer(found.rows, notes=(f"{len(found.rows)} of {found.total}{rest}",), page=found)


def bounded(answer: Answer) -> Answer:
    """`answer`, cut where it is larger than an answer may be."""
    if answer.whole:
        return answer
    if isinstance(answer.value, dict):
        return answer._replace(value=fitted(answer.value, ROWS_BYTES))
    if isinstance(answer.value, list) and answer.page is None and sent(answer.value) > ANSWER_BYTES:
        return of_page(page((("", row) for row in answer.value), dict, lambda: len(answer.value or ())), "ask for less")
    return answer._replace(text=text_fitted(answer.text)) if answer.text else answer


class Call:
    """One call as a tool sees it, in the thread that carries it out.

    `store` is open and this thread's own; `session` says who calls; `meta` is the call's ``_meta``.
    """

    def __init__(self, store: Store, session, meta: dict):
        self.store = store
        self.session = session
        self.meta = meta

    def instance(self) -> Session | None:
        """The instance of the calling session, or None."""
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
        """Run `function` with a `Call` in a worker thread; what it returns."""
        raise NotImplementedError

    async def changed(self, seconds: float | None) -> bool:
        """Wait until some process has committed to the store since this call began, or since the last `changed`.

        False when `seconds` have passed first; None waits for ever. A client that cancels ends the call here.
        """
        raise NotImplementedError

    def when_cancelled(self, function: Callable[[Call], object]) -> None:
        """Run `function` with a `Call`, in a worker thread, if the client cancels the call."""
        raise NotImplementedError


class Tool(NamedTuple):
    """A tool's whole definition.

    `call(call, arguments) -> Answer` gets a `Call`, or a `WaitingCall` where it is an ``async def``;
    `arguments` fit `properties`, with defaults filled in. A SwarmError it raises is answered
    with (`answer_to`). A tool that `reads` changes nothing; `destructive` ones take away what is somebody
    else's or cannot be had back. Where there is a `wait`, an ``async def``, it takes the place of `call` for
    arguments that have `wait_seconds`. A `hidden` one is not listed: clients call it for their hooks.
    """

    name: str
    description: str
    properties: dict[str, dict]
    call: Callable[..., Answer | Awaitable[Answer]]
    required: tuple[str, ...] = ()
    reads: bool = False
    idempotent: bool = False
    destructive: bool = False
    hidden: bool = False
    wait: Callable[..., Awaitable[Answer]] | None = None

    @property
    def schema(self) -> dict:
        """The input schema (JSON Schema)."""
        schema = {"type": "object", "properties": self.properties, "additionalProperties": False}
        return {**schema, "required": list(self.required)} if self.required else schema

    def described(self) -> dict:
        """As listed to clients.

        Nothing is open-world, and little destructive: Codex asks for approval otherwise, which a
        session that may not ask (``exec``) cannot get.
        """
        annotations = {
            "readOnlyHint": self.reads,
            "destructiveHint": self.destructive,
            "idempotentHint": self.idempotent or self.reads,
            "openWorldHint": False,
        }
        shown = {"name": self.name, "description": self.description, "inputSchema": self.schema}
        return {**shown, "annotations": annotations}


def text(description: str, **more) -> dict:
    """A string property. `more` is JSON Schema: ``default``, ``enum``."""
    return {"type": "string", "description": description, **more}


def flag(description: str, default: bool = False) -> dict:
    """A boolean property."""
    return {"type": "boolean", "default": default, "description": description}


def number(description: str, **more) -> dict:
    """A whole-number property. `more` is JSON Schema: ``minimum``, ``exclusiveMinimum``, ``maximum``, ``default``."""
    return {"type": "integer", "description": description, **more}


LIMIT = number("At most so many rows. Default: as many as an answer has room for.", minimum=1, maximum=1000)
AFTER = text("Go on behind the rows of an earlier answer: what that had as `next`. Stays good while rows come and go.")


def texts(description: str, **items) -> dict:
    """A list of strings. `items` is JSON Schema for each: ``enum``."""
    return {"type": "array", "items": {"type": "string", **items}, "description": description}
