"""The text that a shell tool runs, and the patch in it that its client applies without a shell."""

import os

from swarm_hook_core.config import SHELL_TOOLS

PATCH_MARKER = "*** Begin Patch"


def shell_text(tool: str, tool_input: object) -> str:
    """Return the shell text that this call runs, empty if it runs no shell."""
    if tool not in SHELL_TOOLS:
        return ""
    if isinstance(tool_input, dict):
        command = tool_input.get("command", tool_input.get("cmd"))
    else:
        command = tool_input
    if isinstance(command, list) and all(isinstance(word, str) for word in command):
        import shlex

        # argv of a shell that is given its text, as older clients have it
        if len(command) == 3 and command[1] in ("-c", "-lc"):
            return str(command[2])
        return shlex.join(command)
    if isinstance(command, str):
        return command
    return ""


def patched(tool: str, tool_input: object, cwd: str) -> list[tuple[str, str, str]]:
    """Return ``(folder, path as spelled, how)`` of each file of the patch that a shell tool applies itself, in order.

    So does Codex's, without a shell; ``shell`` finds all other writes of a command. `how`: `EDIT`, .... Raises
    ValueError for a patch that cannot be read.
    """
    command = shell_text(tool, tool_input)
    if PATCH_MARKER not in command:
        return []
    from swarm_hook_core.patch import codex_patch, patch_changes

    folder, text = codex_patch(command) or (None, "")
    if not text:
        return []
    if folder:
        cwd = os.path.join(cwd, folder)  # Codex takes it as it stands: `~` and `$` are not expanded here either
    return [(cwd, path, how) for path, how in patch_changes(text)]
