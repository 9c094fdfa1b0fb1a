"""Calls without names of files: the text that a shell tool runs, a patch in it, and the effects of any such call.

Loaded only if another session holds a lock, or has written something in the same repository.
"""

from __future__ import annotations

import os
import re
from typing import Any

from swarm_hook_core.config import OPAQUE_TOOLS, SHELL_TOOLS
from swarm_hook_core.hooks import ToolCall

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_hook_core.shell.model import Effects

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
        import shlex

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


def effects_of(call: ToolCall) -> Effects | None:
    """Return the Effects of such a call, as far as they can be told beforehand; None if it writes nothing."""
    from swarm_hook_core.shell.model import Effects, Guess

    command = shell_text(call.tool, call.input)
    effects: Effects | None
    if command:
        from swarm_hook_core import shell

        effects = shell.effects_of(command, call.folder)
    elif call.tool in OPAQUE_TOOLS:
        effects = Effects()
        effects.guesses.append(Guess(f"a {call.client_tool} command", call.folder))
    else:
        from swarm_hook_core.mcp_writers import effects_of_tool

        effects = effects_of_tool(call.tool, call.input, call.folder)
    if call.is_cut:
        effects = effects or Effects()
        effects.guesses.append(Guess(f"the rest of a long {call.client_tool} call", call.folder))
    return effects


# Several commands of one call, which a client runs at the same time and each by itself, as one text for a shell.

_HEREDOC = r"""(?<!<)<<-?\s*(?:"([^"]+)"|'([^']+)'|([A-Za-z0-9_./-]+))"""


def one_text(commands: list[Any]) -> str:
    """Return one text with the effect of `commands`: texts for a shell, or ``{command, args}`` to run without one.

    Texts from one that begins a heredoc to the one that ends it are a single command. Values of any other kind are left
    out.
    """
    import shlex

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
            begun = re.search(_HEREDOC, command)
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
