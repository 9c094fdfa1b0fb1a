"""Cursor: the tools that write files, and the forms of payloads and answers, from its documentation.

It could not be run here. Payloads that others have published fill the gaps of the documentation.
"""

from __future__ import annotations

import os
from typing import Any

from swarm_hook_core import EDIT, REMOVE, REPLACE
from swarm_hook_core.config import Dialect, RuntimeConfig, changes_in_patch, paths_under_keys

_named = paths_under_keys("file_path", "path", "target_file", "target_notebook", "notebook_path")


def extract_changes(tool_input: Any) -> list[tuple[str, str]]:
    """Return ``(path, how)`` of each file of a call; all that these tools get tells them apart."""
    try:
        path = _named(tool_input)[0]
    except ValueError:  # a patch instead of a path
        return changes_in_patch(tool_input)
    if len(tool_input) == 1:
        return [(path, REMOVE)]
    whole = "old_string" not in tool_input and ("content" in tool_input or "contents" in tool_input)
    return [(path, REPLACE if whole else EDIT)]


def _amended(payload: dict[str, Any]) -> dict[str, Any]:
    """Say where the session works, and where its command runs: hooks are started in Cursor's own folder."""
    roots, given = payload.get("workspace_roots"), payload.get("tool_input")
    root = ""
    if isinstance(roots, list):
        root = next((one for one in roots if isinstance(one, str) and one), "")
    root = root or os.environ.get("CURSOR_PROJECT_DIR", "")
    if not isinstance(given, dict):
        given = {}
    folders = (payload.get("cwd"), given.get("working_directory"), given.get("cwd"))
    payload["cwd"] = os.path.join(root, next((one for one in folders if isinstance(one, str) and one), ""))
    return payload


def _denial(event: str, reason: str) -> dict[str, Any]:
    # The model was seen to get the words for the user. The documentation names the other ones.
    return {"permission": "deny", "user_message": reason, "agent_message": reason}


def _words(event: str, text: str, for_user: str = "") -> dict[str, Any]:
    asked = {}
    if event == "UserPromptSubmit":
        asked = {"continue": True}
    return {**asked, "additional_context": text}


RUNTIME = RuntimeConfig(
    runtime_name="cursor",
    env_prefix="CURSOR",
    scratch_dir_name="swarm-cursor",
    write_tools="Write Edit MultiEdit StrReplace EditNotebook Delete ApplyPatch".split(),
    extract_changes=extract_changes,
    # The last are our own server's: Cursor does not name the server of a tool.
    harmless_tools="TodoWrite UpdateCurrentStep"
    " MCP:update_task MCP:kv_append MCP:kv_delete MCP:kv_set MCP:remove_instance".split(),
    dialect=Dialect(
        fields={"session_id": "conversation_id"},
        tools={"Shell": "Bash"},
        events={
            "sessionStart": "SessionStart", "beforeSubmitPrompt": "UserPromptSubmit", "preToolUse": "PreToolUse",
            "postToolUse": "PostToolUse", "postToolUseFailure": "PostToolUseFailure", "stop": "Stop",
            "sessionEnd": "SessionEnd",
        },
        amend=_amended,
        denial=_denial,
        words=_words,
    ),
)  # fmt: skip
