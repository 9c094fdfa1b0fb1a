"""A project's ``.mcp.json``: our server put in, every other byte left as it is.

The file belongs to the project and to other tools. It is therefore edited as text, at the one place
where our entry belongs: key order, indentation, number spelling and unknown keys of others stay.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import NamedTuple

from swarm_hook_core.state import open_private
from swarm_mcp.errors import SwarmError

SERVERS = "mcpServers"
NAME = "swarm"
ENTRY = {"command": "swarm-mcp", "args": ["serve"]}
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class Member(NamedTuple):
    """One member of an object in a JSON text: its key, and from where to where its value stands."""

    key: str
    start: int
    end: int


def add_server(path: Path, replace: bool = False) -> str:
    """Put our server into the file at `path`; ``wrote`` (it is new), ``updated`` or ``skipped`` (it was there).

    An entry that already runs a command keeps its other keys; one of another kind is only replaced where
    `replace` says so. Raises SwarmError where the file is not what it should be; it is untouched then.
    """
    target = Path(os.path.realpath(path))  # a link stays a link
    try:
        raw = target.read_bytes() if target.exists() else b""
        text = raw.removeprefix(BYTE_ORDER_MARK).decode("utf-8")
    except OSError as error:
        raise SwarmError(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise SwarmError(f"{path} is not UTF-8 text; nothing was changed") from None
    changed = _with_entry(text, path, replace)
    if changed == text:
        return "skipped"
    mark = BYTE_ORDER_MARK if raw.startswith(BYTE_ORDER_MARK) else b""
    write_whole(target, mark + changed.encode("utf-8"))
    return "updated" if raw.strip() else "wrote"


def write_whole(path: Path, content: bytes) -> None:
    """Write a file so that it is there whole or not at all, with the mode it had. Raises SwarmError."""
    scratch = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        mode = path.stat().st_mode & 0o7777 if path.exists() else 0
        with open(scratch, "wb", opener=open_private if mode else None) as file:  # it may hold secrets
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if mode:
            scratch.chmod(mode)
        os.replace(scratch, path)
    except OSError as error:
        scratch.unlink(missing_ok=True)
        raise SwarmError(f"cannot write {path}: {error.strerror}") from None


def _with_entry(text: str, path: Path, replace: bool) -> str:
    """`text` with our entry in it."""
    if not text.strip():
        return json.dumps({SERVERS: {NAME: ENTRY}}, indent=2) + "\n"
    tree = _parsed(text, path)
    servers = tree.get(SERVERS, {}) if isinstance(tree, dict) else None
    if not isinstance(servers, dict):
        what = f"has no object under {SERVERS!r}" if isinstance(tree, dict) else "does not hold a JSON object"
        raise SwarmError(f"{path} {what}; nothing was changed")
    entry = servers.get(NAME)
    if entry is not None and not (isinstance(entry, dict) and "command" in entry) and not replace:
        raise SwarmError(f"{path} has a server {NAME!r} of another kind; --force replaces it")
    wanted = {**entry, **ENTRY} if isinstance(entry, dict) and "command" in entry else ENTRY
    if entry == wanted:
        return text
    unit = _unit(text)
    top = text.index("{")
    if SERVERS not in tree:
        changed = _set_member(text, top, SERVERS, {NAME: wanted}, unit)
    else:
        inner = next(member for member in reversed(_members(text, top)[0]) if member.key == SERVERS)
        changed = _set_member(text, inner.start, NAME, wanted, unit)
    if _parsed(changed, path) != {**tree, SERVERS: {**servers, NAME: wanted}}:
        raise SwarmError(f"{path} could not be edited safely; nothing was changed")
    return changed


def _parsed(text: str, path: Path):
    def refuse(word: str):
        raise ValueError(f"{word} is not JSON")

    try:
        return json.loads(text, parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        raise SwarmError(f"{path} is not valid JSON ({error}); nothing was changed") from None


def _set_member(text: str, start: int, key: str, value: dict, unit: str) -> str:
    """`text` with a member of the object that begins at `start` replaced, or added as its last."""
    members, end = _members(text, start)
    newline = "\r\n" if "\r\n" in text else "\n"
    lead = text[start + 1 : _skip(text, start + 1)]
    if not members:
        outer = _indent_of(text, start)
        lead, tail = newline + outer + unit, newline + outer
        return text[: start + 1] + lead + _member(key, value, lead, unit, newline) + tail + text[end:]
    same = [member for member in members if member.key == key]
    if same:
        found = same[-1]
        return text[: found.start] + _value(value, lead, unit, newline) + text[found.end :]
    last = members[-1].end
    glue = "," + (lead if "\n" in lead else " ")
    return text[:last] + glue + _member(key, value, lead, unit, newline) + text[last:]


def _member(key: str, value: dict, lead: str, unit: str, newline: str) -> str:
    return f"{json.dumps(key)}: {_value(value, lead, unit, newline)}"


def _value(value: dict, lead: str, unit: str, newline: str) -> str:
    """`value` laid out like the members around it, which `lead` (the blanks before one) shows."""
    if "\n" not in lead:
        return json.dumps(value, ensure_ascii=False)
    return json.dumps(value, indent=unit, ensure_ascii=False).replace("\n", newline + lead.rpartition("\n")[2])


def _members(text: str, start: int) -> tuple[list[Member], int]:
    """The members of the object that begins at `start`, and where its closing brace is."""
    decode = json.JSONDecoder().raw_decode
    found: list[Member] = []
    at = _skip(text, start + 1)
    while text[at] != "}":
        key, at = decode(text, at)
        begins = _skip(text, _skip(text, at) + 1)  # past the colon
        _, ends = decode(text, begins)
        found.append(Member(key, begins, ends))
        at = _skip(text, ends)
        if text[at] == ",":
            at = _skip(text, at + 1)
    return found, at


def _skip(text: str, at: int) -> int:
    while text[at] in " \t\r\n":
        at += 1
    return at


def _indent_of(text: str, at: int) -> str:
    """The blanks that begin the line of `at`."""
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _unit(text: str) -> str:
    """What one level of this text is indented by; two blanks where it does not show."""
    top = text.index("{")
    lead = text[top + 1 : _skip(text, top + 1)]
    return (lead.rpartition("\n")[2] if "\n" in lead else "") or "  "
