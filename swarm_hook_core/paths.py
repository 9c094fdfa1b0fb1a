"""Path identity: the spellings that name the same file on this machine.

A lock is stored under a *key*. A write is looked up under every key its path could have, so the answer errs towards
finding the lock:

- ``..``, ``//`` and relative forms are resolved both textually (as editors do before they call
  the kernel) and link by link (as the kernel does); the two differ behind a symlink;
- trailing blanks are tried both kept and removed, since clients differ in trimming;
- where the file system takes letter case or Unicode forms for one name, so does the key.

Hard links are not seen: two names of one inode are two files here.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from errno import ENOTDIR
from typing import Any

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_hook_core.lookup import Session

NO_CASE = "nocase:"
LONGEST = 4096  # the longest path that a kernel opens; resolving much longer texts link by link would take minutes


def own_path(path: str) -> str:
    """Return `path` with the links in its folder resolved, but not a link that it is itself."""
    folder, name = os.path.split(path)
    return os.path.join(os.path.realpath(folder), name)


def real_path(path: str) -> str:
    """Return ``os.path.realpath``: in a third of the time for an absolute, normal path without links."""
    if os.sep == "/" and path[:1] == "/" and path[:2] != "//" and os.path.normpath(path) == path:
        return _resolved(path)
    return os.path.realpath(path)


def _resolved(path: str) -> str:
    """Return the same of absolute, normal `path`."""
    if os.sep != "/" or kind_at(places_to(path)) is None:
        return os.path.realpath(path)
    return path


def real_paths() -> Callable[[str], str]:
    """Return a function like ``os.path.realpath`` that looks at each path and each folder once.

    It remembers its answers, so it serves the many paths of one check, and no longer.
    """
    seen: dict[str, Any] = {}

    def real(path: str) -> str:
        found = seen.get(path)
        if found is None:
            folder, _, name = path.rpartition("/")
            if folder and name not in ("", ".", ".."):
                if folder not in seen:
                    seen[folder] = real_path(folder)
                found = f"{seen[folder].rstrip('/')}/{name}"
            if found is None or os.path.islink(found):
                found = os.path.realpath(path)
            seen[path] = found
        return found

    return real


def spellings(path: str, cwd: str, real: Callable[[str], str] = real_path) -> list[str]:
    """Absolute paths that `path`, written in folder `cwd`, may stand for: textual ones first.

    `real`: resolves links (``real_paths`` where there are many).
    """
    found: list[str] = []
    for text in dict.fromkeys((path, path.strip())):
        if not text or "\0" in text or not _is_a_name(text):
            continue
        joined = os.path.join(cwd or os.sep, text)
        textual = os.path.normpath(joined)
        if len(textual) > LONGEST:
            continue
        candidates = [textual, real(textual)]
        if len(joined) <= LONGEST and joined != textual:
            candidates.append(real(joined))
        found += [single for single in map(_single_root, candidates) if single not in found]
    return list(dict.fromkeys(found))


def key_of(path: str) -> str:
    """The one key of absolute `path`: links resolved, and marked where letter case is ignored there.

    A text that can name no file, as another program may have stored it, is its own key.
    """
    try:
        resolved = _composed_on_mac(_single_root(real_path(path)))
        if ignores_case(resolved):
            return _without_case(resolved)
        return resolved
    except ValueError:  # a path that no file can have
        return path


def keys_for(path: str, cwd: str, real: Callable[[str], str] = real_path) -> list[str]:
    """Return every spelling and key under which a lock on this path may be stored, without repeats.

    A lock's key was marked when it was taken if letter case does not count there. So both forms are looked for, and no
    file system is asked. `real` as in `spellings`.
    """
    found = spellings(path, cwd, real)
    for candidate in list(found):
        for key in (_composed_on_mac(candidate), _without_case(candidate)):
            if key not in found:
                found.append(key)
    return found


def key_and_keys(path: str, is_new: bool = True) -> tuple[str, list[str]]:
    """Return ``key_of`` and ``keys_for`` of absolute `path`, with one look at the disk for a plain text.

    A lock that exists is found by any of its keys. So unless the path `is_new`, the disk is not asked about letter
    case, and the one key is one of them.
    """
    if os.path.normpath(path) != path or path.strip() != path or path.startswith("//"):
        return key_of(path), keys_for(path, os.sep)
    resolved = _single_root(_resolved(path))
    composed = _composed_on_mac(resolved)
    if resolved == path:
        found = [path]
    else:
        found = [path, resolved]
    found += [key for one in found for key in (_composed_on_mac(one), _without_case(one))]
    return _without_case(composed) if is_new and ignores_case(composed) else composed, list(dict.fromkeys(found))


def places_to(path: str) -> list[str]:
    """Return the folders over absolute, normal `path`, from the top, and itself."""
    found, place = [], ""
    for name in path[1:].split("/"):
        place += "/" + name
        found.append(place)
    return found


def kind_at(places: list[str]) -> int | None:
    """Return the type of the last of `places` (``S_IFMT`` of its mode), 0 if it is missing or closed to us.

    None if one of them is a link, so that the path leads elsewhere.
    """
    kind = 0
    try:
        for place in places:
            kind = os.lstat(place).st_mode & 0o170000
            if kind == 0o120000:
                return None
    except OSError:  # and so is all below it
        return 0
    return kind


class PlainPath:
    """An absolute path as it is spelled, by which a process that locks it again and again need not be worked out anew.

    `places`  its folders and itself; if none of them is a link, it is its own key
    `other`   the path with its name in the other letter case; empty if that is the same
    `keys`    its keys, first where letter case counts, then where it does not
    """

    __slots__ = ("path", "places", "other", "keys")

    def __init__(self, path: str):
        folder, _, name = path.rpartition("/")
        self.path = path
        self.places = places_to(path)
        self.other = f"{folder}/{name.swapcase()}" if name.swapcase() != name else ""
        self.keys = path, _without_case(path)

    def look(self) -> tuple[bool, bool] | None:
        """Ask the disk: return if it is a folder, and if letter case is ignored there. None if a link is on the way."""
        kind = kind_at(self.places)
        if kind is None:
            return None
        if kind and self.other:
            is_caseless = os.access(self.other, os.F_OK) and _one_file(self.other, self.path)  # mostly it is missing
        else:
            is_caseless = ignores_case(self.path)
        return kind == 0o040000, is_caseless


def plain_path(path: str) -> PlainPath | None:
    """Return absolute `path` as a PlainPath; None if it has other spellings, whatever the disk says of it."""
    is_normal = os.sep == "/" and os.path.normpath(path) == path and path.strip() == path
    if is_normal and path[:1] == "/" and path[:2] != "//" and _composed_on_mac(path) == path:
        return PlainPath(path)
    return None


def finder(keys: Iterable[str]) -> Callable[[str], str | None]:
    """Return a function that returns the key of an absolute path if it is one of `keys`, else None.

    Mostly it takes one look at the disk to say no, where `key_of` takes dozens: paths that lead to the same file are
    equal.
    """
    places = [key for key in keys if not key.startswith(NO_CASE)]
    files = {_file_at(place) for place in places}
    folders = {_file_at(os.path.dirname(place)) for place in places if _file_at(place) is None}
    caseless = {_without_case(place) for place in places}
    all_are_places = all(key in caseless for key in keys if key.startswith(NO_CASE))

    def found(path: str) -> str | None:
        file = _file_at(path)
        may_be = file in files or file == ()
        if may_be and file is None:  # one that is not there yet
            may_be = None in folders or _file_at(os.path.dirname(path)) in folders or os.path.islink(path)
        if all_are_places and not may_be:
            return None
        key = key_of(path)
        if key in keys:
            return key
        return None

    return found


def _file_at(path: str) -> tuple[int, ...] | None:
    """Return the identity of the file that `path` leads to: None if it is missing, an empty tuple if unknown."""
    try:
        there = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):  # missing
        return None
    except (OSError, ValueError):  # closed to us: not known
        return ()
    return there.st_dev, there.st_ino


def _without_case(path: str) -> str:
    # The mark keeps `/r/makefile`, a key with case, apart from `/r/Makefile` with its case removed.
    return NO_CASE + _composed(path).casefold()


def _composed_on_mac(path: str) -> str:
    # APFS and HFS+ never tell composed and decomposed letters apart.
    if sys.platform == "darwin":
        return _composed(path)
    return path


def ignores_case(path: str) -> bool:
    """Return True if the file system at `path` takes ``A`` and ``a`` for one name.

    Asked of a name that exists, the path's own or one beside it: its case-swapped form is the same file, or is not. An
    empty folder is asked for itself, then by its own name in the folder over it, if both are on one file system.
    Without any evidence it counts as one that ignores case, since a denial too many is better there than a conflict
    missed.
    """
    folder, name = os.path.split(path)
    if name.swapcase() != name and os.path.lexists(path):
        return _one_file(os.path.join(folder, name.swapcase()), path)  # mostly the first is missing
    while not os.path.isdir(folder) and folder != os.path.dirname(folder):
        folder = os.path.dirname(folder)
    while True:
        told = _told_by_names_in(folder)
        if told is None and _is_marked_caseless(folder):
            told = True
        if told is None and _is_top_of_file_system(folder):
            told = True
        if told is not None:
            return told
        folder, name = os.path.split(folder)
        if name.swapcase() != name:
            return _one_file(os.path.join(folder, name), os.path.join(folder, name.swapcase()))


def _told_by_names_in(folder: str) -> bool | None:
    """Return True if letter case is ignored in `folder`, False if it counts, None if its entries do not show it."""
    try:
        with os.scandir(folder) as entries:
            for _, entry in zip(range(64), entries):
                if entry.name.swapcase() != entry.name:
                    return _one_file(entry.path, os.path.join(folder, entry.name.swapcase()))
    except OSError:  # the folder cannot be listed
        return False
    return None


def _is_top_of_file_system(folder: str) -> bool:
    """Return True if the folder over `folder` is on another file system, or is not there."""
    over = os.path.dirname(folder)
    try:
        return over == folder or os.stat(over).st_dev != os.stat(folder).st_dev
    except OSError:  # missing
        return True


def _is_marked_caseless(folder: str) -> bool:
    """Return True if `folder` has the mark that makes Linux ignore letter case in it alone (``chattr +F``)."""
    if not sys.platform.startswith("linux"):
        return False
    import fcntl
    from struct import calcsize

    question = 2 << 30 | calcsize("l") << 16 | ord("f") << 8 | 1  # FS_IOC_GETFLAGS; elsewhere refused
    try:
        opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:  # a file system without such marks
        return False
    try:
        flags = fcntl.ioctl(opened, question, bytes(calcsize("l")))
    except OSError:
        return False  # the file system knows no marks
    finally:
        os.close(opened)
    return bool(int.from_bytes(flags[:4], sys.byteorder) & 0x40000000)  # FS_CASEFOLD_FL


def _one_file(left: str, right: str) -> bool:
    try:
        here, there = os.lstat(left), os.lstat(right)
    except (OSError, ValueError):  # one of them is missing
        return False
    return (here.st_dev, here.st_ino) == (there.st_dev, there.st_ino)


def contains(folder: str, path: str) -> bool:
    """Return True if absolute `path` is `folder` or lies under it, textually."""
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


def above(key: str) -> list[str]:
    """The keys of the folders over the path with this key: a lock on one of them covers it."""
    if key.startswith(NO_CASE):
        mark = NO_CASE
    else:
        mark = ""
    path = key[len(mark) :]
    found: list[str] = []
    while True:
        path = path.rpartition("/")[0]
        if not path:
            return found
        found.append(mark + path)


def below(key: str, root: str) -> str | None:
    """Return the rest of `key` below `root`, the key of a folder: ``/a.py``; empty if they are equal, else None."""
    if contains(root, key):
        return key[len(root) :]
    return None


def translated(path: str, directory: str, root: str, file_root: str) -> str:
    """Absolute `path` of a session, moved to where its `file_root` says such files really are.

    `directory` is the session's folder, `root` the git root above it. Paths inside `root` keep
    their position under the git root of `file_root`; other paths stay as they are.
    """
    if not file_root or not directory or file_root == directory:
        return path
    if root and contains(root, path):
        return os.path.normpath(os.path.join(git_root(file_root), os.path.relpath(path, root)))
    if directory and contains(directory, path):
        return os.path.normpath(os.path.join(file_root, os.path.relpath(path, directory)))
    return path


def all_keys(session: Session, spelled: str, folder: str, real: Callable[[str], str] = real_path) -> list[str]:
    """``keys_for`` of a path, of where the session's `file_root` says that it really is, and by its other mounts."""
    keys = keys_for(spelled, folder, real)
    for moved in _moved_by(session, spelled, folder, real) if session.file_root else ():
        keys += keys_for(moved, folder, real)
    for root in session.mounts:
        paths = spellings(spelled, folder, real)
        there = [root + path[len(session.root) :] for path in paths if contains(session.root, path)]
        keys += [key for path in there for key in keys_for(path, folder, real) if key not in keys]
    if session.mounts:
        return list(dict.fromkeys(keys))
    return keys


