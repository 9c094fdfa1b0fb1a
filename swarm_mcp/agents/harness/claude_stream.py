"""Claude Code's ``stream-json`` lines as events. The format is the client's own (2.1.330), and it grows.

Beside the list in ``events``: all lines of a sub-agent carry ``parent_tool_call_id``; an ``error`` with ``final`` true
would be retried by the client in vain; a ``result`` has ``subtype`` and, as they apply, ``error_message`` (one line),
``structured`` (the answer by schema) and ``retry_not_before`` (Unix seconds).
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable
from typing import Any

from swarm_mcp.agents.harness import events, outcome
from swarm_mcp.agents.harness.adapter import asks
from swarm_mcp.agents.harness.events import (
    CONTEXT_USAGE,
    Event,
    custom,
    error,
    message,
    permission_asked,
    result,
    retry,
    session_init,
    tool_end,
    tool_start,
)
from swarm_mcp.agents.harness.outcome import AUTH_FAILED, RATE_LIMITED, UNREACHABLE, Cost, Ending, count_of, one_line
from swarm_mcp.agents.harness.query import parse_object

# The meaning of Claude Code's failures.
#
# API errors come as ``result`` lines with subtype ``success``, ``is_error`` true and ``api_error_status``; the client's
# own refusals have a subtype of their own and ``errors``; command-line mistakes are on stderr alone. Without a
# ``result`` line a run has failed, even with exit code 0, as after SIGINT.

# The values of ``error`` in an assistant line, or of ``api_error_type`` in a result.
KINDS = {
    "authentication_failed": outcome.AUTH_FAILED,
    "authentication_error": outcome.AUTH_FAILED,
    "oauth_org_not_allowed": outcome.AUTH_FAILED,
    "permission_error": outcome.AUTH_FAILED,
    "rate_limit": outcome.RATE_LIMITED,
    "rate_limit_error": outcome.RATE_LIMITED,
    "overloaded": outcome.RATE_LIMITED,
    "overloaded_error": outcome.RATE_LIMITED,
    "server_error": outcome.RATE_LIMITED,
    "api_error": outcome.RATE_LIMITED,
    "billing_error": outcome.BUDGET,
    "request_too_large": outcome.CONTEXT_OVERFLOW,
    "model_not_found": outcome.MODEL_NOT_FOUND,
    "not_found_error": outcome.MODEL_NOT_FOUND,
    "error_max_budget_usd": outcome.BUDGET,
    "error_max_turns": outcome.BUDGET,
}
STATUSES = {
    401: outcome.AUTH_FAILED, 402: outcome.BUDGET, 403: outcome.AUTH_FAILED, 413: outcome.CONTEXT_OVERFLOW,
    429: outcome.RATE_LIMITED, 529: outcome.RATE_LIMITED,
}  # fmt: skip
# Sentences in messages. Those about sessions come first: they quote an id or a title, and that may hold any word.
UNREACHABLE_WORDS = re.compile(
    r"api error: (?:connection (?:refused|error|reset|closed)|unable to connect|request timed out)|connection error"
    r"|\b(?:ECONNREFUSED|ECONNRESET|ENOTFOUND|EAI_AGAIN|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH)\b|fetch failed",
    re.IGNORECASE,
)
SENTENCES = tuple(
    (re.compile(pattern, re.IGNORECASE), code)
    for pattern, code in (
        (r"no conversation found with session id|--resume requires a valid session id|does not match any session "
         r"title", outcome.SESSION_NOT_FOUND),
        (r"session id \S+ is already in use", outcome.SESSION_IN_USE),
        (r"prompt is too long|context (window|limit)|input is too long|too many tokens", outcome.CONTEXT_OVERFLOW),
        (r"credit balance is too low|maximum budget|maximum number of turns", outcome.BUDGET),
        (r"issue with the selected model|model.{0,60}(?:may not exist|does not exist|not found)",
         outcome.MODEL_NOT_FOUND),
        (r"not logged in|run /login|invalid (api key|authentication)|oauth token|authentication_error|"
         r"api error: 40[13]\b", outcome.AUTH_FAILED),
        (r"rate limit|usage limit|hit your .*limit|limit reached|overloaded|api error: (429|5\d\d)\b",
         outcome.RATE_LIMITED),
    )
)  # fmt: skip


def code_of(text: str = "", kind: object = None, status: object = None) -> str:
    """Return the error code for a line: its sentence, its `kind` of error, the HTTP status behind it."""
    # Without an answer, the client reports a server's failure.
    if not isinstance(status, int) and UNREACHABLE_WORDS.search(text):
        return outcome.UNREACHABLE
    if isinstance(kind, str) and kind in KINDS:
        return KINDS[kind]
    if isinstance(status, int):
        if 500 <= status < 600:
            return outcome.RATE_LIMITED
        if status in STATUSES:
            return STATUSES[status]
    return next((code for pattern, code in SENTENCES if pattern.search(text)), outcome.UNKNOWN)


def error_of(ending: Ending) -> tuple[str, str] | None:
    """Implement ``HarnessAdapter.error_of``."""
    result = ending.result
    if result is None:
        for told in reversed(ending.errors):
            if told.get("category") not in (None, outcome.UNKNOWN):
                return str(told["category"]), one_line(str(told.get("message") or ""))
        lines = [line.strip() for line in ending.stderr.splitlines() if line.strip()]
        text = one_line(" ".join(lines[-3:])) or one_line(ending.stdout)
        code = code_of(text)
        if code != outcome.UNKNOWN:
            return code, text
        return outcome.PROCESS_CRASHED, f"claude ended without a result ({_how(ending)}){': ' if text else ''}{text}"
    if result.get("is_error"):
        text = str(result.get("error_message") or "it failed")
        return str(result.get("error_category") or outcome.UNKNOWN), one_line(text)
    # A run with busy sub-agents gives a result and goes on: ended from outside, it has failed.
    if ending.signal or (ending.exit_code or 0) > 128:
        return outcome.PROCESS_CRASHED, f"claude was ended by {_how(ending)} while it went on working"
    return None


def _how(ending: Ending) -> str:
    if ending.signal:
        return f"signal {ending.signal}"
    return f"exit code {ending.exit_code}"


# Tokens of context, as the client itself gives them with its results.
WINDOWS = {
    "claude-fable-5-1": 1_000_000, "claude-opus-5-5": 1_000_000, "claude-opus-5": 1_000_000,
    "claude-sonnet-5-5": 1_000_000, "claude-haiku-5-5": 1_000_000, "claude-haiku-4-5": 200_000,
}  # fmt: skip
# Names of a model's provider, as the client says them; others are said as they are.
PROVIDERS = {"firstParty": "anthropic"}
# A token may just have run out, and the client fetches a new one after the first refusal.
HOPELESS_ATTEMPT = 2
OWN_DELAY_MS = 625  # at most, of its own; doubled each time


def parse(line: str, state: dict[str, Any]) -> list[Event]:
    """Implement ``HarnessAdapter.parse``."""
    found = parse_object(line)
    if not found:
        return []
    kind = str(found.get("type") or "untyped")
    try:
        return _PARSERS.get(kind, _unknown)(found, state)
    except Exception:  # a form that is new to us
        return [custom(f"claude.{kind}", found)]


def _unknown(found: dict[str, Any], state: dict[str, Any]) -> list[Event]:
    return [custom(f"claude.{found.get('type') or 'untyped'}", found)]


# ---------------------------------------------------------------- system


def _system(found: dict[str, Any], state: dict[str, Any]) -> list[Event]:
    subtype = str(found.get("subtype") or "system")
    if subtype == "init":
        return _init(found, state)
    if subtype == "compact_boundary":
        facts = found["compact_metadata"]
        data = {"pre_compact_tokens": count_of(facts.get("pre_tokens")), "compact_trigger": facts.get("trigger")}
        return [Event(events.COMPACTION, {**data, "context_total_tokens": state.get("window")})]
    if subtype == "permission_denied" and not asks(state.get("query")):
        called = found["tool_use_id"]
        name, _, args = state.get("tools", {}).get(called) or (str(found.get("tool_name") or ""), {}, {})
        return [permission_asked(called, name, args, "", str(found.get("message") or ""))]
    told = [_retry(found, state) if subtype == "api_retry" else custom(f"claude.{subtype}", found)]
    if subtype == "api_retry" and found.get("error_status") in (401, 403):
        attempt = count_of(found.get("attempt")) or 0
        if attempt >= HOPELESS_ATTEMPT and "refused" not in state:
            state["refused"] = True
            told.append(error(f"the API refuses this sign-in ({found['error_status']})", AUTH_FAILED))
            told[-1].data["final"] = True
    return told


def _retry(found: dict[str, Any], state: dict[str, Any]) -> Event:
    """The API is asked again; the client waits for as long as the API has told it to, or by its own rule."""
    status, kind, delay = found.get("error_status"), found.get("error"), count_of(found.get("retry_delay_ms")) or 0
    own = OWN_DELAY_MS * 2 ** min(max(0, (count_of(found.get("attempt")) or 1) - 1), 20)
    state["told_to_wait"] = delay / 1000 if delay > own else 0
    if status is None:
        category, text = UNREACHABLE, "the API cannot be reached"
    else:
        category, text = code_of("", kind, status), f"the API answered {status} ({kind})"
    if state["told_to_wait"]:
        later = time.time() + state["told_to_wait"]
    else:
        later = None
    return retry("claude.api_retry", found, text, category, later)


def _init(found: dict[str, Any], state: dict[str, Any]) -> list[Event]:
    if "session" in state:  # a session that goes on after a background task begins anew
        return [custom("claude.init", {"session_id": found.get("session_id")})]
    if not isinstance(found.get("session_id"), str):
        return [custom("claude.init", found)]
    if isinstance(found.get("model"), str):
        model = found.get("model")
    else:
        model = None
    state["session"], state["model"], state["window"] = found["session_id"], model, WINDOWS.get(model or "")
    about = {key: found[key] for key in ("model", "cwd", "tools") if key in found}
    told = [session_init(found["session_id"], **about)]
    servers = found.get("mcp_servers")
    if isinstance(servers, list):
        failed = [one for one in servers if isinstance(one, dict) and one.get("status") == "failed"]
    else:
        failed = []
    if failed:
        return [*told, custom("claude.mcp_failed", failed)]
    return told


# ---------------------------------------------------------------- words and calls


def _assistant(found: dict[str, Any], state: dict[str, Any]) -> list[Event]:
    said = found["message"]
    content = said.get("content")
    if isinstance(content, list):
        blocks = content
    else:
        blocks = [{"type": "text", "text": content or ""}]
    if found.get("error") or found.get("is_api_error_message"):
        text = " ".join(str(block.get("text") or "") for block in blocks).strip() or str(found.get("error"))
        return [_failure(text, code_of(text, found.get("error"), found.get("api_error_status")), state)]
    more = _parent(found)
    # Add the tokens of an answer, a sub-agent's as well: of its several lines the largest count
    usage, name = said.get("usage"), said.get("id")
    if isinstance(usage, dict) and isinstance(name, str):
        counts = [count_of(usage.get(key)) or 0 for key in _USED]
        before = state.setdefault("answers", {}).get(name, [0] * len(counts))
        state["answers"][name] = list(map(max, counts, before))
    told = [event for block in blocks for event in _block(block, state, more)]
    if more:
        return told
    return [*told, *_context_usage(said, state)]


def _block(block: dict[str, Any], state: dict[str, Any], more: dict[str, Any]) -> list[Event]:
    kind = str(block.get("type"))
    if kind == "text":
        if block["text"].strip():
            return [message("assistant", block["text"], **more)]
        return []
    if kind == "thinking":
        text = block.get("thinking") or ""
        if text.strip():
            return [message("assistant", text, thinking=True, **more)]
        return []
    if kind in ("tool_use", "server_tool_use", "mcp_tool_use"):
        state.setdefault("tools", {})[block["id"]] = (str(block.get("name") or kind), more, block.get("input"))
        return [_with(tool_start(block["id"], str(block.get("name") or kind), block.get("input")), more)]
    if kind.endswith("tool_result"):
        return [_tool_ended(block, state)]
    return [custom(f"claude.{kind}", block)]


def _user(found: dict[str, Any], state: dict[str, Any]) -> list[Event]:
    content, more = found["message"].get("content"), _parent(found)
    if isinstance(content, str):
        return [message("user", content, **more)]
    told = []
    for block in content:
        if block.get("type") == "tool_result":
            told.append(_tool_ended(block, state))
        elif block.get("type") == "text":
            told.append(message("user", block["text"], **more))
        else:
            told.append(custom(f"claude.{block.get('type')}", block))
    return told


def _tool_ended(block: dict[str, Any], state: dict[str, Any]) -> Event:
    name, more, _ = state.get("tools", {}).pop(block["tool_use_id"], ("", {}, {}))
    if not name:  # nothing that was started, as far as we know
        return custom("claude.tool_result", block)
    return _with(tool_end(block["tool_use_id"], name, _text(block.get("content")), bool(block.get("is_error"))), more)


def _text(content: object) -> str:
    """Return a tool's result as text; an image or the like stays as it is written."""
    if isinstance(content, str):
        return content
    if isinstance(content, list) and all(isinstance(block, dict) for block in content):
        return "\n".join(
            str(block["text"]) if block.get("type") == "text" and "text" in block else f"[{block.get('type')}]"
            for block in content
        )
    if content is None:
        return ""
    return json.dumps(content)


