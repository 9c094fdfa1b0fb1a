"""Path identity: which spellings name the same file on this machine.

A lock is stored under a *key*. A write is looked up under every key its path could have, so the
answer errs towards finding the lock:

- ``..``, ``//`` and relative forms are resolved both textually (what editors do before they call
  the kernel) and link by link (what the kernel does); the two differ behind a symlink;
- trailing blanks are tried both kept and removed, since clients differ in trimming;
- where the file system takes letter case or Unicode forms for one name, so does the key.

Hard links are not seen: two names of one inode are two files here.
"""

from __future__ import annotations

import os
import sys


def spellings(path: str, cwd: str) -> list[str]:
    """Absolute paths that `path`, written in folder `cwd`, may stand for: textual ones first."""
    found: list[str] = []
    for text in (path, path.strip()):
        if not text or "\0" in text:
            continue
        joined = os.path.join(cwd or os.sep, text)
        for candidate in (os.path.normpath(joined), os.path.realpath(joined)):
            candidate = _single_root(candidate)
            if candidate not in found:
                found.append(candidate)
        resolved = _single_root(os.path.realpath(found[0]))
        if resolved not in found:
            found.append(resolved)
    return found


def key_of(path: str) -> str:
    """The one key of absolute `path`: links resolved, case and Unicode form folded where needed."""
    return fold(_single_root(os.path.realpath(path)))


def keys_for(path: str, cwd: str) -> list[str]:
    """Every key and spelling under which a lock on this path may be stored, without repeats."""
    found = spellings(path, cwd)
    for candidate in list(found):
        folded = fold(candidate)
        if folded not in found:
            found.append(folded)
    return found


def fold(path: str) -> str:
    """`path` with case and Unicode form removed where its file system ignores them."""
    if sys.platform == "darwin" and not path.isascii():
        path = _composed(path)  # APFS and HFS+ never tell the two forms apart
    if ignores_case(path):
        return _composed(path).casefold()
    return path


def ignores_case(path: str) -> bool:
    """Whether the file system at `path` takes ``A`` and ``a`` for one name.

    Asked of the deepest name that exists: its case-swapped form is the same file, or is not.
    """
    probe = path
    while probe and probe != os.path.dirname(probe):
        folder, name = os.path.split(probe)
        swapped = name.swapcase()
        if swapped != name:
            try:
                here = os.stat(probe)
                there = os.stat(os.path.join(folder, swapped))
                return (here.st_dev, here.st_ino) == (there.st_dev, there.st_ino)
            except FileNotFoundError:
                if os.path.lexists(probe):
                    return False
            except (OSError, ValueError):
                return False
        probe = folder
    return False


def contains(folder: str, path: str) -> bool:
    """Whether absolute `path` is `folder` or lies under it, textually."""
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


def translated(path: str, directory: str, root: str, file_root: str) -> str:
    """Absolute `path` of a session, moved to where its `file_root` says such files really are.

    `directory` is the session's folder, `root` the git root above it. Paths inside `root` keep
    their position under the git root of `file_root`; other paths stay as they are.
    """
    if not file_root or file_root == directory:
        return path
    if root and contains(root, path):
        return os.path.normpath(os.path.join(git_root(file_root), os.path.relpath(path, root)))
    if directory and contains(directory, path):
        return os.path.normpath(os.path.join(file_root, os.path.relpath(path, directory)))
    return path


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


def _single_root(path: str) -> str:
    # POSIX lets "//x" mean something else; on Linux and macOS it is "/x".
    return path[1:] if path.startswith("//") and not path.startswith("///") and os.name == "posix" else path


def _composed(path: str) -> str:
    if path.isascii():
        return path
    from unicodedata import normalize

    return normalize("NFC", path)
