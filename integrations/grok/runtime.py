"""Grok Build: the tools that write files, how it reads their paths, and how it spells payloads."""

from __future__ import annotations

import os
from typing import Any

from swarm_hook_core.config import Dialect, RuntimeConfig, paths_under_keys, server_and_tool

# Characters that Grok takes off both ends of a path: quotation marks, and every blank of Unicode.
_EDGES = "\"'\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
_OF_AGENTS = ("PreToolUse", "PostToolUse", "PostToolUseFailure", "SubagentStop")
_TURN_ENDS = ("Stop", "StopFailure", "StopCancelled")
_named = paths_under_keys("file_path")


def extract_paths(tool_input: Any) -> list[str]:
    """Return the paths as Grok opens them. ``~`` is the home to `write`, a name like others to `search_replace`."""
    found = []
    for path in _named(tool_input):
        path = path.strip(_EDGES)
        found += [os.path.expanduser("~") + path[1:], path] if path.startswith("~/") else [path]
    return found


def _amended(payload: dict[str, Any]) -> dict[str, Any]:
    """Put calls of sub-agents, which have sessions of their own here, down to their session. Drop foreign events."""
    event, given = payload.get("hook_event_name"), payload.get("tool_input")
    if payload.get("toolInputTruncated") and isinstance(given, str):
        from swarm_hook_core.json_text import loads_cut

        given = loads_cut(given.removesuffix(" [truncated]"), ("command",))
        payload.update(tool_input=given, input_is_cut=True)
    if isinstance(given, dict) and "tool_input" in given and given.get("tool_name") == payload.get("toolName"):
        payload["tool_input"] = given["tool_input"]  # a server's tool is called through one that calls them all
    response, is_agent = payload.get("tool_response"), bool(payload.get("subagentType"))
    if isinstance(response, dict) and response.get("type") == "BackgroundTaskStarted":
        response["backgroundTaskId"] = response.get("task_id")
    if event == "Notification":
        payload["notification_type"] = payload.get("notificationType")
    if is_agent and event in _OF_AGENTS:
        child = payload.get("session_id")
        from swarm_hook_core.guests import session_by_folder

        parent = session_by_folder(child, payload.get("transcript_path"))
        if parent:
            payload.update(session_id=parent, agent_id=child)
    # A sub-agent's turns and end are not those of the session. Nor does the stop after a session's end end a turn: it
    # would bring the session back, and it alone belongs to no prompt.
    elif is_agent or (event in _TURN_ENDS and not payload.get("promptId")):
        payload["session_id"] = ""
    return payload


RUNTIME = RuntimeConfig(
    runtime_name="grok",
    env_prefix="GROK",
    scratch_dir_name="swarm-grok",
    write_tools={"write", "search_replace"},
    replaces={"write"},
    extract_paths=extract_paths,
    harmless_tools={"todo_write"},
    dialect=Dialect(
        tools={"run_terminal_command": "Bash", "monitor": "Monitor"},
        mcp_tool=server_and_tool,
        amend=_amended,
        reason_length=256,
        unheard=lambda event, source: event in ("SessionStart", "UserPromptSubmit"),
    ),  # fmt: skip
)
