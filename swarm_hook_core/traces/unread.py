"""Unparsed shell commands (``ran``): parsed later, when another session's call may concern the files that they wrote.

A session that is alone notes its commands without parsing them. The parsing takes its time from the later call's check.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet

from swarm_hook_core import REMOVE
from swarm_hook_core.clock import Budget
from swarm_hook_core.paths import contains, keys_for
from swarm_hook_core.traces import journal
from swarm_hook_core.traces.journal import Entry

TYPE_CHECKING = False

if TYPE_CHECKING:
    from swarm_hook_core.shell.model import Effects, Tree

    # (entry of a command or None, keys of the files that it wrote, folders that it wrote)
Written = tuple["Entry | None", AbstractSet[str], Sequence["Tree"]]

MOST_COMMANDS = 40  # commands of one session that are parsed in search of a file
MOST_FILES = 40  # files of one call that are searched for, its first
MOST_LATELY = 30  # commands of one session that are parsed for their written files


_STAND_FOR_MANY = (
    b"*",
    b"?",
    b"[",
    b"{",
    b"$",
    b"`",
    b"find ",
    b"xargs",
    b"cp ",
    b"mv ",
    b"tar ",
    b"unzip ",
    b"rsync ",
)
_LOOK = frozenset(b"cat head tail nl less more ls wc grep egrep fgrep rg pwd stat file diff jq".split()) | {
    b"git status", b"git diff", b"git log", b"git show", b"git blame",
}  # fmt: skip
_GO_ON = (b">", b";", b"|", b"&", b"\\n", b"$", b"`", b"--output")


class Reading:
    """Parses others' commands for one call, each command once. `budget`: processor time; None: a new Budget."""

    def __init__(self, budget: Budget | None, real: Callable[[str], str]):
        self._budget = budget
        # set at the first command: parsing has a part of its own, whatever the call's own check took
        self._until: float | None = None
        self._read: dict[tuple[str, str], Effects] = {}  # (command, its folder) -> its Effects
        self.real = real

    def begin_anew(self) -> None:
        """Give the next commands the time of a call of its own."""
        self._budget = self._until = None

    def effects_of(self, entry: Entry) -> Effects | None:
        """Return the Effects of an Entry's command; None if no time is left."""
        found = self._read.get((entry.text, entry.key))
        if found is not None:
            return found
        from swarm_hook_core.shell import effects_of, walk  # noqa: F401 - loading it is not held against the command

        if self._budget is None:
            self._budget = Budget()
        if self._until is None:
            self._until = self._budget.part()
        elif time.thread_time() > max(self._until, self._budget.end):
            return None
        made: Effects = effects_of(entry.text, entry.key, budget=self._budget)
        self._read[entry.text, entry.key] = made
        return made

    def written_by(self, entry: Entry) -> tuple[list[tuple[str, str]], list[Tree]]:
        """Return ``([(folder, path as spelled)], [Tree])`` of files and folders that the command certainly wrote."""
        effects = self.effects_of(entry)
        if effects is None:
            return [], []
        trees = [tree for tree in effects.trees if tree.how != REMOVE]
        moved = []
        for call in effects.git:
            if call.words[0] in ("mv", "rm"):
                from swarm_hook_core.shell.programs.git.uncommitted import moved_or_removed

                moved += [("/", path) for path in moved_or_removed(call)]
        return [(write.folder, write.path) for write in effects.writes] + moved, trees


