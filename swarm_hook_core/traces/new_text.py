"""The text that a call will put in place of a file, and if it keeps the uncommitted changes of the present one.

The session may have read the file with a client's tool that has no hook. If the new text contains the other's lines,
the session has seen them.
"""

from __future__ import annotations

import os

from swarm_hook_core.change import REPLACE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_hook_core.config import RuntimeConfig
    from swarm_hook_core.hooks import ToolCall
    from swarm_hook_core.shell.model import Effects

SECONDS = 0.5  # for git's answer
LONGEST = 1024 * 1024  # bytes
# parameters that hold the text, in tools that write whole files
_KEYS = ("content", "contents", "file_text", "new_content", "text")
_ADD = "*** Add File: "


def keeps(config: RuntimeConfig, call: ToolCall, effects: Effects | None, path: str, resolved: str) -> bool:
    """Return True if the new content contains all uncommitted changes of the file.

    `path`: as named by the call; `resolved`: without links; `effects`: effects of a shell or MCP call, or None.
    """
    if effects is None:
        text = _of_tool(config, call, path)
    else:
        text = _of_script(effects, path)
    return text is not None and _has_all_changes(text, resolved)


def _of_tool(config: RuntimeConfig, call: ToolCall, path: str) -> str | None:
    """Return the new text from the input of a tool that writes whole files, or None."""
    given = call.input
    if isinstance(given, str):
        return _added_in(given, path, call.folder)
    if not isinstance(given, dict):
        return None
    if call.tool in config.replaces:
        texts = [text for key in _KEYS if isinstance(text := given.get(key), str)]
        return texts[0] if len(texts) == 1 else None
    patches = [value for value in given.values() if isinstance(value, str) and _ADD in value]
    return _added_in(patches[0], path, call.folder) if len(patches) == 1 else None


def _added_in(patch: str, path: str, folder: str) -> str | None:
    """Return the text that an apply_patch envelope gives the file with an "Add File" header; None without one."""
    parts = [part for part in patch.split(_ADD)[1:] if os.path.join(folder, part.partition("\n")[0].strip()) == path]
    if len(parts) != 1:
        return None
    lines = []
    for line in parts[0].split("\n")[1:]:
        if line[:1] != "+":
            break
        lines.append(line[1:])
    return "\n".join([*lines, ""])


def _of_script(effects: Effects, path: str) -> str | None:
    """Return the new text if exactly one statement of a script writes it, or None."""
    whole = os.path.normpath(path)
    writes = [one for one in effects.writes if os.path.normpath(os.path.join(one.folder, one.path)) == whole]
    if len(writes) != 1 or writes[0].how != REPLACE:
        return None
    stream = effects.copied.get(whole) or effects.texts.get(whole)
    text: str | None = stream.text if stream is not None else None
    return text if text is not None and "\0" not in text else None


def _has_all_changes(text: str, path: str) -> bool:
    """Return True if `text` has all lines added to the file since the last commit, and none of those removed."""
    from swarm_hook_core.watching.snapshot import read

    try:
        present = _counted(read(path, LONGEST)[1].decode("utf-8", "surrogateescape"))
    except (OSError, ValueError):
        return False  # gone, too large, or not a plain file
    new, committed = _counted(text), _committed(path)
    if committed is None:
        return all(new.get(line, 0) >= count for line, count in present.items())
    before = _counted(committed)
    added = [line for line, count in present.items() if count > before.get(line, 0)]
    taken_out = [line for line, count in before.items() if count > present.get(line, 0)]
    if not added and not taken_out:
        return False  # something else has changed: the lines' order, or the file's mode
    return all(new.get(line, 0) >= present[line] for line in added) and all(
        new.get(line, 0) <= present.get(line, 0) for line in taken_out
    )


def _committed(path: str) -> str | None:
    """Return the file's text in the last commit, or None."""
    from swarm_hook_core.repository import tree_over
    from swarm_hook_core.shell.programs.git.repository import NoAnswer, Refused, Repository

    tree = tree_over(os.path.dirname(path))
    if tree is None:
        return None
    try:
        return Repository(tree.top, SECONDS).ask("cat-file", "blob", f"HEAD:{os.path.relpath(path, tree.top)}")
    except (NoAnswer, Refused):
        return None  # no answer, or not in the last commit


def _counted(text: str) -> dict[str, int]:
    """Return ``{line: number of times}``."""
    found: dict[str, int] = {}
    for line in text.splitlines():
        found[line] = found.get(line, 0) + 1
    return found
