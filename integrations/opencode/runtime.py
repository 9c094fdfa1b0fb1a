"""OpenCode: the tools that write files, and the grammar of its patches."""

from swarm_hook_core.change import EDIT, REMOVE, REPLACE
from swarm_hook_core.config import Dialect, RuntimeConfig

# What OpenCode 1.18 was seen to read: a header begins its line, and blanks around the path do not count. Where that
# refuses a patch, or reads no header (behind the end, amid a file's text), a path too many is named, never one too few.
_HEADERS = {
    "*** Add File:": REPLACE, "*** Update File:": EDIT, "*** Delete File:": REMOVE, "*** Move to:": REPLACE,
}  # fmt: skip
_MOVE = "*** Move to:"
# What JavaScript trims; Python's own strip() would take \x1c..\x1f and \x85 off a file name.
_BLANKS = (
    " \t\n\x0b\x0c\r\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f"
    "\u205f\u3000\ufeff"
)


def extract_changes(tool_input):
    """Return ``(path, how)`` of each file that a call of `write`, `edit` or `apply_patch` changes."""
    if not isinstance(tool_input, dict):
        raise ValueError("tool input is not an object")
    patch, path = tool_input.get("patchText"), tool_input.get("filePath")
    if isinstance(patch, str):
        return _changes_in(patch)
    if not (isinstance(path, str) and path.strip()):
        raise ValueError("no path in tool input")
    return [(path, REPLACE if "content" in tool_input else EDIT)]


def extract_paths(tool_input):
    return [path for path, _how in extract_changes(tool_input)]


def _changes_in(patch):
    changes = {}
    updated = ""
    for line in patch.split("\n"):
        header = line[: line.find(":") + 1]
        path = line[len(header) :].strip(_BLANKS)
        if header not in _HEADERS or not path:
            continue
        if header == _MOVE and updated != path:
            changes[updated] = REMOVE
        changes[path] = _HEADERS[header]
        updated = path
    changes.pop("", None)
    if not changes:
        raise ValueError("no file is named in the patch")
    return list(changes.items())


RUNTIME = RuntimeConfig(
    runtime_name="opencode",
    env_prefix="OPENCODE",
    scratch_dir_name="swarm-opencode",
    write_tools={"write", "edit", "apply_patch"},
    replaces={"write"},
    extract_paths=extract_paths,
    extract_changes=extract_changes,
    dialect=Dialect(tools={"bash": "Bash"}),
)
