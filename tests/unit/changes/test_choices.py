"""The content of a choice of authors: that of an independent model, or its lines are named."""

from __future__ import annotations

import os
import random
from collections.abc import Collection
from itertools import chain, combinations
from pathlib import Path
from unittest import mock

import pytest
from support.edits_model import Edits

from swarm_hook_core.traces.versions import lines
from swarm_hook_core.traces.versions.notes import Author
from swarm_hook_core.traces.versions.steps import Moment, Step
from swarm_mcp.changes.dirty import PLAIN, DirtyFile
from swarm_mcp.changes.patch import result_of
from swarm_mcp.changes.uncommitted import ChangedFile, chosen, pieces_of
from swarm_mcp.changes.weave import Weave

AUTHORS = [Author("claude-code", "a"), Author("codex", "b"), Author("", "")]
FIRST = range(0, 3000 if os.environ.get("SWARM_THOROUGH") else 600, 100)  # seeds
CHOICES = list(chain.from_iterable(combinations(range(3), size) for size in range(4)))


class Undo(Step):
    """The step of an undo."""

    is_undo = True


class Known:
    """A file's history with these contents, the last commit's first; each other one is by one author.

    undos  numbers of the steps that are undos
    """

    def __init__(self, contents: list[str], authors: list[int], undos: Collection[int] = ()):
        self._undos = undos
        self.moments = [Moment(at, at, True, None, text.encode()) for at, text in enumerate(contents, 1)]
        self._authors = authors

    def steps(self) -> list[Step]:
        pairs = zip(self.moments, self.moments[1:], self._authors)
        kinds = [(Undo if number in self._undos else Step) for number in range(len(self._authors))]
        return [kind(before, after, (AUTHORS[who],)) for kind, (before, after, who) in zip(kinds, pairs)]

    def earlier(self) -> tuple[Author, ...]:
        return ()

    def writers(self) -> tuple[Author, ...]:
        return tuple(AUTHORS)


def changed(path: Path, contents: list[str], authors: list[int], undos: Collection[int] = ()) -> ChangedFile:
    """Return the uncommitted changes of a file with this history."""
    path.write_text(contents[-1])
    head = contents[0].encode()
    with mock.patch.object(lines, "History", lambda *_words: Known(contents, authors, undos)):
        fold = lines.Fold(str(path), head)
    file = DirtyFile(path.name, str(path), PLAIN, PLAIN, "")
    file.head = head
    return ChangedFile(file, pieces_of(fold, converts=False), "", ())


@pytest.mark.parametrize("first", FIRST)
@pytest.mark.sampled
def test_the_content_with_a_choice_of_authors_is_that_of_the_model(first: int, tmp_path: Path) -> None:
    named = 0
    for seed in range(first, first + 100):
        edits = Edits(seed)
        one = changed(tmp_path / "file", edits.contents, edits.authors)
        for choice in CHOICES:
            sessions = {AUTHORS[who].session for who in choice}
            found, parted = chosen(one.pieces, lambda piece, of=sessions: not piece.sessions.isdisjoint(of))
            if parted:
                named += 1
            else:
                assert result_of(one, found).decode() == edits.with_only(choice), (seed, choice)
    assert named < 100 * len(CHOICES) / 4


@pytest.mark.parametrize("first", FIRST)
@pytest.mark.sampled
def test_all_pieces_are_the_present_content_after_any_undos(first: int, tmp_path: Path) -> None:
    """So it is where an undo brings a line of the commit back at another place."""
    for seed in range(first, first + 100):
        edits, choose = Edits(seed, 5), random.Random(seed)
        contents, authors, undos = edits.contents, edits.authors, []
        for number in range(4):
            text = choose.choice([*contents, contents[-1] + f"more {number}\n"])
            if text != contents[-1]:
                undos += [len(authors)] * (text in contents)
                contents.append(text)
                authors.append(number % 3)
        one = changed(tmp_path / "file", contents, authors, undos)
        assert result_of(one, one.pieces).decode() == contents[-1], seed
        assert result_of(one, []).decode() == contents[0], seed


@pytest.mark.parametrize("first", FIRST)
@pytest.mark.sampled
def test_the_content_without_an_author_is_that_of_the_model(first: int) -> None:
    """So are those of an undo of the undo, and of the undo of that."""
    named = 0
    for seed in range(first, first + 100):
        edits = Edits(seed)
        for who in range(3):
            weave = Weave(edits.contents[0].encode(), is_binary=False)
            for step, content in enumerate(edits.contents[1:]):
                weave.follow(step, content.encode())
            weave.commit(edits.contents[0].encode())
            taken = {step for step, author in enumerate(edits.authors) if author == who}
            if weave.conflicts(taken, weave.settled(taken)):
                named += 1
                continue
            before, after = edits.contents[-1].encode(), weave.content_without(taken, weave.settled(taken))
            assert after.decode() == edits.without(who), (seed, who)
            for step in range(len(edits.authors), len(edits.authors) + 4):
                weave.follow_undo(step, after, taken)
                taken, before, after = {step}, after, before
                assert not weave.conflicts(taken, weave.settled(taken)), (seed, who)
                assert weave.content_without(taken, weave.settled(taken)) == after, (seed, who)
    assert named < 100
