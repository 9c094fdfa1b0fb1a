"""The output of pi with ``--mode json``: a header, then one event a line (``docs/json.md`` of its package, 0.74).

Only ends are used: ``message_end`` has the whole message, ``message_update`` repeats its beginning with one delta.
"""

from __future__ import annotations

import json
import math
import re

from swarm_mcp.agents.harness import denials, outcome
from swarm_mcp.agents.harness.events import (
    COMPACTION,
    CONTEXT_USAGE,
    Event,
    custom,
    error,
    message,
    result,
    retry,
    session_init,
)
from swarm_mcp.agents.harness.events import tool_end as tool_ended
from swarm_mcp.agents.harness.events import tool_start as tool_started
from swarm_mcp.agents.harness.outcome import Cost, code_of
from swarm_mcp.agents.harness.query import parse_object

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_UPDATE = '{"type":"message_update"'
_SILENT = frozenset({"agent_start", "turn_start", "turn_end", "message_start", "message_update", "queue_update"})
# Texts of pi itself and of its providers, beside those in errors_of.
_AUTH = re.compile(r"no models available|no credentials|permission.?denied|re-authenticate", re.IGNORECASE)
_OVERFLOW = re.compile(
    r"request_too_large|prompt too long|too many tokens|token limit|reduce the length of the messages"
    r"|maximum prompt length|available context size|greater than the context length|exceeds the limit of \d+",
    re.IGNORECASE,
)


def events_of(line: str, state: dict[str, Any]) -> list[Event]:
    """Return the events of one line; `state` collects the run's numbers (`cost_of`). Never raises."""
    told = parse_object(line)
    if not told:
        return []
    kind = told.get("type")
    try:
        if isinstance(kind, str):
            read = _READERS.get(kind)
        else:
            read = None
        if read:
            return read(told, state)
        if kind in _SILENT:
            return []
        return [custom(f"pi.{kind}", told)]
    except (AttributeError, KeyError, TypeError, ValueError):  # a form that is new to us
        return [custom(f"pi.{kind}", told)]


def without_repetition(line: str) -> str:
    """Return an update's line without the repeated beginning of the message; other lines unchanged.

    An answer of 20 kB would make a record of hundreds of megabytes. Raises decoding errors.
    """
    if not line.startswith(_UPDATE):
        return line
    told = json.loads(line)
    told.pop("message", None)
    told["assistantMessageEvent"].pop("partial", None)
    return json.dumps(told, ensure_ascii=False, separators=(",", ":"))


def cost_of(state: dict[str, Any]) -> Cost:
    """Return the cost of this run's answers. A model without a price makes the sum unknown."""
    used = state.get("used")
    if not used:
        return Cost(num_turns=state.get("turns"), model=state.get("model"))
    return Cost(
        None if state.get("unpriced") else round(used["cost"], 10),
        used["input"], used["output"], used["cacheRead"], used["cacheWrite"], state["turns"], state.get("model"),
    )  # fmt: skip


def category_of(text: str) -> str:
    """Return the error code of a complaint of pi, or of a model's API."""
    found = code_of(text)
    if not found and _OVERFLOW.search(text):
        return outcome.CONTEXT_OVERFLOW
    return found or (outcome.AUTH_FAILED if _AUTH.search(text) else outcome.UNKNOWN)


def _session(told: dict[str, Any], state: dict[str, Any]) -> list[Event]:
    name = told.get("id")
    if state.get("session") or not isinstance(name, str):
        return [custom("pi.session", told)]
    state["session"] = name
    return [session_init(name, cwd=told.get("cwd"))]


def _update(told: dict[str, Any], state: dict[str, Any]) -> list[Event]:
    piece = told["assistantMessageEvent"]
    if piece.get("type") in ("text_delta", "thinking_delta"):
        return [custom(f"pi.{piece['type']}", {"delta": str(piece.get("delta", ""))})]
    return []


def _message(told: dict[str, Any], state: dict[str, Any]) -> list[Event]:
    said = told["message"]
    role = said.get("role")
    if role == "user":
        return [message("user", _text(said.get("content")))]
    if role == "toolResult":
        return []  # tool_execution_end has told it
    if role != "assistant":
        return [custom(f"pi.message.{role}", said)]
    content = said.get("content")
    found = []
    for block in content if isinstance(content, list) else ():
        if block.get("type") == "thinking" and block.get("thinking"):
            found.append(message("assistant", str(block["thinking"]), thinking=True))
    text = _text(content)
    if text:
        found.append(message("assistant", text))
    state["last"] = {"text": text, "reason": said.get("stopReason"), "complaint": said.get("errorMessage")}
    return found + _count(said, state)


