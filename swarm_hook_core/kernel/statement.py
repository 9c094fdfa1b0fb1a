"""Codex: a statement before the command has its shell look for the plan.

The command itself stays unchanged after it, so that the client's rules still see it; ``bash -c '...'`` around it would
hide it from them. Approvals and forbidding rules were seen to hold with such a statement in certain releases. In other
releases no statement is added.
"""

from __future__ import annotations

import os
from typing import Any

from swarm_hook_core import client_release
from swarm_hook_core.config import RuntimeConfig
from swarm_hook_core.hooks import ToolCall
from swarm_hook_core.kernel.plans import in_quotes, kernel_dir
from swarm_hook_core.kernel.rules import may_allow
from swarm_hook_core.state import PLAIN
from swarm_hook_core.targets import shell_text

SHELLS = ("bash", "zsh")  # shells that know their own command text, and can run it again


def may_precede(config: RuntimeConfig, call: ToolCall) -> bool:
    """Return True if a statement may be put before this call's command."""
    command = shell_text(call.tool, call.input)
    if not isinstance(call.input, dict) or not isinstance(call.input.get("command"), str) or not command.strip():
        return False
    if "apply_patch" in command or "applypatch" in command:
        return False  # Codex applies a patch itself if it finds one in a command
    if _shell() not in SHELLS or client_release.client_version(config) not in config.kernel_versions:
        return False

    return not may_allow(command, call.folder)


def preceded(tool_input: dict[str, Any], entry: str) -> dict[str, Any]:
    """Return the input of a call with the statement before its command."""
    return {**tool_input, "command": f". {in_quotes(entry)}; {tool_input['command']}"}


def without(payload: dict[str, Any]) -> dict[str, Any]:
    """Return `payload` with its command as it was before the statement was added; ``Dialect.amend`` of Codex.

    Only for a call that has ended: before that the command is all from the model, and all of it is checked.
    """
    tool_input = payload.get("tool_input")
    if not isinstance(tool_input, dict) or payload.get("hook_event_name") == "PreToolUse":
        return payload
    command, ours = tool_input.get("command"), ". " + in_quotes(os.path.join(kernel_dir(), ""))[:-1]
    if not isinstance(command, str) or not command.startswith(ours):
        return payload
    name, mark, rest = command[len(ours) :].partition(".sh'; ")
    if not mark or name.count("/") != 1 or set(name) - PLAIN - set("_/"):
        return payload
    return {**payload, "tool_input": {**tool_input, "command": rest}}


def _shell() -> str:
    """Return the name of the shell that runs this user's commands."""
    import pwd

    try:
        return os.path.basename(pwd.getpwuid(os.getuid()).pw_shell)
    except KeyError:
        return os.path.basename(os.environ.get("SHELL", ""))  # a user without an account entry
