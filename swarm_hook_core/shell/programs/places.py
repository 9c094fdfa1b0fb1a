"""The places where files land: beside, under or over existing ones.

Words go in and come out as a `Call` has them, marks and all; predicates are those of ``model.Tree``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from swarm_hook_core import EDIT, REPLACE
from swarm_hook_core.paths import contains
from swarm_hook_core.shell.call import Call
from swarm_hook_core.shell.files import admits_pattern
from swarm_hook_core.shell.model import Admits, absolute, edit_or_replace, is_known
from swarm_hook_core.shell.words import text_braces

TYPE_CHECKING = False

if TYPE_CHECKING:
    from swarm_hook_core.shell.programs.engine import Reading


def cannot_tell(_path: str) -> None:
    """The predicate of a tree without a certain write."""
    return


def maybe(call: Call, word: str) -> None:
    """Report that `word` may be written: an editor has it open, or an unreadable script gets it."""
    if word and word != "-":
        call.tree(word, cannot_tell)


def seen(call: Call, word: str) -> str | None:
    """Return the absolute path of `word`, or None if it has marks or the folder of the command is unknown."""
    if word:
        return absolute(call.folder, word)
    return None


def is_folder(call: Call, word: str) -> bool:
    """Return True if `word` names a folder on the disk."""
    path = seen(call, word)
    return path is not None and os.path.isdir(path)


def is_file(call: Call, word: str) -> bool:
    """Return True if `word` names something on the disk that is no folder."""
    path = seen(call, word)
    return path is not None and os.path.lexists(path) and not os.path.isdir(path)


def is_remote(word: str) -> bool:
    """Return True if copying programs take `word` for a file of another machine: ``host:path``, ``rsync://...``."""
    colon = word.find(":")
    return colon > 0 and "/" not in word[:colon]


def targets(call: Call, source: str, dest: str, inside: bool | None = None) -> list[str]:
    """Return the words that a program would write if it puts `source` at or into `dest`.

    `inside`: True if `dest` is a folder that it goes into, False if `dest` is the new name, None if the disk decides. A
    `dest` that does not exist may be made by the same command line: then both words are returned.
    """
    name = os.path.basename(source.rstrip("/")) or source  # as cp and mv find it: slashes at the end do not count
    within = name
    if dest:
        within = dest.rstrip("/") + "/" + name
    if name in (".", ".."):
        within = dest
    if inside is None and (dest.endswith("/") or is_folder(call, dest)):
        inside = True
    if inside:
        return [within]
    if inside is not None or within == dest or is_file(call, dest) or not is_known(dest):
        return [dest]
    return [dest, within]


def put(
    call: Call, source: str, dest: str, inside: bool | None = None, spared: bool = False, how: str = REPLACE
) -> list[str]:
    """Write the file `source` at or into `dest`, and return the named targets; `spared`: existing files are left
    alone.
    """
    if spared:
        how = EDIT
    if call.found(dest) is not None:
        call.write(dest, how)
        return []
    into = inside or (inside is None and (dest.endswith("/") or is_folder(call, dest)))
    if into and not is_known(source) and is_known(dest):
        call.tree(dest, _beside(call, source, dest), how)
        return []
    named = [word for word in targets(call, source, dest, inside) if not (spared and exists(call, word))]
    files, origin = call.walk.files, seen(call, source)
    for word in named:
        place = seen(call, word)
        if files.is_made_of(origin, place):
            call.write(word, EDIT)
        else:
            call.write(word, how)
        if origin and place:
            files.made_of[place] = [(call.folder, ["", source])]
    return named


def exists(call: Call, word: str) -> bool:
    """Return True if `word` names anything on the disk."""
    path = seen(call, word)
    return path is not None and os.path.lexists(path)


def _beside(call: Call, source: str, dest: str) -> Admits:
    """Return a predicate: a file directly in `dest` gets its content from one of the files of `source`, a word with
    marks.
    """
    root, found = seen(call, dest), call.found(source)

    def admits(path: str) -> bool | None:
        if path == root:
            return True
        if os.path.dirname(path) != root:
            return False
        if found is None:
            return None
        name = os.path.basename(path)
        near = [one.admits(os.path.join(one.root, name)) for one in found]
        near += [one.admits(one.root) for one in found if os.path.basename(one.root) == name]
        if any(near):
            return True
        return None

    return admits


