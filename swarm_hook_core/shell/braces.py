"""Brace expansion: ``{a,b}`` and ``{1..3}``."""

from __future__ import annotations

from swarm_hook_core.shell.lexer import NAME_LETTERS
from swarm_hook_core.shell.syntax import Node, Parameter

MOST_FIELDS = 512  # of one word with braces
MOST_BRACE_STEPS = 12_000  # characters between braces that are looked at, over and over


def braces(parts: list[str | Node]) -> list[list[str | Node]]:
    """The parts of a word with ``{a,b}`` and ``{1..3}`` in its text multiplied out, at most `MOST_FIELDS` of them."""
    items = [item for part in parts for item in (part if isinstance(part, str) else (part,))]
    return [_joined(one) for one in _expanded(items)] if "{" in items else [parts]


def text_braces(text: str) -> list[str]:
    """The same of a text."""
    return ["".join(one) for one in _expanded(list(text))]


def _expanded(items: list) -> list[list]:
    done: list[list] = []
    left = [MOST_BRACE_STEPS]
    waiting = [(items, 0)]
    while waiting and len(done) + len(waiting) < MOST_FIELDS:
        items, start = waiting.pop()
        group = _first_group(items, start, left)
        if group is None:
            done.append(items)
            continue
        first, close, choices = group
        waiting += [(items[:first] + choice + items[close:], first) for choice in reversed(choices)]
    return done + [items for items, _start in reversed(waiting)]


def _joined(items: list) -> list[str | Node]:
    """`items` with the letters that stand side by side put together; `$x{a,b}` is `$xa $xb`."""
    parts: list[str | Node] = []
    for item in items:
        before = parts[-1] if parts else None
        if isinstance(item, str) and isinstance(before, str):
            parts[-1] = before + item
        elif (
            isinstance(before, Parameter) and before.flag == "$" and item in NAME_LETTERS and before.name.isidentifier()
        ):
            parts[-1] = Parameter("$", before.name + item, None, "", None, None)
        else:
            parts.append(item)
    return parts


def _first_group(items: list, at: int, left: list[int]):
    """(place of ``{``, place behind ``}``, alternatives) of the first brace expansion from `at` on, or None."""
    while left[0] > 0 and "{" in items[at:]:
        at = items.index("{", at)
        found = _alternatives(items, at + 1, left)
        if found:
            return at, *found
        at += 1
    return None


def _alternatives(items: list, at: int, left: list[int]):
    """(place behind ``}``, alternatives) of the group whose inside starts at `at`, or None."""
    first, deep, commas = at, 0, []
    while at < len(items) and left[0] > 0:
        left[0] -= 1
        item = items[at]
        if item == "{":
            deep += 1
        elif item == "," and not deep:
            commas.append(at)
        elif item == "}":
            if not deep:
                break
            deep -= 1
        at += 1
    else:
        return None
    if commas:
        cuts = [first - 1, *commas, at]
        return at + 1, [items[start + 1 : end] for start, end in zip(cuts, cuts[1:])]
    inside = items[first:at]
    listed = _sequence("".join(inside)) if all(isinstance(item, str) for item in inside) else None
    return (at + 1, [list(one) for one in listed]) if listed else None


def _sequence(text: str) -> list[str] | None:
    """The members of ``1..3`` or ``a..e..2``, or None; at most `MOST_FIELDS`."""
    parts = text.split("..")
    if len(parts) not in (2, 3) or any(len(part) > 9 for part in parts):
        return None
    left, right, step = parts[0], parts[1], parts[2] if len(parts) == 3 else "1"
    if not _is_number(step):
        return None
    by = abs(int(step)) or 1
    if _is_number(left) and _is_number(right):
        low, high = int(left), int(right)
        padded = any(one.lstrip("-").startswith("0") and len(one) > 1 for one in (left, right))
        width = max(len(left), len(right)) if padded else 0
        numbers = range(low, high + 1, by) if low <= high else range(low, high - 1, -by)
        return [str(number).zfill(width) for number in numbers[:MOST_FIELDS]]
    if len(left) == len(right) == 1 and left.isascii() and right.isascii() and left.isalpha() and right.isalpha():
        low, high = ord(left), ord(right)
        return [chr(number) for number in (range(low, high + 1, by) if low <= high else range(low, high - 1, -by))]
    return None


def _is_number(text: str) -> bool:
    return text[text.startswith("-") :].isdecimal() and text.isascii()