class UnreadCommands:
    """The unparsed commands in the journal with the entries `data`. `most_files`: that are asked about; None: any.

    are_any  False for the journal of a session that was never alone
    """

    __slots__ = ("are_any", "_reading", "_data", "_lines", "_wide", "_asked", "_most", "_read")

    def __init__(self, data: bytes, reading: Reading, most_files: int | None = MOST_FILES):
        self.are_any = journal.has_kind(data, b"ran")
        self._reading = reading
        self._data = data
        self._lines: list[bytes] | None = None  # raw entries of commands that do more than look, the newest first
        self._wide: list[bytes] = []  # those with patterns or programs that may write files not named
        self._asked, self._most = 0, most_files  # files so far, and at most
        self._read: dict[bytes, Written] = {}  # raw entry -> its command's writes

    def that_wrote(self, keys: Collection[str]) -> list[Entry]:
        """Return the entries of the newest commands that wrote the file with one of these keys."""
        self._asked += 1
        if not self.are_any or (self._most is not None and self._asked > self._most):
            return []
        if self._lines is None:
            lines = [raw for raw in self._data.split(b"\n") if b" ran " in raw]
            self._lines = [raw for raw in reversed(lines) if not looks_only(raw)]
            self._wide = [raw for raw in self._lines if any(mark in raw for mark in _STAND_FOR_MANY)]
        names = {os.path.basename(key).encode("utf-8", "surrogatepass") for key in keys}
        named = [raw for raw in self._lines if any(name in raw for name in names)]
        found = []
        for raw in list(dict.fromkeys(named + self._wide))[:MOST_COMMANDS]:
            if raw not in self._read:
                self._read[raw] = self._parsed(raw)
            entry, written, trees = self._read[raw]
            if entry is not None and (not written.isdisjoint(keys) or any(_is_in(tree, keys) for tree in trees)):
                found.append(entry)
        return found

    def lately_below(self, root: str) -> Iterator[tuple[str, Entry]]:
        """Return ``(path, entry)`` of files at and below `root` written by the newest commands run there."""
        return self._below(root, journal.newest_below(self._data, root, ("ran",), MOST_LATELY))

    def written_below(self, root: str, since_ns: int) -> Iterator[tuple[str, Entry]]:
        """Return ``(path, entry)`` of files at and below `root` certainly written by commands after `since_ns`."""
        return self._below(root, self._since(since_ns))

    def _below(self, root: str, entries: Iterable[Entry]) -> Iterator[tuple[str, Entry]]:
        for entry in entries:
            for folder, spelled in self._reading.written_by(entry)[0]:
                path = self._reading.real(os.path.join(folder, spelled))
                if contains(root, path):
                    yield path, entry

    def cleared_since(self, since_ns: int) -> list[tuple[Entry, str, str]]:
        """Return ``[(entry, deed, place)]`` for the places cleared by commands after `since_ns`."""
        found = []
        for entry in self._since(since_ns):
            from swarm_hook_core.traces import elsewhere

            places = elsewhere.places_of(self._reading.effects_of(entry))
            found += [(entry, deed, place) for place, deed in places.items()]
        return found

    def _since(self, at_ns: int) -> Iterator[Entry]:
        """Yield the entries after `at_ns` of commands that do more than look, the newest first."""
        for entry in journal.newest_of(self._data, "ran"):
            if entry.at_ns < at_ns:
                return
            if not looks_only(b"\0" + entry.text.encode("utf-8", "surrogatepass")):
                yield entry

    def _parsed(self, raw: bytes) -> Written:
        entry = next(journal.entries([raw]), None)
        if entry is None or entry.kind != "ran":
            return None, frozenset(), ()
        writes, trees = self._reading.written_by(entry)
        return entry, {key for folder, path in writes for key in keys_for(path, folder, self._reading.real)}, trees


def _is_in(tree: Tree, keys: Collection[str]) -> bool:
    """Return True if the Tree certainly includes a file with one of these keys."""
    return any(key.startswith(tree.root.rstrip("/") + "/") and tree.admits(key) is True for key in keys)


def looks_only(raw: bytes) -> bool:
    """Return True if the command plainly only looks: most commands that name a file do."""
    text = raw.rpartition(b"\0")[2]
    first, _, rest = text.partition(b" ")
    if first == b"git":
        first = b"git " + rest.partition(b" ")[0]
    return first in _LOOK and not any(mark in text for mark in _GO_ON)


# The files that a shell command redirects into, by a first look at its text.

_EXPANDED = "$*?[~\\'\""  # signs that a shell replaces in a word
_APART = str.maketrans(dict.fromkeys(";|&()`'\"\n\t{}=", " "))


def redirected_files(text: str, folder: str) -> list[str]:
    """Return absolute paths of files that the shell command `text`, run in `folder`, may write by a plain redirection.

    Only a first look: a word behind `>` may be part of a text. A name that a shell would expand is left out, and all
    names if the command changes its folder later than by a first `cd`.
    """
    begin = text.lstrip()
    if begin.startswith("cd "):
        to, _, rest = begin[3:].partition("&&")
        to = to.strip()
        if not rest or not to or any(sign in to for sign in _EXPANDED):
            return []
        folder, text = os.path.join(folder, to), rest
    if "cd " in text or "pushd" in text:
        return []
    words = dict.fromkeys(
        word for word in redirected(text, appends=True) if not any(sign in word for sign in _EXPANDED)
    )
    return [os.path.normpath(os.path.join(folder, word)) for word in words]


def redirected(text: str, appends: bool = False) -> Iterator[str]:
    """Yield the word after each `>` that replaces a file; not after `>>` unless `appends`, `>&1`, `=>`, `->`, `>=`."""
    place = text.find(">")
    while place >= 0:
        after = text[place + 1 : place + 400]
        before = text[place - 1 : place]
        if appends and after[:1] == ">" and before != "<":
            place, after = place + 1, after[1:]
        if after[:1] in (">", "&", "=", "(") or before in ("=", "-", "<"):
            place = text.find(">", place + 1 + (after[:1] == ">"))
            continue
        words = after.lstrip("|! \t").translate(_APART).split()
        if words and words[0] != "/dev/null":
            yield words[0]
        place = text.find(">", place + 1)
