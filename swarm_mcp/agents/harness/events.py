"""The events of a run: the same for every harness, in order, as they come, and as classes.

  | kind | data |
  |---|---|
  | ``session_init`` | ``session_id``, and if known ``model``, ``cwd``, ``tools``; once, before any message |
  | ``domain`` | ``role`` (assistant, user), ``content`` (text); ``thinking`` true for the model's own thoughts |
  | ``tool_start`` | ``tool_call_id``, ``tool_name``, ``args`` |
  | ``tool_end`` | ``tool_call_id``, ``tool_name``, ``result`` (text), ``is_error``; one for every tool_start |
  | ``result`` | ``output``, ``is_error``, ``error_category``, ``cost`` (see ``outcome.Cost``), ``changes``; last |
  | ``error`` | ``domain``, ``category`` (``outcome.ERRORS``) |
  | ``raw_log`` | ``content``: one line as the harness wrote it, scrubbed |
  | ``raw_stderr`` | ``content``: one line of standard error, scrubbed; ``told`` true if other events tell it too |
  | ``custom`` | ``name`` (``claude.api_retry``), ``data``: any event without a word of its own here |
  | ``context_usage`` | ``context_used_tokens``, ``context_total_tokens``, ``context_percent``, ``output_tokens``; if
    known, the run's ``cost_usd`` so far, ``num_turns``, ``goes_on`` (false: this was its last answer), and ``spent``
    (``outcome.Cost``, in the form of the ``result``), for a run that is cut off |
  | ``permission_asked`` | the client's question: ``tool_call_id`` (empty: unknown), ``tool_name``, ``args``,
    ``reason``; its answer: ``is_allowed``, ``making`` (why not; empty where allowed) |
  | ``compaction`` | ``pre_compact_tokens``, ``compact_trigger`` (auto, manual), ``context_total_tokens`` |

Harnesses omit events when they are ended, and repeat some. Behind the `Ledger` listeners can rely on this: one
``session_init``, before any message; a ``tool_end`` for every ``tool_start`` and none without; one ``result``, last.
"""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar, cast

from swarm_mcp.agents.harness.outcome import Changes, Cost, cost_of, count_of
from swarm_mcp.agents.harness.query import parse_json

if TYPE_CHECKING:
    import asyncio

SESSION_INIT, MESSAGE, TOOL_START, TOOL_END = "session_init", "message", "tool_start", "tool_end"
RESULT, ERROR, RAW_LOG, RAW_STDERR = "result", "error", "raw_log", "raw_stderr"
CUSTOM, CONTEXT_USAGE, COMPACTION, PERMISSION_ASKED = "custom", "context_usage", "compaction", "permission_asked"
KINDS = (
    SESSION_INIT, MESSAGE, TOOL_START, TOOL_END, RESULT, ERROR, RAW_LOG, RAW_STDERR, CUSTOM, CONTEXT_USAGE, COMPACTION,
    PERMISSION_ASKED,
)  # fmt: skip


class Event(NamedTuple):
    """One thing that happened. `data` is as the table above has it and can be written as JSON; `at` Unix seconds."""

    kind: str
    data: dict[str, Any]
    at: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return the event as one flat object, as records have it: ``{"type", "timestamp", ...data}``."""
        return {"type": self.kind, "timestamp": self.at, **self.data}


def session_init(session_id: str | None, **more: object) -> Event:
    """Make the event that names the session."""
    return Event(SESSION_INIT, {"session_id": session_id, **more})


def message(role: str, content: str, **more: object) -> Event:
    """Make the event of something that was said."""
    return Event(MESSAGE, {"role": role, "content": content, **more})


def tool_start(call_id: str, name: str, args: object) -> Event:
    """Make the event of a tool call that begins."""
    return Event(TOOL_START, {"tool_call_id": call_id, "tool_name": name, "args": args})


def tool_end(call_id: str, name: str, result: str, is_error: bool = False) -> Event:
    """Make the event of a tool call that is over, also one that was refused."""
    return Event(TOOL_END, {"tool_call_id": call_id, "tool_name": name, "result": result, "is_error": is_error})


def result(output: str | None, is_error: bool = False, error_category: str | None = None, **more: object) -> Event:
    """Make the event of the harness's result."""
    return Event(RESULT, {"output": output, "is_error": is_error, "error_category": error_category, **more})


