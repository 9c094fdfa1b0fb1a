"""The text that a call will put in place of a file, and if it keeps the changes that others have made in it.

The text decides, not the number of attempts: one that has their changes in it loses nothing, also without a look at
the file. One that drops them is denied each time, until the session has looked.
"""

from __future__ import annotations

import os
from typing import Any

from swarm_hook_core import REPLACE
from swarm_hook_core.config import SHELL_TOOLS, RuntimeConfig
from swarm_hook_core.hooks import ToolCall
from swarm_hook_core.opaque_calls import effects_of
from swarm_hook_core.shell.model import Effects
from swarm_hook_core.traces import changed_lines, seen_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_hook_core.traces.meetings import Meetings

# parameters that hold the text, in tools that write whole files
_KEYS = ("content", "contents", "file_text", "new_content", "text")
_ADD = "*** Add File: "


def keeps(
    config: RuntimeConfig, call: ToolCall, effects: Effects | None, path: str, resolved: str,
    meetings: Meetings | None = None,
) -> bool:  # fmt: skip
    """Return True if the new content is known and keeps all that others have changed since the session saw the file.

    `path`: as named by the call; `resolved`: without links; `effects`: effects of a shell or MCP call, or None. Without
    `meetings`, all that is not committed counts as others' changes.
    """
    new = of_call(config, call, effects, path)
    if new is None:
        return False

    present = seen_text.present(resolved)
    if present is None:
        return False
    known = seen_text.known(meetings, resolved)
    if known.text == present:
        return known.is_seen  # else something beside the text has changed, such as the file's mode
    return changed_lines.are_kept(known.text, present, new)


def of_call(config: RuntimeConfig, call: ToolCall, effects: Effects | None, path: str) -> str | None:
    """Return the new text that a call will put in place of the file, or None if it is not known."""
    if effects is None:
        return _of_tool(config, call, path)
    return _of_script(effects, path)


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


def replaced(config: RuntimeConfig, call: ToolCall, given: object, path: str, text: str) -> object:
    """Return the input `given` of a tool with `text` as the new content of the file; None if that has no place in it.

    config, call, path  as of `of_tool`; `given`: the call's input, perhaps with other files replaced already
    """
    if isinstance(given, str):
        return _with_added(given, path, call.folder, text)
    if not isinstance(given, dict):
        return None
    if call.tool in SHELL_TOOLS:
        return _with_document(call, given, path, text)
    if call.tool in config.replaces:
        keys = [key for key in _KEYS if isinstance(given.get(key), str)]
        return {**given, keys[0]: text} if len(keys) == 1 else None
    patches = [key for key, value in given.items() if isinstance(value, str) and _ADD in value]
    patch = _with_added(given[patches[0]], path, call.folder, text) if len(patches) == 1 else None
    return {**given, patches[0]: patch} if patch is not None else None


def _with_document(call: ToolCall, given: dict[str, Any], path: str, text: str) -> object:
    """Return the input of a shell tool with `text` in the here-document that is the file's new text, or None.

    Only a quoted here-document, that is in the command once, is replaced; it goes into that file alone, or into a draft
    of it. Then the command is read again: it has to write the very text.
    """
    command = given.get("command")
    if not isinstance(command, str):
        return None
    read = effects_of(ToolCall(call.tool, given, call.session_id, call.cwd))
    before = _of_script(read, path) if read is not None else None
    if read is None or not (len(read.writes) == 1 or os.path.normpath(path) in read.copied):
        return None  # it goes into other files, too
    if not before or command.count(f"\n{before}") != 1:
        return None
    start, _, end = command.partition(f"\n{before}")
    word = end.partition("\n")[0]
    if not word.isalnum() or not any(f"<<{mark}{word}{mark}" in start.rpartition("\n")[2] for mark in ("'", '"')):
        return None
    changed = {**given, "command": f"{start}\n{text}{end}"}
    again = effects_of(ToolCall(call.tool, changed, call.session_id, call.cwd))
    is_same = again is not None and len(again.writes) == len(read.writes)
    return changed if is_same and again is not None and _of_script(again, path) == text else None


def _with_added(patch: str, path: str, folder: str, text: str) -> str | None:
    """Return the envelope with `text` in place of the one that `_added_in` returns; None if it cannot have it."""
    parts = patch.split(_ADD)
    found = [number for number, part in enumerate(parts) if number and _names(part, folder) == path]
    if len(found) != 1 or text[-1:] != "\n":
        return None  # the last line of an added file always has an end
    header, *lines = parts[found[0]].split("\n")
    after = next((number for number, line in enumerate(lines) if line[:1] != "+"), len(lines))
    added = [f"+{line}" for line in text[:-1].split("\n")]
    parts[found[0]] = "\n".join([header, *added, *lines[after:]])
    return _ADD.join(parts)


def _names(part: str, folder: str) -> str:
    """Return the path in the header that `part` of an envelope begins with."""
    return os.path.join(folder, part.partition("\n")[0].strip())


def _added_in(patch: str, path: str, folder: str) -> str | None:
    """Return the text that an apply_patch envelope gives the file with an "Add File" header; None without one."""
    parts = [part for part in patch.split(_ADD)[1:] if _names(part, folder) == path]
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
