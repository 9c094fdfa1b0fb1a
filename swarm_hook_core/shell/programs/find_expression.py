"""The expression of ``find``, tested on one path at a time; and a search's names below a folder, if they are few."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable
from typing import Any

from swarm_hook_core.paths import contains
from swarm_hook_core.wildcards import compiled, matches

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_hook_core.shell.model import Admits
    from swarm_hook_core.shell.walk import Walk


MOST_WORDS = 400
DEEPEST = 40  # parentheses within each other
MOST_LOOKED_AT = 1500  # files and folders of one search
MOST_NAMES = 200  # that it finds
SECONDS = 0.006  # of processor time for one search; a walk has `Walk.seconds_to_list` for all of them
RUNS = ("-exec", "-execdir", "-ok", "-okdir")

# Tests without a word of their own, and with one.
_ALONE = frozenset("-empty -readable -writable -executable -true -false -nouser -nogroup".split())
_ONE = frozenset(
    "-name -iname -path -ipath -wholename -iwholename -regex -iregex -type -xtype -anewer -cnewer -mtime -mmin"
    " -atime -amin -ctime -cmin -size -user -group -uid -gid -perm -links -inum -samefile -lname -ilname -fstype -used"
    " -context".split()
)
_OPTIONS_ONE = ("-maxdepth", "-mindepth", "-regextype")
_OPTIONS = frozenset("-depth -d -xdev -mount -daystart -follow -warn -nowarn -noleaf -ignore_readdir_race".split())
_ACTIONS = {"-print": 0, "-print0": 0, "-ls": 0, "-delete": 0, "-prune": 0, "-quit": 0, "-printf": 1} | {
    "-fprint": 1, "-fprint0": 1, "-fls": 1, "-fprintf": 2,
}  # fmt: skip
# Commands of an -exec that may say no.
_ASKS = frozenset("grep egrep fgrep rg test [ sh bash zsh false diff cmp git file head awk".split())
_TYPES = {"f": stat.S_ISREG, "d": stat.S_ISDIR, "l": stat.S_ISLNK, "p": stat.S_ISFIFO, "s": stat.S_ISSOCK}
_UNITS = {"c": 1, "w": 2, "b": 512, "k": 1024, "M": 1 << 20, "G": 1 << 30}


class Action:
    """An action on found files. kind: ``-delete``, ``-exec``...; words: of its command."""

    __slots__ = ("kind", "words", "number")

    def __init__(self, kind: str, words: list[str], number: int) -> None:
        self.kind = kind
        self.words = words
        self.number = number


class Expression:
    """`actions` in order; `reaches` and `names` tell their files."""

    def __init__(self, words: list[str], folder: str | None, follows: bool) -> None:
        self.words = words
        self.at = 0
        self.folder = folder
        self.follows = follows
        self.actions: list[Action] = []
        self._patterns: dict[str, list[Any]] = {}  # read once, for all files
        self.deepest: int | None = None
        self.shallowest: int | None = None
        self.depth_first = False
        self.broken = len(words) > MOST_WORDS
        if words and not self.broken:
            self.root = self._either(0)
        else:
            self.root = ("is", "-true", "")
        self.broken = self.broken or self.at < len(words)
        if not any(action.kind not in ("-prune", "-quit") for action in self.actions):
            self.root = ("and", self.root, self._act("-print", []))
        self.prunes = any(action.kind == "-prune" for action in self.actions) and not self.depth_first

    def reaches(self, action: Action, operand: str, root: str) -> Admits:
        """Return a predicate of absolute paths at or under `root`, which the command spells `operand` (see
        ``model.Tree``).
        """

        def admits(path: str) -> bool | None:
            if self.broken:
                return None
            if not contains(root, path):
                return False
            names = []
            if path != root:
                names = path[len(root.rstrip("/")) + 1 :].split("/")
            if self.deepest is not None and len(names) > self.deepest:
                return False
            if self.shallowest is not None and len(names) < self.shallowest:
                return False
            cuts = [self._hits(operand, root, names[:depth]).get("-prune", False) for depth in range(len(names))]
            if self.prunes and True in cuts:
                return False
            hit = self._hits(operand, root, names).get(action.number, False)
            if self.prunes and None in cuts and hit:
                return None
            return hit

        return admits

    def names(self, action: Action, operand: str, root: str, walk: Walk) -> list[str] | None:
        """Return the files of `action` at and under `root`, as `find` prints them; None if they are too many to
        list.
        """
        if self.broken or any(one.kind == "-quit" for one in self.actions):
            return None

        def look(names: list[str]) -> tuple[bool | None, bool | None]:
            hits, depth = self._hits(operand, root, names), len(names)
            goes_on = self.deepest is None or depth < self.deepest
            cut: bool | None = False
            if self.prunes:
                cut = hits.get("-prune", False)
            path = os.path.join(root, *names)
            follows = self.follows or not names and operand.endswith("/")
            goes_on = goes_on and cut is not True and os.path.isdir(path) and (follows or not os.path.islink(path))
            reached = self.shallowest is None or depth >= self.shallowest
            return reached and hits.get(action.number, False), None if goes_on and cut is None else goes_on

        return names_below(walk, root, operand, look)

    def _hits(self, operand: str, root: str, names: list[str]) -> dict[int | str, bool | None]:
        """Return number of an action, or ``-prune``, -> True or None, for the actions that reach the path of
        `names`.
        """
        spelled = operand
        if names:
            spelled = "/".join([operand.rstrip("/") or "/", *names])
        hits: dict[int | str, bool | None] = {}
        self._ask(self.root, spelled, os.path.join(root, *names), True, hits)
        return hits

    def _ask(self, node: Any, spelled: str, whole: str, sure: bool, hits: dict[int | str, bool | None]) -> bool | None:
        """Return True if `node` holds for a path, None if unknown; `sure`: it is certainly evaluated."""
        kind, left, right = node
        if kind == "is":
            return self._holds(left, right, spelled, whole)
        if kind == "act":
            key = "-prune"
            if left.kind != "-prune":
                key = left.number
            hits[key] = sure or hits.get(key)
            asks = left.kind in RUNS and left.words[-1:] != ["+"] and left.words[0].rpartition("/")[2] in _ASKS
            if asks:
                return None
            return True
        first = self._ask(left, spelled, whole, sure, hits)
        if kind == "not":
            if first is None:
                return None
            return not first
        ends = {"and": False, "or": True}.get(kind)  # the value that skips the second operand
        if ends is not None and first is ends:
            return ends
        second = self._ask(right, spelled, whole, sure and (ends is None or first is not None), hits)
        if ends is None or first is not None or second is ends:
            return second
        return None

    # Reading

    def _peek(self) -> str:
        if self.at < len(self.words):
            return self.words[self.at]
        return ""

    def _take(self) -> str:
        self.at += 1
        if self.at <= len(self.words):
            return self.words[self.at - 1]
        return ""

    def _either(self, depth: int) -> tuple[Any, ...]:
        left = self._both(depth)
        while self._peek() in ("-o", "-or", ","):
            kind = "or"
            if self._take() == ",":
                kind = "comma"
            left = (kind, left, self._both(depth))
        return left

    def _both(self, depth: int) -> tuple[Any, ...]:
        left = self._one(depth)
        while self.at < len(self.words) and self._peek() not in ("-o", "-or", ",", ")"):
            if self._peek() in ("-a", "-and"):
                self.at += 1
            left = ("and", left, self._one(depth))
        return left

    def _one(self, depth: int) -> tuple[Any, ...]:
        word = self._take()
        if word in ("!", "-not") and depth < DEEPEST:
            return ("not", self._one(depth + 1), None)
        if word == "(" and depth < DEEPEST:
            inner = self._either(depth + 1)
            self.broken = self.broken or self._take() != ")"
            return inner
        if word in RUNS:
            words: list[str] = []
            while self.at < len(self.words) and words[-1:] != [";"] and words[-2:] != ["{}", "+"]:
                words.append(self._take())
            self.broken = self.broken or not words
            if words:
                return self._act(word, words)
            return ("is", "-true", "")
        if word in _ACTIONS:
            self.depth_first = self.depth_first or word == "-delete"
            return self._act(word, [self._take() for _ in range(_ACTIONS[word])])
        if word in _OPTIONS_ONE:
            self._bound(word, self._take())
        elif word in _OPTIONS:
            self.depth_first = self.depth_first or word in ("-depth", "-d")
            self.follows = self.follows or word == "-follow"
        elif word in _ONE or word.startswith("-newer"):
            return ("is", word, self._take())
        else:
            self.broken = self.broken or word not in _ALONE
            return ("is", word, "")
        return ("is", "-true", "")

    def _bound(self, option: str, value: str) -> None:
        if option == "-regextype":
            return
        if not value.isdecimal():
            self.broken = True
        elif option == "-maxdepth":
            self.deepest = int(value)
        else:
            self.shallowest = int(value)

    def _act(self, kind: str, words: list[str]) -> tuple[Any, ...]:
        self.actions.append(Action(kind, words, len(self.actions)))
        return ("act", self.actions[-1], None)

    # Tests

    def _holds(self, test: str, value: str, spelled: str, whole: str) -> bool | None:
        """Return True, False, or None if unknown."""
        if "\0" in value:
            return None
        if test in ("-true", "-false"):
            return test == "-true"
        if test in ("-iname", "-ipath", "-iwholename"):
            test, value, spelled = "-" + test[2:], value.lower(), spelled.lower()
        if test == "-name":
            return self._matches(spelled.rstrip("/").rpartition("/")[2] or spelled, value)
        if test in ("-path", "-wholename"):
            return self._matches(spelled, value)
        try:
            return self._of_file(test, value, whole)
        except (OSError, ValueError):  # the file is gone, or the value is no number
            return None

    def _matches(self, text: str, pattern: str) -> bool:
        if pattern not in self._patterns:
            self._patterns[pattern] = compiled(pattern)
        return matches(text, self._patterns[pattern])

    def _of_file(self, test: str, value: str, whole: str) -> bool | None:
        if self.follows:
            found = os.stat(whole)
        else:
            found = os.lstat(whole)
        if test == "-type":
            return any(_TYPES[letter](found.st_mode) for letter in value.split(",") if letter in _TYPES)
        if test == "-empty":
            is_folder = stat.S_ISDIR(found.st_mode)
            if is_folder:
                return not os.listdir(whole)
            return stat.S_ISREG(found.st_mode) and not found.st_size
        if test == "-newer":
            return found.st_mtime_ns > os.stat(os.path.join(self.folder or "/", value)).st_mtime_ns
        if test == "-size":
            unit, number = _UNITS.get(value[-1:], 512), value if value[-1:].isdecimal() else value[:-1]
            return _compared(-(-found.st_size // unit), number)
        if test in ("-mtime", "-mmin", "-newermt"):
            if test == "-newermt":
                return found.st_mtime > time.mktime(time.strptime(value, "%Y-%m-%d"))
            ago = (time.time() - found.st_mtime) / (86400 if test == "-mtime" else 60)
            return _compared(int(ago) if test == "-mtime" else int(-(-ago // 1)), value)
        return None


def _compared(number: int, value: str) -> bool:
    """``+n``: more; ``-n``: less; ``n``: exactly."""
    if value.startswith("+"):
        return number > int(value[1:])
    if value.startswith("-"):
        return number < int(value[1:])
    return number == int(value)


def names_below(
    walk: Walk, root: str, spelled: str, look: Callable[[list[str]], tuple[bool | None, bool | None]]
) -> list[str] | None:
    """Return the names found at and under absolute `root`, in no order, spelled as they are below `spelled`.

    ``look(names)`` returns two answers about the path that `names` lead to from `root`: True if it is found (None:
    unknown), and True if the search goes on below it. None if there are too many or unknown ones, or if an earlier part
    of the script may have changed the folder.
    """
    if not walk.files.is_untouched(root):
        return None
    start = time.thread_time()
    end = start + min(SECONDS, walk.seconds_to_list)
    try:
        return _names(root, spelled, look, end)
    finally:
        spent = time.thread_time() - start
        walk.seconds_to_list -= spent
        walk.end += spent


def _names(
    root: str, spelled: str, look: Callable[[list[str]], tuple[bool | None, bool | None]], end: float
) -> list[str] | None:
    found: list[str] = []
    waiting: list[Any] = []
    if os.path.lexists(root):
        waiting = [(root, [])]
    looked = 0
    while waiting:
        path, names = waiting.pop()
        looked += 1
        if looked > MOST_LOOKED_AT or len(found) > MOST_NAMES or time.thread_time() > end:
            return None
        answer, goes_on = look(names)
        if answer is None or goes_on is None:
            return None
        if answer:
            found.append(os.path.join(spelled, *names))
        if goes_on:
            try:
                with os.scandir(path) as entries:
                    below = [(entry.path, [*names, entry.name]) for entry in entries]
            except OSError:  # the folder is gone or unreadable, as for find itself
                continue
            if len(below) > MOST_LOOKED_AT:
                return None
            waiting += below
    return found
