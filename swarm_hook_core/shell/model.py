"""What a command does to files, as far as that can be known without running it."""

import os

from swarm_hook_core.budget import Budget
from swarm_hook_core.change import EDIT

MOST = 2000  # writes, trees, reads or guesses that are kept; a command that has more writes is a guess

MORE = "more effects than can be kept"

MOST_LINES = 24  # of names that were found, which are read one by one
MOST_TEXT = 256 * 1024  # characters of a stream

# Marks in a word: a part that only a run could tell, and `found`, the whole of which stands for many names.
UNKNOWN = "\0?\0"


class Effects:
    """What was found, in the order of the command.

    writes   Write: a path that is written, made, or removed
    trees    Tree: a folder under which anything may be, or what `admits` says
    git      GitCall: a git command that changes files or the repository; git itself is asked what it would touch
    guesses  Guess: may write something that the command does not name
    reads    Read: a file whose content, or what has changed in it, it certainly shows, or a part that is known
    texts    absolute path -> the Stream that it has put into that file last, or None where that is not known
    copied   absolute path -> the Stream of a file of its own that it has put in the place of that one
    programs names of the programs that it runs, as far as they are known, and of git the command as well: ``git fetch``
    deeds    ``(words, folder, by)`` of commands that may weaken the protection of others: see ``protected``
    runs     whether it runs the project's own code (tests, builds): worth watching, not worth a word
    budget   the time to find and to judge them, which begins when this is made unless it is given
    """

    __slots__ = (
        "writes", "trees", "git", "guesses", "reads", "texts", "copied", "programs", "deeds", "runs", "budget",
    )  # fmt: skip

    def __init__(self, budget=None):
        self.budget = budget or Budget()
        self.writes: list = []
        self.trees: list = []
        self.git: list = []
        self.guesses: list = []
        self.reads: list = []
        self.texts: dict = {}
        self.copied: dict = {}
        self.programs: set = set()
        self.deeds: list = []
        self.runs = False

    def add_deed(self, words: list, folder, by: str) -> None:
        """Keep a command for ``protected``, up to `MOST`."""
        if len(self.deeds) < MOST:
            self.deeds.append((words, folder, by))

    @property
    def size(self) -> int:
        """How many effects were found so far."""
        return len(self.writes) + len(self.trees) + len(self.git) + len(self.guesses)

    def add(self, item) -> None:
        """Append `item` to the list of its kind, up to `MOST`."""
        kind = getattr(self, _LISTS[type(item)])
        if len(kind) < MOST:
            kind.append(item)
        elif kind is not self.reads and (not self.guesses or self.guesses[-1].why != MORE):
            self.guesses.append(Guess(MORE, ""))


class Write:
    """`path` as spelled in absolute `folder`; `by`: the words that write it, for people; `how`: see `change`."""

    __slots__ = ("folder", "path", "by", "how")

    def __init__(self, folder, path, by, how=EDIT):
        self.folder = folder
        self.path = path
        self.by = by
        self.how = how


class Read:
    """`path` as spelled in absolute `folder`: a file that is shown to the model.

    `spans`: the parts of it that come through, each of them a cut of what is left by the others, as ``showing`` has
    them; empty for the whole. `since`: it is not the file that is shown, but what has changed in it: since it was
    staged (``index``), or committed (``HEAD``); else empty.
    """

    __slots__ = ("folder", "path", "spans", "since")

    def __init__(self, folder, path, spans=(), since=""):
        self.folder = folder
        self.path = path
        self.spans = spans
        self.since = since


class Tree:
    """Files at and under absolute `root`, which need not exist; `how`: what happens to each of them, see `change`.

    `admits(path)`: whether the file at absolute `path`, at or under `root`, is written: True, False, or None where
    that cannot be told. Asked of locked files only, so it may look at the disk. `is_whole`: it is true of all.
    """

    __slots__ = ("root", "by", "admits", "how", "is_whole")

    def __init__(self, root, by, admits=None, how=EDIT):
        self.root = root
        self.by = by
        self.admits = admits or _everything
        self.how = how
        self.is_whole = admits is None