def _parent(found: dict[str, Any]) -> dict[str, Any]:
    parent = found.get("parent_tool_use_id")
    if isinstance(parent, str):
        return {"parent_tool_call_id": parent}
    return {}


def _with(event: Event, more: dict[str, Any]) -> Event:
    return event._replace(data={**event.data, **more})


def _rate_limit(found: dict[str, Any], state: dict[str, Any]) -> list[Event]:
    facts = found.get("rate_limit_info")
    if isinstance(facts, dict) and facts.get("status") == "rejected" and count_of(facts.get("resetsAt")):
        state["resets"] = float(facts["resetsAt"])
    return [custom("claude.rate_limit_event", found)]


# ---------------------------------------------------------------- context, costs, the end


def _context_usage(said: dict[str, Any], state: dict[str, Any]) -> list[Event]:
    """Return the use of the context: once for every answer, though an answer has several lines."""
    usage, name = said.get("usage"), said.get("id")
    if not isinstance(usage, dict) or name == state.get("answer"):
        return []
    state["answer"] = name
    parts = [count_of(usage.get(key)) for key in _INPUT]
    used, written = sum(part or 0 for part in parts), count_of(usage.get("output_tokens")) or 0
    if not used:
        return []
    state["used"], state["written"] = used + written, written
    return [_context(state)]


