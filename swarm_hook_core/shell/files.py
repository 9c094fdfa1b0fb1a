"""The files as a script has left them so far: their content, and if they may still exist."""

from __future__ import annotations

import os
from collections.abc import Iterable

from swarm_hook_core import EDIT
from swarm_hook_core.paths import contains
from swarm_hook_core.shell.model import Effects, Guess, Stream, Tree, Write, absolute, is_device, is_known

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


# Where a copied or moved file lands: at its destination, or inside of it. Words may have marks (``model``).
#
# folder  absolute path of the folder that the words are seen from; None if unknown


def seen(folder: str | None, word: str) -> str | None:
    """Return the absolute path of `word`, or None if it has marks or the folder is unknown."""
    if word:
        return absolute(folder, word)
    return None


def is_folder(folder: str | None, word: str) -> bool:
    """Return True if `word` names a folder on the disk."""
    path = seen(folder, word)
    return path is not None and os.path.isdir(path)


def is_file(folder: str | None, word: str) -> bool:
    """Return True if `word` names something on the disk that is no folder."""
    path = seen(folder, word)
    return path is not None and os.path.lexists(path) and not os.path.isdir(path)


def base(word: str) -> str:
    """The last name in `word`, as cp and mv find it: slashes at the end do not count."""
    return os.path.basename(word.rstrip("/")) or word


def targets(folder: str | None, source: str, dest: str, inside: bool | None = None) -> list[str]:
    """Return the words that a program would write if it puts `source` at or into `dest`.

    `inside`: True if `dest` is a folder that it goes into, False if `dest` is the new name, None if the disk decides. A
    `dest` that does not exist may be made by the same command line: then both words are returned.
    """
    if dest:
        within = dest.rstrip("/") + "/" + base(source)
    else:
        within = base(source)
    if base(source) in (".", ".."):
        within = dest
    if inside is None:
        if dest.endswith("/") or is_folder(folder, dest):
            inside = True
        elif is_file(folder, dest) or not is_known(dest):
            inside = False
        else:
            if within != dest:
                return [dest, within]
            return [dest]
    if inside:
        return [within]
    return [dest]
