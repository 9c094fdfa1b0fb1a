"""How full the context is, and how a run of Claude Code ended, from its lines (see ``claude_stream``)."""

from __future__ import annotations

import time

from swarm_mcp.harness.claude.errors import code_of
from swarm_mcp.harness.events import CONTEXT_USAGE, Event, error, result
from swarm_mcp.harness.outcome import RATE_LIMITED, Cost


def context_usage(said: dict, state: dict) -> list[Event]:
    """How full the context is: once for every answer, which comes in several lines."""
    usage, name = said.get("usage"), said.get("id")
    if not isinstance(usage, dict) or name == state.get("answer"):
        return []
    state["answer"] = name
    parts = [count(usage.get(key)) for key in _INPUT]
    used, written = sum(part or 0 for part in parts), count(usage.get("output_tokens")) or 0
    if not used:
        return []
    state["used"], state["written"] = used + written, written
    return [_context(state)]


_INPUT = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")


def _context(state: dict) -> Event:
    used, window = state["used"], state.get("window")
    state["told"] = window
    data = {"context_used_tokens": used, "context_total_tokens": window, "output_tokens": state["written"]}
    return Event(CONTEXT_USAGE, {**data, "context_percent": round(100 * used / window, 2) if window else None})


def ended(found: dict, state: dict) -> list[Event]:
    """The events of a ``result`` line."""
    failed = bool(found.get("is_error")) or found.get("subtype") not in (None, "success")
    told: list[Event] = []
    text, listed = found.get("result"), found.get("errors")
    more: dict = {"subtype": found.get("subtype"), "cost": _cost(found, state).to_dict()}
    category = None
    if failed:
        listed = [str(line) for line in listed] if isinstance(listed, list) else []
        more["error_message"] = " ".join((str(text or "") or " ".join(listed) or str(found.get("subtype"))).split())
        kind = found.get("api_error_type") or found.get("subtype")
        category = code_of(more["error_message"], kind, found.get("api_error_status"))
        if state.get("error") != more["error_message"]:
            told.append(failure(more["error_message"], category, state))
        if "resets" in state:
            more["retry_not_before"] = state["resets"]
        elif category == RATE_LIMITED and state.get("told_to_wait"):
            more["retry_not_before"] = time.time() + state["told_to_wait"]
    else:
        # A sub-agent that ends in the background wakes the model once more, which then has nothing to add to its answer.
        if "structured_output" in found:
            state["structured"] = found["structured_output"]
        if "structured" in state:
            more["structured"] = state["structured"]
    window = _window(found, state)
    if window and "used" in state:
        state["window"] = window
        if state.get("told") != window:
            told.append(_context(state))
    output = None if failed else text if isinstance(text, str) else None
    return [*told, result(output, failed, category, **more)]


def _cost(found: dict, state: dict) -> Cost:
    """What the run took so far. A run may have several results, each with the tokens since the one before.

    ``usage`` leaves out sub-agents, summaries and the answer at which a budget was reached; it is second choice.
    """
    since = found.get("model_usage_since_last_result")
    if isinstance(since, dict):
        names = ("inputTokens", "outputTokens", "cacheReadInputTokens", "cacheCreationInputTokens")
        counted = [[count(used.get(name)) for used in since.values()] for name in names]
    else:
        usage = found.get("usage") if isinstance(found.get("usage"), dict) else {}
        names = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
        counted = [[count(usage.get(name))] for name in names]
    counted.append([count(found.get("num_turns"))])
    sums = [None if None in column else sum(column) for column in counted]
    earlier = state.get("sums") or [0] * len(sums)
    state["sums"] = [None if None in pair else sum(pair) for pair in zip(earlier, sums, strict=True)]
    total = found.get("total_cost_usd")
    total = float(total) if isinstance(total, (int, float)) and not isinstance(total, bool) else None
    return Cost(total, *state["sums"], model=state.get("model"))


def _window(found: dict, state: dict) -> int | None:
    used = found.get("modelUsage")
    of_model = used.get(state.get("model")) if isinstance(used, dict) else None
    return count(of_model.get("contextWindow")) if isinstance(of_model, dict) else None


def failure(text: str, category: str, state: dict) -> Event:
    """An error; what it says is remembered, since the result says it once more."""
    text = " ".join(text.split())
    state["error"] = text
    return error(text, category)


def count(value: object) -> int | None:
    """A count as it stands; None for what is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
