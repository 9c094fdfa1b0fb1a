"""Kimi Code: the tools that write files, how it reads their paths, and how it spells payloads."""

from __future__ import annotations

from typing import Any

from swarm_hook_core import EDIT, REPLACE
from swarm_hook_core.config import Dialect, RuntimeConfig, in_own_folder, paths_under_keys

_named = paths_under_keys("path")


def extract_changes(tool_input: Any) -> list[tuple[str, str]]:
    """Return ``(path, how)`` of a call. ``Write`` has the whole content, unless its mode is to append."""
    from os.path import expanduser

    paths, how = _named(tool_input), EDIT
    if "content" in tool_input and tool_input.get("mode") != "append":
        how = REPLACE
    return [(expanduser(path) if path.startswith("~/") else path, how) for path in paths]


def _amended(payload: dict[str, Any]) -> dict[str, Any]:
    """Say the rest in the core's words: a prompt's parts, results, a command's folder."""
    given, prompt, error = payload.get("tool_input"), payload.get("prompt"), payload.get("error")
    if isinstance(prompt, list):
        payload["prompt"] = "\n".join(str(part.get("text", "")) for part in prompt if isinstance(part, dict))
    if isinstance(error, dict):
        payload["error"] = str(error.get("message", ""))
    if payload.get("tool_name") == "Bash" and isinstance(given, dict) and given.get("run_in_background") is True:
        payload["tool_response"] = {"backgroundTaskId": "background"}  # its end is told as soon as it has been started
    return in_own_folder(payload)


RUNTIME = RuntimeConfig(
    runtime_name="kimi",
    env_prefix="KIMI",
    scratch_dir_name="swarm-kimi",
    write_tools={"Write", "Edit"},
    extract_changes=extract_changes,
    harmless_tools={"TodoList", "CreateGoal", "UpdateGoal", "SetGoalBudget", "CronCreate", "CronDelete"},
    dialect=Dialect(
        fields={"tool_use_id": "tool_call_id", "tool_response": "tool_output"},
        amend=_amended,
        words=lambda event, text, for_user: {"message": text},
        unheard=lambda event, source: event != "UserPromptSubmit",  # elsewhere it looks for a denial alone
    ),
)
