"""Where files land: beside, under or over what is there already.

Words go in and come out as a `Call` has them, marks and all; predicates are those of ``model.Tree``.
"""

import os

from swarm_hook_core.change import EDIT, REPLACE
from swarm_hook_core.shell.globs import admits
from swarm_hook_core.shell.model import absolute, is_known
from swarm_hook_core.shell.words import text_braces


def cannot_tell(_path: str) -> None:
    """The predicate of a tree of which nothing is certain."""
    return


def maybe(call, word: str) -> None:
    """`word` may be written: an editor has it open, a script that nobody can read is given it."""
    if word and word != "-":
        call.tree(word, cannot_tell)


def base(word: str) -> str:
    """The last name in `word`, as cp and mv find it: slashes at the end do not count."""
    return os.path.basename(word.rstrip("/")) or word


def seen(call, word: str):
    """The absolute path of `word`, or None where it has marks or the folder is not known."""
    return absolute(call.folder, word) if word else None


def is_folder(call, word: str) -> bool:
    """Whether `word` names a folder that is on the disk."""
    path = seen(call, word)
    return path is not None and os.path.isdir(path)


def is_file(call, word: str) -> bool:
    """Whether `word` names something on the disk that is no folder."""
    path = seen(call, word)
    return path is not None and os.path.lexists(path) and not os.path.isdir(path)


def is_remote(word: str) -> bool:
    """Whether programs that copy take `word` for a file of another machine: ``host:path``, ``rsync://...``."""
    colon = word.find(":")
    return colon > 0 and "/" not in word[:colon]


def targets(call, source: str, dest: str, inside=None) -> "list[str]":
    """What a program that puts `source` at or into `dest` would write, as words.

    `inside`: True where `dest` is a folder that it goes into, False where `dest` is the name it gets, None where
    the disk tells. A `dest` that does not exist may be made by the same command line: then both are given.
    """
    within = dest.rstrip("/") + "/" + base(source) if dest else base(source)
    if base(source) in (".", ".."):
        within = dest
    if inside is None:
        if dest.endswith("/") or is_folder(call, dest):
            inside = True
        elif is_file(call, dest) or not is_known(dest):
            inside = False
        else:
            return [dest, within] if within != dest else [dest]
    return [within if inside else dest]


def put(call, source: str, dest: str, inside=None, spared=False, how: str = REPLACE) -> "list[str]":
    """Write `source`, a file, at or into `dest`; `spared`: what exists is left alone. The targets that were named."""
    how = EDIT if spared else how
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
        call.write(word, EDIT if files.is_made_of(origin, place) else how)
        if origin and place:
            files.made_of[place] = [(call.folder, ["", source])]
    return named


def exists(call, word: str) -> bool:
    """Whether `word` names anything on the disk."""
    path = seen(call, word)
    return path is not None and os.path.lexists(path)


def _beside(call, source: str, dest: str):
    """Whether a file directly in `dest` gets its content from one of those that `source`, a word with marks, is."""
    root, found = seen(call, dest), call.found(source)

    def admits(path: str):
        if path == root:
            return True
        if os.path.dirname(path) != root:
            return False
        if found is None:
            return None
        name = os.path.basename(path)
        near = [one.admits(os.path.join(one.root, name)) for one in found]
        near += [one.admits(one.root) for one in found if os.path.basename(one.root) == name]
        return True if any(near) else None

    return admits


def lay_over(call, source: str, dest: str, inside=None, spared=False, allowed=None) -> "list[str]":
    """Lay the folder `source` over what is at, or in, `dest`: only what has a counterpart is written.

    `spared`: what exists is left alone. `allowed(rest)`: whether the path `rest` within the folder takes part: True,
    False or None. Returns the targets that were named.
    """
    how = EDIT if spared else REPLACE
    if call.found(dest) is not None or not is_known(source):
        call.tree(dest, cannot_tell, how)
        return []
    named = targets(call, source, dest, inside)
    made = made_before(call)
    for word in named:
        call.tree(word, Counterpart(seen(call, source), seen(call, word), spared, allowed, made), how)
    return named