def moved_places(session: Session, real: Callable[[str], str] = real_path) -> list[tuple[str, str]]:
    """Return ``(folder, its git root)`` of each place whose files are really in the session's `file_root`; mostly
    empty.
    """
    if not session.file_root:
        return []
    places = [(session.directory, session.root), (real(session.directory), real(session.root))]
    return [place for place in places if place[0] != session.file_root]  # else every path stays where it is


def _moved_by(session: Session, spelled: str, folder: str, real: Callable[[str], str] = real_path) -> list[str]:
    """Return the paths in the session's `file_root` that the spellings of a path stand for, without unmoved ones."""
    places = moved_places(session, real)
    if not places:
        return []  # the common case
    found: list[str] = []
    for path in spellings(spelled, folder, real):
        for directory, root in places:
            moved = translated(path, directory, root, session.file_root)
            if moved != path and moved not in found:
                found.append(moved)
    return found


def git_root(directory: str) -> str:
    """The nearest folder at or above `directory` that holds a ``.git`` entry, else `directory`."""
    probe = directory
    while True:
        if os.path.lexists(os.path.join(probe, ".git")):
            return probe
        parent = os.path.dirname(probe)
        if parent == probe:
            return directory
        probe = parent


def _is_a_name(text: str) -> bool:
    """Return False for a text that the system cannot be asked about: a lone surrogate names no file."""
    try:
        os.fsencode(text)
    except UnicodeEncodeError:  # a lone surrogate
        return False
    return True


