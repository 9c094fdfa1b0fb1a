"""Claude Code's ``stream-json`` lines as events. The format is the client's own (2.1.330), and it grows.

Beside what ``events`` lists: everything of a sub-agent carries ``parent_tool_call_id``; an ``error`` with ``final``
true is one that the client would go on retrying in vain; a ``result`` has ``subtype`` and, as they apply,
``error_message`` (one line), ``structured`` (the answer by schema) and ``retry_not_before`` (Unix seconds).
"""

from __future__ import annotations

import json
import time

from swarm_mcp.harness import events
from swarm_mcp.harness.claude.errors import code_of
from swarm_mcp.harness.claude.result import context_usage, count, ended, failure
from swarm_mcp.harness.events import Event, custom, error, message, retry, session_init, tool_end, tool_start
from swarm_mcp.harness.outcome import AUTH_FAILED, UNREACHABLE

# A token may just have run out, and the client fetches a new one after the first refusal.
HOPELESS_ATTEMPT = 2
OWN_DELAY_MS = 625  # at most, of its own; doubled each time


def parse(line: str, state: dict) -> list[Event]:
    """See ``HarnessAdapter.parse``."""
    try:
        found = json.loads(line, parse_constant=lambda _: None)
    except (ValueError, RecursionError):
        return []
    if not isinstance(found, dict):
        return []
    kind = str(found.get("type") or "untyped")
    try:
        return _PARSERS.get(kind, _unknown)(found, state)
    except Exception:
        return [custom(f"claude.{kind}", found)]


def _unknown(found: dict, state: dict) -> list[Event]:
    return [custom(f"claude.{found.get('type') or 'untyped'}", found)]


# ---------------------------------------------------------------- system


def _system(found: dict, state: dict) -> list[Event]:
    subtype = str(found.get("subtype") or "system")
    if subtype == "init":
        return _init(found, state)
    if subtype == "compact_boundary":
        facts = found["compact_metadata"]
        data = {"pre_compact_tokens": count(facts.get("pre_tokens")), "compact_trigger": facts.get("trigger")}
        return [Event(events.COMPACTION, {**data, "context_total_tokens": state.get("window")})]
    told = [_retry(found, state) if subtype == "api_retry" else custom(f"claude.{subtype}", found)]
    if subtype == "api_retry" and found.get("error_status") in (401, 403):
        attempt = count(found.get("attempt")) or 0
        if attempt >= HOPELESS_ATTEMPT and "refused" not in state:
            state["refused"] = True
            told.append(error(f"the API refuses this sign-in ({found['error_status']})", AUTH_FAILED))
            told[-1].data["final"] = True
    return told


def _retry(found: dict, state: dict) -> Event:
    """The API is asked again; the client waits for as long as the API has told it to, or by its own rule."""
    status, kind, delay = found.get("error_status"), found.get("error"), count(found.get("retry_delay_ms")) or 0
    own = OWN_DELAY_MS * 2 ** min(max(0, (count(found.get("attempt")) or 1) - 1), 20)
    state["told_to_wait"] = delay / 1000 if delay > own else 0
    if status is None:
        category, text = UNREACHABLE, "the API cannot be reached"
    else:
        category, text = code_of("", kind, status), f"the API answered {status} ({kind})"
    later = time.time() + state["told_to_wait"] if state["told_to_wait"] else None
    return retry("claude.api_retry", found, text, category, later)


def _init(found: dict, state: dict) -> list[Event]:
    if "session" in state:  # a session that goes on after a background task begins anew
        return [custom("claude.init", {"session_id": found.get("session_id")})]
    if not isinstance(found.get("session_id"), str):
        return [custom("claude.init", found)]
    from swarm_mcp.harness.claude.adapter import WINDOWS

    model = found.get("model") if isinstance(found.get("model"), str) else None
    state["session"], state["model"], state["window"] = found["session_id"], model, WINDOWS.get(model or "")
    about = {key: found[key] for key in ("model", "cwd", "tools") if key in found}
    told = [session_init(found["session_id"], **about)]
    servers = found.get("mcp_servers")
    failed = [one for one in servers if _failed(one)] if isinstance(servers, list) else []
    return [*told, custom("claude.mcp_failed", failed)] if failed else told


def _failed(server: object) -> bool:
    return isinstance(server, dict) and server.get("status") == "failed"


# ---------------------------------------------------------------- what is said and done


def _assistant(found: dict, state: dict) -> list[Event]:
    said = found["message"]
    content = said.get("content")
    blocks = content if isinstance(content, list) else [{"type": "text", "text": content or ""}]
    if found.get("error") or found.get("is_api_error_message"):
        text = " ".join(str(block.get("text") or "") for block in blocks).strip() or str(found.get("error"))
        return [failure(text, code_of(text, found.get("error"), found.get("api_error_status")), state)]
    more = _parent(found)
    told = [event for block in blocks for event in _block(block, state, more)]
    return told if more else [*told, *context_usage(said, state)]


def _block(block: dict, state: dict, more: dict) -> list[Event]:
    kind = str(block.get("type"))
    if kind == "text":
        return [message("assistant", block["text"], **more)] if block["text"].strip() else []
    if kind == "thinking":
        text = block.get("thinking") or ""
        return [message("assistant", text, thinking=True, **more)] if text.strip() else []
    if kind in ("tool_use", "server_tool_use", "mcp_tool_use"):
        state.setdefault("tools", {})[block["id"]] = (str(block.get("name") or kind), more)
        return [_with(tool_start(block["id"], str(block.get("name") or kind), block.get("input")), more)]
    if kind.endswith("tool_result"):
        return [_ended(block, state)]
    return [custom(f"claude.{kind}", block)]


def _user(found: dict, state: dict) -> list[Event]:
    content, more = found["message"].get("content"), _parent(found)
    if isinstance(content, str):
        return [message("user", content, **more)]
    told = []
    for block in content:
        if block.get("type") == "tool_result":
            told.append(_ended(block, state))
        elif block.get("type") == "text":
            told.append(message("user", block["text"], **more))
        else:
            told.append(custom(f"claude.{block.get('type')}", block))
    return told


def _ended(block: dict, state: dict) -> Event:
    name, more = state.get("tools", {}).pop(block["tool_use_id"], ("", {}))
    if not name:  # nothing that was started, as far as we know
        return custom("claude.tool_result", block)
    return _with(tool_end(block["tool_use_id"], name, _text(block.get("content")), bool(block.get("is_error"))), more)


def _text(content: object) -> str:
    """A tool's result as text; what is no text (an image) stays as it is written."""
    if isinstance(content, str):
        return content
    if isinstance(content, list) and all(isinstance(block, dict) for block in content):
        return "\n".join(
            str(block["text"]) if block.get("type") == "text" and "text" in block else f"[{block.get('type')}]"
            for block in content
        )
    return "" if content is None else json.dumps(content)


def _parent(found: dict) -> dict:
    parent = found.get("parent_tool_use_id")
    return {"parent_tool_call_id": parent} if isinstance(parent, str) else {}


def _with(event: Event, more: dict) -> Event:
    return event._replace(data={**event.data, **more})


def _rate_limit(found: dict, state: dict) -> list[Event]:
    facts = found.get("rate_limit_info")
    if isinstance(facts, dict) and facts.get("status") == "rejected" and count(facts.get("resetsAt")):
        state["resets"] = float(facts["resetsAt"])
    return [custom("claude.rate_limit_event", found)]


_PARSERS = {
    "system": _system,
    "assistant": _assistant,
    "user": _user,
    "result": ended,
    "rate_limit_event": _rate_limit,
}
