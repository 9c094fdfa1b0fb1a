"""`swarm-mcp commit` where the lines of two authors touch each other, and in files that are taken as a whole."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from support.commits import commits, git, refusal
from support.traced import Player

pytestmark = pytest.mark.slow

TEXT = "alpha\nbeta\ngamma\n"


BESIDE = {
    # name: (edit of one, edit of two, notes.md with two's part alone, notes.md with one's part alone)
    "lines added below each other": (
        ("alpha\n", "alpha\nONE\n"), ("ONE\n", "ONE\nTWO\n"),
        "alpha\nTWO\nbeta\ngamma\n", "alpha\nONE\nbeta\ngamma\n",
    ),
    "a line added above another": (
        ("beta\n", "ONE\nbeta\n"), ("ONE\n", "TWO\nONE\n"),
        "alpha\nTWO\nbeta\ngamma\n", "alpha\nONE\nbeta\ngamma\n",
    ),
    "a line within the lines of another": (
        ("alpha\n", "alpha\nONE\n1\n"), ("ONE\n", "ONE\nTWO\n"),
        "alpha\nTWO\nbeta\ngamma\n", "alpha\nONE\n1\nbeta\ngamma\n",
    ),
    "replaced lines side by side": (
        ("alpha\n", "ONE\n"), ("beta\n", "TWO\n"),
        "alpha\nTWO\ngamma\n", "ONE\nbeta\ngamma\n",
    ),
    "a line added below a replaced one": (
        ("alpha\n", "ONE\n"), ("ONE\n", "ONE\nTWO\n"),
        "alpha\nTWO\nbeta\ngamma\n", "ONE\nbeta\ngamma\n",
    ),
    "removed lines side by side": (
        ("alpha\n", ""), ("beta\n", ""),
        "alpha\ngamma\n", "beta\ngamma\n",
    ),
    "lines added at the end": (
        ("gamma\n", "gamma\nONE\n"), ("ONE\n", "ONE\nTWO"),
        "alpha\nbeta\ngamma\nTWO", "alpha\nbeta\ngamma\nONE\n",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BESIDE)
@pytest.mark.parametrize("is_two_first", [True, False])
@pytest.mark.sampled
def test_lines_of_two_side_by_side(work: Path, name: str, is_two_first: bool) -> None:
    first, second, with_two, with_one = BESIDE[name]
    one, two = Player("codex", work), Player("claude-code", work)  # Codex ends each last line
    one.edits("notes.md", *first)
    two.runs("cat notes.md")
    two.edits("notes.md", *second)
    order = [(one, with_one), (two, with_two)]
    if is_two_first:
        order.reverse()
    commits(order[0][0], work)
    assert git(work, "show", "HEAD:notes.md") == order[0][1]
    commits(order[1][0], work)
    assert git(work, "show", "HEAD:notes.md") == (work / "notes.md").read_text()
    assert git(work, "status", "--porcelain") == ""


def _replaced_twice(work: Path, one: Player, two: Player) -> None:
    one.edits("notes.md", "beta", "ONE")
    two.runs("cat notes.md")
    two.edits("notes.md", "ONE", "ONE and TWO\nTWO")


def _added_where_another_removed(work: Path, one: Player, two: Player) -> None:
    one.edits("notes.md", "beta\n", "")
    two.edits("notes.md", "alpha\n", "alpha\nTWO\n")


def _removed_with_lines_of_another(work: Path, one: Player, two: Player) -> None:
    one.edits("notes.md", "beta\n", "")
    two.runs("cat notes.md")
    two.runs("rm notes.md")


def _moved_with_lines_of_another(work: Path, one: Player, two: Player) -> None:
    one.edits("notes.md", "beta", "ONE")
    two.runs("cat notes.md")
    two.runs("git mv notes.md moved.md")
    two.edits("moved.md", "gamma", "TWO")


def _binary_by_two(work: Path, one: Player, two: Player) -> None:
    one.runs("printf 'a\\0b' > new.bin")
    two.runs("cat new.bin")
    two.runs("printf 'a\\0c' > new.bin")


def _mode_by_another(work: Path, one: Player, two: Player) -> None:
    two.edits("notes.md", "beta", "TWO")
    one.runs("cat notes.md")
    one.runs("chmod +x notes.md")


OVERLAPS = {
    "notes.md lines 2 to 3": _replaced_twice,
    "notes.md line 2": _added_where_another_removed,
    "notes.md (removed)": _removed_with_lines_of_another,
    "notes.md (removed) ": _moved_with_lines_of_another,
    "new.bin (binary)": _binary_by_two,
}


@pytest.mark.parametrize("words", OVERLAPS)
@pytest.mark.sampled
def test_a_place_of_two_is_refused_with_its_authors(work: Path, words: str) -> None:
    one, two = Player("codex", work), Player("codex", work)
    two.edits("other.md", "beta", "MORE")
    OVERLAPS[words](work, one, two)
    said = refusal(two, work)
    assert f"{words.strip()} (" in said and one.session_id[:4] in said, said
    commits(two, work, "other.md")


def test_a_mode_of_another_is_left_out(work: Path) -> None:
    one, two = Player("codex", work), Player("codex", work)
    _mode_by_another(work, one, two)
    assert [place.words for place in commits(two, work).left_out] == ["notes.md (its mode)"]
    assert git(work, "ls-tree", "HEAD", "notes.md").startswith("100644")
    assert git(work, "show", "HEAD:notes.md") == "alpha\nTWO\ngamma\n"
    commits(one, work)
    assert git(work, "ls-tree", "HEAD", "notes.md").startswith("100755")
    assert git(work, "status", "--porcelain") == ""


WHOLE: dict[str, tuple[Callable[[Path], None], str, str]] = {
    # name: (before, commands of the session, file)
    "a binary file": (lambda work: (work / "other.md").write_bytes(b"a\0b"), "printf 'a\\0c' > other.md", "other.md"),
    "a removed binary file": (lambda work: (work / "other.md").write_bytes(b"a\0b"), "rm other.md", "other.md"),
    "a link with another target": (lambda work: (work / "link").symlink_to("a"), "ln -sfn b link", "link"),
    "a removed link": (lambda work: (work / "link").symlink_to("a"), "rm link", "link"),
    "a link in place of a file": (lambda work: None, "ln -sf notes.md other.md", "other.md"),
    "an empty file": (lambda work: None, "touch empty", "empty"),
    "a file in place of a folder": (
        lambda work: ((work / "d").mkdir(), (work / "d/x").write_text("x\n")),  # type: ignore[func-returns-value]
        "rm -r d; echo file > d", "d",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.sampled
def test_a_file_as_a_whole(work: Path, name: str) -> None:
    before, command, file = WHOLE[name]
    before(work)
    git(work, "add", "-A")
    git(work, "commit", "-q", "--allow-empty", "-m", "before")
    peer, me = Player("codex", work), Player("codex", work)
    peer.edits("notes.md", "beta", "PEER")
    for part in command.split("; "):
        assert "denied" not in me.runs(part)
    done = commits(me, work)
    assert {part.path.split("/")[0] for part in done.parts} == {file}
    assert git(work, "status", "--porcelain") == " M notes.md\n"
