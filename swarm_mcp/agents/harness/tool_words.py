"""A tool call in words for people: a command without the shell around it, an edit as a patch, paths below the folder.

Tools are recognised by their input, in any harness: a command, a patch, a path with an old and a new text, a path with
a content.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

PATHS = ("file_path", "filePath", "path", "notebook_path", "absolute_path", "filename", "file")
OLD, NEW = ("old_string", "oldString", "oldText", "old_str"), ("new_string", "newString", "newText", "new_str")
CONTENTS = ("content", "contents", "file_text", "new_source")
PATCHES = ("input", "patch", "patchText", "patch_text", "command", "diff")
COMMANDS = ("command", "cmd", "script")
UNSAID = ("description", "replace_all", "replaceAll", "timeout", "workdir", "command_line")
_PATCH = re.compile(r"^(?:\*\*\* Begin Patch|diff --git |--- \S)", re.MULTILINE)
_FILE = re.compile(r"^(?:\*\*\* (?:Update|Add|Delete) File: |\+\+\+ (?:b/)?)(.+)$", re.MULTILINE)
_SHELL = re.compile(r"(?:.*/)?(?:ba|z|da|k)?sh")
_SCRIPT = re.compile(r"-[a-z]*c")


class Call(NamedTuple):
    """The effect of a call: `words` in a line, the further lines of a command (`more`), or an edit, with the known
    lines of its `patch`, each with ``+``, ``-`` or a blank before it.
    """

    words: str
    more: tuple[str, ...] = ()
    patch: tuple[str, ...] = ()
    is_edit: bool = False


class Folder:
    """The folder of a run. Its name is left out of texts for people."""

    def __init__(self, path: str = ""):
        if path:
            names = sorted({name.rstrip("/") for name in (path, os.path.realpath(path))})
        else:
            names = []
        one = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
        self._inside: re.Pattern[str] | None = None
        self._there: re.Pattern[str] | None = None
        if one:
            self._inside = re.compile(rf"(?<![\w./-])(?:{one})/")
            self._there = re.compile(rf"cd (['\"]?)(?:{one})/?\1 *(?:&&|;) *")

    def short(self, text: str) -> str:
        """Return a text with the names of files in the folder as they are there."""
        if self._inside:
            return self._inside.sub("", text)
        return text

    def command(self, text: str) -> str:
        """Return a command without going to the folder, where it is carried out anyway."""
        found = self._there and self._there.match(text)
        if found:
            text = text[found.end() :]
        return self.short(text)


def call_in_words(name: str, given: object, folder: Folder) -> Call:
    """Return the effect of a call of the tool `name`. Never raises, for any input `given`."""
    if not isinstance(given, Mapping):
        if given is None:
            text = ""
        elif isinstance(given, str):
            text = given
        else:
            text = _json(given)
        if _PATCH.search(text):
            return _patch(name, text, folder)
        return Call(f"{name} {folder.short(text)}".rstrip())
    path = next((given[key] for key in PATHS if isinstance(given.get(key), str) and given[key]), "")
    patch = next((given[key] for key in PATCHES if isinstance(given.get(key), str) and _PATCH.search(given[key])), "")
    if patch:
        return _patch(name, patch, folder)
    if isinstance(given.get("changes"), list):
        return Call(f"{name} {', '.join(_changes(given['changes'], folder))}".rstrip(), is_edit=True)
    if path:
        changed = tuple(_changed(given))
    else:
        changed = ()
    if changed:
        return Call(f"{name} {folder.short(path)}", patch=changed, is_edit=True)
    command = next((given[key] for key in COMMANDS if not path and given.get(key)), None)
    if isinstance(command, str) or (isinstance(command, list) and all(isinstance(word, str) for word in command)):
        first, *more = folder.command(bare(command)).split("\n")
        return Call(f"$ {first}", tuple(more))
    rest = [f"{key}={_word(one)}" for key, one in given.items() if key not in UNSAID and one is not path]
    return Call(" ".join([name, *([folder.short(path)] if path else []), *map(folder.short, rest)]))


def edited(given: object) -> list[str]:
    """Return the files that a call edits, as it names them; none for other calls. Never raises."""
    if not isinstance(given, Mapping):
        if isinstance(given, str) and _PATCH.search(given):
            return _FILE.findall(given)
        return []
    patch = next((given[key] for key in PATCHES if isinstance(given.get(key), str) and _PATCH.search(given[key])), "")
    path = next((given[key] for key in PATHS if isinstance(given.get(key), str) and given[key]), "")
    changes = given.get("changes")
    if isinstance(changes, list):
        listed = [one.get("path") for one in changes if isinstance(one, Mapping)]
    else:
        listed = []
    if path and any(True for _ in _changed(given)):
        own = [path]
    else:
        own = []
    return [name.strip() for name in (*_FILE.findall(patch), *listed, *own) if isinstance(name, str) and name.strip()]


def commanded(given: object) -> str:
    """Return the command line of a call, without the shell around it; empty for none. Never raises."""
    if isinstance(given, Mapping):
        command = next((given[key] for key in COMMANDS if given.get(key)), "")
    else:
        command = ""
    if isinstance(command, str) or (isinstance(command, list) and all(isinstance(word, str) for word in command)):
        return bare(command)
    return ""


def bare(command: str | list[str]) -> str:
    """Return a command line without the shell that it was handed to: ``bash -lc 'make check'`` is ``make check``."""
    try:
        if isinstance(command, str):
            words = shlex.split(command)
        else:
            words = command
    except ValueError:  # no shell words
        return str(command)
    if len(words) == 3 and _SHELL.fullmatch(words[0]) and _SCRIPT.fullmatch(words[1]):
        return words[2]
    if isinstance(command, str):
        return command
    return shlex.join(command)


def _patch(name: str, text: str, folder: Folder) -> Call:
    begin = _PATCH.search(text)
    text = folder.short(text[begin.start() if begin else 0 :])
    files = dict.fromkeys(file.strip() for file in _FILE.findall(text))
    lines = [line for line in text.rstrip().split("\n") if line.strip() not in ("*** Begin Patch", "*** End Patch")]
    return Call(f"{name} {', '.join(files)}".rstrip(), patch=tuple(lines), is_edit=True)


def _changes(found: list[Any], folder: Folder) -> Iterator[str]:
    for one in found:
        if isinstance(one, Mapping) and isinstance(one.get("path"), str):
            yield f"{one.get('kind') or 'change'} {folder.short(one['path'])}"


def _changed(given: Mapping[str, Any]) -> Iterator[str]:
    """The lines of an edit, or of a new file."""
    edits = given.get("edits")
    for edit in edits if isinstance(edits, list) else [given]:
        if isinstance(edit, Mapping):
            yield from _signed("-", next((edit[key] for key in OLD if isinstance(edit.get(key), str)), ""))
            yield from _signed("+", next((edit[key] for key in NEW if isinstance(edit.get(key), str)), ""))
    yield from _signed("+", next((given[key] for key in CONTENTS if isinstance(given.get(key), str)), ""))


def _signed(sign: str, text: str) -> Iterator[str]:
    if text:
        return (sign + line for line in text.removesuffix("\n").split("\n"))
    return iter(())


def _word(value: object) -> str:
    if isinstance(value, str):
        return value
    return _json(value)


def _json(value: object) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except (ValueError, TypeError, RecursionError):  # no JSON value
        return str(value)
