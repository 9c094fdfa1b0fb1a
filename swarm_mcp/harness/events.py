"""What happens in a run, in words that are the same for every harness.

| kind | data |
|---|---|
| ``session_init`` | ``session_id``, and where known ``model``, ``cwd``, ``tools``; once, before any message |
| ``message`` | ``role`` (assistant, user), ``content`` (text); ``thinking`` true for the model's own thoughts |
| ``tool_start`` | ``tool_call_id``, ``tool_name``, ``args`` |
| ``tool_end`` | ``tool_call_id``, ``tool_name``, ``result`` (text), ``is_error``; one for every tool_start |
| ``result`` | ``output``, ``is_error``, ``error_category``, ``cost`` (see ``outcome.Cost``); the last one, once |
| ``error`` | ``message``, ``category`` (``outcome.ERRORS``) |
| ``raw_log`` | ``content``: one line as the harness wrote it, scrubbed |
| ``raw_stderr`` | ``content``: one line of standard error, scrubbed |
| ``custom`` | ``name`` (``claude.api_retry``), ``data``: whatever has no word of its own here |
| ``context_usage`` | ``context_used_tokens``, ``context_total_tokens``, ``context_percent``, ``output_tokens``; where
  it is known what the run took so far ``cost_usd``, ``num_turns``, and ``goes_on`` (false: this was its last answer) |
| ``compaction`` | ``pre_compact_tokens``, ``compact_trigger`` (auto, manual), ``context_total_tokens`` |
"""

from __future__ import annotations

from typing import NamedTuple

SESSION_INIT, MESSAGE, TOOL_START, TOOL_END = "session_init", "message", "tool_start", "tool_end"
RESULT, ERROR, RAW_LOG, RAW_STDERR = "result", "error", "raw_log", "raw_stderr"
CUSTOM, CONTEXT_USAGE, COMPACTION = "custom", "context_usage", "compaction"
KINDS = (
    SESSION_INIT, MESSAGE, TOOL_START, TOOL_END, RESULT, ERROR, RAW_LOG, RAW_STDERR, CUSTOM, CONTEXT_USAGE, COMPACTION,
)  # fmt: skip


class Event(NamedTuple):
    """One thing that happened. `data` is as the table above has it and can be written as JSON; `at` Unix seconds."""

    kind: str
    data: dict
    at: float = 0.0

    def to_dict(self) -> dict:
        """Return the event as one flat object, as records have it: ``{"type", "timestamp", ...data}``."""
        return {"type": self.kind, "timestamp": self.at, **self.data}


def session_init(session_id: str, **more: object) -> Event:
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


def error(text: str, category: str) -> Event:
    """Make the event of a failure; the run may go on."""
    return Event(ERROR, {"message": text, "category": category})


def retry(name: str, data: dict, message: str, category: str, not_before: float | None = None) -> Event:
    """Make the event of a retry; `data` is the harness's own, `not_before` Unix seconds."""
    more = {"retry_not_before": not_before} if not_before else {}
    return Event(CUSTOM, {"name": name, "data": {**data, "message": message, "category": category, **more}})


def custom(name: str, data: object) -> Event:
    """Make an event that only this harness has; `name` begins with the harness's own."""
    return Event(CUSTOM, {"name": name, "data": data})
