"""The effects of a command on files, as far as they can be known without running it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from swarm_hook_core import EDIT, REPLACE, state
from swarm_hook_core.clock import Budget

TYPE_CHECKING = False

if TYPE_CHECKING:
    from swarm_hook_core.shell.walk import Walk

Admits = Callable[[str], "bool | None"]  # a predicate of absolute paths: True, False, or None if unknown
Span = tuple[Any, ...]  # see `spans`


MOST = 2000  # writes, trees, reads or guesses that are kept; a command that has more writes is a guess

MORE = "more effects than can be kept"

LONGEST_BY = 80  # characters of a command that a denial cites
MOST_LINES = 24  # names of a search's result that are read one by one
MOST_TEXT = 256 * 1024  # characters of a stream

# Marks in a word stand for a part that only a run could tell, or, as the whole word, for many found names.
UNKNOWN = "\0?\0"


class Effects:
    """The effects found, in the order of the command.

    writes   Write: a path that is written, made, or removed
    trees    Tree: a folder with all under it, or the files that its `admits` names
    git      GitCall: a git command that changes files or the repository; git itself is asked for the files
    guesses  Guess: may write something that the command does not name
    reads    Read: a file (or a known part of it, or its uncommitted changes) that the command certainly shows
    texts    absolute path -> the Stream last put into that file, or None if unknown
    copied   absolute path -> the Stream of a file of its own, put in that file's place
    programs names of the programs that it runs, as far as they are known; for git also the command: ``git fetch``
    deeds    ``(words, folder, by)`` of commands that may weaken the protection of others: see ``protected``
    late     commands with a list of files that came too late: their files are unknown
    moves    ``(folder, by)`` of commands of version control that may discard or move work, and cannot be asked about it
    runs     True if it runs the project's own code (tests, builds): worth watching, but not worth a notice
    budget   the time to find and judge the effects; it starts now unless it is given
    """

    __slots__ = (
        "writes", "trees", "git", "guesses", "reads", "texts", "copied", "programs", "deeds", "moves", "late", "runs",
        "budget",
    )  # fmt: skip

    def __init__(self, budget: Budget | None = None) -> None:
        self.budget = budget or Budget()
        self.writes: list[Write] = []
        self.trees: list[Tree] = []
        self.git: list[GitCall] = []
        self.guesses: list[Guess] = []
        self.reads: list[Read] = []
        self.texts: dict[str, Stream | None] = {}
        self.copied: dict[str, Stream] = {}
        self.programs: set[str] = set()
        self.deeds: list[tuple[list[str], str | None, str]] = []
        self.late: list[str] = []
        self.moves: list[tuple[str, str]] = []
        self.runs = False

    def came_late(self, words: str) -> None:
        """Note that the list of files that the command `words` prints came too late, and record that as a fault."""

        if words in self.late:
            return
        self.late.append(words)
        state.record("shell", "pre_tool_use", f"no answer in time from `{cited(words)}`")

    def add_deed(self, words: list[str], folder: str | None, by: str) -> None:
        """Keep a command for ``protected``, up to `MOST`."""
        if len(self.deeds) < MOST:
            self.deeds.append((words, folder, by))

    @property
    def size(self) -> int:
        """Return the number of effects found so far."""
        return len(self.writes) + len(self.trees) + len(self.git) + len(self.guesses)

    def add(self, item: Write | Tree | GitCall | Guess | Read) -> None:
        """Append `item` to the list of its kind, up to `MOST`."""
        kind: list[Any] = getattr(self, _LISTS[type(item)])
        if len(kind) < MOST:
            kind.append(item)
        elif kind is not self.reads and (not self.guesses or self.guesses[-1].why != MORE):
            self.guesses.append(Guess(MORE, ""))


class Write:
    """`path` as spelled in absolute `folder`; `by`: the words that write it, for people; `how`: see `change`."""

    __slots__ = ("folder", "path", "by", "how")

    def __init__(self, folder: str, path: str, by: str, how: str = EDIT) -> None:
        self.folder = folder
        self.path = path
        self.by = by
        self.how = how


class Read:
    """`path` as spelled in absolute `folder`: a file that is shown to the model.

    `spans`: the parts of it that are shown, each a cut of the rest left by the others, as ``spans`` has them; empty
    for the whole. `since`: if not empty, only the file's changes are shown: since it was staged (``index``) or
    committed (``HEAD``).
    """

    __slots__ = ("folder", "path", "spans", "since")

    def __init__(self, folder: str, path: str, spans: Sequence[Span] = (), since: str = "") -> None:
        self.folder = folder
        self.path = path
        self.spans = spans
        self.since = since


class Tree:
    """Files at and under absolute `root`, which need not exist; `how`: the fate of each of them, see `change`.

    `admits(path)`: True, False, or None (unknown) for a write of the file at absolute `path`, at or under `root`.
    Called for locked files only, so it may look at the disk. `is_whole`: True for every path. `is_told`: a model hears
    of others' changes in files that it only may write, too.
    """

    __slots__ = ("root", "by", "admits", "how", "is_whole", "is_told")

    def __init__(self, root: str, by: str, admits: Admits | None = None, how: str = EDIT) -> None:
        self.root = root
        self.by = by
        self.admits: Admits = admits or _everything
        self.how = how
        self.is_whole = admits is None
        self.is_told = False


class GitCall:
    """``git <words>`` as run in absolute `folder` (``-C`` followed); global options are gone, aliases are not.

    top           global options for the repository and settings: ``--git-dir=x``, ``-c a=b``
    environment   git's variables that the command itself sets (``GIT_INDEX_FILE``)
    found         word -> list of the `Found`s that it stands for
    after         True if an earlier git call of the same command may have moved branches or fetched
    in_doubt      True if it may not run in this folder at all, so that no write is certain
    patch         ``(absolute paths, Founds)`` of the files that it patches in the index; None if unknown
    aside         the hook that puts unstaged changes aside while it runs (``commit_hooks``), once git was asked
    hook          the hook that it stands in; empty for a command of the call itself
    """

    __slots__ = ("folder", "words", "by", "top", "environment", "found", "after", "in_doubt", "aside", "hook", "patch")

    def __init__(
        self,
        folder: str,
        words: list[str],
        by: str,
        top: Sequence[str] = (),
        environment: dict[str, str] | None = None,
        found: dict[str, list[Found]] | None = None,
        after: bool = False,
    ) -> None:
        self.folder = folder
        self.words = words
        self.by = by
        self.top = top
        self.environment = environment or {}
        self.found = found or {}
        self.after = after
        self.in_doubt = False
        self.aside = self.hook = ""
        self.patch: tuple[list[str], list[Found]] | None = None


class Guess:
    """`why` something may be written, under absolute `folder` (empty: anywhere); `by` as in `Write`."""

    __slots__ = ("why", "folder", "by")

    def __init__(self, why: str, folder: str, by: str = "") -> None:
        self.why = why
        self.folder = folder
        self.by = by


class Stream:
    """The output of a command, for the command that reads it: its `text` if known, or the names of a list of Founds.

    `file`: the absolute path of the file on the disk with exactly this content, also if it is no text. `packed`: for an
    archive being made, ``(path within) -> True, False or None``, as `Tree` admits.
    """

    __slots__ = ("text", "found", "file", "packed")

    def __init__(
        self,
        text: str | None = None,
        found: Found | list[Found] | None = None,
        file: str | None = None,
        packed: Admits | None = None,
    ) -> None:
        self.text = text
        if isinstance(found, Found):
            found = [found]
        self.found = found
        self.file = file
        self.packed = packed


class Found:
    """A set of files that only the disk knows (``find``, ``grep -l``): those under `root` that `admits` (see Tree).

    `names`: a function that lists them as they are printed, or returns None if they are too many; or None.
    """

    __slots__ = ("root", "admits", "names")

    def __init__(
        self,
        root: str,
        admits: Admits | None = None,
        names: Callable[[], list[str] | None] | None = None,
    ) -> None:
        self.root = root
        self.admits: Admits = admits or _everything
        self.names = names


def edit_or_replace(keeps: bool) -> str:
    """Return EDIT if a write `keeps` the old text, or part of it; else REPLACE."""
    if keeps:
        return EDIT
    return REPLACE


def is_known(text: str) -> bool:
    """Return True if a word's text holds no mark."""
    return "\0" not in text