def made_before(call):
    """``made(path)``: whether the same command line has written the file at absolute `path` up to here, as `admits`."""
    effects = call.walk.effects
    writes, trees = len(effects.writes), len(effects.trees)
    known: set = set()

    def made(path: str):
        if writes and not known:
            known.update(absolute(write.folder, write.path) for write in effects.writes[:writes])
        if path in known:
            return True
        answer: bool | None = False
        for tree in effects.trees[:trees]:
            if path == tree.root or path.startswith(tree.root.rstrip("/") + "/"):
                # What that tree found on the disk, not what was made before it: else circles would cost too much.
                one = getattr(tree.admits, "on_disk", tree.admits)(path)
                if one:
                    return True
                answer = None if one is None else answer
        return answer

    return made


class Counterpart:
    """The predicate: whether `source`, an absolute folder (None: not known), has what a path is under `root`.

    `spared`: what exists is left alone; `allowed` as in `lay_over`. `made` tells what the command line itself put into
    `source` before, see `made_before`.
    """

    def __init__(self, source, root, spared=False, allowed=None, made=None):
        self.source = source
        self.root = root
        self.spared = spared
        self.allowed = allowed
        self.made = made

    def __call__(self, path: str):
        return self.answer(path, self.made)

    def on_disk(self, path: str):
        """The same, going by the disk alone."""
        return self.answer(path, None)

    def arrives(self):
        """The paths that the files below `source` get."""
        return arrivals(self.source, self.root)

    def answer(self, path: str, made):
        if self.source is None or self.root is None:
            return None
        rest = below(path, self.root)
        if self.spared and os.path.lexists(path) and not os.path.isdir(path):
            return False
        beginning = os.path.join(self.source, rest) if rest else self.source
        if not os.path.lexists(beginning):
            there = made(beginning) if made is not None else False
            if not there:
                return there if os.path.isdir(self.source) else None
        return True if self.allowed is None or not rest else self.allowed(rest)


def arrivals(source, root):
    """The paths that the files below `source` get when that folder is laid over `root`, both absolute or None."""
    waiting = [source] if source and root else []
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    yield root + entry.path[len(source.rstrip("/")) :]
        except OSError:
            continue


def below(path: str, root: str) -> str:
    """What comes after `root` in `path`, both absolute and `path` at or under it; empty for `root` itself."""
    return path[len(root.rstrip("/")) + 1 :] if path != root else ""


def directly_in(root, admits_name):
    """The predicate: ``admits_name(name)`` of files right in the absolute folder `root`; others are not."""

    def admits(path: str):
        folder, name = os.path.split(path)
        return admits_name(name) if folder == root else False

    return admits


def with_endings(endings, unsure_in=("node_modules", ".git", ".venv", "venv", "__pycache__", "vendor", "target")):
    """The predicate: names with one of `endings` (``.py``, or a whole name). None in folders that tools pass by."""
    endings = tuple(endings)

    def admits(path: str):
        if not path.endswith(endings):
            return False
        parts = path.split("/")
        return None if any(folder in parts for folder in unsure_in) else True

    return admits


def matching(pattern: str, folder: str):
    """The predicate of a pattern that the program expands itself: ``**``, ``*``, ``?``, ``[a]``, ``{a,b}``.

    `folder`: what a relative pattern is seen from, absolute.
    """
    choices = [admits(os.path.normpath(os.path.join(folder, one)), "/", ("globstar",)) for one in text_braces(pattern)]

    def matches(path: str):
        answers = [choice(path) for choice in choices]
        return True if True in answers else None if None in answers else False

    return matches


def fixed_part(pattern: str) -> str:
    """The folder of a pattern before its first wildcard: ``src`` of ``src/**/*.ts``."""
    parts = pattern.split("/")
    at = next((place for place, part in enumerate(parts) if any(char in part for char in "*?[{")), len(parts))
    return "/".join(parts[:at]) or ("/" if pattern.startswith("/") else ".")


def is_pattern(word: str) -> bool:
    """Whether `word` has wildcards in it."""
    return any(char in word for char in "*?[{") and is_known(word)
