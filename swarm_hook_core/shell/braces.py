"""Brace expansion of a word as it was written: ``{a,b}`` and ``{1..3}``."""

from swarm_hook_core.shell.parser import Parser

MOST_FIELDS = 512  # of one word with braces
MOST_BRACE_STEPS = 12_000  # characters between braces that are looked at, over and over


def braces(raw: str) -> list[str]:
    """`raw` with ``{a,b}`` and ``{1..3}`` multiplied out, at most `MOST_FIELDS` of them."""
    if "{" not in raw or ("," not in raw and ".." not in raw):
        return [raw]
    done: list[str] = []
    left = [MOST_BRACE_STEPS]
    waiting = [(raw, 0)]
    while waiting and len(done) + len(waiting) < MOST_FIELDS:
        text, start = waiting.pop()
        group = _first_group(text, start, left)
        if group is None:
            done.append(text)
            continue
        first, close, parts = group
        waiting += [(text[:first] + part + text[close:], first) for part in reversed(parts)]
    return done + [text for text, _start in reversed(waiting)]


def _first_group(text: str, at: int, left: list):
    """(place of ``{``, place behind ``}``, alternatives) of the first brace expansion from `at` on, or None."""
    ends = Parser(text, {})
    while at < len(text) and left[0] > 0:
        character = text[at]
        if character in "\\'\"`" or (character == "$" and text[at + 1 : at + 2] in ("{", "(", "'")):
            at = ends.construct(at)
        elif character == "{":
            found = _alternatives(text, at + 1, ends, left)
            if found:
                return at, found[0], found[1]
            at += 1
        else:
            at += 1
    return None


def _alternatives(text: str, at: int, ends, left: list):
    """(place behind ``}``, alternatives) of the group whose inside starts at `at`, or None."""
    first, deep, commas = at, 0, []
    while at < len(text) and left[0] > 0:
        left[0] -= 1
        character = text[at]
        if character in "\\'\"`" or (character == "$" and text[at + 1 : at + 2] in ("{", "(", "'")):
            at = ends.construct(at)
            continue
        if character == "{":
            deep += 1
        elif character == "," and not deep:
            commas.append(at)
        elif character == "}":
            if not deep:
                break
            deep -= 1
        at += 1
    else:
        return None
    if commas:
        cuts = [first - 1, *commas, at]
        return at + 1, [text[start + 1 : end] for start, end in zip(cuts, cuts[1:])]
    listed = _sequence(text[first:at])
    return (at + 1, listed) if listed else None


def _sequence(text: str):
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
