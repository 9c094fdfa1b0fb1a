"""The weave: steps left out, with others' lines as they are."""

from __future__ import annotations

import random
import re

import pytest

from swarm_mcp.changes.weave import Weave


def woven(*texts: str) -> Weave:
    """A file with these contents, one a step."""
    weave = Weave(texts[0].encode(), is_binary=False)
    for step, text in enumerate(texts[1:]):
        weave.follow(step, text.encode())
    return weave


CASES = {  # contents, steps to take back, the result if no other step is in the way
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


def test_a_partly_committed_change_is_not_guessed() -> None:
    weave = woven("a\nb\nc\n", "x\ny\nc\n")
    weave.commit(b"x\nb\nc\n")
    ((_hunk, conflict),) = weave.conflicts({0}, weave.settled({0}))
    assert (conflict.step, conflict.lines) == (0, [1]), "nothing tells if `b` comes before `x` or behind it"


LAYOUT = {  # contents: the second step lays out anew; the commit; steps to take back; the result, if it is not refused
    "its own": (["f( 1 )\n", "f( 1 )\ng( 2 )\n", "f(1)\ng(2)\n"], "", {0, 1}, "f( 1 )\n"),
    "another's": (["f( 1 )\n", "f( 1 )\ng( 2 )\n", "f(1)\ng(2)\n"], "", {0}, "f(1)\n"),
    "the layout alone": (["f( 1 )\n", "f( 1 )\ng( 2 )\n", "f(1)\ng(2)\n"], "", {1}, "f( 1 )\ng( 2 )\n"),
    "partly committed": (["f( 1 )\nh( 3 )\n", "f( 1 )\nh( 3 )\ng( 2 )\n", "f(1)\nh(3)\ng(2)\n"], "f(1)\n", {0, 1}, "f(1)\nh( 3 )\n"),
    "its line alone": (["f( 1 )\n", "f( 1 )\ng( 2 )\n", "f(1)\ng(2)\n"], "f( 1 )\ng(2)\n", {0, 1}, "f( 1 )\ng(2)\n"),
    "equal words": (["f( 1 )\nf( 1 )\n", "f( 1 )\ng( 2 )\nf( 1 )\n", "f(1)\ng(2)\nf(1)\n"], "f(1)\nf( 1 )\n", {0, 1}, "f(1)\nf( 1 )\n"),
    "broken by itself": (["f( 1 )\n", "f( 1 )\ng(2, 3)\n", "f(1)\ng(\n2,\n3\n)\n"], "", {0, 1}, "f( 1 )\n"),
    "broken by another": (["f( 1 )\n", "f( 1 )\ng(2, 3)\n", "f(1)\ng(\n2,\n3\n)\n"], "", {0}, None),
}  # fmt: skip


@pytest.mark.parametrize("case", LAYOUT)
def test_a_line_in_a_new_layout_is_the_same_line(case: str) -> None:
    texts, head, steps, wanted = LAYOUT[case]
    weave = woven(*texts[:-1])
    weave.follow(1, texts[-1].encode(), is_layout=True)
    weave.commit(head.encode())
    conflicts = weave.conflicts(steps, weave.settled(steps))
    assert bool(conflicts) is (wanted is None), [(one.step, one.lines) for _hunk, one in conflicts]
    if wanted is not None:
        assert weave.content_without(steps, weave.settled(steps)).decode() == wanted


def test_a_binary_content_is_one_line() -> None:
    weave = Weave(b"\0a\nb", is_binary=True)
    weave.follow(0, b"\0a\nc")
    assert weave.content_without({0}) == b"\0a\nb"
    weave.follow(1, b"\0other")
    assert weave.conflicts({0}, ())


class Played:
    """Lines of two sessions in a file, by a seed: added, removed, laid out anew; the commit has some of them."""

    def __init__(self, seed: int) -> None:
        self.choose = random.Random(seed)
        self.order = list(range(1, self.choose.randint(4, 7)))  # of all lines, also of removed ones
        self.owner: dict[int, int | None] = dict.fromkeys(self.order)  # without one: of the first content
        self.remover: dict[int, int] = {}
        self.lines = dict.fromkeys(self.order, "( 1 )")  # present ones, with their layout
        self.weave, self.steps = Weave(self.text(), is_binary=False), list[int]()
        for _ in range(self.choose.randint(2, 7)):
            self.step(self.choose.randint(0, 1), self.choose.choice(("adds", "adds", "removes", "lays out")))
        some = [one for one in self.order if self.is_committed(one)]
        self.commit = dict.fromkeys(some, "( 1 )") | {one: self.lines[one] for one in some if one in self.lines}
        self.weave.commit(self.text(self.commit))

    def text(self, lines: dict[int, str] | None = None) -> bytes:
        found = self.lines if lines is None else lines
        return "".join(f"w{one}{found[one]}\n" for one in self.order if one in found).encode()

    def step(self, who: int, way: str) -> None:
        before, own = self.text(), [one for one in self.lines if self.owner[one] in (None, who)]
        if way == "adds":
            number = len(self.order) + 1
            self.order.insert(self.choose.randint(0, len(self.order)), number)
            self.owner[number], self.lines[number] = who, "( 1 )"
        elif way == "removes" and own:
            number = self.choose.choice(own)
            self.remover[number] = who
            del self.lines[number]
        elif way == "lays out":
            self.lines = dict.fromkeys(self.lines, self.choose.choice(("(1)", "(1)", "( 1 )")))
        if self.text() != before:
            self.weave.follow(len(self.steps), self.text(), is_layout=way == "lays out")
            self.steps.append(who)

    def is_committed(self, number: int) -> bool:
        if self.owner[number] is None:
            return number in self.lines or self.choose.random() < 0.6
        return number in self.lines and self.choose.random() < 0.5


@pytest.mark.parametrize("seed", range(0, 1000, 100))
def test_lines_of_others_and_of_the_commit_stay_in_their_order(seed: int) -> None:
    undone = 0
    for number in range(seed, seed + 100):
        played = Played(number)
        steps = {index for index, who in enumerate(played.steps) if who == 0}
        kept = played.weave.settled(steps)
        if played.weave.conflicts(steps, kept):
            continue
        undone += 1
        left = [int(one) for one in re.findall(rb"w(\d+)", played.weave.content_without(steps, kept))]
        assert left == [one for one in played.order if one in left], number
        for line in played.order:
            if played.owner[line] == 0:
                assert (line in left) is (line in played.commit), (number, line)
            elif line in played.lines:
                assert line in left, (number, line)
            elif line in left:
                assert played.remover[line] == 0, (number, line)
    assert undone > 50
