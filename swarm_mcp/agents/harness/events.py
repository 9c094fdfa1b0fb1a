"""The events of a run, in words that are the same for every harness, and their order.

  | kind | data |
  |---|---|
  | ``session_init`` | ``session_id``, and if known ``model``, ``cwd``, ``tools``; once, before any message |
  | ``message`` | ``role`` (assistant, user), ``content`` (text); ``thinking`` true for the model's own thoughts |
  | ``tool_start`` | ``tool_call_id``, ``tool_name``, ``args`` |
  | ``tool_end`` | ``tool_call_id``, ``tool_name``, ``result`` (text), ``is_error``; one for every tool_start |
  | ``result`` | ``output``, ``is_error``, ``error_category``, ``cost`` (see ``outcome.Cost``), ``changes``; last |
  | ``error`` | ``message``, ``category`` (``outcome.ERRORS``) |
  | ``raw_log`` | ``content``: one line as the harness wrote it, scrubbed |
  | ``raw_stderr`` | ``content``: one line of standard error, scrubbed; ``told`` true if other events tell it too |
  | ``custom`` | ``name`` (``claude.api_retry``), ``data``: any event without a word of its own here |
  | ``context_usage`` | ``context_used_tokens``, ``context_total_tokens``, ``context_percent``, ``output_tokens``; if
    known, the run's ``cost_usd`` so far, ``num_turns``, ``goes_on`` (false: this was its last answer), and ``spent``
    (``outcome.Cost``, in the form of the ``result``), for a run that is cut off |
  | ``permission_asked`` | the client's question: ``tool_call_id`` (empty: unknown), ``tool_name``, ``args``,
    ``reason``; its answer: ``is_allowed``, ``answer`` (why not; empty where allowed) |
  | ``compaction`` | ``pre_compact_tokens``, ``compact_trigger`` (auto, manual), ``context_total_tokens`` |

Harnesses omit events when they are ended, and repeat some. Behind the `Ledger` listeners can rely on this: one
``session_init``, before any message; a ``tool_end`` for every ``tool_start`` and none without; one ``result``, last.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

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