def is_device(path: str) -> bool:
    """Return True if a write to absolute `path` changes no file: a device, but no file of the memory's file system."""
    return path.startswith("/dev/") and not path.startswith("/dev/shm/")


def absolute(folder: str | None, path: str) -> str | None:
    """Return `path` seen from `folder` (None: unknown), or None if that is unknown."""
    if not is_known(path) or (folder is None and not os.path.isabs(path)):
        return None
    return os.path.normpath(os.path.join(folder or "/", path))


def _everything(_path: str) -> bool:
    return True


def at_most_possible(admits: Admits) -> Admits:
    """Return the predicate that answers None (unsure) where `admits` does not say False."""
    return lambda path: False if admits(path) is False else None


_LISTS = {Write: "writes", Tree: "trees", GitCall: "git", Guess: "guesses", Read: "reads"}


def cited(text: str) -> str:
    """Return the text of a command as a denial cites it: one line of at most `LONGEST_BY` characters."""
    text = " ".join(text.split())
    if len(text) <= LONGEST_BY:
        return text
    return text[: LONGEST_BY - 1] + "…"


def cited_output(by: str, operator: str, target: str) -> str:
    """Return the same of a command with the file that its output goes to: the file stays readable."""
    text = " ".join(f"{by} {operator} {target}".split())
    if len(text) <= LONGEST_BY:
        return text
    tail = f" … {operator} {target}"
    return text[: max(0, LONGEST_BY - len(tail))] + tail[-LONGEST_BY:]