def lay_over(
    call: Call,
    source: str,
    dest: str,
    inside: bool | None = None,
    spared: bool = False,
    allowed: Admits | None = None,
) -> list[str]:
    """Lay the folder `source` over the folder at, or in, `dest`: only files with a counterpart are written.

    `spared`: existing files are left alone. `allowed(rest)`: True, False or None for the path `rest` within the folder:
    is it copied? Returns the named targets.
    """
    how = edit_or_replace(spared)
    if call.found(dest) is not None or not is_known(source):
        call.tree(dest, cannot_tell, how)
        return []
    named = targets(call, source, dest, inside)
    made = made_before(call)
    for word in named:
        call.tree(word, Counterpart(seen(call, source), seen(call, word), spared, allowed, made), how)
    return named


def made_before(call: Call) -> Admits:
    """Return ``made(path)``, like `admits`: an earlier part of the command line has written the file at absolute
    `path`.
    """
    effects = call.walk.effects
    writes, trees = len(effects.writes), len(effects.trees)
    known: set[str] = set()

    def made(path: str) -> bool | None:
        if writes and not known:
            known.update(absolute(write.folder, write.path) or "" for write in effects.writes[:writes])
        if path in known:
            return True
        answer: bool | None = False
        for tree in effects.trees[:trees]:
            if contains(tree.root, path):
                # Ask that tree about the disk only: with files made before it, circles would cost too much.
                one = getattr(tree.admits, "on_disk", tree.admits)(path)
                if one:
                    return True
                if one is None:
                    answer = None
        return answer

    return made


class Counterpart:
    """The predicate: `source`, an absolute folder (None: unknown), has a file for the path under `root`.

    `spared`: existing files are left alone; `allowed` as in `lay_over`. `made` knows the files that the command line
    itself put into `source` before, see `made_before`.
    """

    def __init__(
        self,
        source: str | None,
        root: str | None,
        spared: bool = False,
        allowed: Admits | None = None,
        made: Admits | None = None,
    ) -> None:
        self.source = source
        self.root = root
        self.spared = spared
        self.allowed = allowed
        self.made = made

    def __call__(self, path: str) -> bool | None:
        return self.answer(path, self.made)

    def on_disk(self, path: str) -> bool | None:
        """The same, going by the disk alone."""
        return self.answer(path, None)

    def arrives(self) -> Iterator[str]:
        """The paths that the files below `source` get."""
        return arrivals(self.source, self.root)

    def answer(self, path: str, made: Admits | None) -> bool | None:
        if self.source is None or self.root is None:
            return None
        rest = below(path, self.root)
        if self.spared and os.path.lexists(path) and not os.path.isdir(path):
            return False
        if rest:
            beginning = os.path.join(self.source, rest)
        else:
            beginning = self.source
        if not os.path.lexists(beginning):
            there: bool | None = False
            if made is not None:
                there = made(beginning)
            if not there:
                if os.path.isdir(self.source):
                    return there
                return None
        if self.allowed is None or not rest:
            return True
        return self.allowed(rest)


def arrivals(source: str | None, root: str | None) -> Iterator[str]:
    """Yield the new paths of the files below `source` when it is laid over `root`, both absolute or None."""
    if not source or not root:
        return
    waiting = [source]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    yield root + entry.path[len(source.rstrip("/")) :]
        except OSError:  # the folder is gone or unreadable: no file arrives from it
            continue


def below(path: str, root: str) -> str:
    """Return the part of `path` after `root`, both absolute; empty for `root` itself."""
    if path != root:
        return path[len(root.rstrip("/")) + 1 :]
    return ""


def directly_in(root: str | None, admits_name: Admits) -> Admits:
    """The predicate: ``admits_name(name)`` of files right in the absolute folder `root`; others are not."""

    def admits(path: str) -> bool | None:
        folder, name = os.path.split(path)
        if folder == root:
            return admits_name(name)
        return False

    return admits


SKIPPED = ("node_modules", ".git", ".venv", "venv", "__pycache__", "vendor", "target")  # by many tools that walk a tree


