"""The folder of a try: its contents on disk, their times, the ignored files that its command wrote, and its end.

<state>/tries/<work tree>/<number>/
    lock        held while a try uses the folder
    bytes       the size of all that is kept
    record      JSON: the contents of its last try, ``{path: [digest, time]}``
    objects     git's objects of contents that no commit has
    stored      files as git writes them, for this try alone
    upper, ...  the layers of a view (``space``), or the files of a copy (``running.Copy``)

The state folder may be on a file system that cannot carry an overlay. Then the folder is in memory, in ``/dev/shm``.

Programs that build compare times. A file with another content than at the folder's last try gets a new time, in
another second than before: a cache of Python's knows a source by the second and the size.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from swarm_hook_core.repository import Tree
from swarm_hook_core.state import make_private, open_private, state_dir, write_private
from swarm_hook_core.untrusted_text import command
from swarm_mcp.changes.commit.git import Git, split
from swarm_mcp.changes.tries.picture import GONE, PRESENT, STORED, Content
from swarm_mcp.errors import Refused

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


MEMORY = "/dev/shm"
MOST = 8  # folders of one work tree
LARGEST = 1 << 30  # bytes of ignored files that are kept in a folder
SECOND = 10**9
MISSING = ""  # the digest of a missing file


def _tries_dir(in_memory: bool = False) -> str:
    """Return the folder of all tries of this user."""
    if in_memory:
        return os.path.join(MEMORY, f"swarm-mcp-{os.getuid()}", "tries")
    return os.path.join(state_dir(), "tries")


def place_of(own: str, in_memory: bool = False) -> str:
    """Return the folder for the tries of a work tree with the git folder `own`."""
    return os.path.join(_tries_dir(in_memory), hashlib.sha256(os.fsencode(own)).hexdigest()[:32])


def digest(path: str) -> str:
    """Return a text that is equal for files of equal content and mode; MISSING for a missing file or a folder."""
    try:
        found = os.lstat(path)
        if stat.S_ISLNK(found.st_mode):
            return "link " + os.readlink(path)
        if not stat.S_ISREG(found.st_mode):
            return MISSING
        made = hashlib.sha256()
        with open(path, "rb") as file:
            while part := file.read(1 << 20):
                made.update(part)
    except OSError:
        return MISSING  # missing, or unreadable for the command as well
    return f"{found.st_mode & stat.S_IXUSR} {made.hexdigest()}"


class _Put(NamedTuple):
    """The planned content of a file: the file `source`, with the digest `made` and a time."""

    name: str
    source: str
    made: str
    at_ns: int
    is_there: bool  # in the checkout, with this time


class Folder:
    """A folder of the work tree `tree` for one try at a time. Use it by `taken`."""

    def __init__(self, tree: Tree, path: str):
        self.tree = tree
        self.path = path
        self.record: dict[str, list[object]] = {}
        self.placed: dict[str, str] = {}  # of this try: path -> digest
        self._puts: list[_Put] = []
        self._git = Git(tree.top)
        self._load()

    def at(self, *names: str) -> str:
        return os.path.join(self.path, *names)

    def _load(self) -> None:
        try:
            with open(self.at("record"), encoding="utf-8", errors="surrogateescape") as file:
                self.record = {name: [str(one[0]), int(one[1])] for name, one in json.load(file).items()}
        except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
            if self.record or os.path.lexists(self.at("record")):
                self.clear()  # nothing is known of the files in it

    def save(self) -> None:
        write_private(self.at("record"), json.dumps(self.record))

    def measure(self) -> int:
        """Note the bytes of the files in it, and return them."""
        size = size_of(self.path)
        write_private(self.at("bytes"), str(size))
        return size

    def clear(self) -> None:
        """Remove all but the lock."""
        for name in os.listdir(self.path):
            if name != "lock":
                remove(self.at(name))
        self.record = {}

    # ------------------------------------------------------------------------------------------ contents

    def store(self, files: Mapping[str, Content]) -> None:
        """Write the files that differ from the checkout below ``stored``, as git does. Raises Refused."""
        remove(self.at("stored"))
        make_private(self.at("stored"))
        make_private(self.at("objects"))
        real = self._git.path("objects")
        git = self._git.with_more(
            {"GIT_OBJECT_DIRECTORY": self.at("objects"), "GIT_ALTERNATE_OBJECT_DIRECTORIES": real}
        )
        names: dict[str, str] = {name: one.name for name, one in files.items() if one.kind == STORED}
        woven = [name for name, one in files.items() if one.data is not None]
        texts = []
        for number, name in enumerate(woven):
            texts.append(self.at("stored", f"{number}.text"))
            with open(texts[-1], "wb") as file:
                file.write(files[name].data or b"")
        if woven:
            data = os.fsencode("".join(path + "\n" for path in texts))
            names.update(zip(woven, git.ask("hash-object", "-w", "--no-filters", "--stdin-paths", data=data).split()))
        if not names:
            return
        git.environment["GIT_INDEX_FILE"] = self.at("stored", "index")
        git.set_entries({name: (files[name].mode, made) for name, made in names.items()})
        data = os.fsencode("".join(name + "\0" for name in names))
        git.ask("checkout-index", "-f", "-z", "--stdin", f"--prefix={self.at('stored', 'files')}/", data=data)

    def plan(self, files: Mapping[str, Content]) -> None:
        """Plan the contents of this try, and note them as those of the folder's last one.

        Files of the last try are compared, too: one that is as in the checkout again gets a new time.
        """
        before, self.record, self._puts = self.record, {}, []
        for name in sorted({*files, *before}):
            if name.endswith("/"):
                continue  # a repository of its own
            here = source = os.path.join(self.tree.top, name)
            kind, own = PRESENT, _time_of(here)
            if name in files:
                kind = files[name].kind
            if kind == STORED:
                source = self.at("stored", "files", name)
            made = digest(source)
            if kind == GONE:
                made, at_ns = MISSING, 0
            elif name not in before and kind == PRESENT:
                at_ns = own
            elif name not in before:
                at_ns = _new_time(own, 0)
            elif before[name][0] == made:
                at_ns = int(str(before[name][1]))
            else:
                at_ns = _new_time(own, int(str(before[name][1])))
            if name in files or at_ns != own:
                self.record[name] = [made, at_ns]
            if kind == PRESENT and at_ns != own and made != MISSING:
                source = self.at("stored", "present", name)  # an overlay will stand over the checkout
                put(here, source, made, at_ns)
            self._puts.append(_Put(name, source, made, at_ns, kind == PRESENT and at_ns == own))
        self.placed = {one.name: one.made for one in self._puts}

    def place(self, root: str, is_copy: bool) -> None:
        """Write the planned contents below `root`, which has those of the checkout. Raises OSError.

        `is_copy`: without the uncommitted files of the checkout.
        """
        for one in self._puts:
            if is_copy or not one.is_there:
                put(one.source, os.path.join(root, one.name), one.made, one.at_ns)
            if one.made == MISSING:
                _remove_empty(os.path.dirname(one.name), root)

    # ------------------------------------------------------------------------------------------ written files

    def before(self, name: str) -> str:
        """Return the path of the file that had the content of `name` when the command began."""
        return next((one.source for one in self._puts if one.name == name), os.path.join(self.tree.top, name))

    def changed(self, names: Iterable[str], root: str) -> list[str]:
        """Return those of these files below `root` that are not as they were placed, or as in the checkout."""
        found = []
        for name in sorted(names):
            before = self.placed.get(name)
            if before is None:
                before = digest(os.path.join(self.tree.top, name))
            if digest(os.path.join(root, name)) != before:
                found.append(name)
        return found

    def ignored(self, names: Iterable[str]) -> set[str]:
        """Return the files among these that git ignores."""
        some = list(names)
        if not some:
            return set()
        done = self._git.run(["check-ignore", "-z", "--stdin"], os.fsencode("".join(name + "\0" for name in some)))
        if done.returncode > 1:
            return set()  # a name beyond a link or in a submodule: nothing is kept
        return set(split(os.fsdecode(done.stdout)))


@contextlib.contextmanager
def taken(tree: Tree, in_memory: bool = False) -> Iterator[Folder]:
    """Give a Folder that no other try uses meanwhile. Raises Refused if there are too many tries, and OSError."""
    place = place_of(tree.own, in_memory)
    make_private(place)
    for number in range(MOST):
        path = os.path.join(place, str(number))
        make_private(path)
        handle = open_private(os.path.join(path, "lock"), os.O_RDWR | os.O_CREAT)
        try:
            if fcntl is not None:
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    continue  # another try
            write_private(os.path.join(path, "top"), tree.top)
            yield Folder(tree, path)
            return
        finally:
            os.close(handle)
    raise Refused(f"{MOST} commands are being tried here already")


def put(source: str, path: str, made: str, at_ns: int) -> None:
    """Put a file, a link or nothing (`made` is MISSING) at `path`, with this time. Raises OSError."""
    remove(path)
    if made == MISSING:
        return
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if os.path.islink(source):
        os.symlink(os.readlink(source), path)
    else:
        shutil.copy(source, path)
    os.utime(path, ns=(at_ns, at_ns), follow_symlinks=False)


def remove(path: str) -> None:
    """Remove a file or a folder, if it is there. Raises OSError."""
    try:
        os.unlink(path)
    except (FileNotFoundError, NotADirectoryError):
        pass  # it is not there
    except (IsADirectoryError, PermissionError):
        if not os.path.isdir(path) or os.path.islink(path):
            raise
        shutil.rmtree(path, onerror=_open_and_remove)


def _remove_empty(name: str, root: str) -> None:
    """Remove a folder below `root` and those over it, as far as they are empty: git knows no empty ones."""
    with contextlib.suppress(OSError):
        while name:
            os.rmdir(os.path.join(root, name))
            name = os.path.dirname(name)


def _open_and_remove(function: Callable[..., object], path: str, _error: object) -> None:
    """Remove the content of a closed folder. An overlay has one, and a command may leave some."""
    if function in (os.rmdir, os.unlink, os.remove):
        os.chmod(os.path.dirname(path), 0o700)
        function(path)
    else:
        os.chmod(path, 0o700)
        shutil.rmtree(path)


def size_of(path: str) -> int:
    """Return the bytes of the files below a folder."""
    total = 0
    for folder, _folders, names in os.walk(path):
        for name in names:
            with contextlib.suppress(OSError):
                total += os.lstat(os.path.join(folder, name)).st_size
    return total


def is_secret(name: str) -> bool:
    """Return True for a file of secrets, such as ``.env`` or ``.env.local``: no copy of it is kept."""
    return os.path.basename(name).startswith(".env")


def _time_of(path: str) -> int:
    """Return the time of a file's last change in nanoseconds, 0 for a missing one."""
    try:
        return os.lstat(path).st_mtime_ns
    except OSError:
        return 0  # missing


