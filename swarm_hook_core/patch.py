"""The files that a patch would write: apply_patch envelopes, their looser forms, and edits in sections.

The grammar is Codex 0.169's as observed, not as documented; tests/e2e/test_patch_grammar.py holds this module against
the real binary. For a patch that Codex refuses anyway this may name a path too many, never one too few.

Runs before every write, so nothing is imported at the top, and a text is searched for markers rather than walked by
lines.
"""

from __future__ import annotations

import re
from typing import Any

from swarm_hook_core import EDIT, REMOVE, REPLACE
from swarm_hook_core.json_text import loads_outer

_BEGIN = "*** Begin Patch"
_END = "*** End Patch"
_ADD = "*** Add File: "
_UPDATE = "*** Update File: "
_DELETE = "*** Delete File: "
_HEADERS = (_ADD, _DELETE, _UPDATE)
_MOVE_TO = "*** Move to: "
_MOVE_FILE = "*** Move File: "  # not in Codex 0.169; older agents still write it

# Rust trims Unicode's White_Space, without the \x1c..\x1f that str.strip() would take off a file name.
_BLANKS = (
    " \t\n\x0b\x0c\r\x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
_MARKERS = (_BEGIN, _END, *_HEADERS, _MOVE_TO, _MOVE_FILE)
_OUTSIDE, _BETWEEN, _UPDATING = range(3)

_KEYS = ("command", "input", "patch", "text", "arguments")
_MAX_NESTING = 6  # of inputs in inputs: each level reads its text once more

_NAMES = ("apply_patch", "applypatch")
_SPECIAL = " \t\r\n\\'\"$`;&|<>()"
_SHELLS = ("bash", "sh", "zsh", "dash", "ksh")


# The text that was read last, and the result of `_named` for it: the check of one call asks for the same text up to
# five times. Another text replaces it.
_last: tuple[Any, ...] = (None, [])


class PatchUnreadable(ValueError):
    """The text holds no apply_patch envelope that we can make sense of."""


def patch_paths(text: str) -> list[str]:
    """Return the paths that the envelopes in `text` would create, change, remove or rename, in order, each once.

    As Codex spells them: surrounding blanks off the header line, blanks after `File: ` kept, tabs and carriage returns
    dropped (it passes a path through a URL, which loses them), `~` and `$` plain characters. An empty envelope gives
    []. Raises PatchUnreadable for a text without an envelope, or with one that is cut short or odd before it names a
    file.
    """
    return [path for path in dict.fromkeys(path for _header, path in _named(text)) if path and "\0" not in path]


def patch_changes(text: str) -> list[tuple[str, str]]:
    """Return `(path, how)` of the same files, as `patch_paths` spells them; `how`: `EDIT`, ....

    Adding a file replaces an existing one; moving one onto itself removes it. The last mention of a file counts, except
    for an update of a file that the envelope itself has added.
    """
    hows = {_ADD: REPLACE, _UPDATE: EDIT, _DELETE: REMOVE, _MOVE_TO: REPLACE, _MOVE_FILE: REMOVE}
    changes: dict[str, Any] = {}
    updated = ""
    for header, path in _named(text):
        if header == _UPDATE:
            updated = path
        elif header == _MOVE_TO:
            # Codex writes the new file first and removes the old one then: of a file moved onto itself nothing is left.
            changes[updated] = REMOVE
            if path == updated:
                continue
        if header != _UPDATE or path not in changes:
            changes[path] = hows[header]
    return [(path, changes[path]) for path in patch_paths(text)]


def _named(text: str) -> list[tuple[str, str]]:
    """Return `(header, path)` of each file in a header of the envelopes in `text`, in order.

    A moved file has the header of its new place. Raises PatchUnreadable, as `patch_paths`.
    """
    global _last
    last_text, found = _last
    if last_text != text:
        found = _read(text)
        if "\t" in text or "\r" in text:
            found = [(header, path.replace("\t", "").replace("\r", "")) for header, path in found]
        _last = text, found
    named: list[tuple[str, str]] = found
    return named


def _read(text: str) -> list[tuple[str, str]]:
    """The same, with the tabs and carriage returns of the paths."""
    found: list[Any] = []
    mode, begun = _OUTSIDE, False
    line_end = 0
    at = text.find("*** ")
    while at >= 0:
        marked = text.startswith(_MARKERS, at) and _leads_line(text, at, line_end, mode)
        line_end = text.find("\n", at)
        if line_end < 0:
            line_end = len(text)
        if marked:
            line = text[at:line_end].rstrip(_BLANKS)
            if line == _BEGIN:
                mode, begun = _BETWEEN, True
            elif mode == _OUTSIDE:
                pass
            elif line == _END:
                mode = _OUTSIDE
            elif line.startswith(_HEADERS):
                if line.startswith(_UPDATE):
                    mode = _UPDATING
                else:
                    mode = _BETWEEN
                header = line[: line.index(": ") + 2]
                found.append((header, line[len(header) :]))
            elif line.startswith(_MOVE_TO):
                if mode == _UPDATING:
                    found.append((_MOVE_TO, line[len(_MOVE_TO) :]))
            elif line.startswith(_MOVE_FILE):
                mode = _BETWEEN
                ends = line[len(_MOVE_FILE) :].split(" -> ", 1)
                found += zip((_MOVE_FILE, _ADD), [end.strip(_BLANKS) for end in ends])
        at = text.find("*** ", line_end)
    if not begun:
        raise PatchUnreadable("no '*** Begin Patch' line")
    if not found and text.replace(_BEGIN, "", 1).replace(_END, "", 1).strip(_BLANKS):
        raise PatchUnreadable("the envelope names no file")
    return found


def _leads_line(text: str, at: int, line_end: int, mode: int) -> bool:
    """Return True if the marker at `at` is the first thing on its line; the last line read ended at `line_end`.

    Inside an update an indented line is context, so text; after Add or Delete, Codex takes it for the next header.
    """
    before = text[at - 1 : at] or "\n"
    if before == "\n":
        return True
    if mode == _UPDATING or before not in _BLANKS:
        return False
    start = text.rfind("\n", line_end, at) + 1
    return not text[start:at].strip(_BLANKS)


def patches_in(tool_input: object) -> list[tuple[str | None, str]]:
    """Return `(directory, text)` for each apply_patch envelope in a tool input of any JSON shape. Never raises.

    The input may be the text itself, hold it under `command`, `input`, `patch`, `text` or `arguments`, wrap either in a
    JSON string, or be an argv list with a shell that changes to a directory first (else None). Values that nest deeper
    than a handful of levels are left alone.
    """
    found: dict[tuple[str | None, str], None] = {}
    todo = [(tool_input, 0)]
    while todo:
        value, depth = todo.pop()
        if depth > _MAX_NESTING:
            continue
        if isinstance(value, str):
            if value.lstrip()[:1] in ("{", "[", '"') and "Begin Patch" in value:
                # The value of a JSON text, without very deep parts; None if it is not JSON
                try:
                    inner = loads_outer(value)
                except ValueError:  # plain text
                    inner = None
                if inner is not None:
                    todo.append((inner, depth + 1))
                    continue
            if _BEGIN in value:
                found[None, value] = None
        elif isinstance(value, dict):
            todo.extend((value[key], depth + 1) for key in reversed(_KEYS) if key in value)
        elif isinstance(value, (list, tuple)) and value and isinstance(value[0], str):
            name = value[0].rpartition("/")[2]
            words = [word for word in value[1:] if isinstance(word, str) and _BEGIN in word]
            if name in _SHELLS:
                found.update((pair, None) for pair in map(codex_patch, words) if pair)
            elif name in _NAMES:
                found.update(((None, word), None) for word in words)
            elif len(value) == 1:
                todo.append((value[0], depth + 1))
    return list(found)


def codex_patch(command: str) -> tuple[str | None, str] | None:
    """Return `(directory, text)` of a shell command that is nothing but ``[cd DIR &&] apply_patch <<EOF``; else None.

    Codex runs such a command itself and takes DIR as it is written (`~`, `a\\ b`, the first literal part of "$x/y"),
    unlike a shell; the directory is None without a `cd`. ``shell.programs.patch`` finds all other patches in a shell.
    """
    at = command.find(_BEGIN)
    before, _, delimiter = command[: max(at, 0)].rpartition("<<")
    if "\n" not in delimiter:
        return None
    body = command[at:]
    if delimiter.startswith("-"):
        delimiter, body = delimiter[1:], body.replace("\n\t", "\n")
    text, end, after = (body + "\n").partition("\n" + delimiter.strip().strip("\\'\"") + "\n")
    if end and after.strip():
        return None
    if end:
        body = text + "\n"  # as a shell has it, so that the text is read only once
    moved, _, name = before.strip().rpartition("&&")
    if name.strip() not in _NAMES:
        return None
    if not moved:
        return None, body
    verb, _, argument = moved.strip().partition(" ")
    if verb == "cd":
        directory = _as_codex(argument.strip())
    else:
        directory = None
    if directory:
        return (directory, body)
    return None


def _as_codex(raw: str) -> str | None:
    """Return Codex's reading of the one argument of `cd`: no escapes, no `~`; None for anything else."""
    if not any(char in raw for char in _SPECIAL):
        return raw or None

    if raw[0] == "'":
        found = re.fullmatch("'([^']*)'", raw)
    elif raw[0] == '"' and raw.endswith('"'):
        unknown = r"""\$(?:\w+\b|\{[^}"]*\}|\([^)"]*\)|[^\w({])|`[^`"]*`|\n"""
        found = re.match(rf"""\"(?:{unknown})*((?:[^"\\$`\n]|\\.)+)""", raw)
    else:
        found = re.fullmatch(r"""((?:[^\\'"$`\s;&|<>()]|\\.)+)""", raw)
    if found:
        return found[1].replace("\t", "").replace("\r", "")
    return None


# Reads apply_patch envelopes in a laxer grammar than Codex's (see ``patch``), as other clients do.
#
# Seen in OpenCode 1.18, Cline 3.0 and Copilot CLI 1.0.102: blanks around the path do not count, nor do, in Copilot,
# those before a header; unknown lines are passed over. If a client refuses a patch, or skips a header (behind the end,
# amid a file's text), this names a path too many, never one too few.

_MOVE = "*** Move to:"
_HOWS = {"*** Add File:": REPLACE, "*** Update File:": EDIT, "*** Delete File:": REMOVE, _MOVE: REPLACE}
# The characters that JavaScript trims. Python's own strip() would take \x1c..\x1f and \x85 off a file name, and leave
# \ufeff.
_JS_BLANKS = (
    " \t\n\x0b\x0c\r\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f"
    "\u205f\u3000\ufeff"
)


def changes_by_headers(text: str) -> list[tuple[str, str]]:
    """Return ``(path, how)`` of each file in a header, in order; `how`: `EDIT`, ....

    Raises PatchUnreadable for a text without headers.
    """
    changes: dict[str, Any] = {}
    updated = ""
    for line in text.split("\n"):
        header, colon, path = line.partition(":")
        header, path = header.lstrip(_JS_BLANKS + "\x85") + colon, path.strip(_JS_BLANKS)
        if header not in _HOWS or not path or "\0" in path:
            continue
        if header == _MOVE and updated:
            changes[updated] = REMOVE  # after the new file is written: of one moved onto itself nothing is left
        if header != _MOVE or path != updated:
            changes[path] = _HOWS[header]
        updated = path
    if not changes:
        raise PatchUnreadable("no header in the patch names a file")
    return list(changes.items())


# Edits as one text of sections, with a header for each file: one of the forms of oh-my-pi's edits.

_HEX = frozenset("0123456789abcdefABCDEF")


def changes_in_sections(text: str) -> dict[str, str]:
    """Return ``{path: how}`` of the files of a text; empty for another kind of text.

    New text that looks like a header names a file more.
    """
    changes: dict[str, str] = {}
    current = ""
    for line in text.lstrip("\ufeff").split("\n"):
        words = line.strip()
        # The file that a line names: ``[a.md#1A2B]``, in other forms ``¶a.md`` or ``<SM:EDIT path="a.md">``
        if words.startswith("[") and words.endswith("]"):
            named = words[1:-1]
        elif words.startswith("\u00b6"):
            named = words.lstrip("\u00b6")
        elif words.startswith("<SM:EDIT "):
            given = words.partition(" path=")[2]
            named = given[: given.find(given[:1], 1) + 1]  # with its quotes
        else:
            named = ""
        if named:
            current = _plain(named)
            changes.setdefault(current, EDIT)
        elif current and words == "REM":
            changes[current] = REMOVE
        elif current and words.startswith("MV "):
            changes.update({current: REMOVE, _plain(words[3:]): REPLACE})
    return changes


def _plain(path: str) -> str:
    """The path of a header, without the tag of its content and without quotes."""
    path = path.strip()
    if path[-5:-4] == "#" and _HEX.issuperset(path[-4:]):
        path = path[:-5]
    if len(path) > 1 and path[0] in "\"'" and path[0] == path[-1]:
        return path[1:-1]
    return path