def joined(streams: Iterable[Stream | None]) -> Stream | None:
    """Return the Stream of `streams` one after the other, or None if one of them is unknown."""
    parts: list[Stream] = []
    for one in streams:
        if one is None:
            return None
        if one.text != "":
            parts.append(one)
    if len(parts) == 1:
        return parts[0]
    texts = [one.text for one in parts if one.text is not None]
    if len(texts) == len(parts):
        text = "".join(texts)
        if len(text) <= MOST_TEXT:
            return Stream(text)
        return None
    founds: list[Found] = []
    for one in parts:
        if one.found is None:
            return None
        founds += one.found
    return Stream(None, founds)


def text_of(stream: Stream | None) -> str | None:
    """Return the text of `stream`, with a search's names listed; None if unknown."""
    if stream is None:
        return None
    if stream.text is not None or stream.found is None:
        return stream.text
    names: list[str] = []
    for one in stream.found:
        more = one.names and one.names()
        if more is None:
            return None
        names += more
    stream.text = "".join(name + "\n" for name in names)
    return stream.text


class Input:
    """The input of a command, line by line if the shell itself reads it (`read`).

    `has_nul`: the input may contain zero bytes; they are newlines in the text of a Stream.
    """

    __slots__ = ("stream", "has_nul", "_rest", "_was_read")

    def __init__(self, stream: Stream | None, has_nul: bool = True) -> None:
        self.stream = stream
        self.has_nul = has_nul
        self._rest: str | None = None
        if stream is not None and stream.found is None:
            self._rest = stream.text
        self._was_read = False

    def rest(self) -> Stream | None:
        """Return the Stream that is left, or None if it is unknown."""
        if self.stream is None or self._rest is None or self._rest is self.stream.text:
            return self.stream
        return Stream(self._rest)

    def line(self, walk: Walk, end: str = "\n") -> tuple[str, bool | None]:
        """Return (next line, or a mark for all found names; True if there is one, None if unknown).

        `end`: the letter that ends a line; empty: a zero byte.
        """
        if self.stream is None or (self._rest is None and self.stream.found is None):
            return UNKNOWN, None
        if self._rest is None and not self._was_read:
            text = text_of(self.stream)
            if text is not None and text.count("\n") <= MOST_LINES:
                self._rest = text
        if self._rest is None:
            done, self._was_read = self._was_read, True
            if done:
                return "", False
            names = (self.stream.text or "").splitlines()
            if names:
                return walk.each_of(names), True
            return walk.mark(self.stream.found or []), True
        if not self._rest:
            return "", False
        if end or self.has_nul:
            line, mark, self._rest = self._rest.partition(end or "\n")
        else:
            line, mark, self._rest = self._rest, "", ""
        return line, bool(mark) or end == "\n"


# Marks: placeholders in a word for names that only the disk, or only a run, can tell.

MOST_CHOICES = 16  # texts that a variable may hold after branches, before it counts as unknown


