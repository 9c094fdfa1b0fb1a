"""The files that a tool call names."""

import os

from swarm_hook_core.config import SHELL_TOOLS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from swarm_hook_core.config import RuntimeConfig

PATCH_MARKER = "*** Begin Patch"


def shell_text(tool: str, tool_input: object) -> str:
    """Return the shell text that this call runs, empty if it runs no shell."""
    if tool not in SHELL_TOOLS:
        return ""
    command = _command_in(tool_input)
    if isinstance(command, list) and all(isinstance(word, str) for word in command):
        import shlex

        # argv of a shell that is given its text, as older clients have it
        if len(command) == 3 and command[1] in ("-c", "-lc"):
            return str(command[2])
        return shlex.join(command)
    if isinstance(command, str):
        return command
    return ""


def write_targets(config: "RuntimeConfig", tool: str, tool_input: object, cwd: str) -> list[tuple[str, str]]:
    """``(folder, path as spelled)`` of every file this call would write, in order.

    Raises ValueError where the call is one of the runtime's write tools but its paths cannot be
    read. A tool that writes nothing we know of gives an empty list.
    """
    if tool in config.write_tools:
        return [(cwd, path) for path in config.extract_paths(tool_input)]
    command = shell_text(tool, tool_input)
    if PATCH_MARKER not in command:
        return []
    from swarm_hook_core.patch import patch_paths

    folder, text = _patch_of_codex(command, cwd)
    if text:
        return [(folder, path) for path in patch_paths(text)]
    return []


def changes(config: "RuntimeConfig", tool: str, tool_input: object, cwd: str) -> list[tuple[str, str, str]]:
    """``(folder, path as spelled, how)`` of the same files, in order; `how`: `EDIT`, ....

    Raises ValueError as `write_targets` does.
    """
    if tool in config.write_tools:
        return [(cwd, path, how) for path, how in config.changes_of(tool, tool_input)]
    command = shell_text(tool, tool_input)
    if PATCH_MARKER not in command:
        return []
    from swarm_hook_core.patch import patch_changes

    folder, text = _patch_of_codex(command, cwd)
    if text:
        return [(folder, path, how) for path, how in patch_changes(text)]
    return []


def absolute_paths(config: "RuntimeConfig", tool: str, tool_input: object, cwd: str) -> list[str]:
    """The same as absolute paths without repeats; empty also where the input cannot be read."""
    try:
        targets = write_targets(config, tool, tool_input, cwd)
    except ValueError:  # the rule about locks raises it
        return []
    return list(dict.fromkeys(os.path.normpath(os.path.join(folder, path)) for folder, path in targets))


def _command_in(tool_input: object) -> "Any":
    """Return the command of a shell tool, text or argv, from any place that a client puts it in."""
    if isinstance(tool_input, dict):
        return tool_input.get("command", tool_input.get("cmd"))
    return tool_input


def _patch_of_codex(command: str, cwd: str) -> tuple[str, str]:
    """Return ``(folder, text)`` of the patch that Codex's shell tool applies itself, without a shell; empty for others.

    ``shell`` finds all other writes of a command.
    """
    from swarm_hook_core.patch import codex_patch

    folder, text = codex_patch(command) or (None, "")
    # Codex takes the folder as it stands: `~` and `$` are not expanded here either.
    return (os.path.join(cwd, folder) if folder else cwd), text