def permission_asked(call_id: str, name: str, args: object, reason: str, refused: str | None) -> Event:
    """Make the event of a question that a client has asked, with its answer: `refused` is the reason of a refusal."""
    data = {"tool_call_id": call_id, "tool_name": name, "args": args, "reason": reason}
    return Event(PERMISSION_ASKED, {**data, "is_allowed": refused is None, "answer": refused or ""})


def error(text: str, category: str) -> Event:
    """Make the event of a failure; the run may go on."""
    return Event(ERROR, {"message": text, "category": category})


def retry(name: str, data: dict[str, Any], message: str, category: str, not_before: float | None = None) -> Event:
    """Make the event of a retry; `data` is the harness's own, `not_before` Unix seconds."""
    if not_before:
        more = {"retry_not_before": not_before}
    else:
        more = {}
    return Event(CUSTOM, {"name": name, "data": {**data, "message": message, "category": category, **more}})


def custom(name: str, data: object) -> Event:
    """Make an event that only this harness has; `name` begins with the harness's own."""
    return Event(CUSTOM, {"name": name, "data": data})


LONGEST_OUTPUT = 30000  # characters of the assistant's last words that stand in for an answer
MOST_ERRORS = 50


class Ledger:
    """One run. `session_id`, `model`, `last_words`, `result` (of the harness) and `errors` as far as known.

    `trouble` is the reason for the harness's retry (``retry``), None after progress; `spent` is the run's cost so far,
    by the harness's answers.
    """

    def __init__(self, name: str):
        self._name = name
        self._introduced = False
        self._open: dict[str, str] = {}  # call id -> tool
        self._calls = 0
        self.session_id: str | None = None
        self.model: str | None = None
        self.last_words = ""
        self.result: dict[str, Any] | None = None
        self.errors: list[dict[str, Any]] = []
        self.trouble: dict[str, Any] | None = None
        self.spent: object = None

    def admit(self, event: Event) -> Iterator[Event]:
        """Yield the events that are emitted for one that the adapter gave: usually that one."""
        kind, data = event.kind, event.data
        if kind == SESSION_INIT:
            yield from self._session(event)
        elif kind == RESULT:
            self.result = data  # of several the last one counts
        elif kind == TOOL_START:
            self.trouble = None
            yield from self._introduction()
            yield from self._start(event)
        elif kind == TOOL_END:
            yield from self._introduction()
            call_id = str(event.data.get("tool_call_id") or (next(iter(self._open)) if len(self._open) == 1 else ""))
            tool = self._open.pop(call_id, "")
            if not tool:
                return  # its end was told before, or its start never was
            data = {"result": "", "is_error": False, **event.data, "tool_call_id": call_id}
            yield event._replace(data={**data, "tool_name": event.data.get("tool_name") or tool})
        else:
            if kind == MESSAGE:
                yield from self._introduction()
                self._listen(data)
            elif kind == CONTEXT_USAGE:
                self.spent = data.get("spent") or self.spent
            elif kind == ERROR and len(self.errors) < MOST_ERRORS:
                self.errors.append(data)
            elif kind == CUSTOM and "retry" in str(data.get("name")):
                again = data.get("data")
                if isinstance(again, dict) and again.get("category"):
                    self.trouble = again
            yield event

    def is_open(self, call_id: str) -> bool:
        """Return True for a tool call that has begun, and is not over."""
        return call_id in self._open

    def close(self) -> Iterator[Event]:
        """Yield the ends of tool calls that the harness left open."""
        for call_id, tool in list(self._open.items()):
            del self._open[call_id]
            yield tool_end(call_id, tool, "the run ended before this call did", True)

    def again(self) -> None:
        """Begin anew with another child; emitted events stay emitted."""
        self.session_id, self.last_words, self.result, self.errors, self.trouble = None, "", None, [], None
        self.spent = None

    @property
    def output(self) -> str:
        """The answer: the harness's own, else the last words of the assistant."""
        own = (self.result or {}).get("output")
        if isinstance(own, str) and own.strip():
            return own
        return self.last_words

    # ------------------------------------------------------------------ parts

    def _session(self, event: Event) -> Iterator[Event]:
        given = event.data.get("session_id")
        before = self.session_id
        if isinstance(given, str) and given:
            self.session_id = given
        else:
            self.session_id = before
        model = event.data.get("model")
        if isinstance(model, str) and model:
            self.model = model
        if not self._introduced:
            self._introduced = True
            yield event
        elif self.session_id != before:  # too late, or another one: it has to be known all the same
            yield custom(f"{self._name}.session", event.data)

    def _introduction(self) -> Iterator[Event]:
        if not self._introduced:
            self._introduced = True
            yield session_init(None)  # it has none, or has not named it

    def _start(self, event: Event) -> Iterator[Event]:
        self._calls += 1
        call_id = str(event.data.get("tool_call_id") or f"call-{self._calls}")
        if call_id not in self._open:
            tool = str(event.data.get("tool_name") or "unknown")
            self._open[call_id] = tool
            args = event.data.get("args")
            yield event._replace(data={**event.data, "tool_call_id": call_id, "tool_name": tool, "args": args})

    def _listen(self, data: dict[str, Any]) -> None:
        content = data.get("content")
        if data.get("role") != "assistant" or data.get("thinking") or not isinstance(content, str):
            return
        if data.get("parent_tool_call_id"):
            return  # a sub-agent's, and not for us
        if content.strip():
            self.trouble = None
            self.last_words = content[-LONGEST_OUTPUT:]


