"""Gemini CLI: the tools that write files, where it finds their paths, and its words for payloads and answers."""

from __future__ import annotations

from typing import Any

from swarm_hook_core.config import BESIDE, Dialect, RuntimeConfig, in_own_folder, paths_under_keys

_named = paths_under_keys("file_path")


def extract_paths(tool_input: Any) -> list[str]:
    """Return the paths that the client may open: it mends those that it is given."""
    paths = _named(tool_input)
    if all(path[0] == "/" and "%" not in path and "\0" not in path for path in paths):
        return paths
    from swarm_hook_core.paths import opened

    return [place for path in paths for place in opened(path, is_sought="old_string" in tool_input)]


def amend(payload: dict[str, Any]) -> dict[str, Any]:
    """Name the server of another server's tool, because its name is cut to fit, and the folder of a shell command."""
    server = payload.get("mcp_context")
    if isinstance(server, dict):
        return {**payload, "tool_name": f"mcp__{server.get('server_name')}__{server.get('tool_name')}"}
    return in_own_folder(payload)


RUNTIME = RuntimeConfig(
    runtime_name="gemini",
    env_prefix="GEMINI",
    scratch_dir_name="swarm-gemini",
    write_tools={"write_file", "replace"},
    replaces={"write_file"},
    extract_paths=extract_paths,
    harmless_tools={"write_todos", "update_topic", "tracker_create_task", "tracker_update_task"},
    dialect=Dialect(
        tools={"run_shell_command": "Bash"},
        events={
            "BeforeAgent": "UserPromptSubmit", "BeforeTool": "PreToolUse", "AfterTool": "PostToolUse",
            "AfterAgent": "Stop",
        },
        amend=amend,
        denial=lambda event, reason: {"decision": "deny", "reason": reason},
        # At a start Gemini puts the words before the first prompt: a prompt such as /swarm would no longer be a
        # command.
        unheard=lambda event, source: event in ("SessionStart", "PreToolUse"),
        replacement=lambda event, given, words: {
            "hookSpecificOutput": {"hookEventName": "BeforeTool", "tool_input": given}
        },
    ),
    merges=BESIDE,
    merge_versions=("0.61.0",),
)  # fmt: skip