_INPUT = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")


def _context(state: dict[str, Any]) -> Event:
    used, window = state["used"], state.get("window")
    state["told"] = window
    data = {"context_used_tokens": used, "context_total_tokens": window, "output_tokens": state["written"]}
    # It is a lower bound: an answer's lines come before its count
    answers = state.get("answers", {}).values()
    given, out, read, written = (sum(column) for column in zip(*answers)) if answers else (0, 0, 0, 0)
    data["spent"] = Cost(None, given, out, read, written, len(answers), state.get("model")).to_dict()
    return Event(CONTEXT_USAGE, {**data, "context_percent": round(100 * used / window, 2) if window else None})


_USED = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")


def cut_off(state: dict[str, Any]) -> list[Event]:
    """Return the events of a run that ended without a result: its cost, sub-agents included."""
    if "used" in state and "sums" not in state:
        return [_context(state)]
    return []


def _piece(found: dict[str, Any], state: dict[str, Any]) -> list[Event]:
    """A piece of an answer; the whole comes as a line of its own."""
    delta = found["event"].get("delta") or {}
    if delta.get("type") == "text_delta" and not _parent(found):
        return [custom("claude.text_delta", {"delta": delta["text"]})]
    return _unknown(found, state)


def _run_ended(found: dict[str, Any], state: dict[str, Any]) -> list[Event]:
    """The events of a ``result`` line."""
    failed = bool(found.get("is_error")) or found.get("subtype") not in (None, "success")
    told: list[Event] = []
    text, listed = found.get("result"), found.get("errors")
    more: dict[str, Any] = {"subtype": found.get("subtype"), "cost": _cost(found, state).to_dict()}
    category = None
    if failed:
        if isinstance(listed, list):
            listed = [str(line) for line in listed]
        else:
            listed = []
        more["error_message"] = " ".join((str(text or "") or " ".join(listed) or str(found.get("subtype"))).split())
        kind = found.get("api_error_type") or found.get("subtype")
        category = code_of(more["error_message"], kind, found.get("api_error_status"))
        if state.get("error") != more["error_message"]:
            told.append(_failure(more["error_message"], category, state))
        if "resets" in state:
            more["retry_not_before"] = state["resets"]
        elif category == RATE_LIMITED and state.get("told_to_wait"):
            more["retry_not_before"] = time.time() + state["told_to_wait"]
    else:
        # A sub-agent that ends in the background wakes the model again, and the model then adds nothing to its answer.
        if "structured_output" in found:
            state["structured"] = found["structured_output"]
        if "structured" in state:
            more["structured"] = state["structured"]
    used = found.get("modelUsage")
    model = {}
    if isinstance(used, dict) and isinstance(used.get(state.get("model")), dict):
        model = dict(used[state["model"]])
    if isinstance(model.get("provider"), str):
        more["provider"] = PROVIDERS.get(model["provider"], model["provider"])
    window = count_of(model.get("contextWindow"))
    if window and "used" in state:
        state["window"] = window
        if state.get("told") != window:
            told.append(_context(state))
    if failed:
        output = None
    elif isinstance(text, str):
        output = text
    else:
        output = None
    return [*told, result(output, failed, category, **more)]


