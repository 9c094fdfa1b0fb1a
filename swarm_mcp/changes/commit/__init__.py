"""A commit of one author's uncommitted changes alone, beside the changes of all others.

    parts          the changes of the author, of others, and of both
    making         the private index, the repository's hooks, the signed commit
    landing        the branch and the shared index, changed together or not at all
    shared_index   the shared index after the commit
    git            git, with the repository's own programs

No file of the work tree is written. The shared index changes only where the commit does.
"""

from __future__ import annotations

import os

from swarm_hook_core.repository import Tree, tree_over
from swarm_mcp.changes.commit.git import Git, literal, split
from swarm_mcp.changes.commit.landing import Moved, Workshop
from swarm_mcp.changes.commit.making import Making
from swarm_mcp.changes.commit.parts import Part, Parts, Place
from swarm_mcp.changes.commit.shared_index import Mending
from swarm_mcp.errors import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from swarm_hook_core.traces.versions.steps import Author

TRIES = 3  # commits prepared anew, because the branch has moved meanwhile
IN_PROGRESS = {
    "MERGE_HEAD": "a merge", "rebase-merge": "a rebase", "rebase-apply": "a rebase", "CHERRY_PICK_HEAD":
    "a cherry-pick", "REVERT_HEAD": "a revert",
}  # fmt: skip


class Committed:
    """A finished commit, or the plan of one if `commit` is empty.

    branch     its branch; empty for a detached HEAD
    parts      the author's Parts in it
    left_out   Places of others
    staged     paths with staged content of others that was left as it was
    output     output of the repository's hooks
    """

    def __init__(self, commit: str, branch: str, parts: list[Part], left_out: list[Place]):
        self.commit = commit
        self.branch = branch
        self.parts = parts
        self.left_out = left_out
        self.staged: list[str] = []
        self.output = ""


class Commit:
    """The commit of an author in the work tree around absolute `folder`.

    is_own    function of an Author: True for the author of the commit
    named     function of a list of Authors that returns them in words
    messages  paragraphs of the commit message
    files     absolute paths of files and folders; empty: all
    """

    def __init__(
        self,
        folder: str,
        is_own: Callable[[Author], bool],
        named: Callable[[Sequence[Author]], str],
        messages: Sequence[str],
        files: Sequence[str] = (),
    ):
        tree = tree_over(os.path.realpath(folder))
        if tree is None:
            raise Refused(f"{folder} is in no work tree of a git repository")
        if not any(text.strip() for text in messages):
            raise Refused("the message is empty: -m TEXT")
        self._tree: Tree = tree
        self._git = Git(tree.top)
        self._is_own = is_own
        self.named = named
        self._messages = list(messages)
        self._files = [self._inside(file) for file in files]

    def make(self) -> Committed:
        """Make the commit. Raises Refused: nothing has changed then."""
        with Workshop(self._tree.top, self._tree.own) as workshop:
            for _try in range(TRIES):
                try:
                    return self._attempt(workshop)
                except Moved:
                    continue  # the next try begins with the new HEAD
        raise Refused("the branch got other commits meanwhile, again and again: try again")

    def plan(self) -> Committed:
        """Return the commit as it would be made. Raises Refused."""
        with Workshop(self._tree.top, self._tree.own) as workshop:
            head = self._git.head()
            parts = self._parts(Making(self._git, workshop, head), head)
            return Committed("", self._branch(), parts.own, parts.left_out)

    def _attempt(self, workshop: Workshop) -> Committed:
        head = self._git.head()
        making = Making(self._git, workshop, head)
        parts = self._parts(making, head)
        making.stage(parts.own)
        made = making.commit(self._messages)
        others = {place.path for place in parts.left_out}
        mending = Mending(self._git, head, made, {part.path for part in parts.own} - others)
        workshop.land(self._git, head, made, making.subject, mending.write)
        making.hook("post-commit", is_shared=True)
        done = Committed(made, self._branch(), parts.own, parts.left_out)
        done.staged = mending.left
        done.output = making.output
        return done

    def _parts(self, making: Making, head: str) -> Parts:
        """Return the Parts of all files in question. Raises Refused for overlaps, and if nothing is the author's."""
        self._require_rest()
        parts, named = Parts(self._git, head, self._is_own), set(self._files)
        for path in making.dirty(self._files):
            parts.add(path, path in named)
        if parts.overlaps:
            raise Refused(self._overlapping(parts), overlaps=[one.words for one in parts.overlaps])
        if not parts.own:
            more = ""
            if parts.left_out:
                more = f": {self.listed(parts.left_out)}"
            raise Refused(f"nothing of yours to commit{more}", left_out=[one.words for one in parts.left_out])
        return parts

    def _require_rest(self) -> None:
        """Raise Refused in the middle of a merge or the like, and if the index is locked."""
        for name, deed in IN_PROGRESS.items():
            if os.path.exists(self._git.path(name)):
                raise Refused(f"{deed} is in progress here: finish or abort it first (`git status`)")
        unmerged = split(self._git.ask("diff", "--name-only", "--diff-filter=U", "-z", "--", *literal(self._files)))
        if unmerged:
            raise Refused(f"{unmerged[0]} has conflicts that are not resolved in the index: `git add` it first")

    def _overlapping(self, parts: Parts) -> str:
        bad = {one.path for one in parts.overlaps}
        free = [part.path for part in parts.own if part.path not in bad]
        way = "commit it with their consent (`git commit FILE`)"
        if free:
            way = f"name the other files ({', '.join(free[:5])}), or {way}"
        return f"the same place may have changes of yours and of others: {self.listed(parts.overlaps)}; {way}"

    def listed(self, places: Sequence[Place]) -> str:
        """Return at most ten Places in words, with their authors."""
        words = [f"{one.words} ({self.named(one.authors)})" for one in places[:10]]
        if len(places) > 10:
            words.append(f"and {len(places) - 10} more")
        return "; ".join(words)

    def _branch(self) -> str:
        return self._git.line("symbolic-ref", "-q", "--short", "HEAD")

    def _inside(self, file: str) -> str:
        """Return the path of an absolute `file` from the top. Raises Refused for a file outside."""
        folder, name = os.path.split(os.path.normpath(file))
        path = os.path.relpath(os.path.join(os.path.realpath(folder), name), self._tree.top)
        if path.startswith("..") or os.path.isabs(path):
            raise Refused(f"{file} is outside of the work tree {self._tree.top}")
        if path == ".":
            return ""
        return path
