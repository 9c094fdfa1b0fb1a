"""Letta Code: the tools that write files, and its payloads."""

from __future__ import annotations

import os
from typing import Any

from swarm_hook_core.config import Dialect, RuntimeConfig, patch_or_path

_EVENTS = "SessionStart UserPromptSubmit PreToolUse PostToolUse PostToolUseFailure Stop SessionEnd".split()


def _amended(payload: dict[str, Any]) -> dict[str, Any]:
    """Name the session: its agent, or that of the session that started this one as a sub-agent."""
    agent, parent = payload.pop("agent_id", None), os.environ.get("LETTA_PARENT_AGENT_ID", "")
    payload["session_id"] = agent or os.environ.get("LETTA_AGENT_ID", "")
    if parent and os.environ.get("LETTA_CODE_AGENT_ROLE") == "subagent":
        payload.update(session_id=parent, agent_id=agent)
    if payload["hook_event_name"] == "SessionStart":
        payload["source"] = "startup" if payload.get("is_new_session") else "resume"
    return payload


RUNTIME = RuntimeConfig(
    runtime_name="letta",
    env_prefix="LETTA",
    scratch_dir_name="swarm-letta",
    write_tools={"Write", "Edit", "MultiEdit", "ApplyPatch", "apply_patch"},
    replaces={"Write"},
    extract_changes=patch_or_path("input", "file_path", whole="content"),
    harmless_tools={"memory", "memory_apply_patch", "TaskCreate", "TaskUpdate", "TodoWrite"},
    dialect=Dialect(
        fields={"hook_event_name": "event_type", "cwd": "working_directory", "tool_use_id": "tool_call_id"},
        events={name: name for name in _EVENTS},
        amend=_amended,
        denial=lambda event, reason: {"denied": reason},
        denial_status=2,
        words=lambda event, text, for_user: {"additionalContext": text},
        unheard=lambda event, source: event == "PreToolUse",
    ),
)