def _single_root(path: str) -> str:
    # POSIX lets "//x" mean something else; on Linux and macOS it is "/x".
    if path.startswith("//") and not path.startswith("///") and os.name == "posix":
        return path[1:]
    return path


def _composed(path: str) -> str:
    if path.isascii():
        return path
    from unicodedata import normalize

    return normalize("NFC", path)


# Paths that a client mends before it opens them, as Gemini CLI and its kin do.

FOLDERS = 400  # folders to search for a file; the client stops after 50, not counting ignored ones


def opened(path: str, is_sought: bool) -> list[str]:
    """Return every path that the client may open for `path`; relative ones count from this process's folder.

    The client takes the ``@`` of a mention off, unless a folder has that name, and decodes ``%2E``. With `is_sought`,
    and no file at a relative path, it opens the one file below with a path that ends so.
    """
    path = path.replace("\0", "")
    places = [path]
    if not os.path.isabs(path) and not os.path.lexists(path):
        if path[:1] == "@":
            bare = path[1:].lstrip("/\\")
        else:
            bare = path
        places.append(bare)
        if is_sought and (not os.path.lexists(bare) or os.path.lexists(path.partition("/")[0])):
            places += _ending_in(bare)
    return list(filter(None, dict.fromkeys(one for place in places for one in (place, _decoded(place)))))