# Events in the form of libraries that drive several harnesses: with the native line, and with the run's end.
#
# ``{"type": "message", "message": <native line>}``, ``{"type": "session_started", "session_id"}``, ``{"type":
# "complete", "output", "is_error", "code", "usage"}``, ``{"type": "error", "error", "code"}`` and ``{"type": "stderr",
# "data"}``, each with ``timestamp`` (Unix seconds).


def to_envelope(event: Event) -> dict[str, Any] | None:
    """Return the envelope of an event; None if the native lines have said it already. Never raises."""
    data = event.data
    if event.kind == RAW_LOG:
        made = {"type": "message", "message": parse_json(data.get("content"), data.get("content"))}
    elif event.kind == SESSION_INIT:
        made = {"type": "session_started", "session_id": data.get("session_id")}
    elif event.kind == RESULT:
        cost: Any = data.get("cost")
        if hasattr(cost, "_asdict"):
            usage = cost._asdict()
        else:
            usage = cost
        made = {"type": "complete", "output": data.get("output"), "is_error": bool(data.get("is_error")),
                "code": data.get("error_category"), "usage": usage}  # fmt: skip
    elif event.kind == ERROR:
        made = {"type": "error", "error": data.get("message"), "code": data.get("category")}
    elif event.kind == RAW_STDERR:
        made = {"type": "stderr", "data": data.get("content")}
    else:
        return None
    return {**made, "timestamp": event.at}


# The events of a run as classes, for ``match``: an ``Event`` whose data are attributes.
#
# ``run.events()``, ``run.on_event`` and ``events_in`` give them. The attributes are read from `data`, in the form of
# the table in ``events``. An unknown text is empty, an unknown number None.

T = TypeVar("T")


class _Field(Generic[T]):
    """An attribute: the value of its own name in an event's data, read by `read`."""

    def __init__(self, read: Callable[[Any], T], key: str = "", within: str = ""):
        self._read, self._key, self._within = read, key, within

    def __set_name__(self, owner: type, name: str) -> None:
        self._key = self._key or name

    def __get__(self, event: Event | None, owner: object = None) -> T:
        if event is None:
            return self  # type: ignore[return-value]  # of the class: for documentation tools
        data: Any = event.data
        if self._within:
            data = data.get(self._within)
        return self._read(data.get(self._key) if isinstance(data, Mapping) else None)


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else str(value)