class Names:
    """A mark's meaning: these texts. `all_of`: each of them in turn (a loop); otherwise an unknown one of them."""

    __slots__ = ("texts", "all_of")

    def __init__(self, texts: list[str], all_of: bool) -> None:
        self.texts = texts
        self.all_of = all_of


class Unknowns:
    """The marks given out so far, with their meanings."""

    def __init__(self) -> None:
        self.meanings: dict[str, Names | list[Found]] = {}  # mark -> list of Found, or Names

    def found(self, word: str, folder: str | None) -> list[Found] | None:
        """Return the Founds that `word`, seen from `folder`, as a whole stands for; None if unknown.

        It may be a mark, or a mark between known texts.
        """
        if "\0" not in word:
            return None
        before, _, rest = word.partition("\0")
        name, _, after = rest.partition("\0")
        meaning = self.meanings.get("\0" + name + "\0")
        if meaning is None or "\0" in after:
            return None
        if isinstance(meaning, Names):
            spelled = [before + text + after for text in meaning.texts if before + text + after]
            paths = [path for path in (absolute(folder, one) for one in spelled) if path is not None]
            if len(paths) < len(spelled) or not paths:
                return None
            return [Found(os.path.commonpath(paths), _one_of(frozenset(paths), meaning.all_of or None))]
        if not before and not after:
            return meaning
        if before and not before.endswith("/"):
            return None
        if before:  # `build/$f`: the folder that the names are relative to is unknown
            start = absolute(folder, before)
            if start is None:
                return None
            return [Found(start, lambda _path: None)]
        return [Found(one.root, _with_end(one.admits, after)) for one in meaning]

    def mark(self, found: Found | list[Found]) -> str:
        """A new mark that stands for `found`: a Found, or a list of them."""
        return self._marked(found if isinstance(found, list) else [found])

    def shown(self, word: str) -> str:
        """`word` for people: its marks made readable."""
        if "\0" not in word:
            return word
        return "".join(part if place % 2 == 0 else "…" for place, part in enumerate(word.split("\0")))

    def has_found(self, text: str) -> bool:
        """Return True if a mark in `text` stands for names."""
        return "\0" in text and any(place % 2 and part != "?" for place, part in enumerate(text.split("\0")))

    def renamed(
        self, text: str, change: Callable[[str], str], operator: str, argument: str, otherwise: str = UNKNOWN
    ) -> str:
        """A mark for the names of `text` after ``${name<operator><argument>}``, where `change(name)` does that to one;
        `otherwise` where they cannot be told."""
        meaning = self.meanings.get(text)
        if isinstance(meaning, Names):
            return self._marked(Names([change(one) for one in meaning.texts], meaning.all_of))
        if isinstance(meaning, list) and operator in ("%", "%%") and not set("*?[\\'\"$`").intersection(argument):
            return self.mark([Found(one.root, _without_end(one.admits, argument)) for one in meaning])
        return otherwise

    def each_of(self, texts: list[str]) -> str:
        """A mark that stands for each of `texts` in turn."""
        return self._marked(Names(list(texts), all_of=True))

    def some_of(self, texts: list[str]) -> str:
        """Return a mark for an unknown subset of `texts`."""
        return self._marked(Names(list(texts), all_of=False))

    def one_of(self, texts: list[str]) -> str:
        """Return a text that stands for an unknown one of `texts`."""
        flat: list[Any] = []
        for text in texts:
            meaning = self.meanings.get(text)
            if isinstance(meaning, Names):
                flat += meaning.texts
            else:
                flat.append(text)
        flat = list(dict.fromkeys(flat))
        if len(flat) > MOST_CHOICES or not all(map(is_known, flat)):
            return UNKNOWN
        return self._marked(Names(flat, all_of=False))

    def _marked(self, meaning: Names | list[Found]) -> str:
        mark = f"\0{len(self.meanings)}\0"
        self.meanings[mark] = meaning
        return mark


def _one_of(paths: frozenset[str], answer: bool | None) -> Admits:
    return lambda path: answer if path in paths else False


def _with_end(admits: Admits, end: str) -> Admits:
    """Of names with `end` put behind them."""
    return lambda path: path.endswith(end) and admits(path[: -len(end)])


def _without_end(admits: Admits, end: str) -> Admits:
    """Of names with `end` taken away."""
    return lambda path: admits(path + end)
