"""The lines that two texts have in common, in the same order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, AnyStr


def equal_parts(
    old: Sequence[Any], new: Sequence[Any], exact_up_to: int = 0, most: int | None = None
) -> list[tuple[int, int, int]] | None:
    """Return ``[(index in old, index in new, length)]`` of equal parts, in order.

    The lines at both ends that are equal cost little; difflib compares those between. `exact_up_to`: so many of them
    are compared exactly; in more, frequent lines are left out, to be fast. None if there are more than `most`.
    """
    begin, shorter = 0, min(len(old), len(new))
    while begin < shorter and old[begin] == new[begin]:
        begin += 1
    end = 0
    while end < shorter - begin and old[-1 - end] == new[-1 - end]:
        end += 1
    middle_old, middle = old[begin : len(old) - end], new[begin : len(new) - end]
    if most is not None and max(len(middle_old), len(middle)) > most:
        return None
    found = [(0, 0, begin)]
    if middle_old and middle:
        from difflib import SequenceMatcher

        matcher = SequenceMatcher(None, middle_old, middle, autojunk=len(middle) > exact_up_to)
        found += [(begin + block.a, begin + block.b, block.size) for block in matcher.get_matching_blocks()]
    found.append((len(old) - end, len(new) - end, end))
    return [part for part in found if part[2]]


def split_lines(text: AnyStr) -> list[AnyStr]:
    """Return the lines with their ends. Only a newline ends a line: a lone CR is part of it, as for git."""
    newline: AnyStr = "\n" if isinstance(text, str) else b"\n"
    lines = [line + newline for line in text.split(newline)]
    last = lines.pop()[:-1]
    if last:
        lines.append(last)
    return lines