def _number(value: Any) -> float | None:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    return None


def _table(value: Any) -> dict[str, Any]:
    if isinstance(value, Mapping):
        return dict(value)
    return {}


def _texts(value: Any) -> tuple[str, ...]:
    if isinstance(value, (list, tuple)):
        return tuple(map(_text, value))
    return ()


def _as_it_is(value: Any) -> Any:
    return value


def _changes(value: Any) -> Changes:
    found = _table(value)
    return Changes(_texts(found.get("files")), _texts(found.get("commits")), count_of(found.get("more_files")) or 0)


class SessionStarted(Event):
    """The session has a name; before any message, once."""

    __slots__ = ()
    __match_args__ = ("session_id",)
    session_id = _Field(_text)
    model = _Field(_text)
    cwd = _Field(_text)
    tools = _Field(_texts)


class Message(Event):
    """A whole message. `parent` is the call that made the sub-agent, empty for the agent itself."""

    __slots__ = ()
    __match_args__ = ("role", "content")
    role = _Field(_text)
    content = _Field(_text)
    thinking = _Field(bool)
    parent = _Field(_text, "parent_tool_call_id")


class ToolStart(Event):
    """A tool call begins."""

    __slots__ = ()
    __match_args__ = ("tool_name", "args")
    tool_call_id = _Field(_text)
    tool_name = _Field(_text)
    args = _Field(_table)
    parent = _Field(_text, "parent_tool_call_id")


class ToolEnd(Event):
    """A tool call is over, or was refused (`is_error`)."""

    __slots__ = ()
    __match_args__ = ("tool_name", "result")
    tool_call_id = _Field(_text)
    tool_name = _Field(_text)
    result = _Field(_text)
    is_error = _Field(bool)
    parent = _Field(_text, "parent_tool_call_id")


class TextDelta(Event):
    """A piece of an answer as it is written; the whole comes as a `Message`."""

    __slots__ = ()
    __match_args__ = ("text",)
    text = _Field(_text, "delta", "data")


class Usage(Event):
    """The use of the context, and the run's cost so far as far as it is known."""

    __slots__ = ()
    __match_args__ = ("context_used_tokens", "context_total_tokens")
    context_used_tokens = _Field(count_of)
    context_total_tokens = _Field(count_of)
    context_percent = _Field(_number)
    output_tokens = _Field(count_of)
    num_turns = _Field(count_of)
    cost_usd = _Field(_number)


class Compaction(Event):
    """The harness has summed its context up."""

    __slots__ = ()
    __match_args__ = ("compact_trigger",)
    compact_trigger = _Field(_text)
    pre_compact_tokens = _Field(count_of)
    context_total_tokens = _Field(count_of)


class PermissionAsked(Event):
    """A client has asked if it may call a tool, and was answered: by `on_permission`, or that it may not.

    `reason` is the client's, and `answer` says why it may not.
    """

    __slots__ = ()
    __match_args__ = ("tool_name", "args", "is_allowed")
    tool_call_id = _Field(_text)
    tool_name = _Field(_text)
    args = _Field(_table)
    reason = _Field(_text)
    is_allowed = _Field(bool)
    answer = _Field(_text)


class Retry(Event):
    """The harness asks its API again. `category` is an error code, `not_before` Unix seconds."""

    __slots__ = ()
    __match_args__ = ("category", "message")
    category = _Field(_text, within="data")
    message = _Field(_text, within="data")
    not_before = _Field(_number, "retry_not_before", "data")


class LockDenied(Event):
    """A write was refused, because of the lock of a peer."""

    __slots__ = ()
    __match_args__ = ("message",)
    message = _Field(_text, within="data")
    call = _Field(_text, within="data")


class Error(Event):
    """Something failed; the run may go on. `category` is one of ``outcome.ERRORS``."""

    __slots__ = ()
    __match_args__ = ("category", "message")
    category = _Field(_text)
    message = _Field(_text)


