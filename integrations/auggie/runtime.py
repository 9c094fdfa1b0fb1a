"""Auggie: the tools that write files, and its payloads."""

from __future__ import annotations

from typing import Any

from swarm_hook_core import REMOVE
from swarm_hook_core.config import Dialect, RuntimeConfig, in_own_folder, patch_or_path, plain_words

_GOES_ON = ("Process launched with", "Command may still be running")
_one_or_patch = patch_or_path("input", "path", whole="file_content")


def extract_changes(tool_input: Any) -> list[tuple[str, str]]:
    """Return ``(path, how)`` of each file of a call."""
    from os.path import expanduser

    removed = tool_input.get("file_paths") if isinstance(tool_input, dict) else None
    if isinstance(removed, list):
        found = [(path, REMOVE) for path in removed if isinstance(path, str)]
    else:
        found = _one_or_patch(tool_input)
    return [(expanduser(path) if path.startswith("~/") else path, how) for path, how in found]


def _amended(payload: dict[str, Any]) -> dict[str, Any]:
    """Say where the session works, what came of a call, and the server of a tool: its name ends with that."""
    roots, name = payload.get("workspace_roots"), payload.get("tool_name")
    error, output = payload.get("tool_error"), payload.pop("tool_output", None)
    folders = [root for root in roots if isinstance(root, str)] if isinstance(roots, list) else []
    if folders:
        payload["cwd"] = folders[0]
    if payload.get("hook_event_name") == "PostToolUse":
        payload["tool_response"] = output
        if isinstance(output, str) and output.startswith(_GOES_ON):
            payload["tool_response"] = {"backgroundTaskId": "background"}
        elif error:
            payload.update(hook_event_name="PostToolUseFailure", error=error)
    if payload.get("is_mcp_tool") is True and isinstance(name, str) and "_" in name:
        payload["tool_name"] = _of_server(name)
    return in_own_folder(payload)


def _of_server(name: str) -> str:
    """Return ``mcp__server__tool``: the server's name may have the sign between both in it."""
    from swarm_hook_core.mcp_writers import kind_of

    words = name.split("_")
    pairs = [("_".join(words[at:]), "_".join(words[:at])) for at in range(len(words) - 1, 0, -1)]
    names = [f"mcp__{server}__{tool}" for server, tool in pairs]
    return next((one for one in names if kind_of(one) not in ("", "unknown")), names[0])


RUNTIME = RuntimeConfig(
    runtime_name="auggie",
    env_prefix="AUGGIE",
    scratch_dir_name="swarm-auggie",
    write_tools={"save-file", "str-replace-editor", "remove-files", "apply_patch"},
    extract_changes=extract_changes,
    harmless_tools={"add_tasks", "update_tasks", "reorganize_tasklist"},
    dialect=Dialect(
        fields={"session_id": "conversation_id", "prompt": "user_prompt"},
        tools={"launch-process": "Bash"},
        events={
            "SessionStart": "SessionStart", "PromptSubmit": "UserPromptSubmit", "PreToolUse": "PreToolUse",
            "PostToolUse": "PostToolUse", "Stop": "Stop", "SessionEnd": "SessionEnd",
        },
        amend=_amended,
        words=lambda event, text, for_user: plain_words("PostToolUse", text),
        unheard=lambda event, source: event not in ("PostToolUse", "PostToolUseFailure"),
    ),
)  # fmt: skip
