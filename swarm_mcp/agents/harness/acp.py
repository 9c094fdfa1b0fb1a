"""The harness ``acp``: any agent that speaks the Agent Client Protocol, behind the check of ``swarm-mcp acp``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from swarm_mcp.agents.harness import bridge, events, outcome
from swarm_mcp.agents.harness.adapter import PERMISSIONS, Capabilities, HarnessAdapter, Launch, bridged, refusal_in
from swarm_mcp.agents.harness.bridge import args_of, name_of
from swarm_mcp.agents.harness.events import Event
from swarm_mcp.agents.harness.outcome import BEGINS, reason_in
from swarm_mcp.agents.harness.query import YOLO, Query, parse_object
from swarm_mcp.agents.harness.servers import HiddenValues, words_of
from swarm_mcp.installation import coordinator_command

ASKING = ("default", "read-only")  # ids of session modes with a question before each write
GRACE_SECONDS = "3"
_STOPPED = {"max_turn_requests": outcome.BUDGET, "max_tokens": outcome.CONTEXT_OVERFLOW}


class Acp(HarnessAdapter):
    """The harness ``acp``."""

    name = "acp"
    label = "Any agent that speaks ACP"
    example = "gemini --acp"
    instructions = "Name the agent's command: swarm-mcp worker run --harness acp --command 'gemini --acp'"
    session_pattern = r"[0-9A-Za-z][0-9A-Za-z_.:-]{0,199}"
    capabilities = Capabilities(resume=True, mcp=True, client_tools=True, streaming_tokens=True, permissions=True)
    doc = """\
Runs one turn of an agent that speaks the Agent Client Protocol on its standard streams, behind `swarm-mcp acp`: a write
that the agent asks for is checked against locks, and refused with the reason.
Use when the agent has no adapter of its own and speaks the protocol.
Do not use when the agent has an adapter: its costs, modes, model and system prompt are then known. A write that the
agent makes without asking is not checked.
Modes: edit (default) allows reading and edits of files of its folder, but hidden ones; anything else is refused, or
decided by on_permission from Python. yolo (dangerous) allows all that the agent asks for; locks still hold.
read-only is refused.
Settings: command (required; SWARM_HARNESS_ACP), mode (edit), mcp_servers, resume_session_id, additional_args, env,
timeout_seconds (0: none), grace_seconds (15)."""

    def launch(self, query: Query, folder: Path) -> Launch:
        self.require_command(query.command)
        hidden = HiddenValues()
        agent = [*query.command, *query.additional_args]
        settings = {
            "argv": [*coordinator_command(), "acp", "--grace", GRACE_SECONDS, "--", *agent],
            "cwd": query.cwd,
            "session": query.resume_session_id,
            "servers": [_server(name, query, hidden) for name in query.mcp_servers if name != PERMISSIONS],
            "modes": ASKING,
            "allows_all": query.mode == YOLO,
        }
        argv, secrets = bridged("acp", folder, query, settings)
        return Launch(argv, {**hidden.env, **secrets}, query.prompt)

    def parse(self, line: str, state: dict[str, Any]) -> list[Event]:
        told = parse_object(line)
        kind = told.get("type")
        if kind == "session":
            return [events.session_init(str(told.get("id")))]
        if kind == "update":
            return _updated(parse_object(told.get("update")), state)
        if kind == bridge.REFUSED:
            return [refusal_in(told)]
        if kind == "end":
            said = _said(state)  # first: it gathers the words of the result
            reason = told.get("reason")
            if reason == "end_turn":
                result = events.result(state.get("words"))
            else:
                words = str(told.get("error") or f"the agent ended its turn: {reason}")
                lost = outcome.SESSION_NOT_FOUND if told.get("is_lost") else outcome.UNKNOWN
                code = _STOPPED.get(str(reason)) or outcome.code_of(words) or lost
                result = events.result(None, True, code, error_message=words)
            return [*said, result]
        return []

    def finish(self, state: dict[str, Any]) -> list[Event]:
        return _said(state)


def _server(name: str, query: Query, hidden: HiddenValues) -> dict[str, Any]:
    """Return a server in the protocol's form, with names of variables for its values."""
    server = query.mcp_servers[name]
    values = hidden.names_in(name, server)
    listed = [{"name": key, "value": variable} for key, variable in values.items()]
    if server.url:
        return {"type": "http", "name": name, "url": server.url, "headers": listed}
    command, *args = words_of(server)
    return {"name": name, "command": command, "args": args, "env": listed}


def _updated(update: dict[str, Any], state: dict[str, Any]) -> list[Event]:
    """Return the events of an update of the session. Pieces of text are joined until another update comes."""
    kind = str(update.get("sessionUpdate"))
    if kind in ("tool_call", "tool_call_update"):
        return [*_said(state), *_called(update, state)]
    if kind not in ("agent_message_chunk", "agent_thought_chunk"):
        return [events.custom(f"acp.{kind}", update)]
    text = _text(update.get("content"))
    if text.strip().startswith(BEGINS):  # `swarm-mcp acp` shows it to people
        return [_denied(text.strip(), "")]
    is_thought = kind == "agent_thought_chunk"
    found = []
    if state.get("is_thought") != is_thought:
        found = _said(state)
    state["is_thought"], state["pieces"] = is_thought, state.get("pieces", "") + text
    if text and not is_thought:
        found.append(events.custom("acp.text_delta", {"delta": text}))
    return found


def _called(call: dict[str, Any], state: dict[str, Any]) -> list[Event]:
    """Return the start of a tool call once its arguments are known, and its end."""
    call_id, status = str(call.get("toolCallId")), call.get("status")
    begun, ended, found = state.setdefault("begun", set()), state.setdefault("ended", set()), []
    is_over = status in ("completed", "failed")
    name = name_of(call)
    if call_id in ended:
        return []  # some agents tell the end twice
    if call_id not in begun and (is_over or status == "in_progress" or call.get("rawInput")):
        begun.add(call_id)
        found.append(events.tool_start(call_id, name, args_of(call)))
    if is_over:
        ended.add(call_id)
        raw = call.get("rawOutput")
        text = _text(call.get("content")) or _text(raw) or (raw and json.dumps(raw, ensure_ascii=False)) or ""
        found.append(events.tool_end(call_id, name, text, status == "failed"))
        if status == "failed" and reason_in(text):
            found.append(_denied(reason_in(text), name))
    return found


def _denied(words: str, call: str) -> Event:
    return events.custom("lock_denied", {"message": words, "call": call, "harness": Acp.name})


def _said(state: dict[str, Any]) -> list[Event]:
    """Return the agent's words or thoughts since its last event, as one message."""
    text = state.pop("pieces", "")
    if not text.strip():
        return []
    if state.get("is_thought"):
        return [events.message("assistant", text, thinking=True)]
    state["words"] = text
    return [events.message("assistant", text)]


def _text(value: object) -> str:
    """Return the text of content: a text, a block, or a list of blocks; pictures have an empty one."""
    if isinstance(value, list):
        return "\n".join(filter(None, (_text(one) for one in value if not isinstance(one, list))))
    if isinstance(value, dict) and value.get("type") == "diff":
        return f"{value.get('path')} is changed"
    for name in ("content", "text"):
        if isinstance(value, dict):
            value = value.get(name, value)
    return value if isinstance(value, str) else ""