def _decoded(path: str) -> str:
    """`path` read as part of an address."""
    if "%" not in path:
        return path
    from urllib.parse import unquote

    return unquote(path, errors="surrogateescape")


def _ending_in(end: str) -> list[str]:
    """Absolute paths of the files below this process's folder that end in `end`, those nearest by first."""
    name, folders, found = os.path.basename(end), [os.getcwd()], []
    for folder in folders:  # the list grows meanwhile
        try:
            entries = list(os.scandir(folder))
        except OSError:
            continue  # the client passes over it as well
        for entry in entries:
            if entry.name == name and entry.path.endswith(end) and entry.is_file():
                found.append(entry.path)
            elif entry.name != ".git" and len(folders) < FOLDERS and entry.is_dir(follow_symlinks=False):
                folders.append(entry.path)
    return found


# Access to a file without following a symbolic link in any folder above it.
#
# The paths that journals and records hold were resolved when they were noted. A link may take the place of one of their
# folders later, also between two system calls: then the same path leads out of the work tree. `FolderOf` opens the
# folder, and asks the kernel for its real path (Linux). If that is another one, or unknown, it opens the folders from
# the root down, each by the handle of the one above it, and refuses links. Calls with ``dir_fd`` then reach the file's
# own folder, wherever its path leads by now.
#
# A system without such calls (Windows) looks at the folders first: a link that comes right after that is followed.

