"""The three-way merge of a file: others' changes and those of a new text, both since the text that the session saw.

Changes are merged by lines. Two changes that overlap or touch are a conflict, as in git, unless they are the same, or
one has all lines of the other: of two additions at one place, the session itself may have made the shorter one before.
"""

from __future__ import annotations

from swarm_hook_core.traces.equal_lines import equal_parts, split_lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    Change = tuple[int, int, list[str]]  # first and end line in the base, the lines in their place

MOST_COMPARED = 3000  # differing lines of a text; longer ones are not merged


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
    blocks = equal_parts(old, new, exact_up_to=MOST_COMPARED, most=MOST_COMPARED)
    if blocks is None:
        return None
    found, at_old, at = [], 0, 0
    for first_old, first, size in [*blocks, (len(old), len(new), 0)]:
        if at_old < first_old or at < first:
            found.append((at_old, first_old, new[at:first]))
        at_old, at = first_old + size, first + size
    return found


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
