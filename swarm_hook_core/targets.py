"""The texts that a shell tool runs: one, or several at the same time; and a patch in them."""

from __future__ import annotations

import os
import re
import shlex
from typing import Any

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


# Several commands of one call, which a client runs at the same time and each by itself, as one text for a shell.

_HEREDOC = re.compile(r"""(?<!<)<<-?\s*(?:"([^"]+)"|'([^']+)'|([A-Za-z0-9_./-]+))""")


def one_text(commands: list[Any]) -> str:
    """Return one text with the effect of `commands`: texts for a shell, or ``{command, args}`` to run without one.

    Texts from one that begins a heredoc to the one that ends it are a single command. Values of any other kind are left
    out.
    """
    texts = []
    for command in _whole(commands):
        if isinstance(command, dict):
            words = [command.get("command"), *(command.get("args") or [])]
            command = shlex.join(word for word in words if isinstance(word, str))
        if isinstance(command, str):
            texts.append(command)
    if len(texts) == 1:
        return texts[0]
    return "\n".join(f"bash -c {shlex.quote(text)}" for text in texts)


def _whole(commands: list[Any]) -> list[Any]:
    """`commands` with each heredoc in one piece."""
    found, rest = [], list(commands)
    while rest:
        command = rest.pop(0)
        if isinstance(command, str):
            begun = _HEREDOC.search(command)
        else:
            begun = None
        if begun:
            ends = [word for word in begun.groups() if word]
        else:
            ends = []
        lines: list[Any] = []
        for line in rest if ends else ():
            if not isinstance(line, str):
                break
            lines.append(line)
            if line.strip() in ends:
                command = "\n".join([command, *lines])
                del rest[: len(lines)]
                break
        found.append(command)
    return found
