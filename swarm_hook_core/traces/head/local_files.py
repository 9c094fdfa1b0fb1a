"""The settings of a repository that are part of no commit: a change of them is told once, as a turn begins.

``info/exclude`` hides files from ``git status``, ``info/attributes`` has git convert or merge contents in another way,
and ``core.worktree`` has git act on another folder. No hook of git's tells of a change, and no diff shows it.
"""

from __future__ import annotations

import os
import zlib

from swarm_hook_core.git_repository import NoAnswer, Refused, Repository
from swarm_hook_core.repository import Tree
from swarm_hook_core.untrusted_text import named
from swarm_hook_core.wording import and_more

SECONDS = 0.5  # for git's answers
NAMED = 3  # files in the words


def news(tree: Tree, told: set[str]) -> tuple[list[str], set[str]]:
    """Return sentences about changes since the session's facts `told`, and its facts from now on.

    Without facts of these kinds in `told` there is no news: the session learns them here.
    """
    now = {f"{name}={_state(tree, name)}" for name in ("info/exclude", "info/attributes", "config")}
    known = {fact for fact in told if fact.partition("=")[0] in _WORDS}
    place = {fact for fact in known if fact.startswith("core.worktree=")}
    if any(fact.startswith("config=") for fact in now - known):
        place = {f"core.worktree={zlib.crc32(_worktree(tree).encode())}"}
    now |= place
    words: list[str] = []
    if known:
        words = [_WORDS[fact.partition("=")[0]](tree) for fact in sorted(now - known)]
    return [one for one in words if one], (told - known) | now


def _state(tree: Tree, name: str) -> int:
    try:
        return os.stat(os.path.join(tree.common, name)).st_mtime_ns
    except OSError:
        return 0  # missing


def _worktree(tree: Tree) -> str:
    try:
        return Repository(tree.top, SECONDS).setting("core.worktree")
    except (NoAnswer, Refused):
        return ""  # as if it were not set


def _excluded(tree: Tree) -> str:
    try:
        files = Repository(tree.top, SECONDS).hidden([""])
    except (NoAnswer, Refused):
        return ""  # git was too slow: the files are protected all the same
    if not files:
        return ""
    shown = ", ".join(named(one) for one in files[:NAMED]) + and_more(len(files) - NAMED)
    return (
        f"swarm: .git/info/exclude has changed, and hides from `git status`: {shown}. No commit has them: they stay the"
        " work of who made them."
    )


def _attributes(_tree: Tree) -> str:
    return "swarm: .git/info/attributes has changed: git may merge or convert files of this repository in another way."


def _moved(tree: Tree) -> str:
    place = _worktree(tree)
    if not place:
        return ""
    return f"swarm: core.worktree of this repository is {named(place)} now: git commands here act on that folder."


_WORDS = {
    "info/exclude": _excluded,
    "info/attributes": _attributes,
    "config": lambda _tree: "",
    "core.worktree": _moved,
}
