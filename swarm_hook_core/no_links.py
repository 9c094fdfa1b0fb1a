"""Access to a file without following a symbolic link in any folder above it.

The paths that journals and records hold were resolved when they were noted. A link may take the place of one of their
folders later, also between two system calls: then the same path leads out of the work tree. `FolderOf` opens the
folder, and asks the kernel for its real path (Linux). If that is another one, or unknown, it opens the folders from the
root down, each by the handle of the one above it, and refuses links. Calls with ``dir_fd`` then reach the file's own
folder, wherever its path leads by now.

A system without such calls (Windows) looks at the folders first: a link that comes right after that is followed.
"""

from __future__ import annotations

import os
from errno import ENOTDIR

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
