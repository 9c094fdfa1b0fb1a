"""Which files a lock reaches that is on a folder, on a pattern, or on another spelling: git-lfs compares whole names.

They are those that a clone on this machine knows: in its checked-out commit, and in the branch that is pushed to, as it
was fetched last.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from typing import Any

from swarm_hook_core import git, wildmatch
from swarm_hook_core.lookup import storable
from swarm_mcp.team.lfs.held import Held
from swarm_mcp.team.protocol import LockRow, region_of, regions_meet

SECONDS = 20.0  # for each question to git
_KEPT = 20  # commits whose files are remembered
_BEHIND_SLASH = chr(ord("/") + 1)


class FileNames:
    """The files of the repository that has a work tree at `top`."""

    def __init__(self, top: str):
        self._top = top
        self._known: dict[str, list[tuple[str, str]]] = {}  # commit -> (without letter case, path) of each file, sorted

    def reached(self, locks: list[Held], ref: str) -> list[Held]:
        """Return one of `locks` for each file that it reaches and does not name, for who pushes to `ref`."""
        found = {}
        for commit in self._commits(ref):
            files = self._files(commit)
            for held in locks:
                for path in _reached(held.row, files):
                    if path != held.path:
                        found[held.id, path] = Held(held.row, path)
        return list(found.values())

    def _commits(self, ref: str) -> list[str]:
        """Return the commit that is checked out, and those of the fetched branches of the name of `ref`."""
        branch = ref.removeprefix("refs/heads/")
        if branch != ref and branch.isprintable():
            fetched = [f"--glob=refs/remotes/*/{branch}"]
        else:
            fetched = []
        return list(dict.fromkeys(self._asked("rev-parse", "--revs-only", "HEAD^{commit}", *fetched).split()))

    def _files(self, commit: str) -> list[tuple[str, str]]:
        found = self._known.get(commit)
        if found is None:
            if len(self._known) >= _KEPT:
                self._known.clear()
            listed = self._asked("ls-tree", "-r", "-z", "--name-only", "--full-tree", commit).split("\0")
            named = (path for path in listed if path and storable(path))  # git-lfs cannot say the others
            found = self._known[commit] = sorted((wildmatch.folded(path), path) for path in named)
        return found

    def _asked(self, *words: str) -> str:
        done = git.ask(list(words), self._top, SECONDS)
        if done.code == 0:
            return done.stdout
        return ""


def _reached(row: LockRow, files: list[tuple[str, str]]) -> Iterator[str]:
    """Yield those of `files` that a lock reaches, of any letter case, as for the team's server none counts."""
    pattern = pattern_of(row)
    for folded, path in _within(row["region"], files):
        if not row["pattern"] or (pattern and wildmatch.covers(pattern, folded)):
            yield path


def _within(region: str, files: list[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Yield the file that is `region`, and all that are in it."""
    if not region:
        yield from files
        return
    for begin, end in ((region, region + "\0"), (region + "/", region + _BEHIND_SLASH)):
        yield from files[bisect_left(files, (begin,)) : bisect_left(files, (end,))]


def pattern_of(part: Mapping[str, Any]) -> list[Any]:
    """Return the pattern of a lock, or of a part of a place in line, as ``wildmatch`` takes it: from the top, without
    letter case. Empty where there is none, or it cannot be read."""
    try:
        own = wildmatch.parsed(part["pattern"], True)
    except wildmatch.PatternUnreadable:
        return []
    return [*wildmatch.of_path(part["base"], True), *own]


def meets(path: str, part: Mapping[str, Any]) -> bool:
    """Tell whether a lock on the file `path` would meet one, or a part of a place in line."""
    if not regions_meet(region_of(path), part["region"]):
        return False
    return not part["pattern"] or wildmatch.overlap(wildmatch.of_path(path, True), pattern_of(part))
