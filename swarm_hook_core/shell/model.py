"""What a command does to files, as far as that can be known without running it."""

import os

MOST = 2000  # writes, trees or guesses that are kept; a command that has more is a guess

# Marks in a word: a part that only a run could tell, and `found`, the whole of which stands for many names.
UNKNOWN = "\0?\0"


class Effects:
    """What was found, in the order of the command.

    writes   Write: a path that is written, made, or removed
    trees    Tree: a folder under which anything may be, or what `admits` says
    git      GitCall: a git command that changes files or the repository; git itself is asked what it would touch
    guesses  Guess: may write something that the command does not name
    runs     whether it runs the project's own code (tests, builds): worth watching, not worth a word
    """

    __slots__ = ("writes", "trees", "git", "guesses", "runs")

    def __init__(self):
        self.writes: list = []
        self.trees: list = []
        self.git: list = []
        self.guesses: list = []
        self.runs = False

    @property
    def size(self) -> int:
        """How many effects were found so far."""
        return len(self.writes) + len(self.trees) + len(self.git) + len(self.guesses)

    @property
    def is_plain(self) -> bool:
        """Whether all that it does is known: no guess, no code of the project."""
        return not self.guesses and not self.runs

    def add(self, item) -> None:
        """Append `item` to the list of its kind, up to `MOST`."""
        kind = getattr(self, _LISTS[type(item)])
        if len(kind) < MOST:
            kind.append(item)
        elif len(self.guesses) <= MOST:
            self.guesses.append(Guess("more effects than can be kept", ""))


class Write:
    """`path` as spelled in absolute `folder`; `by`: the words that write it, for people."""

    __slots__ = ("folder", "path", "by")

    def __init__(self, folder, path, by):
        self.folder = folder
        self.path = path
        self.by = by


class Tree:
    """Files at and under absolute `root`, which need not exist.

    `admits(path)`: whether the file at absolute `path`, at or under `root`, is written: True, False, or None where
    that cannot be told. Asked of locked files only, so it may look at the disk.
    """

    __slots__ = ("root", "by", "admits")

    def __init__(self, root, by, admits=None):
        self.root = root
        self.by = by
        self.admits = admits or _everything


class GitCall:
    """``git <words>`` as run in absolute `folder` (``-C`` followed); global options are gone, aliases are not.

    top           global options that say which repository and settings: ``--git-dir=x``, ``-c a=b``
    environment   what the command itself sets of git's variables (``GIT_INDEX_FILE``)
    found         word -> list of the `Found`s that it stands for
    after         whether an earlier git call of the same command may have moved branches or fetched
    in_doubt      whether it may not run in this folder at all, so that nothing it would touch is certain
    """

    __slots__ = ("folder", "words", "by", "top", "environment", "found", "after", "in_doubt")

    def __init__(self, folder, words, by, top=(), environment=None, found=None, after=False):
        self.folder = folder
        self.words = words
        self.by = by
        self.top = top
        self.environment = environment or {}
        self.found = found or {}
        self.after = after
        self.in_doubt = False


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


_LISTS = {Write: "writes", Tree: "trees", GitCall: "git", Guess: "guesses"}
