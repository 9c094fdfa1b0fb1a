"""The output of Gemini CLI with ``-o stream-json`` (0.61): one JSON object a line.

``init``, ``message`` (the user's whole, the model's in pieces), ``tool_use``, ``tool_result``, ``error`` (a warning, or
the run's fatal error) and ``result``, with the tokens and neither words nor dollars.
"""

from __future__ import annotations

from swarm_mcp.agents.harness import events, outcome
from swarm_mcp.agents.harness.events import Event
from swarm_mcp.agents.harness.outcome import Cost, Ending, count_of, one_line
from swarm_mcp.agents.harness.query import parse_json, parse_object

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

OUR_DENIAL = "swarm lock blocked"
_TURNS = "max session turns"
_NOISE = ("Warning:", "YOLO mode", "Ripgrep is not", "[STARTUP]")  # on standard error, no complaints


def parse(line: str, state: dict[str, Any]) -> list[Event]:
    """Implement ``HarnessAdapter.parse``."""
    told = parse_object(line)
    kind = told.get("type")
    if not isinstance(kind, str):
        return []
    if kind == "message" and told.get("role") == "assistant":
        piece = _text(told.get("content"))
        state["pieces"] = state.get("pieces", "") + piece
        if told.get("delta"):
            return [events.custom("gemini.text_delta", {"delta": piece})]
        return _said(state)
    read = _READERS.get(kind)
    return [*_said(state), *(read(told, state) if read else [events.custom(f"gemini.{kind}", told)])]


def left_over(state: dict[str, Any]) -> list[Event]:
    """Implement ``HarnessAdapter.finish``: words that nothing followed."""
    return _said(state)


def error_of(ending: Ending) -> tuple[str, str] | None:
    """Implement ``HarnessAdapter.error_of``. Without a result line a run has failed, even with exit code 0."""
    stderr = "\n".join(line for line in ending.stderr.splitlines() if not line.startswith(_NOISE))
    ending = ending._replace(stderr=stderr)
    said = [str(error.get("message") or "") for error in ending.errors]
    turns = next((text for text in (*said, *ending.stderr.splitlines()) if _TURNS in text.lower()), "")
    if turns:
        return outcome.BUDGET, one_line(turns)
    found = outcome.error_of(ending)
    if found is None and ending.result is None:
        return outcome.PROCESS_CRASHED, outcome.line_of(ending.stderr) or "gemini ended without a result"
    return found


def _said(state: dict[str, Any]) -> list[Event]:
    """Return the model's words since its last turn, as one message."""
    text = state.pop("pieces", "")
    if not text.strip():
        return []
    state["words"] = text
    return [events.message("assistant", text)]


def _init(told: dict[str, Any], state: dict[str, Any]) -> list[Event]:
    state["model"] = _text(told.get("model")) or None
    return [events.session_init(_text(told.get("session_id")) or None, model=state["model"])]


def _user(told: dict[str, Any], state: dict[str, Any]) -> list[Event]:
    return [events.message("user", _text(told.get("content")))]


def _start(told: dict[str, Any], state: dict[str, Any]) -> list[Event]:
    call, name = _text(told.get("tool_id")), _text(told.get("tool_name"))
    state.setdefault("calls", {})[call] = name
    return [events.tool_start(call, name, told.get("parameters"))]


def _end(told: dict[str, Any], state: dict[str, Any]) -> list[Event]:
    call = _text(told.get("tool_id"))
    name = state.get("calls", {}).get(call, "")
    failed = told.get("status") != "success"
    text = _text(told.get("output")) or _message(told.get("error"))
    found = [events.tool_end(call, name, text, failed)]
    at = text.find(OUR_DENIAL)
    if failed and at >= 0:
        found.append(events.custom("lock_denied", {"message": text[at:], "call": name, "harness": "gemini"}))
    return found


def _error(told: dict[str, Any], state: dict[str, Any]) -> list[Event]:
    text = _text(told.get("message"))
    if told.get("severity") == "warning":
        return [events.custom("gemini.warning", told)]
    return [events.error(text, outcome.code_of(text) or outcome.UNKNOWN)]


def _result(told: dict[str, Any], state: dict[str, Any]) -> list[Event]:
    cost = cost_of(told.get("stats"), state.get("model")).to_dict()
    if told.get("status") == "success":
        return [events.result(state.get("words"), cost=cost)]
    text = _message(told.get("error")) or "it failed, and did not say why"
    code = outcome.code_of(text) or outcome.UNKNOWN
    return [events.error(text, code), events.result(None, True, code, error_message=text, cost=cost)]


def cost_of(stats: object, model: str | None = None) -> Cost:
    """Return the tokens of a run; of its models' tokens the sum, without dollars."""
    if not isinstance(stats, dict):
        stats = {}
    models = stats.get("models")
    if isinstance(models, dict) and len(models) == 1:
        model = str(next(iter(models)))
    plain, out, read = (count_of(stats.get(name)) for name in ("input", "output_tokens", "cached"))
    if stats.get("total_tokens"):
        return Cost(None, plain, out, read, None, None, model)
    return Cost(model=model)


_READERS = {"init": _init, "message": _user, "tool_use": _start, "tool_result": _end, "error": _error,
            "result": _result}  # fmt: skip


def _message(error: object) -> str:
    """Return an error's message; the API's own one is JSON inside of it."""
    if isinstance(error, dict):
        text = _text(error.get("message"))
    else:
        text = _text(error)
    begin = text.find("{")
    if text.startswith("[API Error") and begin >= 0:
        inner = parse_json(text[begin:].rstrip("]"))
    else:
        inner = None
    if isinstance(inner, dict):
        told = inner.get("error")
    else:
        told = None
    if isinstance(told, dict):
        return _text(told.get("message")) or text
    return text


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    return ""
