"""The output of OpenCode with ``run --format json`` (1.18): one JSON object a line, each with its ``sessionID``.

``step_start`` and ``step_finish`` (one answer of the model, with its tokens and dollars), ``text``, ``reasoning``,
``tool_use`` (once, after the call) and ``error``. The end is the end of the stream. Sub-agents have sessions of their
own, and only the result of the tool that started them is in the stream.
"""

from __future__ import annotations

from swarm_mcp.agents.harness import events, outcome
from swarm_mcp.agents.harness.events import CONTEXT_USAGE, Event
from swarm_mcp.agents.harness.outcome import TOKENS, Cost, count_of
from swarm_mcp.agents.harness.query import parse_object

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

OUR_DENIAL = "swarm lock blocked"


def parse(line: str, state: dict[str, Any]) -> list[Event]:
    """Implement ``HarnessAdapter.parse``."""
    told = parse_object(line)
    kind = told.get("type")
    if not isinstance(kind, str):
        return []
    found = []
    session = told.get("sessionID")
    if isinstance(session, str) and session and "session" not in state:
        state["session"] = session
        found.append(events.session_init(session))
    if kind == "error":
        return [*found, _complaint(told.get("error"), state)]
    read = _READERS.get(kind)
    part = told.get("part")
    if read is None or not isinstance(part, dict):
        return [*found, events.custom(f"opencode.{kind}", told)]
    return [*found, *read(part, state)]


def left_over(state: dict[str, Any]) -> list[Event]:
    """Implement ``HarnessAdapter.finish``: the result, missing in the stream itself."""
    cost = cost_of(state).to_dict()
    complaint = state.get("complaint")
    if complaint:
        text, code = complaint
        return [events.result(state.get("words"), True, code, error_message=text, cost=cost)]
    if state.get("over"):
        return [events.result(state.get("words"), cost=cost)]
    return []


def cost_of(state: dict[str, Any]) -> Cost:
    """Return the cost of this run's answers. A model without a price makes the sum unknown."""
    used = state.get("used")
    if not used:
        return Cost()
    if state.get("unpriced"):
        dollars = None
    else:
        dollars = round(state["dollars"], 10)
    return Cost(dollars, **used, num_turns=state["turns"])


def _step_begins(part: dict[str, Any], state: dict[str, Any]) -> list[Event]:
    return []


def _step_ends(part: dict[str, Any], state: dict[str, Any]) -> list[Event]:
    tokens, cache = parse_object(part.get("tokens")), parse_object(parse_object(part.get("tokens")).get("cache"))
    out = (count_of(tokens.get("output")) or 0) + (count_of(tokens.get("reasoning")) or 0)
    found = (
        count_of(tokens.get("input")) or 0,
        out,
        count_of(cache.get("read")) or 0,
        count_of(cache.get("write")) or 0,
    )
    used = state.setdefault("used", dict.fromkeys(TOKENS, 0))
    for name, count in zip(TOKENS, found):
        used[name] += count
    state["turns"] = state.get("turns", 0) + 1
    cost = part.get("cost")
    priced = isinstance(cost, (int, float)) and not isinstance(cost, bool) and cost > 0
    state["unpriced"] = state.get("unpriced", False) or (not priced and any(found))
    state["dollars"] = state.get("dollars", 0.0) + (cost if priced else 0.0)
    goes_on = part.get("reason") == "tool-calls"
    state["over"] = not goes_on
    facts: dict[str, Any] = {"context_used_tokens": sum(found), "context_total_tokens": None, "context_percent": None}
    facts["spent"] = cost_of(state).to_dict()
    facts.update(cost_usd=cost_of(state).total_cost_usd, num_turns=state["turns"], goes_on=goes_on)
    return [Event(CONTEXT_USAGE, {**facts, "output_tokens": out})]


def _words(part: dict[str, Any], state: dict[str, Any]) -> list[Event]:
    text = _text(part.get("text"))
    state["words"] = text or state.get("words")
    if text:
        return [events.message("assistant", text)]
    return []


def _thoughts(part: dict[str, Any], state: dict[str, Any]) -> list[Event]:
    text = _text(part.get("text"))
    if text:
        return [events.message("assistant", text, thinking=True)]
    return []


def _call(part: dict[str, Any], state: dict[str, Any]) -> list[Event]:
    call, name, how = _text(part.get("callID")), _text(part.get("tool")), parse_object(part.get("state"))
    failed = how.get("status") == "error"
    text = _text(how.get("error" if failed else "output"))
    found = [events.tool_start(call, name, how.get("input")), events.tool_end(call, name, text, failed)]
    if failed and text.startswith(OUR_DENIAL):
        found.append(events.custom("lock_denied", {"message": text, "call": name, "harness": "opencode"}))
    return found


def _complaint(error: object, state: dict[str, Any]) -> Event:
    told = parse_object(error)
    text = _text(parse_object(told.get("data")).get("message")) or _text(told.get("name")) or "it did not say why"
    status = parse_object(told.get("data")).get("statusCode")
    code = outcome.code_of(f"{status} {text}" if isinstance(status, int) else text)
    if told.get("name") == "ProviderAuthError":
        code = outcome.AUTH_FAILED
    else:
        code = code or outcome.UNKNOWN
    state["complaint"] = (outcome.one_line(text), code)
    return events.error(outcome.one_line(text), code)


_READERS = {
    "step_start": _step_begins, "step_finish": _step_ends, "text": _words, "reasoning": _thoughts, "tool_use": _call,
}  # fmt: skip


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    return ""
