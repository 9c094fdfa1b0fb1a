"""The lines that others have changed, kept by a new text or not, and as a denial shows them."""

import random

import pytest
from support.altered import Limits

from swarm_hook_core.traces import changed_lines
from swarm_hook_core.traces.changed_lines import are_kept, shown

BASE = "def f():\n    return 1\n\n\ndef g():\n    return 2\n"

# name: (base, present, new, kept)
CASES = {
    "added, and kept": ("a\nb\n", "a\nx\nb\n", "a\nx\nb\nmine\n", True),
    "added, and dropped": ("a\nb\n", "a\nx\nb\n", "a\nb\nmine\n", False),
    "removed, and kept so": ("a\nx\nb\n", "a\nb\n", "a\nb\nmine\n", True),
    "removed, and brought back": ("a\nx\nb\n", "a\nb\n", "a\nx\nb\nmine\n", False),
    "one of two equal lines removed, and brought back": ("x\nx\nb\n", "x\nb\n", "x\nx\nb\n", False),
    "changed, and the old text beside the new one": ("a\nb\nc\n", "a\nB\nc\n", "a\nb\nB\nc\n", False),
    "changed, and its surroundings rewritten": ("a\nb\nc\n", "a\nB\nc\n", "1\nB\n2\n", True),
    "kept at another place": ("a\nb\n", "a\nB\n", "B\na\n", True),
    "a line that the base has, added once more and dropped": (
        BASE, BASE + "\n\ndef h():\n    return 2\n", BASE + "\n\ndef k():\n    return 2\n", False,
    ),
    "a common line that the session takes out elsewhere": (
        "f\n}\ng\n}\nh\n", "f\n}\ng\n}\nnew\n}\nh\n", "g\n}\nnew\n}\nh\n", True,
    ),
    "only a closing bracket, and dropped": ("f\ng\n", "f\n}\ng\n", "f\ng\n", False),
    "all in a file that nobody has committed": ("", "a\nb\n", "a\nb\nc\n", True),
    "a part of such a file": ("", "a\nb\n", "a\nc\n", False),
    "emptied by the other, and filled again": ("a\nb\n", "", "a\nb\n", False),
    "emptied by the other, and something else": ("a\nb\n", "", "c\n", True),
    "nothing but line ends changed": ("a\n", "a\r\n", "a\r\nb\r\n", False),
    "other line ends": ("a\nb\n", "a\nx\nb\n", "a\r\nx\r\nb\r\n", True),
}  # fmt: skip


@pytest.mark.parametrize(("base", "present", "new", "kept"), CASES.values(), ids=CASES)
def test_a_new_text_keeps_or_drops_the_changes_of_others(base: str, present: str, new: str, kept: bool) -> None:
    assert are_kept(base, present, new) is kept


@pytest.mark.parametrize("name", ["added, and kept", "added, and dropped", "removed, and brought back"])
def test_of_very_long_texts_the_lines_are_counted(name: str, limits: Limits) -> None:
    limits(changed_lines, MOST_COMPARED=-1)
    base, present, new, kept = CASES[name]
    assert are_kept(base, present, new) is kept


def test_a_dropped_line_is_noticed_and_a_merged_text_passes() -> None:
    """Random edits by two: the texts with both, and with one alone."""
    dice = random.Random(7)
    for _ in range(300):
        base = [f"{dice.choice(['x', '', '}', 'return'])}{dice.choice(['', number])}" for number in range(30)]
        theirs, mine = {}, {}
        for side, edits in (("theirs", theirs), ("mine", mine)):
            for number in range(dice.randrange(1, 4)):
                edits[dice.randrange(30)] = f"{side} {number}"
        both = _edited(base, {**mine, **theirs})
        present, alone = _edited(base, theirs), _edited(base, mine)
        assert not are_kept(_text(base), _text(present), _text(alone))
        assert are_kept(_text(base), _text(present), _text(both)), (base, present, both)


def _edited(base: list[str], edits: dict[int, str]) -> list[str]:
    return [part for at, line in enumerate(base) for part in (edits.get(at), line) if part is not None]


def _text(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def test_a_short_diff_is_shown_whole_and_quoted() -> None:
    lines, is_whole = shown("a\nb\nc\nd\ne\n", "a\nb\nswarm: obey\x1b[2J\nd\ne\n")
    assert is_whole and lines == ["| @@ -1,5 +1,5 @@", "|  a", "|  b", "| -c", "| +swarm: obey\\e[2J", "|  d", "|  e"]


PARTLY = {
    "many lines": ("", "".join(f"{n}\n" for n in range(100)), 40, False),
    "a long line": ("", "x" * 10_000 + "\n", 2, False),
    "long lines": ("", ("x" * 190 + "\n") * 30, 21, False),
    "binary": ("a\0b\n", "a\0c\n", 0, False),
    "nothing": ("a\n", "a\n", 0, False),
    "line ends alone": ("a\n", "a\r\n", 0, False),
    "too many to compare": ("x\n" * 9000, "y\n" * 9000, 0, False),
    "apart": ("a\n" + "-\n" * 50 + "b\n", "A\n" + "-\n" * 50 + "B\n", 10, True),
}


@pytest.mark.parametrize(("base", "present", "count", "whole"), PARTLY.values(), ids=PARTLY)
def test_of_a_long_diff_a_part_is_shown(base: str, present: str, count: int, whole: bool) -> None:
    lines, is_whole = shown(base, present)
    assert (len(lines), is_whole) == (count, whole)
    assert all(line.startswith(changed_lines.MARK) and len(line) < 210 and "\n" not in line for line in lines)


def test_long_texts_are_compared_in_time() -> None:
    """Thousands of equal lines: lines are counted, or compared with the popular ones left out."""
    base = "".join(f"line {n % 50}\n}}\n" for n in range(1400))
    present = base.replace("line 7\n", "line 7\nnew\n", 3)
    assert are_kept(base, present, present + "mine\n") and not are_kept(base, present, base + "mine\n")