def _new_time(own: int, last: int) -> int:
    """Return the present time, or the next second that differs from both of these times' seconds."""
    at_ns = time.time_ns()
    for one in (own, last):
        if one // SECOND >= at_ns // SECOND:
            at_ns = (one // SECOND + 1) * SECOND
    return at_ns


# The folders of tries that are kept on the disk: in words, and their end after seven days.

AGE_SECONDS = 7 * 86400


class Kept(NamedTuple):
    """A folder of a try.

    top      the work tree
    bytes    the size of the files in it
    path     the folder
    command  the command whose written files it keeps (``--keep``); empty: it has files that git ignores
    """

    top: str
    bytes: int
    path: str
    command: str


def kept(top: str = "") -> list[Kept]:
    """Return all folders on this machine, or those of the work tree `top`."""
    found = []
    for base in (_tries_dir(), _tries_dir(in_memory=True)):
        for place in _names(base):
            for name in _names(os.path.join(base, place)):
                path = os.path.join(base, place, name)
                with contextlib.suppress(OSError):  # it is no try's
                    found.append(_read(path))
    return [one for one in found if top in ("", one.top)]


def _read(path: str) -> Kept:
    """Raises OSError for a folder that is no try's."""
    top, argv = _text(os.path.join(path, "top")), ""
    if os.path.basename(path).startswith("kept-"):
        with contextlib.suppress(OSError, ValueError, TypeError, KeyError, RecursionError):  # a torn record
            record = json.loads(_text(os.path.join(path, "try.json")))
            argv = " ".join(record["argv"]) * bool(record["files"])
    try:
        size = int(_text(os.path.join(path, "bytes")))
    except (OSError, ValueError):
        size = size_of(path)  # its first try has not ended yet, or its files do not change
    return Kept(top, size, path, argv)


def in_words(rows: Sequence[Kept]) -> str:
    """Return the contents of kept folders in words; empty for nothing, and for less than a MiB of ignored files."""
    argvs = [one.command for one in rows if one.command]
    found = [f"the files that {command(argv)} wrote are kept (`swarm-mcp try --diff`)" for argv in argvs]
    size = sum(one.bytes for one in rows if not one.command) >> 20
    if size:
        found.append(f"ignored files of tries take {size} MiB (for seven days)")
    return "; ".join(found)


def of_scope(scope: str) -> str:
    """Return the same of one work tree."""
    return in_words(kept(scope))


def prune(now: float) -> None:
    """Remove the folders without a try for seven days, and those of work trees that are gone."""
    for one in kept():
        with contextlib.suppress(OSError), open(os.path.join(one.path, "lock"), "r+b") as lock:
            old = now - os.stat(os.path.join(one.path, "top")).st_mtime > AGE_SECONDS or not os.path.isdir(one.top)
            if fcntl is not None and old:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                remove(one.path)


def _text(path: str) -> str:
    with open(path, encoding="utf-8", errors="surrogateescape") as file:
        return file.read()


def _names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []  # nothing was tried yet