class Result(Event):
    """The end, always the last event. A failed run (`is_error`) has a category and a message."""

    __slots__ = ()
    __match_args__ = ("output", "is_error")
    output = _Field(_text)
    is_error = _Field(bool)
    error_category = _Field(_text)
    error_message = _Field(_text)
    session_id = _Field(_text)
    cost: _Field[Cost] = _Field(cost_of)
    changes = _Field(_changes)


class Line(Event):
    """A line of the child's output as it was written; `is_stderr` names its stream."""

    __slots__ = ()
    __match_args__ = ("content",)
    content = _Field(_text)

    @property
    def is_stderr(self) -> bool:
        """Return True for a line of standard error."""
        return self.kind == RAW_STDERR


class Custom(Event):
    """An event that only this harness, or only swarm, has; `value` is its own data."""

    __slots__ = ()
    __match_args__ = ("name", "value")
    value = _Field(_as_it_is, "data")

    @property
    def name(self) -> str:
        """Return the event's own name. It begins with the harness's name."""
        return _text(self.data.get("name")) or self.kind


AnyEvent = (
    SessionStarted | Message | ToolStart | ToolEnd | TextDelta | Usage | Compaction | PermissionAsked | Retry
    | LockDenied | Error | Result | Line | Custom
)  # fmt: skip
_CLASSES: dict[str, type[Event]] = {
    SESSION_INIT: SessionStarted,
    MESSAGE: Message,
    TOOL_START: ToolStart,
    TOOL_END: ToolEnd,
    CONTEXT_USAGE: Usage,
    COMPACTION: Compaction,
    PERMISSION_ASKED: PermissionAsked,
    ERROR: Error,
    RESULT: Result,
    RAW_LOG: Line,
    RAW_STDERR: Line,
}


def typed(event: Event) -> AnyEvent:
    """Return the same event in its class. An unknown kind is a `Custom`."""
    kind = _CLASSES.get(event.kind, Custom)
    if event.kind == CUSTOM:
        name, value = str(event.data.get("name")), event.data.get("data")
        if name == "lock_denied":
            kind = LockDenied
        elif name.endswith(".text_delta"):
            kind = TextDelta
        elif "retry" in name and isinstance(value, Mapping) and value.get("category"):
            kind = Retry
    return cast(AnyEvent, kind(*event))


# The events of a run as they come, for a ``for`` loop or an ``async for`` loop.


class EventStream:
    """A stream of events in order. It ends once it is told that there are no more.

    A slow reader delays nothing: its events wait in memory.
    """

    def __init__(self) -> None:
        self._events: deque[AnyEvent] = deque()
        self._is_over = False
        self._changed = threading.Condition()
        self._sleepers: list[Callable[[], object]] = []

    def put(self, event: AnyEvent) -> None:
        """Add an event, from any thread."""
        with self._changed:
            self._events.append(event)
        self._wake()

    def end(self) -> None:
        """Say, from any thread, that no more events come."""
        with self._changed:
            self._is_over = True
        self._wake()

    def __iter__(self) -> EventStream:
        return self

    def __next__(self) -> AnyEvent:
        with self._changed:
            while not self._events:
                if self._is_over:
                    raise StopIteration
                self._changed.wait()
            return self._events.popleft()

    def __aiter__(self) -> EventStream:
        return self

    async def __anext__(self) -> AnyEvent:
        import asyncio  # a quarter of a supervisor's start-up time, and a supervisor never needs it

        while True:
            with self._changed:
                if self._events:
                    return self._events.popleft()
                if self._is_over:
                    raise StopAsyncIteration
                woken = asyncio.Event()
                wake = waker(woken)
                self._sleepers.append(wake)
            try:
                await woken.wait()
            finally:
                with self._changed, contextlib.suppress(ValueError):
                    self._sleepers.remove(wake)

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()
            sleepers, self._sleepers = self._sleepers, []
        for wake in sleepers:
            wake()


def waker(woken: asyncio.Event) -> Callable[[], object]:
    """Return a function that sets `woken`, an event of the running loop, from any thread; it does nothing once that
    loop is gone.
    """
    import asyncio

    loop = asyncio.get_running_loop()

    def wake() -> None:
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(woken.set)

    return wake
