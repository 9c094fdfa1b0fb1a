"""Reading and changing files."""

from __future__ import annotations

import os

LONGEST = 2 * 1024 * 1024  # bytes of a file that is read
MOST_ENTRIES = 2000


class CallRefused(Exception):
    """The call cannot be carried out; the message tells the model why."""


def run(name: str, given: dict, cwd: str) -> tuple[str, bool]:
    """Carry out one of the tools below: ``(result, is_error)``."""
    try:
        return _TOOLS[name](given, cwd), False
    except CallRefused as refusal:
        return f"error: {refusal}", True
    except OSError as error:
        return f"error: {error.strerror or error}: {error.filename or given.get('path')}", True


def write_file(given: dict, cwd: str) -> str:
    """Create or replace a file."""
    path = _path(given, cwd)
    data = _bytes(given, "content")
    folder = os.path.dirname(path)
    if folder:
        os.makedirs(folder, exist_ok=True)
    with open(path, "wb") as file:
        file.write(data)
    return f"wrote {len(data)} bytes to {path}"


def str_replace(given: dict, cwd: str) -> str:
    """Make one replacement."""
    path = _path(given, cwd)
    _store(path, _replaced(_load(path), _bytes(given, "old_str"), _bytes(given, "new_str"), path))
    return f"replaced in {path}"


def edit_file(given: dict, cwd: str) -> str:
    """Make several replacements, all or none."""
    path, edits = _path(given, cwd), given.get("edits")
    if not isinstance(edits, list) or not edits:
        raise CallRefused("edits must be a list of {old_str, new_str}")
    content = _load(path)
    for number, edit in enumerate(edits, 1):
        if not isinstance(edit, dict):
            raise CallRefused(f"edit {number} must be {{old_str, new_str}}")
        try:
            content = _replaced(content, _bytes(edit, "old_str"), _bytes(edit, "new_str"), path)
        except CallRefused as refusal:
            raise CallRefused(f"edit {number}: {refusal}; nothing was changed") from None
    _store(path, content)
    return f"made {len(edits)} edits in {path}"


def read_file(given: dict, cwd: str) -> str:
    """Return a file's lines, numbered."""
    path = _path(given, cwd)
    data = _load(path)
    if b"\0" in data[:8192]:
        raise CallRefused(f"{path} is no text ({len(data)} bytes)")
    lines = data.decode("utf-8", "replace").split("\n")
    lines = lines[:-1] if lines[-1] == "" else lines
    first, last = _line(given, "start_line", 1), _line(given, "end_line", len(lines))
    shown = lines[max(first, 1) - 1 : last]
    if lines and not shown:
        raise CallRefused(f"{path} has {len(lines)} lines")
    return "\n".join(f"{number:>6}\t{line}" for number, line in enumerate(shown, max(first, 1)))


def list_dir(given: dict, cwd: str) -> str:
    """Return what is in a folder."""
    path = _path({"path": given.get("path") or "."}, cwd)
    with os.scandir(path) as entries:
        names = sorted(entry.name + ("/" if entry.is_dir() else "") for entry in entries)
    more = [f"[{len(names) - MOST_ENTRIES} more]"] if len(names) > MOST_ENTRIES else []
    return "\n".join(names[:MOST_ENTRIES] + more) or "(empty)"


_TOOLS = {
    "write_file": write_file,
    "str_replace": str_replace,
    "edit_file": edit_file,
    "read_file": read_file,
    "list_dir": list_dir,
}


def _path(given: dict, cwd: str) -> str:
    path = given.get("path")
    if not isinstance(path, str) or not path.strip() or "\0" in path:
        raise CallRefused("path must be the name of a file")
    return os.path.normpath(os.path.join(cwd, os.path.expanduser(path)))


def _bytes(given: dict, name: str) -> bytes:
    value = given.get(name)
    if not isinstance(value, str):
        raise CallRefused(f"{name} must be a text")
    return value.encode("utf-8", "surrogatepass")


def _line(given: dict, name: str, default: int) -> int:
    value = given.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else default


def _load(path: str) -> bytes:
    if os.path.isdir(path):
        raise CallRefused(f"{path} is a folder")
    if not os.path.isfile(path):  # a pipe of that name would keep us waiting
        raise CallRefused(f"file not found: {path}")
    if os.path.getsize(path) > LONGEST:
        raise CallRefused(f"{path} is larger than {LONGEST} bytes")
    with open(path, "rb") as file:
        return file.read()


def _store(path: str, content: bytes) -> None:
    with open(path, "wb") as file:
        file.write(content)


def _replaced(content: bytes, old: bytes, new: bytes, path: str) -> bytes:
    if not old:
        raise CallRefused("old_str must not be empty")
    count = content.count(old)
    if count != 1:
        raise CallRefused(f"old_str not found in {path}" if not count else f"old_str occurs {count} times in {path}")
    return content.replace(old, new)
