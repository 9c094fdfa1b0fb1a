"""Cline: the tools that write files, and the commands of one call of its shell tool."""

from __future__ import annotations

from typing import Any

from swarm_hook_core import EDIT
from swarm_hook_core.config import PLUGIN, Dialect, RuntimeConfig, paths_under_keys, server_and_tool

_named = paths_under_keys("path")


def extract_changes(tool_input: Any) -> list[tuple[str, str]]:
    """Return ``(path, how)`` of each file that a call of `editor` or `apply_patch` changes."""
    if isinstance(tool_input, dict):
        patch = tool_input.get("input")
    else:
        patch = tool_input
    if isinstance(patch, str):
        from swarm_hook_core.patch import changes_by_headers

        return changes_by_headers(patch)
    return [(path, EDIT) for path in _named(tool_input)]


def _amended(payload: dict[str, Any]) -> dict[str, Any]:
    """Return `payload` with the commands of a call of the shell tool where the core looks for them."""
    if payload.get("tool_name") != "Bash":
        return payload
    return {**payload, "tool_input": {"command": shell_text(payload.get("tool_input"))}}


def shell_text(tool_input: Any) -> str:
    """Return the commands of a call as one text.

    Cline runs each in a shell of its own that begins in the session's folder. They come as texts or as
    ``{command, args}``, one or a list, under ``commands`` or in any other form that models are known to write.
    """
    from swarm_hook_core.opaque_calls import one_text

    given = tool_input
    if isinstance(given, dict) and "args" not in given:
        given = next((given[key] for key in ("commands", "command", "cmd") if key in given), "")
    return one_text(given if isinstance(given, list) else [given])


RUNTIME = RuntimeConfig(
    runtime_name="cline",
    env_prefix="CLINE",
    scratch_dir_name="swarm-cline",
    write_tools={"editor", "apply_patch"},
    extract_changes=extract_changes,
    dialect=Dialect(tools={"run_commands": "Bash"}, mcp_tool=server_and_tool, amend=_amended),
    merges=PLUGIN,
)