def with_endings(endings: Iterable[str]) -> Admits:
    """Return the predicate: names with one of `endings` (``.py``, or a whole name). None in folders that tools skip."""
    endings = tuple(endings)

    def admits(path: str) -> bool | None:
        if not path.endswith(endings):
            return False
        parts = path.split("/")
        if any(folder in parts for folder in SKIPPED):
            return None
        return True

    return admits


def matching(pattern: str, folder: str) -> Admits:
    """Return the predicate of a pattern that the program expands itself: ``**``, ``*``, ``?``, ``[a]``, ``{a,b}``.

    `folder`: the absolute folder of a relative pattern.
    """
    choices = [
        admits_pattern(os.path.normpath(os.path.join(folder, one)), "/", ("globstar",)) for one in text_braces(pattern)
    ]

    def matches(path: str) -> bool | None:
        answers = [choice(path) for choice in choices]
        if True in answers:
            return True
        if None in answers:
            return None
        return False

    return matches


def fixed_part(pattern: str) -> str:
    """The folder of a pattern before its first wildcard: ``src`` of ``src/**/*.ts``."""
    parts = pattern.split("/")
    at = next((place for place, part in enumerate(parts) if any(char in part for char in "*?[{")), len(parts))
    return "/".join(parts[:at]) or ("/" if pattern.startswith("/") else ".")


def is_pattern(word: str) -> bool:
    """Return True if `word` has wildcards."""
    return any(char in word for char in "*?[{") and is_known(word)


# The targets of a row: names made of the operands and options of a command.
#
# `reading` is the ``engine.Reading`` of the command.


def words_of(reading: Reading, target: str) -> list[str]:
    """The words that a target of the table stands for."""
    before, opened, rest = target.partition("{")
    if not opened:
        return [target]
    field, _, after = rest.partition("}")
    if after:
        ends = words_of(reading, after)
    else:
        ends = [""]
    return [before + word + end for word in _field(reading, field) for end in ends]


def _field(reading: Reading, text: str) -> list[str]:
    """Return the words of ``{text}``."""
    if text == "url":
        return _addresses(reading)
    if text == "rest":
        return reading.words[reading.words.index(reading.used[-1]) + 1 :]
    text, added, ending = text.partition("?")
    change = next((one for one in ("//", "/.", "/", ".", ":", "=") if text.endswith(one)), "")
    selector = text[: len(text) - len(change)]
    operands = reading.options.operands
    if selector == "":
        words = operands
    elif selector[0] == "-":
        words = reading.options.values(selector)
    elif selector[0] == "*":
        words = [word for word in operands if word.endswith(selector[1:])]
    elif selector == "last":
        words = operands[-1:]
    elif selector[-1] == "-":
        words = operands[int(selector[:-1]) - 1 :]
    else:
        words = operands[int(selector) - 1 :][:1]
    words = [_changed(reading.call, word, change) for word in words if change not in (":", "=") or change in word]
    if added:
        words = [word if "." in os.path.basename(word) or not is_known(word) else word + ending for word in words]
    return words


def _changed(call: Call, word: str, change: str) -> str:
    """A part of `word`: ``.`` without its ending, ``/`` its last name, ``//`` its folder, ``:`` ``=`` behind these."""
    if change in (":", "="):
        return word.rpartition(change)[2]
    if change == "//":
        return os.path.dirname(word) or "."
    if change in ("/", "/."):
        if word.rstrip("/").rpartition("/")[2] in ("", ".", ".."):
            word = seen(call, word) or word
        word = os.path.basename(word.rstrip("/"))
    if change[-1:] == ".":
        return os.path.splitext(word)[0]
    return word


def _addresses(reading: Reading) -> list[str]:
    """The file names that the operands, addresses, end in."""
    names = []
    for address in reading.options.operands + reading.options.values("--url"):
        name = name_of(address)
        if not is_known(name):
            reading.call.guess("a computed address", reading.folder or None)
        elif name and "=" not in address.partition("?")[0]:
            names.append(name)
    return names


def name_of(address: str) -> str:
    """Return the last name of an address, without its query; empty if it has no name."""
    rest = address.partition("?")[0].partition("#")[0].split("://", 1)[-1]
    if "/" in rest:
        return os.path.basename(rest)
    return ""
