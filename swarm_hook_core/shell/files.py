"""The files as a script has left them so far: their content, if they may still exist, and the names of patterns."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable
from typing import Any

from swarm_hook_core import EDIT
from swarm_hook_core.paths import contains
from swarm_hook_core.shell.model import Admits, Effects, Guess, Stream, Tree, Write, absolute, is_device, is_known
from swarm_hook_core.wildcards import (
    LONGEST_NAME,
    STAR,
    compiled,
    has_groups,
    is_magic,
    literal,
    matches,
    matches_plainly,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_hook_core.shell.walk import Walk

Commands = Iterable[tuple["str | None", list[str]]]


LONGEST_READ = 64 * 1024  # bytes of a file that is read: a script, a list of names
DEEPEST_SOURCE = 3  # files that are made of one another, and in the end of the one that they are put in place of
_PRINT_WORDS = frozenset("echo printf".split())  # their arguments are no files
_OF_NAMES = frozenset("rm mv ln unlink trash".split())  # change a link, not its target
_REMOVES = frozenset("rm grm rmdir mv gmv trash trash-put find gfind rsync unlink".split())  # folders, too


class Files:
    """The files written so far; `effects` lists the writes, `unknowns` explains marks in paths.

    contents  absolute path -> Stream that this script wrote there; None if unknown
    made_of   absolute path -> (folder, words) of the commands whose output went into the file
    links     absolute path of a link that this script made -> its absolute target
    """

    def __init__(self, effects: Effects, unknowns: Walk) -> None:
        self.effects = effects
        self.unknowns = unknowns
        self.contents: dict[str, Stream | None] = {}
        self.made_of: dict[str, list[tuple[str | None, list[str]]]] = {}
        self.links: dict[str, str] = {}

    def write(self, path: str, folder: str | None, by: str, how: str = EDIT, keeps_text: bool = False) -> None:
        """Record that `path`, a word, is written, made or removed by a command in `folder`; `how`: see `change`."""
        if not path:
            return
        if not is_known(path):
            found = self.unknowns.found(path, folder)
            if found is None:
                start, slash, _ = path.partition("\0")[0].rpartition("/")
                where = folder
                if slash:
                    where = absolute(folder, start + slash)
                if (where or "").startswith("/proc/"):
                    where = ""  # `/proc/$$/cwd/...`: anywhere
                if not is_device(where or ""):
                    self.effects.add(Guess("a computed path", where or "", by))
                return
            for one in found:
                self.effects.add(Tree(one.root, by, one.admits, how))
            return
        whole = absolute(folder, path)
        if whole is None:
            self.effects.add(Guess("a path in a folder that is not known", "", by))
        elif not is_device(whole):
            if not keeps_text:
                self.contents[whole] = None
            self.effects.add(Write(folder or "/", path, by, how))
            if whole.startswith("/proc/") and not {"cwd", "root"}.isdisjoint(whole.split("/")):
                self.effects.add(Guess("a path through a process", "", by))
            behind = self._behind(whole, by)
            if behind:
                self.effects.add(Write("/", behind, by, how))

    def _behind(self, whole: str, by: str) -> str | None:
        """Return the target of absolute `whole` through a link that this script made, or None."""
        for link, target in self.links.items():
            if whole.startswith(link + "/") or (whole == link and by.partition(" ")[0] not in _OF_NAMES):
                return os.path.normpath(target + whole[len(link) :])
        return None

    def is_made_of(self, path: str | None, source: str | None, deepest: int = DEEPEST_SOURCE) -> bool:
        """Return True if this script has made the file at absolute `path` from the one at absolute `source`."""
        if not deepest or not source or path is None:
            return False
        for folder, words in self.made_of.get(path, ()):
            if words[0] in _PRINT_WORDS:
                continue
            for word in words[1:]:
                named = absolute(folder, word)
                if named and (named == source or (named != path and self.is_made_of(named, source, deepest - 1))):
                    return True
        return False

    def is_read_by(self, commands: Commands, path: str | None) -> bool:
        """Return True if one of `commands`, (folder, words) of each, names the file at `path` among its arguments."""
        return any(
            absolute(folder, word) == path
            for folder, words in commands
            if words[0] not in _PRINT_WORDS
            for word in words[1:]
        )

    def goes_through(self, commands: Commands, path: str | None) -> bool:
        """Return True if `commands`, (folder, words) of each, read a file that this script has made from the one at
        `path`.
        """
        named = (absolute(folder, word) for folder, words in commands for word in words[1:])
        return any(one in self.made_of and self.is_made_of(one, path) for one in named if one != path)

    def text_of(self, path: str, folder: str | None = None) -> Stream | None:
        """Return the Stream of file `path` as this script has written it, else as it is on the disk; or None."""
        whole = absolute(folder, path)
        if whole is None:
            return None
        if whole in self.contents:
            return self.contents[whole]
        try:
            if not os.path.isfile(whole):
                return None
            if os.path.getsize(whole) > LONGEST_READ:
                return Stream(None, file=whole)
            with open(whole, "rb") as file:
                data = file.read(LONGEST_READ + 1)
        except (OSError, ValueError):  # gone or unreadable: its text is unknown
            return None
        return Stream(data.decode("utf-8", "surrogateescape").replace("\0", "\n"), file=whole)

    def is_missing(self, path: str) -> bool:
        """Return True if nothing is at absolute `path`, and no earlier command of this script may have put it there."""
        return path not in self.contents and not os.path.lexists(path) and self.is_untouched(path)

    def is_untouched(self, path: str) -> bool:
        """Return True if no earlier command of this script may have changed anything at or under absolute `path`."""
        return not may_be_touched(path, self.touched())

    def touched(self) -> list[str] | None:
        """Return the absolute paths that earlier commands of this script have changed; None if they are unknown."""
        effects = self.effects
        if effects.guesses or effects.git or effects.runs:
            return None
        return [absolute(one.folder, one.path) or "/" for one in effects.writes] + [one.root for one in effects.trees]

    def is_no_folder(self, path: str) -> bool:
        """Return True if no folder is at absolute `path`, and no earlier command of this script may have made one."""
        if not os.path.lexists(path) or os.path.isdir(path):
            return self.is_missing(path)
        effects = self.effects
        return not (effects.guesses or effects.git or effects.runs or self.may_be_gone(path))

    def may_be_gone(self, folder: str) -> bool:
        """Return True if an earlier command of this script may have removed absolute `folder`."""
        effects = self.effects
        removed = [absolute(one.folder, one.path) for one in effects.writes if one.by.partition(" ")[0] in _REMOVES]
        removed += [one.root for one in effects.trees if one.by.partition(" ")[0] in _REMOVES]
        return any(one is not None and contains(one, folder) for one in removed)


def may_be_touched(path: str, touched: list[str] | None) -> bool:
    """Return True if one of the paths of `Files.touched` lies at, under or over absolute `path`."""
    return touched is None or any(contains(path, one) or contains(one, path) for one in touched)


# The names on the disk that a shell pattern stands for, within bounds.

MOST_NAMES = 256  # results that are listed one by one
MOST_DEEP = 3  # `**` in a pattern that a path is compared with
MOST_ENTRIES = 4000  # entries of folders that are looked at
LETTERS_A_STEP = 200  # of patterns, that are compared with names


class _TooMany(Exception):
    """More than can be listed."""


def expand_pattern(
    pattern: str, folder: str | None, options: Collection[str], spend: Callable[[int], None]
) -> list[str] | None:
    """Return the names that `pattern` stands for in `folder`, sorted; None if there are too many to list.

    `options`: ``dotglob``, ``globstar``. `spend(steps)` is called with the work done.
    """
    if folder is None and not pattern.startswith("/"):
        return None
    parts = pattern.split("/")
    if sum(part == "**" for part in parts) > 2:
        return None
    try:
        return sorted(_Search(folder or "/", options, spend).names(parts))
    except _TooMany:  # too many to list
        return None


class _Search:
    def __init__(self, folder: str, options: Collection[str], spend: Callable[[int], None]) -> None:
        self.folder = folder
        self.options = options
        self.spend = spend
        self.looked = 0  # entries of folders

    def names(self, parts: list[str]) -> list[str]:
        found, magic = [""], False
        for place, part in enumerate(parts):
            last = place == len(parts) - 1
            if part == "**" and "globstar" in self.options:
                below = [path for base in found for path in self.below(base, files=last)]
                found, magic = below if last else found + below, True
            elif is_magic(part):
                items = compiled(part, True)
                hidden = part.startswith((".", "\\.")) or "dotglob" in self.options
                found = [base + name for base in found for name in self.entries(base, items, hidden)]
                magic = True
            else:
                found = [base + literal(part) for base in found]
                if magic:
                    found = [path for path in found if os.path.lexists(os.path.join(self.folder, path))]
            if len(found) > MOST_NAMES:
                raise _TooMany
            if not last:
                found = [path if path[-1:] == "/" or (not path and part == "**") else path + "/" for path in found]
        return found

    def look(self, entries: int) -> None:
        self.looked += entries + 1
        self.spend(entries // 8)
        if self.looked > MOST_ENTRIES:
            raise _TooMany

    def entries(self, base: str, items: list[Any], hidden: bool) -> list[str]:
        names = _names_in(os.path.join(self.folder, base))
        self.look(len(names))
        fits = matches_plainly
        if has_groups(items):
            fits = matches
        elif sum(item is not STAR for item in items) > LONGEST_NAME:
            return []
        self.spend(len(names) * len(items) // LETTERS_A_STEP)
        return [name for name in names if (hidden or not name.startswith(".")) and fits(name, items)]

    def below(self, base: str, files: bool) -> list[str]:
        """Paths of folders (of files too, where `files`) under `base`, without hidden ones."""
        found, waiting = [], [base]
        while waiting:
            at = waiting.pop()
            try:
                entries = [one for one in os.scandir(os.path.join(self.folder, at)) if not one.name.startswith(".")]
            except (OSError, ValueError):  # gone or unreadable, as for the shell itself
                continue
            self.look(len(entries))
            for entry in entries:
                path = at + ("" if not at or at.endswith("/") else "/") + entry.name
                inside = entry.is_dir(follow_symlinks=False)
                waiting += [path] * inside
                found += [path] * (inside or files)
        return found


def _names_in(folder: str) -> list[str]:
    """Return the names of the entries of `folder`; [] if it cannot be read."""
    try:
        return os.listdir(folder)
    except (OSError, ValueError):  # gone or unreadable, as for the shell itself
        return []


def admits_pattern(pattern: str, folder: str, options: Collection[str]) -> Admits:
    """Return a predicate of absolute paths: `pattern`, seen from `folder`, would list them (see ``model.Tree``)."""
    base = folder.rstrip("/") + "/"
    if pattern.startswith("/"):
        base, pattern = "/", pattern[1:]
    parts: list[list[Any] | None] = []  # None: `**`
    for part in pattern.split("/"):
        if part != "**" or "globstar" not in options:
            parts.append(compiled(part, True))
        elif parts[-1:] != [None]:
            parts.append(None)
    unsure = parts.count(None) > MOST_DEEP

    def admit(path: str) -> bool | None:
        if unsure:
            return None
        return path.startswith(base) and _are_admitted(path[len(base) :].split("/"), parts)

    return admit


def _are_admitted(names: list[str], wanted: list[list[Any] | None]) -> bool:
    if not wanted:
        return not names
    first = wanted[0]
    if first is None:
        return len(wanted) == 1 or any(_are_admitted(names[skip:], wanted[1:]) for skip in range(len(names) + 1))
    return bool(names) and matches(names[0], first) and _are_admitted(names[1:], wanted[1:])