BEYOND_LINK = "beyond a symbolic link"  # git's words

_LINK = 0o120000  # as in the module `stat`, which takes time to load
_HAS_HANDLES = hasattr(os, "O_NOFOLLOW")  # Windows has neither; `supports_dir_fd` would load the whole of `os`
_FOLDER = getattr(os, "O_PATH", os.O_RDONLY)  # O_PATH: a folder may be closed to listing
for _flag in ("O_DIRECTORY", "O_NOFOLLOW", "O_CLOEXEC"):
    _FOLDER |= getattr(os, _flag, 0)


class BeyondLink(NotADirectoryError):
    """A symbolic link is in the place of a folder: there is no such file."""

    def __init__(self, path: str):
        super().__init__(ENOTDIR, BEYOND_LINK, path)


class FolderOf:
    """The folder of the file at absolute `path`, whose links are resolved; a ``with`` that gives ``(name, folder)``.

    Both are for functions with ``dir_fd``, such as ``os.lstat(name, dir_fd=folder)``. Raises OSError, BeyondLink for a
    link. `makes`: missing folders are made.
    """

    __slots__ = ("_path", "_makes", "_handle")

    def __init__(self, path: str, makes: bool = False):
        self._path = path
        self._makes = makes
        self._handle = -1

    def __enter__(self) -> tuple[str, int | None]:
        if not _HAS_HANDLES:
            self._look()
            return self._path, None
        *folders, name = self._path.split("/")
        self._handle = _opened_without_links("/".join(folders))
        if self._handle >= 0:
            return name, self._handle
        self._handle = os.open("/", _FOLDER)
        try:
            for folder in filter(None, folders):
                over, self._handle = self._handle, -1
                try:
                    self._handle = self._below(over, folder)
                finally:
                    os.close(over)
        except OSError as error:
            error.filename = self._path
            raise
        return name, self._handle

    def __exit__(self, *_failed: object) -> None:
        if self._handle >= 0:
            os.close(self._handle)

    def _below(self, over: int, folder: str) -> int:
        try:
            return self._opened(over, folder)
        except FileNotFoundError:
            if not self._makes:
                raise
        try:
            os.mkdir(folder, dir_fd=over)
        except FileExistsError:
            pass  # made meanwhile
        return self._opened(over, folder)

    def _opened(self, over: int, folder: str) -> int:
        try:
            return os.open(folder, _FOLDER, dir_fd=over)
        except OSError as error:
            if os.lstat(folder, dir_fd=over).st_mode & 0o170000 == _LINK:
                raise BeyondLink(self._path) from error
            raise

    def _look(self) -> None:
        folder = os.path.dirname(self._path)
        if self._makes:
            os.makedirs(folder, exist_ok=True)
        while folder != os.path.dirname(folder):
            if os.path.islink(folder):
                raise BeyondLink(self._path)
            folder = os.path.dirname(folder)


def _opened_without_links(folder: str) -> int:
    """Return a handle of the folder if its path certainly has no link in it, else -1."""
    try:
        handle = os.open(folder, _FOLDER)
    except OSError:  # it is gone, or beyond a link
        return -1
    try:
        if os.readlink(f"/proc/self/fd/{handle}") == folder:
            return handle
    except OSError:
        pass  # another platform
    os.close(handle)
    return -1


def is_beyond_link(path: str) -> bool:
    """Return True if a symbolic link is in the place of a folder above the file at `path`."""
    try:
        with FolderOf(path):
            return False
    except BeyondLink:
        return True  # there is one
    except OSError:
        return False  # no such folder, or a closed one