def _count(said: dict[str, Any], state: dict[str, Any]) -> list[Event]:
    """Add one answer to the run's numbers; how full the context is now."""
    model = "/".join(str(said[part]) for part in ("provider", "model") if said.get(part))
    state["model"] = model or state.get("model")
    usage = said.get("usage") or {}
    tokens = {name: _number(usage.get(name)) for name in ("input", "output", "cacheRead", "cacheWrite")}
    if not any(tokens.values()):
        return []  # it failed before it was counted
    state["turns"] = state.get("turns", 0) + 1
    price = _number((usage.get("cost") or {}).get("total"))
    state["unpriced"] = state.get("unpriced", False) or not price
    used = state.setdefault("used", dict.fromkeys((*tokens, "cost"), 0))
    for name, value in (*tokens.items(), ("cost", price)):
        used[name] += value
    full = _number(usage.get("totalTokens")) or sum(tokens.values())
    facts: dict[str, Any] = {"context_used_tokens": full, "context_total_tokens": None, "context_percent": None}
    facts["cost_usd"], facts["num_turns"] = cost_of(state).total_cost_usd, state["turns"]
    facts["spent"] = cost_of(state).to_dict()
    facts["goes_on"] = said.get("stopReason") == "toolUse"
    return [Event(CONTEXT_USAGE, {**facts, "output_tokens": tokens["output"]})]


def _start(told: dict[str, Any], state: dict[str, Any]) -> list[Event]:
    return [tool_started(str(told["toolCallId"]), str(told["toolName"]), told.get("args"))]


def _end(told: dict[str, Any], state: dict[str, Any]) -> list[Event]:
    gave = told.get("result")
    if isinstance(gave, dict):
        text = _text(gave.get("content"))
    elif gave is None:
        text = ""
    else:
        text = str(gave)
    failed = told.get("isError") is True
    found = [tool_ended(str(told["toolCallId"]), str(told["toolName"]), text, failed)]
    if failed and text.startswith(denials.BEGINS):
        found.append(custom("lock_denied", {"message": text, "call": str(told["toolName"]), "harness": "pi"}))
    return found


def _progress(told: dict[str, Any], state: dict[str, Any]) -> list[Event]:
    return []  # a tool's output so far, repeated


def _agent_end(told: dict[str, Any], state: dict[str, Any]) -> list[Event]:
    last = state.get("last") or {}
    failed = last.get("reason") in ("error", "aborted")
    if not failed:
        state["failed"] = []
        return [result(last.get("text"), cost=cost_of(state).to_dict())]
    complaint = " ".join(str(last.get("complaint") or f"the model's answer ended with {last['reason']}").split())
    if last["reason"] == "aborted":
        category = outcome.ABORTED
    else:
        category = category_of(complaint)
    ended = result(last.get("text") or None, True, category, cost=cost_of(state).to_dict(), error_message=complaint)
    state["failed"] = [error(complaint, category), ended]
    return []


def _retry(told: dict[str, Any], state: dict[str, Any]) -> list[Event]:
    state["failed"] = []
    said = str(told.get("errorMessage") or "")
    return [retry("pi.auto_retry_start", told, said, category_of(said))]


def left_over(state: dict[str, Any]) -> list[Event]:
    """Return the events of a run with a failed last answer: only the end shows that pi did not try again."""
    return state.get("failed") or []


def _compacted(told: dict[str, Any], state: dict[str, Any]) -> list[Event]:
    done = told.get("result")
    if not isinstance(done, dict):
        return [custom("pi.compaction_end", told)]
    if told.get("reason") == "manual":
        trigger = "manual"
    else:
        trigger = "auto"
    before = done.get("tokensBefore")
    facts = {"pre_compact_tokens": before, "compact_trigger": trigger, "context_total_tokens": None}
    return [Event(COMPACTION, facts)]


_READERS = {
    "session": _session, "message_update": _update, "message_end": _message, "tool_execution_start": _start,
    "tool_execution_update": _progress, "tool_execution_end": _end, "agent_end": _agent_end,
    "auto_retry_start": _retry, "compaction_end": _compacted,
}  # fmt: skip


def _text(content: object) -> str:
    """Return the text of a message or a result; parts that are no text are named."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        blocks = [block for block in content if isinstance(block, dict)]
    else:
        blocks = []
    shown = [str(block.get("text", "")) if block.get("type") == "text" else "" for block in blocks]
    shown += ["[image]" for block in blocks if block.get("type") == "image"]
    return "\n".join(text for text in shown if text)


def _number(value: object) -> float | int:
    if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value):
        return value
    return 0
