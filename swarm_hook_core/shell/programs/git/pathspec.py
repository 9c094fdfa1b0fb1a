"""The files of a work tree that a command's pathspecs match, found without asking git."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from fnmatch import translate
from re import Pattern
from typing import Any

from swarm_hook_core.paths import contains
from swarm_hook_core.shell.model import Found, is_known

_MAGIC = {"top", "literal", "exclude"}  # words with other magic cannot be read


class Pathspec:
    """The pathspecs `words`, given in the folder `prefix` (relative to the top, empty for the top itself).

    `top`: absolute folder of the work tree; `found`: word -> the `Found`s that it stands for. No words: every file.
    `is_unsure`: one of the words cannot be read.
    """

    __slots__ = ("_items", "_top", "_folders", "is_unsure", "is_empty")

    def __init__(
        self, words: Iterable[str], prefix: str, top: str, found: Mapping[str, list[Found]] | None = None
    ) -> None:
        self._items: list[Any] = []  # (exclude, path or None, pattern or None, founds or None)
        self._top = top
        self._folders: dict[str, bool] = {}  # path -> True if a folder is there
        self.is_unsure = False
        self.is_empty = not words
        for word in words:
            if found and word in found:
                self._items.append((False, None, None, found[word]))
            elif not is_known(word):
                self.is_unsure = True
            else:
                self._read(word, prefix)
        if self._items and all(exclude for exclude, *_rest in self._items):
            self._items.append((False, prefix, None, None))

    def _read(self, word: str, prefix: str) -> None:
        magic, rest = _magic_of(word)
        if magic is None or "\\" in rest:
            self.is_unsure = True
            return
        path = _relative(rest, "" if "top" in magic else prefix, self._top)
        if path is None:
            return  # outside; git refuses it
        pattern = None
        if "literal" not in magic and any(letter in rest for letter in "*?["):
            pattern = re.compile(translate(path.replace("[^", "[!")))
        self._items.append(("exclude" in magic, path, pattern, None))

    def matches(self, path: str) -> bool | None:
        """Return True if the file `path` (relative to the top) matches, None if unknown."""
        if self.is_empty:
            return True
        answer: bool | None = False
        if self.is_unsure:
            answer = None
        for exclude, *item in self._items:
            verdict = self._verdict(path, *item)
            if exclude and verdict:
                return False
            if not exclude and (verdict or (verdict is None and answer is False)):
                answer = None
                if verdict:
                    answer = True
        return answer

    def names(self, path: str) -> bool:
        """Return True if a word spells `path`, or something in the folder `path`; a folder's own name is not enough."""
        if self.is_empty or (self.matches(path) is False and not self._may_be_inside(path)):
            return False
        for exclude, own, pattern, founds in self._items:
            if exclude:
                continue
            if founds and self._is_found(path, founds):
                return True
            if (
                own is not None
                and pattern is None
                and ((own == path and not self._is_folder(path)) or own.startswith(path + "/"))
            ):
                return True
        return False

    def literals(self) -> list[str]:
        """The files that words say by name, where they are no folders."""
        own = [path for exclude, path, pattern, _founds in self._items if path and pattern is None and not exclude]
        return [path for path in own if not self._is_folder(path) and self.matches(path)]

    def plain_paths(self) -> list[str]:
        """Return the files and folders that the words spell out; [] if a word is anything else."""
        plain = not self.is_unsure and all(not item[0] and item[1] is not None and not item[2] for item in self._items)
        if plain:
            return list(dict.fromkeys(path for _exclude, path, _pattern, _founds in self._items))
        return []

    def narrowed(self, paths: Iterable[str]) -> list[str]:
        """Return the parts of `paths` (files or folders, relative) to ask git about, for these pathspecs."""
        if self.is_empty:
            return list(paths)
        wanted: dict[str, Any] = {}
        for path in paths:
            for exclude, own, pattern, _founds in self._items:
                if exclude:
                    continue
                # An empty path is the whole work tree.
                inner = own is not None and pattern is None and (not path or own.startswith(path + "/"))
                if inner:
                    one = own
                elif self._may_meet(path):
                    one = path
                else:
                    one = None
                if one is not None:
                    wanted[one] = None
        return list(wanted)

    def _may_meet(self, path: str) -> bool:
        return self.matches(path) is not False or self._may_be_inside(path)

    def _may_be_inside(self, folder: str) -> bool:
        """Return True if a word may match something in `folder`, if that is a folder."""
        inside = folder and folder + "/"  # everything is in the top
        if any(own is not None and own.startswith(inside) for _exclude, own, _pattern, _founds in self._items):
            return self._is_folder(folder)
        return self._has_patterns() and self._is_folder(folder)

    def _has_patterns(self) -> bool:
        return any(own is None or pattern is not None for _exclude, own, pattern, _founds in self._items)

    def _is_folder(self, path: str) -> bool:
        if path not in self._folders:
            self._folders[path] = os.path.isdir(os.path.join(self._top, path))
        return self._folders[path]

    def _verdict(
        self, path: str, own: str | None, pattern: Pattern[str] | None, founds: list[Found] | None
    ) -> bool | None:
        if founds:
            return self._is_found(path, founds)
        if own == "" or path == own or (own is not None and path.startswith(own + "/")):
            return True
        return bool(pattern and pattern.fullmatch(path))

    def _is_found(self, path: str, founds: list[Found]) -> bool | None:
        whole = os.path.join(self._top, path)
        answer: bool | None = False
        for one in founds:
            root = os.path.realpath(one.root)
            verdict: bool | None = False
            if contains(root, whole):
                verdict = one.admits(whole)
            if verdict:
                return True
            if verdict is None:
                answer = None
        return answer


def _magic_of(word: str) -> tuple[set[str] | None, str]:
    """Return (set of magic words, the rest) of a pathspec; (None, "") for unsupported magic."""
    if not word.startswith(":") or word == ":":
        return set(), word.removeprefix(":")
    if word.startswith(":("):
        names, closing, rest = word[2:].partition(")")
        magic = {name for name in names.split(",") if name}
        if closing and magic <= _MAGIC:
            return (magic, rest)
        return (None, "")
    short = {"/": "top", "!": "exclude", "^": "exclude"}
    at, magic = 1, set()
    while at < len(word) and word[at] in short:
        magic.add(short[word[at]])
        at += 1
    return magic, word[at:].removeprefix(":")


def _relative(path: str, prefix: str, top: str) -> str | None:
    """Return `path`, written in `prefix`, relative to `top` (empty: all of it), or None if it is outside."""
    if os.path.isabs(path):
        folder, name = os.path.split(os.path.normpath(path))
        whole = os.path.normpath(os.path.join(os.path.realpath(folder), name))
    else:
        whole = os.path.normpath(os.path.join(top, prefix, path))
    if whole == top:
        return ""
    start = top.rstrip("/") + "/"
    if whole.startswith(start):
        return whole[len(start) :]
    return None
