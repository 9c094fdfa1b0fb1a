"""Contents and times of files in the last commit, for many files by three questions to git for each work tree."""

from __future__ import annotations

import os
import time
from typing import NamedTuple

from swarm_hook_core.git_objects import blobs, sizes
from swarm_hook_core.git_repository import NoAnswer, Refused, Repository
from swarm_hook_core.repository import tree_over
from swarm_hook_core.traces.versions import LIMIT_BYTES
from swarm_mcp.errors import SwarmError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

SECONDS = 20.0  # for git's answers about one work tree
KEPT_SECONDS = 8 * 86400  # no version of a file is older: the time of an older commit does not matter


class LastCommit(NamedTuple):
    """A file in the last commit.

    content   its content, None if the commit has no such file, or a large one
    at        time of the newest commit that changed the file, in Unix seconds; 0 if it is older than all versions
    is_large  True if it has over 1 MiB there: no version has so much
    """

    content: bytes | None
    at: int
    is_large: bool = False


NOWHERE = LastCommit(None, 0)


def last_commits(paths: Iterable[str]) -> dict[str, LastCommit]:
    """Return ``{path: LastCommit}`` of absolute `paths`, links resolved. Raises SwarmError if git does not answer."""
    found: dict[str, LastCommit] = {}
    by_top: dict[str, list[str]] = {}
    for path in paths:
        tree = tree_over(os.path.dirname(path))
        if tree is None:
            found[path] = NOWHERE
        else:
            by_top.setdefault(tree.top, []).append(path)
    for top, some in by_top.items():
        names = {os.path.relpath(path, top): path for path in some}
        try:
            contents, large = _contents(top, list(names))
            times = _times(top, list(names))
        except NoAnswer as error:
            raise SwarmError(f"git does not answer in {top}: {error}") from None
        for name, path in names.items():
            found[path] = LastCommit(contents.get(name), times.get(name, 0), name in large)
    return found


def _contents(top: str, names: list[str]) -> tuple[dict[str, bytes | None], set[str]]:
    """Return ``{name: content}``, and the names of files over 1 MiB, which are not read."""
    repository = Repository(top, SECONDS)
    try:
        found = dict(zip(names, sizes(repository, [f"HEAD:{name}" for name in names])))
        large = {name for name, size in found.items() if size is not None and size > LIMIT_BYTES}
        small = [name for name, size in found.items() if size is not None and size <= LIMIT_BYTES]
        contents = blobs(repository, [f"HEAD:{name}" for name in small])
    except Refused:
        return {}, set()  # no repository that git accepts
    return {name: contents[f"HEAD:{name}"] for name in small}, large


def _times(top: str, names: list[str]) -> dict[str, int]:
    options = ("--format=%x01%ct", "--name-only", "-z", "--no-renames", "--root", "--diff-merges=combined")
    since = f"--since={int(time.time()) - KEPT_SECONDS}"
    paths = [f":(top,literal){name}" for name in names]
    try:
        output = Repository(top, SECONDS).ask("log", *options, since, "HEAD", "--", *paths)
    except Refused:
        return {}  # no commit yet
    found: dict[str, int] = {}
    for block in output.split("\x01")[1:]:
        at, _, changed = block.partition("\0")
        for name in changed.lstrip("\n").split("\0") if at.isdigit() else ():  # else a part of an odd name
            found.setdefault(name, int(at))  # the newest commit comes first
    return found