class GitCall:
    """``git <words>`` as run in absolute `folder` (``-C`` followed); global options are gone, aliases are not.

    top           global options that say which repository and settings: ``--git-dir=x``, ``-c a=b``
    environment   what the command itself sets of git's variables (``GIT_INDEX_FILE``)
    found         word -> list of the `Found`s that it stands for
    after         whether an earlier git call of the same command may have moved branches or fetched
    in_doubt      whether it may not run in this folder at all, so that nothing it would touch is certain
    patch         ``(absolute paths, Founds)`` of the files that it applies a patch to in the index; None: not known
    aside         what puts unstaged changes aside while it runs (``commit_hooks``), once git was asked; empty for none
    """

    __slots__ = ("folder", "words", "by", "top", "environment", "found", "after", "in_doubt", "aside", "patch")

    def __init__(self, folder, words, by, top=(), environment=None, found=None, after=False):
        self.folder = folder
        self.words = words
        self.by = by
        self.top = top
        self.environment = environment or {}
        self.found = found or {}
        self.after = after
        self.in_doubt = False
        self.aside = ""
        self.patch = None


class Guess:
    """`why` something may be written, under absolute `folder` (empty: anywhere); `by` as in `Write`."""

    __slots__ = ("why", "folder", "by")

    def __init__(self, why, folder, by=""):
        self.why = why
        self.folder = folder
        self.by = by


class Stream:
    """What a command prints, for what reads it: its `text` where that is known, or names that `found`, a list of
    Founds, describes.

    `file`: the absolute path of the file on the disk that it is the whole of, bytes that are no text included.
    `packed`: of an archive that is being made, ``(path within) -> whether it holds that``, as `Tree` admits.
    """

    __slots__ = ("text", "found", "file", "packed")

    def __init__(self, text=None, found=None, file=None, packed=None):
        self.text = text
        self.found: list | None = found if found is None or isinstance(found, list) else [found]
        self.file = file
        self.packed = packed


class Found:
    """A set of files that only the disk knows (``find``, ``grep -l``): those under `root` that `admits` (see Tree).

    `names`: a function that lists them as they are printed, or gives None where they are too many; None where there
    is no such function.
    """

    __slots__ = ("root", "admits", "names")

    def __init__(self, root, admits=None, names=None):
        self.root = root
        self.admits = admits or _everything
        self.names = names


def is_known(text: str) -> bool:
    """Whether a word's text holds no mark."""
    return "\0" not in text


def absolute(folder, path: str):
    """`path` seen from `folder` (None: not known), or None where that cannot be told."""
    if not is_known(path) or (folder is None and not os.path.isabs(path)):
        return None
    return os.path.normpath(os.path.join(folder or "/", path))


def _everything(_path: str) -> bool:
    return True


_LISTS = {Write: "writes", Tree: "trees", GitCall: "git", Guess: "guesses", Read: "reads"}


def joined(streams: list):
    """The Stream of what prints `streams` one after the other, or None where one of them is not known."""
    streams = [one for one in streams if one is None or one.text != ""]
    if not streams:
        return Stream("")
    if len(streams) == 1 or None in streams:
        return None if None in streams else streams[0]
    if all(one.text is not None for one in streams):
        text = "".join(one.text for one in streams)
        return Stream(text) if len(text) <= MOST_TEXT else None
    founds: list = []
    for one in streams:
        if one.found is None:
            return None
        founds += one.found
    return Stream(None, founds)


def text_of(stream):
    """The text of `stream`, with the names that stand in it where it is what a search has found; else None."""
    if stream is None or stream.text is not None or stream.found is None:
        return None if stream is None else stream.text
    names: list[str] = []
    for one in stream.found:
        more = one.names() if one.names is not None else None
        if more is None:
            return None
        names += more
    stream.text = "".join(name + "\n" for name in names)
    return stream.text


class Input:
    """What a command reads, line by line where the shell itself reads it (`read`).

    `has_nul`: bytes of zero may stand in it; they are newlines in the text of a Stream.
    """

    __slots__ = ("stream", "has_nul", "_rest", "_was_read")

    def __init__(self, stream, has_nul=True):
        self.stream = stream
        self.has_nul = has_nul
        self._rest = stream.text if stream is not None and stream.found is None else None
        self._was_read = False

    def rest(self):
        """The Stream that is left, or None where nothing is known of it."""
        if self.stream is None or self._rest is None or self._rest is self.stream.text:
            return self.stream
        return Stream(self._rest)

    def line(self, walk, end: str = "\n"):
        """(next line, or a mark for all that were found; whether there is one: None where that cannot be told).

        `end`: the letter that ends a line; empty: a byte of zero.
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
            return walk.each_of(names) if names else walk.mark(self.stream.found), True
        if not self._rest:
            return "", False
        if end or self.has_nul:
            line, mark, self._rest = self._rest.partition(end or "\n")
        else:
            line, mark, self._rest = self._rest, "", ""
        return line, bool(mark) or end == "\n"