def _cost(found: dict[str, Any], state: dict[str, Any]) -> Cost:
    """Return the run's cost so far. A run may have several results, each with the tokens since the one before.

    ``usage`` leaves out sub-agents, summaries and the answer at which a budget was reached; it is second choice.
    """
    since = found.get("model_usage_since_last_result")
    if isinstance(since, dict):
        names = ("inputTokens", "outputTokens", "cacheReadInputTokens", "cacheCreationInputTokens")
        counted = [[count_of(used.get(name)) for used in since.values()] for name in names]
    else:
        given = found.get("usage")
        if isinstance(given, dict):
            usage = given
        else:
            usage = {}
        names = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
        counted = [[count_of(usage.get(name))] for name in names]
    counted.append([count_of(found.get("num_turns"))])
    sums = [_sum(column) for column in counted]
    earlier = state.get("sums") or [0] * len(sums)
    state["sums"] = [_sum(pair) for pair in zip(earlier, sums, strict=True)]
    total = found.get("total_cost_usd")
    if isinstance(total, (int, float)) and not isinstance(total, bool):
        total = float(total)
    else:
        total = None
    given_tokens, out, read, written, turns = state["sums"]
    return Cost(total, given_tokens, out, read, written, turns, state.get("model"))


def _sum(counts: Iterable[int | None]) -> int | None:
    """Return the sum; None if a count is unknown."""
    known = list(counts)
    if None in known:
        return None
    return sum(count for count in known if count is not None)


def _failure(text: str, category: str, state: dict[str, Any]) -> Event:
    """Return an error event, and remember its text, since the result repeats it."""
    text = " ".join(text.split())
    state["error"] = text
    return error(text, category)


_PARSERS = {
    "system": _system,
    "assistant": _assistant,
    "user": _user,
    "result": _run_ended,
    "rate_limit_event": _rate_limit,
    "stream_event": _piece,
}
