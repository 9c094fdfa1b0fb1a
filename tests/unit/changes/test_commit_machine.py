"""Two sessions, an agent of one, and a person in two files; each commits its own lines, and may be killed at any step.

The model knows the author of each line (``support.authors``). A commit has the last commit's lines with the author's
added and removed ones, and with no others. The work tree stays byte for byte, staged lines of others stay staged. A
refused commit changes nothing, and so does a killed one unless it is complete. Hooks may stage all that they find.
"""

from __future__ import annotations

from unittest import mock

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule
from support.authors import FILES, NAMES, PERSON, Authors, settings_of, tick
from support.commits import git, hook, of
from support.killing import MOST, killed_at

from swarm_hook_core.repository import tree_at
from swarm_mcp.changes.commit import Committed
from swarm_mcp.changes.commit.landing import Workshop
from swarm_mcp.errors import Refused

pytestmark = pytest.mark.slow

LANDING = st.integers(55, 80)  # the steps that change the repository are among these
AUTHORS = st.sampled_from([0, 1, PERSON])


class Commits(Authors):
    """Commits of either session and of the person, at any time."""

    def __init__(self) -> None:
        super().__init__()
        tree = tree_at(str(self.work))
        assert tree is not None
        self.workshop = Workshop(tree.top, tree.own)

    # ------------------------------------------------------------------------------------------ contents

    def _lines(self, revision: str) -> dict[str, list[str]]:
        """Return the lines of the files in a commit; in the index for an empty revision."""
        return {name: git(self.work, "show", f"{revision}:{name}").splitlines(keepends=True) for name in FILES}

    def _state(self) -> dict[str, object]:
        return {
            "tree": self._on_disk(),
            "head": self._lines("HEAD"),
            "count": git(self.work, "rev-list", "--count", "HEAD"),
            "index": self._lines(""),
            "stash": git(self.work, "stash", "list"),
            "others": sorted(str(path) for path in self.work.glob("*")),
            "locks": sorted(str(path) for path in (self.work / ".git").glob("**/*.lock")),
            "side": (self.work / ".git/index.swarm").exists(),
        }

    def _change(self, name: str, author: int) -> tuple[set[str], set[str]]:
        """Return the lines that the author has added, and those that the author has removed."""
        lines = self.lines[name]
        added = {text for text, by, remover in lines if by == author and remover is None}
        return added, {text for text, by, remover in lines if by is None and remover == author}

    def _touches(self, author: int) -> bool:
        """Return True if lines of the author stand beside lines of another, some added and some removed."""
        for lines in self.lines.values():
            region: list[tuple[int, bool]] = []
            for _text, by, remover in [*lines, ["", None, None]]:
                if by is None and remover is None:
                    marks = {mark for _who, mark in region}
                    if len({one for one, _mark in region}) > 1 and author in dict(region) and len(marks) > 1:
                        return True
                    region = []
                elif by is None or remover is None:
                    region.append((remover if by is None else by, by is None))
        return False

    # ------------------------------------------------------------------------------------------ steps

    @rule(has_hook=st.booleans())
    def hooks_change(self, has_hook: bool) -> None:
        hook(self.work, "pre-commit", "git add -A" if has_hook else "true")

    @rule(name=NAMES)
    def person_stages(self, name: str) -> None:
        git(self.work, "add", name)

    @precondition(lambda self: self.count)
    @rule(author=AUTHORS, kill=st.one_of(st.just(0), st.integers(1, MOST), LANDING))
    def commits(self, author: int, kill: int) -> None:
        self._looks()
        before, wanted = self._state(), {name: self._change(name, author) for name in FILES}
        player = None if author == PERSON else self.players[author]
        commit = of(player, self.work)
        if player is not None:
            key = (player.runtime, player.session_id)
            commit._is_own = lambda one: one.session == key
        done = None
        try:
            if kill:
                with mock.patch.object(Workshop, "_guard", lambda _self: None):
                    killed_at(commit, kill)
                with self.workshop:
                    pass
            else:
                done = commit.make()
        except Refused:
            assert self._state() == before
            assert self._touches(author) or not any(map(any, wanted.values()))
            return
        after = self._state()
        if after["count"] == before["count"]:
            assert after == before
            return
        self._holds(author, before, after, done)
        for name in FILES:
            committed = after["head"][name]
            self.lines[name] = [
                [text, None if text in committed else by, remover]
                for text, by, remover in self.lines[name]
                if text in committed or (by is not None and remover is None)
            ]
        tick(self.base)

    def _holds(self, author: int, before: dict, after: dict, done: Committed | None) -> None:
        same = ("tree", "stash", "others", "locks", "side")
        assert {key: after[key] for key in same} == {key: before[key] for key in same}
        assert int(after["count"]) == int(before["count"]) + 1
        for name in FILES:
            added, removed = self._change(name, author)
            old, new, index = before["head"][name], after["head"][name], after["index"][name]
            assert set(new) - set(old) <= added and set(old) - set(new) <= removed, name
            if done is not None and not self._is_unsure(name, author, done):
                assert sorted(new) == sorted((set(old) | added) - removed), name
            assert [line for line in new if line in old] == [line for line in old if line in new]
            present = after["tree"][name].splitlines(keepends=True)
            assert [line for line in new if line in present] == [line for line in present if line in new]
            was_staged = before["index"][name]
            if was_staged == old:
                assert index == new
            elif index != was_staged or (done is not None and name not in done.staged):
                come, gone = set(new) - set(old), set(old) - set(new)
                assert index == new or sorted(index) == sorted((set(was_staged) | come) - gone)

    def _is_unsure(self, name: str, author: int, done: Committed) -> bool:
        """Return True if a place of the file was left out, because it is not certain to be the author's."""
        session = ("", "")
        if author != PERSON:
            session = (self.players[author].runtime, self.players[author].session_id)
        return any(place.path == name and session in [one.session for one in place.authors] for place in done.left_out)


TestCommits = Commits.TestCase
TestCommits.settings = settings_of(10, 16)
