"""The weave: steps left out, with others' lines as they are."""

from __future__ import annotations

import pytest

from swarm_mcp.changes.weave import Weave


def woven(*texts: str) -> Weave:
    """A file with these contents, one a step."""
    weave = Weave(texts[0].encode(), is_binary=False)
    for step, text in enumerate(texts[1:]):
        weave.follow(step, text.encode())
    return weave


CASES = {  # contents, steps to take back, the result; None where another step is in the way
    "an added line": (["a\nb\n", "a\nx\nb\n", "a\nx\nb\ny\n"], {0}, "a\nb\ny\n"),
    "a line added right behind": (["a\n", "a\nx\n", "a\nx\ny\n"], {0}, "a\ny\n"),
    "a line added right before": (["a\n", "a\nx\n", "a\ny\nx\n"], {0}, "a\ny\n"),
    "a changed line": (["a\nb\nc\n", "a\nx\nc\n", "y\na\nx\nc\n"], {0}, "y\na\nb\nc\n"),
    "a removed line": (["a\nb\nc\n", "a\nc\n", "a\nc\ny\n"], {0}, "a\nb\nc\ny\n"),
    "both": (["a\n", "a\nx\n", "a\nx\ny\n"], {0, 1}, "a\n"),
    "the later one": (["a\n", "a\nx\n", "a\nx\ny\n"], {1}, "a\nx\n"),
    "another's line that was changed": (["a\n", "a\nx\n", "a\ny\n"], {1}, "a\nx\n"),
    "changed whole by another since": (["a\n", "a\nx\n", "a\ny\n"], {0}, "a\ny\n"),
    "changed in part by another since": (["a\n", "a\nx\nz\n", "a\ny\nz\n"], {0}, None),
    "a line within the added ones": (["a\n", "a\nx\nz\n", "a\nx\ny\nz\n"], {0}, None),
    "a line in the place of the removed ones": (["a\nb\nc\n", "a\nc\n", "a\ny\nc\n"], {0}, None),
    "removed by another since": (["a\n", "a\nx\nz\n", "a\nz\n"], {0}, "a\n"),
    "removed by another, restored lines": (["a\nb\nc\n", "a\nx\nc\n", "a\nc\n"], {0}, None),
    "no newline at the end": (["a", "a\nx\n", "a\nx\ny"], {0}, "a\ny"),
    "no newline at the end, restored": (["a", "a\nx\n"], {0}, "a"),
    "converted line ends": (["a\nb\n", "a\r\nb\r\n", "a\r\ny\r\nb\r\n"], {0}, "a\ny\r\nb\n"),
}


@pytest.mark.parametrize("case", CASES)
def test_steps_are_left_out(case: str) -> None:
    texts, steps, wanted = CASES[case]
    weave = woven(*texts)
    conflicts = weave.conflicts(steps, ())
    assert bool(conflicts) is (wanted is None), [(one.step, one.lines) for _hunk, one in conflicts]
    if wanted is not None:
        assert weave.content_without(steps).decode() == wanted


def test_an_undo_its_undo_and_so_on() -> None:
    weave = woven("a\n\nb\n", "a\n\n\nb\n", "a\n\n\nb\ny\n")
    before, after = b"a\n\n\nb\ny\n", b"a\n\nb\ny\n"
    assert weave.content_without({0}) == after
    weave.follow_undo(2, after, {0})
    assert weave.content_without({0}) == after, "again, it changes nothing"
    for step in range(3, 7):
        expected = before if step % 2 else after
        assert weave.content_without({step - 1}) == expected and not weave.conflicts({step - 1}, ())
        weave.follow_undo(step, expected, {step - 1})
        assert weave.content_without({0}) == after


def test_committed_lines_stay() -> None:
    weave = woven("a\nb\n", "a\nx\nb\n", "a\nx\nb\ny\n")
    weave.commit(b"a\nx\nb\n")
    assert weave.content_without({0, 1}, weave.settled({0, 1})) == b"a\nx\nb\n"


def test_a_binary_content_is_one_line() -> None:
    weave = Weave(b"\0a\nb", is_binary=True)
    weave.follow(0, b"\0a\nc")
    assert weave.content_without({0}) == b"\0a\nb"
    weave.follow(1, b"\0other")
    assert weave.conflicts({0}, ())
