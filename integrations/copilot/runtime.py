"""GitHub Copilot CLI: the tools that write files, and its two dialects.

Events wired in PascalCase come in Claude Code's words, with its names for most tools, but Copilot's keys in their
inputs; those in camelCase come in Copilot's words, without the event's name.
"""

from __future__ import annotations

import os
from typing import Any

from swarm_hook_core import EDIT, REPLACE
from swarm_hook_core.config import BESIDE, Dialect, RuntimeConfig, paths_under_keys

_named = paths_under_keys("path", "file_path")
_FIELDS = {
    "sessionId": "session_id", "toolName": "tool_name", "toolArgs": "tool_input", "agentId": "agent_id",
    "parentAgentId": "parent_agent_id", "transcriptPath": "transcript_path", "stopReason": "stop_reason",
}  # fmt: skip
_SHELLS = {"bash": "Bash", "powershell": "PowerShell"}


def extract_changes(tool_input: Any) -> list[tuple[str, str]]:
    """Return ``(path, how)`` of each file of a call. Models of OpenAI write patches, as plain texts."""
    if isinstance(tool_input, str):
        from swarm_hook_core.patch import changes_by_headers

        return changes_by_headers(tool_input)
    return [(path, REPLACE if "file_text" in tool_input else EDIT) for path in _named(tool_input)]


def _mcp_tool(name: str) -> str:
    """Copilot's ``server-tool`` as the core has it; its own tools have no dash."""
    server, dash, tool = name.partition("-")
    if dash:
        return f"mcp__{server}__{tool}"
    return ""


def _amended(payload: dict[str, Any]) -> dict[str, Any]:
    """Translate camelCase into the core's words, and put the calls of sub-agents down to their session."""
    payload.update((ours, payload[theirs]) for theirs, ours in _FIELDS.items() if theirs in payload)
    tool = payload.get("tool_name")
    if isinstance(tool, str):
        payload["client_tool"] = tool
        payload["tool_name"] = _SHELLS.get(tool) or _mcp_tool(tool) or tool
    given = payload.get("tool_input")
    if isinstance(given, dict) and given.get("mode") == "async":
        payload["tool_response"] = {"backgroundTaskId": "async"}  # its end is told as soon as it has been started
    if payload.get("source") == "new":
        payload["source"] = "startup"
    agent, parent = payload.get("agent_id"), payload.get("parent_agent_id")
    if "hook_event_name" not in payload:
        name = "Stop" if "stop_reason" in payload else ""
        if agent:
            name = f"Subagent{name or 'Start'}"
        payload["hook_event_name"] = "UserPromptSubmit" if "prompt" in payload else name
    if not agent or not isinstance(parent, str):
        return payload
    if payload["hook_event_name"] in ("UserPromptSubmit", "Stop"):
        payload["session_id"] = ""  # a sub-agent's turns are not those of the session
    else:
        payload["session_id"] = _session_of(parent, payload.get("transcript_path"))
    return payload


def _session_of(parent: str, transcript: Any) -> str:
    """Return the session of an agent that `parent` has started: a session, or another agent."""
    if transcript and isinstance(transcript, str):
        return os.path.basename(os.path.dirname(transcript))
    from swarm_hook_core.guests import session_of

    home = os.environ.get("COPILOT_HOME") or os.path.expanduser("~/.copilot")
    return session_of(parent, os.path.join(home, "session-state"))


RUNTIME = RuntimeConfig(
    runtime_name="copilot",
    env_prefix="COPILOT",
    scratch_dir_name="swarm-copilot",
    write_tools={"create", "edit", "apply_patch", "Write", "Edit", "MultiEdit"},
    replaces={"create", "Write"},
    extract_changes=extract_changes,
    harmless_tools={"write_agent", "update_todo", "TodoWrite", "store_memory"},
    dialect=Dialect(
        tools=_SHELLS,
        amend=_amended,
        # Both dialects take the flat form; only one of them takes Claude Code's, and that for a denial alone.
        denial=lambda event, reason: {"permissionDecision": "deny", "permissionDecisionReason": reason},
        words=lambda event, text, for_user: {"additionalContext": text},
        replacement=lambda event, given, words: {"modifiedArgs": given, "additionalContext": words},
    ),
    merges=BESIDE,
    merge_versions=("1.0.102",),
)
