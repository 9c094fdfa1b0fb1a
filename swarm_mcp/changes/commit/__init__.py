"""A commit of one author's uncommitted changes alone, beside the changes of all others.

    parts          the changes of the author, of others, and of both
    making         the private index, the repository's hooks, the signed commit
    apart          git with the repository's own programs; a work tree for hooks, beside changes of others
    landing        the branch and the shared index, changed together or not at all

No file of the work tree is written, but for those that hooks rewrite, as for `git commit`. The shared index changes
only where the commit does.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from swarm_hook_core.repository import Tree, tree_over
from swarm_hook_core.traces import place_of, state_of
from swarm_hook_core.traces.journal import owner_of
from swarm_hook_core.traces.versions.notes import Author
from swarm_hook_core.traces.versions.stored import journals_of
from swarm_mcp.changes.authorship import committed
from swarm_mcp.changes.commit.apart import Git, differing, literal, split
from swarm_mcp.changes.commit.landing import Mending, Moved, Workshop
from swarm_mcp.changes.commit.making import Making
from swarm_mcp.changes.commit.parts import Part, Parts, Place
from swarm_mcp.changes.dirty import committed_file, dirty_files
from swarm_mcp.errors import Refused

TRIES = 3  # commits prepared anew, because the branch or a file has changed meanwhile
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
    rewritten  paths that the hooks have changed in the commit, and not in the work tree
    apply      a command that changes them there as well; empty if lines of others stand in the way
    """

    def __init__(self, commit: str, branch: str, parts: list[Part], left_out: list[Place]):
        self.commit = commit
        self.branch = branch
        self.parts = parts
        self.left_out = left_out
        self.staged: list[str] = []
        self.output = ""
        self.rewritten: list[str] = []
        self.apply = ""


class _Ready(NamedTuple):
    """A commit `made` on `head` that is not the branch's yet."""

    head: str
    made: str
    making: Making
    parts: Parts


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
        self.tree: Tree = tree
        self._git = Git(tree.top)
        self._is_own = is_own
        self.named = named
        self._messages = list(messages)
        self._files = [self._inside(file) for file in files]

    def make(self, test: Callable[[str, str], None] | None = None) -> Committed:
        """Make the commit. Raises Refused: nothing has changed then.

        `test`: called with the names of HEAD and of the new commit before that is the branch's. It may raise Refused,
        and Moved if it has to be made anew. Other commits do not wait for it.
        """
        for _try in range(TRIES):
            try:
                with Workshop(self.tree.top, self.tree.own) as workshop:
                    ready = self._prepare(workshop)
                    if test is None:
                        return self._land(workshop, ready)
                test(ready.head, ready.made)
                with Workshop(self.tree.top, self.tree.own) as workshop:
                    return self._land(workshop, ready)
            except Moved:
                continue  # the next try begins with the new HEAD
        raise Refused("the branch or the files have changed meanwhile, again and again: try again")

    def plan(self) -> Committed:
        """Return the commit as it would be made. Raises Refused."""
        with Workshop(self.tree.top, self.tree.own) as workshop:
            head = self._git.head()
            parts = self._parts(Making(self._git, workshop, head))
            return Committed("", self._branch(), parts.own, parts.left_out)

    def _prepare(self, workshop: Workshop) -> _Ready:
        head = self._git.head()
        making = Making(self._git, workshop, head)
        parts = self._parts(making)
        making.stage(parts.own)
        began_ns = time.time_ns()
        made = making.commit(self._messages)
        if making.rewritten and not making.is_apart and self._others_wrote(began_ns):
            raise Moved  # a hook may have staged it: the next try has the hooks in a work tree apart
        return _Ready(head, made, making, parts)

    def _land(self, workshop: Workshop, ready: _Ready) -> Committed:
        head, made, making, parts = ready
        others = {place.path for place in parts.left_out}
        mending = Mending(self._git, head, made, {part.path for part in parts.own} - others)
        rewritten = making.rewritten if making.is_apart else {}
        workshop.land(self._git, head, made, making.subject, mending.write, rewritten)
        making.hook("post-commit", is_shared=True)
        committed(self.tree.top)
        done = Committed(made, self._branch(), parts.own, parts.left_out)
        done.staged = mending.left
        done.output = making.output
        done.rewritten = differing(self._git, rewritten)
        if done.rewritten:
            done.apply = making.keep_patch(rewritten)
        return done

    def _others_wrote(self, since_ns: int) -> bool:
        """Return True if another session may have written in this work tree since then."""
        for data in journals_of(place_of(self.tree.top)).values():
            owner, last = owner_of(data), data.rstrip(b"\n").rpartition(b"\n")[2].partition(b" ")[0]
            if owner[1] and not self._is_own(Author(*owner)) and last.isdigit() and int(last) >= since_ns:
                return True
        return False

    def _parts(self, making: Making) -> Parts:
        """Return the Parts of all files in question. Raises Refused for overlaps, and if nothing is the author's."""
        self._require_rest()
        parts, named = Parts(self._git, self._is_own), set(self._files)
        paths = making.dirty(self._files)
        states = {path: state_of(os.path.join(self.tree.top, path)) for path in paths}
        known = {file.name.rstrip("/"): file for file in dirty_files(self.tree.top, self._files) if states}
        for path, state in states.items():
            file = known.get(path) or committed_file(self.tree.top, path)
            parts.add(file, state, path in named)
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
        for path, deed in zip(self._git.paths(list(IN_PROGRESS)), IN_PROGRESS.values()):
            if os.path.exists(path):
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
        folder = os.path.realpath(folder)
        path = os.path.relpath(os.path.join(folder, name), self.tree.top)
        if path.startswith("..") or os.path.isabs(path):
            raise Refused(f"{file} is outside of the work tree {self.tree.top}")
        if path == ".":
            return ""
        inner = tree_over(folder)
        if inner is not None and inner.top != self.tree.top:
            raise Refused(f"{path} is in another repository, {inner.top}: commit it there, by a call of its own")
        return path
