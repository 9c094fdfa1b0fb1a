"""The uncommitted lines of a file, as git counts them."""

from __future__ import annotations

import os
from collections.abc import Iterable

from swarm_hook_core.git_repository import NoAnswer, Refused, Repository
from swarm_hook_core.persons.losses import top_of
from swarm_hook_core.watching.snapshot import read_resolved

SECONDS = 0.5  # for git's answers about one file, or about the lines of all files
LARGEST = 1024 * 1024  # bytes of a file that is compared line by line
MOST_FILES = 20  # files of one call with their lines counted


class Extent:
    """The part of a file that is not committed.

    added    numbers of the lines that the last commit lacks
    removed  number of lines of the last commit that the file lacks
    is_new   True if the last commit has no such file
    is_text  False for a file without lines, such as a binary one
    """

    __slots__ = ("added", "removed", "is_new", "is_text")

    def __init__(self, added: list[int], removed: int, is_new: bool, is_text: bool = True):
        self.added = added
        self.removed = removed
        self.is_new = is_new
        self.is_text = is_text


def extents(paths: Iterable[str], new: Iterable[str]) -> dict[str, Extent]:
    """Return the Extent of the first files in `paths`, as far as git answers. `new`: those that git does not know."""
    unknown: set[str] = set(new)
    by_top: dict[str, list[str]] = {}
    found: dict[str, Extent] = {}
    for path in list(paths)[:MOST_FILES]:
        if path in unknown:
            found[path] = _whole(path)
        else:
            by_top.setdefault(top_of(path), []).append(path)
    for top, some in by_top.items():
        for path in some:
            try:
                found[path] = _hunks(Repository(top, SECONDS), os.path.relpath(path, top))
            except (NoAnswer, Refused):
                found[path] = _whole(path)  # no answer, or no commit yet
    return found


def _hunks(repository: Repository, name: str) -> Extent:
    if repository.has_filter(name):  # git would run it, or compare what it leaves, as for a file in LFS
        return Extent([], 0, not repository.tracked([name]), is_text=False)
    output = repository.ask(
        "diff-index", "-p", "-U0", "--no-color", "--no-ext-diff", "--no-textconv", "--no-renames", "HEAD", "--",
        f":(top,literal){name}",
    )  # fmt: skip
    extent = Extent([], 0, "\nnew file mode " in output, "\nBinary files " not in output)
    for line in output.split("\n"):
        if line.startswith("@@ -"):
            old, new = line.split(" ")[1:3]
            start, count = _range(new)
            extent.added += range(start, start + count)
            extent.removed += _range(old)[1]
    return extent


def _range(text: str) -> tuple[int, int]:
    """Return ``(first line, count)`` of one side of a hunk: ``+12,4``."""
    start, _, count = text[1:].partition(",")
    return int(start), int(count or 1)


def _whole(path: str) -> Extent:
    """Return the Extent of a file that no commit has."""
    lines = _lines_of(path)
    if lines is None:
        return Extent([], 0, True, is_text=False)
    return Extent(list(range(1, len(lines) + 1)), 0, True)


def _lines_of(path: str) -> list[bytes] | None:
    """Return the lines of a plain text file, without their ends; None for any other file."""
    try:
        data = read_resolved(path, LARGEST)[1]
    except (OSError, ValueError):
        return None  # gone, too large, or not a plain file
    if b"\0" in data:
        return None
    return _split(data)


def _split(data: bytes) -> list[bytes]:
    lines = data.replace(b"\r\n", b"\n").split(b"\n")
    if not lines[-1]:
        lines.pop()
    return lines
