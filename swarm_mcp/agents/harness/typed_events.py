"""The events of a run as classes, for ``match``: an ``Event`` whose data are attributes.

``run.events()``, ``run.on_event`` and ``events_in`` give them. The attributes are read from `data`, in the form of the
table in ``events``. An unknown text is empty, an unknown number None.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar, cast

from swarm_mcp.agents.harness import events
from swarm_mcp.agents.harness.events import Event
from swarm_mcp.agents.harness.outcome import Changes, Cost, cost_of, count_of

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
        return self.kind == events.RAW_STDERR


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
    events.SESSION_INIT: SessionStarted,
    events.MESSAGE: Message,
    events.TOOL_START: ToolStart,
    events.TOOL_END: ToolEnd,
    events.CONTEXT_USAGE: Usage,
    events.COMPACTION: Compaction,
    events.PERMISSION_ASKED: PermissionAsked,
    events.ERROR: Error,
    events.RESULT: Result,
    events.RAW_LOG: Line,
    events.RAW_STDERR: Line,
}


def typed(event: Event) -> AnyEvent:
    """Return the same event in its class. An unknown kind is a `Custom`."""
    kind = _CLASSES.get(event.kind, Custom)
    if event.kind == events.CUSTOM:
        name, value = str(event.data.get("name")), event.data.get("data")
        if name == "lock_denied":
            kind = LockDenied
        elif name.endswith(".text_delta"):
            kind = TextDelta
        elif "retry" in name and isinstance(value, Mapping) and value.get("category"):
            kind = Retry
    return cast(AnyEvent, kind(*event))
