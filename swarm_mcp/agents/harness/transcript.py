"""Events as entries of a transcript, for people.

An entry has ``kind`` and ``ts`` (Unix seconds), and:

  | kind | more fields |
  |---|---|
  | ``init`` | ``session_id``, ``model`` |
  | ``assistant``, ``thinking``, ``user`` | ``text`` |
  | ``tool_call`` | ``id``, ``name``, ``input`` |
  | ``tool_result`` | ``id``, ``name``, ``content``, ``is_error`` |
  | ``result`` | ``text``, ``input_tokens``, ``output_tokens``, ``cached_tokens``, ``cost_usd`` (None: unknown),
    ``subtype``, ``is_error``, ``errors`` |
  | ``stderr``, ``stdout`` | ``text``: an unparsed line |
  | ``system`` | ``text``, ``name``: anything else |
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from swarm_mcp.agents.harness import events
from swarm_mcp.agents.harness.events import Event
from swarm_mcp.agents.harness.query import parse_json

KINDS = (
    "init", "assistant", "thinking", "user", "tool_call", "tool_result", "result", "stderr", "system", "stdout",
)  # fmt: skip


def to_transcript(event: Event) -> list[dict[str, Any]]:
    """Return the entries of one event: mostly one. Never raises, for any data.

    A line of the harness makes an entry only if its events do not tell its content: a line of standard output that is
    not JSON, and an unmarked line of standard error.
    """
    data: dict[str, Any] = event.data if isinstance(event.data, dict) else {}
    maker = _MAKERS.get(event.kind)
    kind, fields = maker(data) if maker else ("system", {"name": event.kind, "text": _text(data)})
    if kind:
        return [{"kind": kind, "ts": event.at, **fields}]
    return []


def transcript(source: Iterable[Event]) -> Iterator[dict[str, Any]]:
    """Yield the entries of many events, in order."""
    for event in source:
        yield from to_transcript(event)


# --------------------------------------------------------------------------------------------- one kind


def _init(data: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    return "init", {"session_id": _text(data.get("session_id")), "model": _text(data.get("model"))}


def _message(data: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    if data.get("thinking"):
        kind = "thinking"
    elif data.get("role") == "user":
        kind = "user"
    else:
        kind = "assistant"
    return kind, {"text": _text(data.get("content"))}


def _tool_call(data: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    return "tool_call", {
        "id": _text(data.get("tool_call_id")), "name": _text(data.get("tool_name")), "input": data.get("args"),
    }  # fmt: skip


def _tool_result(data: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    return "tool_result", {
        "id": _text(data.get("tool_call_id")),
        "name": _text(data.get("tool_name")),
        "content": _text(data.get("result")),
        "is_error": bool(data.get("is_error")),
    }


def _result(data: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    cost: Any = data.get("cost")
    if hasattr(cost, "_asdict"):
        cost = cost._asdict()
    elif not isinstance(cost, dict):
        cost = {}
    category, is_error = data.get("error_category"), bool(data.get("is_error"))
    return "result", {
        "text": _text(data.get("output")),
        "input_tokens": cost.get("input_tokens"),
        "output_tokens": cost.get("output_tokens"),
        "cached_tokens": cost.get("cache_read_tokens"),
        "cost_usd": cost.get("total_cost_usd"),
        "subtype": _text(category) or ("error" if is_error else "success"),
        "is_error": is_error,
        "errors": [_text(data.get("error_message") or category)] if is_error else [],
    }


def _error(data: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    category = _text(data.get("category")) or "error"
    return "system", {"name": "error", "text": f"{category}: {_text(data.get('message'))}"}


def _raw(data: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    text = _text(data.get("content"))
    if not text.strip():
        return "", {}
    if isinstance(parse_json(text), dict):
        return ("", {})
    return ("stdout", {"text": text})


def _stderr(data: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    if data.get("told"):
        return "", {}
    return "stderr", {"text": _text(data.get("content"))}


def _custom(data: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    if _text(data.get("name")).endswith(".reasoning") and isinstance(data.get("data"), dict):
        return "thinking", {"text": _text(data["data"].get("text"))}
    return "system", {"name": _text(data.get("name")) or "custom", "text": _text(data.get("data"))}


def _context(data: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    used, total = data.get("context_used_tokens"), data.get("context_total_tokens")
    if used is None:
        shown = ""
    elif total is None:
        shown = f"{used} tokens"
    else:
        shown = f"{used} of {total} tokens"
    if shown:
        return ("system", {"name": events.CONTEXT_USAGE, "text": shown})
    return ("", {})


def _permission(data: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    answer = "yes" if data.get("is_allowed") else _text(data.get("answer")) or "no"
    asked = f"{_text(data.get('tool_name'))} {_text(data.get('args'))}"
    return "system", {"name": events.PERMISSION_ASKED, "text": f"{asked}: {answer}"}


def _compaction(data: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    before = data.get("pre_compact_tokens")
    if before is None:
        size = ""
    else:
        size = f" at {before} tokens"
    return "system", {"name": events.COMPACTION, "text": f"{_text(data.get('compact_trigger')) or 'auto'}{size}"}


_MAKERS = {
    events.SESSION_INIT: _init,
    events.MESSAGE: _message,
    events.TOOL_START: _tool_call,
    events.TOOL_END: _tool_result,
    events.RESULT: _result,
    events.ERROR: _error,
    events.RAW_LOG: _raw,
    events.RAW_STDERR: _stderr,
    events.CUSTOM: _custom,
    events.CONTEXT_USAGE: _context,
    events.COMPACTION: _compaction,
    events.PERMISSION_ASKED: _permission,
}


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except (ValueError, TypeError, RecursionError):  # no JSON value
        return str(value)[:1000]
