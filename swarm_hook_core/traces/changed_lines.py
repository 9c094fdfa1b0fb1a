"""The lines that others have changed in a file: if a new text keeps them, its merge with them, how a denial shows them.

Three texts are compared: the *base* that the session knows, the *present* one with the others' changes, and the *new*
one that the session is about to write. A new text drops a change if a line that others have added is not in it at its
place, or if a line that they have removed is back there.

Changes are merged by lines. Two changes that overlap or touch are a conflict, as in git, unless they are the same, or
one has all lines of the other: of two additions at one place, the session itself may have made the shorter one before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, AnyStr

from swarm_hook_core.untrusted_text import cut_text

# The lines that two texts have in common, in the same order.


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


Hunk = tuple[int, int, int, int]  # first and end line in the old text, first and end line in the new one
Change = tuple[int, int, list[str]]  # first and end line in the base, the lines in their place

MOST_LINES = 40  # lines of a diff in a denial
MOST_TEXT = 4000  # characters of it
LONGEST_LINE = 200  # characters of one line of it
CONTEXT = 2  # unchanged lines around a change
MOST_COMPARED = 3000  # differing lines of a text; of longer ones, lines are counted, and nothing is merged
MARK = "| "  # begins each quoted line, so that it cannot be taken for words of swarm


def are_kept(base: str, present: str, new: str) -> bool:
    """Return True if `new` has all changes from `base` to `present` in it.

    Lines without a letter or digit decide only if a change has no other lines. Line ends are not compared.
    """
    old, now, then = base.splitlines(), present.splitlines(), new.splitlines()
    blocks = equal_parts(now, then, most=MOST_COMPARED)
    hunks = _hunks(old, now)
    if hunks is None or blocks is None:
        # It has each added line as often, and no removed line more often.
        before, present_lines, new_lines = Counter(old), Counter(now), Counter(then)
        has_added = all(new_lines[line] >= present_lines[line] for line in present_lines - before)
        return has_added and all(new_lines[line] <= present_lines[line] for line in before - present_lines)
    places = {first_old + at: first + at for first_old, first, size in blocks for at in range(size)}
    # Without a hunk the texts differ in their line ends alone: these do not count.
    return bool(hunks) and all(_is_kept(hunk, old, now, then, places) for hunk in hunks)


def _is_kept(hunk: Hunk, old: list[str], now: list[str], then: list[str], places: dict[int, int]) -> bool:
    """Return True if the new lines `then` keep one change. `places`: for lines of `now`, their index in `then`."""
    first_old, end_old, first, end = hunk
    added, removed = now[first:end], old[first_old:end_old]
    lines = added + removed
    telling = {line for line in lines if any(letter.isalnum() for letter in line)} or set(lines)
    for at, line in enumerate(added, first):
        # A line that the base has not may have been moved; any other one must be at its place.
        is_moved = line in then and line not in old
        if line in telling and at not in places and not is_moved:
            return False
    before = max((places[at] for at in range(first) if at in places), default=-1)
    after = min((places[at] for at in range(end, len(now)) if at in places), default=len(then))
    kept = {places[at] for at in range(first, end) if at in places}
    between = {line for at, line in enumerate(then[before + 1 : after], before + 1) if at not in kept}
    return not any(line in telling and line in between for line in removed if line not in added)


def shown(base: str, present: str, most: int = MOST_LINES) -> tuple[list[str], bool]:
    """Return ``(at most `most` lines of a unified diff, quoted, True if that is the whole diff)``.

    Empty for equal texts, and for binary or very long ones.
    """
    if "\0" in base or "\0" in present:
        return [], False
    old, now = base.splitlines(), present.splitlines()
    hunks = _hunks(old, now)
    if not hunks:
        return [], False
    # The changes, grouped if their contexts meet
    groups: list[list[Hunk]] = []
    for hunk in hunks:
        if groups and hunk[0] - groups[-1][-1][1] <= 2 * CONTEXT:
            groups[-1].append(hunk)
        else:
            groups.append([hunk])
    lines = [line for group in groups for line in _diff(group, old, now)]

    quoted, room = [], MOST_TEXT
    for line in lines[:most]:
        quoted.append(MARK + cut_text(line, LONGEST_LINE))
        room -= len(quoted[-1])
        if room < 0:
            return quoted[:-1], False
    return quoted, len(lines) <= most and all(len(line) <= LONGEST_LINE for line in lines)


def runs_between(old: str, new: str) -> list[tuple[int, int]]:
    """Return ``[(first, last)]`` of the changed lines, counted from 1 in `new`; for removed lines, the one after."""
    hunks = _hunks(old.splitlines(), new.splitlines()) or []
    return [(first + 1, max(end, first + 1)) for _first_old, _end_old, first, end in hunks]


def _diff(group: list[Hunk], old: list[str], now: list[str]) -> list[str]:
    """Return one part of a unified diff, with its heading."""
    first_old, first = max(0, group[0][0] - CONTEXT), max(0, group[0][2] - CONTEXT)
    end_old, end = min(len(old), group[-1][1] + CONTEXT), min(len(now), group[-1][3] + CONTEXT)
    lines = [f"@@ -{first_old + 1},{end_old - first_old} +{first + 1},{end - first} @@"]
    at = first_old
    for begin_old, finish_old, begin, finish in group:
        lines += [f" {line}" for line in old[at:begin_old]]
        lines += [f"-{line}" for line in old[begin_old:finish_old]]
        lines += [f"+{line}" for line in now[begin:finish]]
        at = finish_old
    return lines + [f" {line}" for line in old[at:end_old]]


# ------------------------------------------------------------------------------------------------ merging


def merge(base: str, present: str, new: str) -> str | None:
    """Return `new` with the changes from `base` to `present` in it, or None for a conflict.

    None also for a binary text, and for one with too many differing lines.
    """
    if "\0" in base or "\0" in present or "\0" in new:
        return None
    old = split_lines(base)
    theirs, own = _changes(old, split_lines(present)), _changes(old, split_lines(new))
    if theirs is None or own is None:
        return None
    merged = _united(theirs, own)
    if merged is None:
        return None
    found, at = [], 0
    for first, end, lines in merged:
        found += [*old[at:first], *lines]
        at = end
    return "".join([*found, *old[at:]])


def _changes(old: list[str], new: list[str]) -> list[Change] | None:
    """Return the changes from `old` to `new`, or None for too many lines."""
    hunks = _hunks(old, new, MOST_COMPARED)
    if hunks is None:
        return None
    return [(first_old, end_old, new[first:end]) for first_old, end_old, first, end in hunks]


def _united(theirs: list[Change], own: list[Change]) -> list[Change] | None:
    """Return the changes of both sides in order, equal ones once; None if two are in conflict."""
    found: list[Change] = []
    for change in sorted([*theirs, *own], key=lambda one: one[:2]):
        if found and change == found[-1]:
            continue
        if not found or change[0] > found[-1][1]:
            found.append(change)
            continue
        longer = _with_both(found[-1], change)
        if longer is None:
            return None
        found[-1] = longer
    return found


def _with_both(one: Change, other: Change) -> Change | None:
    """Return the one of two changes of the same lines that begins or ends with all lines of the other, or None."""
    shorter, longer = sorted((one, other), key=lambda change: len(change[2]))
    lines, size = shorter[2], len(shorter[2])
    if one[:2] == other[:2] and lines and lines in (longer[2][:size], longer[2][-size:]):
        return longer
    return None


# ------------------------------------------------------------------------------------------------ comparing


def _hunks(old: list[str], new: list[str], exact_up_to: int = 0) -> list[Hunk] | None:
    """Return the changes from `old` to `new`, or None for too many lines. `exact_up_to`: as of `equal_parts`."""
    blocks = equal_parts(old, new, exact_up_to, MOST_COMPARED)
    if blocks is None:
        return None
    hunks, at_old, at = [], 0, 0
    for first_old, first, size in [*blocks, (len(old), len(new), 0)]:
        if at_old < first_old or at < first:
            hunks.append((at_old, first_old, at, first))
        at_old, at = first_old + size, first + size
    return hunks
