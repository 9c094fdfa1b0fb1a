"""The size of an answer: its largest, the cutting of larger ones, pages, and the width of text.

An answer has at most `ANSWER_BYTES`, unless the whole of it was asked for. Listings end before they get larger
(`page`). `fitted` cuts every other answer and notes the omission beside the cut field:

  "not_shown": {"peers": 99950}     so many more ``peers`` exist
  "cut": {"content": 65536}         the length of the whole ``content`` in characters
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from swarm_hook_core.json_text import dumps
from swarm_mcp.domain import Page
from swarm_mcp.store.cursors import cursor, place_of

Measure = Callable[[object], int]

ANSWER_BYTES = 100_000
ROWS_BYTES = 91_000  # bytes for the rows of a listing; the rest is for the remarks and for the cursor, stored twice
PARTS = 4  # a row, or text, that is too long for an answer gets this part of one
LEAST = 40  # bytes that a cut text or list keeps at least
KEY_BYTES = 24  # bytes of a key with next to nothing under it


def printed(value: object) -> int:
    """Return the bytes that a value takes in the JSON that a command prints, as a row of a list."""
    return len(dumps(value, 2, 1)) + 4


def sent(value: object) -> int:
    """Return the bytes of a value in an answer of the server. The answer has it twice: as content and as text.

    The text is indented JSON inside a JSON string, so its quotes, backslashes and line ends are escaped once more.
    """
    import json

    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    marks = text.count('"') + text.count("\\")
    return 2 * len(text.encode("utf-8", "surrogatepass")) + marks + _layout(value, 1)


def _layout(value: object, depth: int) -> int:
    """Return the bytes of escaped line ends and blanks that lay a value out at this depth."""
    if not value or not isinstance(value, (dict, list, tuple)):
        return 0
    inner = list(value.values()) if isinstance(value, dict) else value
    line = 4 + 2 * depth + isinstance(value, dict)
    return line * len(value) + 2 + 2 * depth + sum(_layout(one, depth + 1) for one in inner)


def fitted(value: dict[str, Any], most: int = ANSWER_BYTES, measure: Measure = sent) -> dict[str, Any]:
    """Return `value`, cut if it takes more than `most` bytes.

    Small parts stay whole; the large lists and texts share the remaining room. A cut list keeps its first rows.
    """
    size = measure(value)
    if size <= most:
        return value
    share = float(most)
    while share > LEAST:
        cut = _dict_cut(value, int(share), measure)
        if measure(cut) <= most:
            return cut
        share *= 0.8
    return {"error": f"this answer has {size} bytes, more than {most}, and nothing in it that can be left out"}


def shortened(row: dict[str, Any], most: int = ROWS_BYTES, measure: Measure = sent) -> dict[str, Any]:
    """Return a row that does not fit into an answer of `most` bytes, cut to a part of one."""
    return fitted(row, most // PARTS, measure)


def text_fitted(text: str) -> str:
    """Return a text of at most about ANSWER_BYTES: the beginning, and how many characters the whole has."""
    if len(text.encode("utf-8", "surrogatepass")) <= ANSWER_BYTES:
        return text
    return f"{_beginning(text, ANSWER_BYTES - 100, sent)} ... ({len(text)} characters)"


# ------------------------------------------------------------------------ cutting


def _cut(value: Any, most: int, measure: Measure) -> Any:
    if isinstance(value, dict):
        if measure(value) > most:
            return _dict_cut(value, most, measure)
        return value
    if isinstance(value, (list, tuple)):
        if measure(value) > most:
            found, left = [], most
            for one in value:
                size = measure(one)
                if size > most:
                    one = _cut(one, most // PARTS, measure)
                    size = measure(one)
                if size > left:
                    break
                found.append(one)
                left -= size
            return found
        return value
    if isinstance(value, str):
        return _beginning(value, most, measure)
    return value


def _dict_cut(value: dict[str, Any], most: int, measure: Measure) -> dict[str, Any]:
    names = list(value)[: max(1, most // KEY_BYTES)]
    if isinstance(value.get("not_shown"), dict):
        left_out: dict[str, Any] = dict(value.get("not_shown") or {})
    else:
        left_out = {}
    if isinstance(value.get("cut"), dict):
        lengths: dict[str, Any] = dict(value.get("cut") or {})
    else:
        lengths = {}
    sizes = {name: measure(value[name]) for name in names}
    left, found = most - sum(KEY_BYTES + len(name) for name in names), dict.fromkeys(names)
    for place, name in enumerate(sorted(names, key=lambda name: sizes[name])):
        found[name] = shown = _cut(value[name], max(LEAST, left // (len(names) - place)), measure)
        left -= measure(shown)
        if isinstance(shown, str) and len(shown) < len(value[name]):
            lengths[name] = len(value[name])
        elif isinstance(shown, list) and len(shown) < len(value[name]):
            left_out[name] = left_out.get(name, 0) + len(value[name]) - len(shown)
    if len(names) < len(value):
        left_out["keys"] = len(value) - len(names)
    said = {"not_shown": left_out, "cut": lengths}
    return {**found, **{name: what for name, what in said.items() if what}}


def _beginning(text: str, most: int, measure: Measure) -> str:
    size, end = measure(text), len(text)
    while end and size > most:
        end = int(end * min(0.9, most / size))
        size = measure(text[:end])
    return text[:end]


# Pages of listings: rows after a cursor, as many as an answer has room for.
#
# The store yields the rows of a listing one after the other, each with its cursor (``store.cursors``). `page` takes the
# rows that fit.

__all__ = ["cursor", "page", "place_of"]

R = TypeVar("R")

MOST_LOOKED_AT = 5000  # rows in search of one page; hidden ones count


def page(
    rows: Iterable[tuple[str, R]],
    shown: Callable[[R], dict[str, Any] | None],
    total: Callable[[], int],
    *,
    after: str = "",
    limit: int | None = None,
    most: float = ROWS_BYTES,
    measure: Measure = sent,
) -> Page:
    """Return the next page of a listing: at most `limit` rows, of at most `most` bytes as `measure` counts them.

    `rows` are those behind the cursor `after`, as `walk` gives them; `shown` returns a row as an answer has it, None
    for a hidden row; `total()` counts the listing, and is asked only if it does not fit. A row that is too large for
    any answer is cut (``answer_size``), every other one is whole.
    """
    found: list[dict[str, Any]] = []
    left, last, looked = most, after, 0
    for place, row in rows:
        one = shown(row)
        if one is not None:
            if limit is not None and len(found) >= limit:
                return Page(found, total(), last)
            size = measure(one) if left < float("inf") else 0
            if size > left and found:
                return Page(found, total(), last)
            if size > left:
                one = shortened(one, int(most), measure)
                size = measure(one)
            found.append(one)
            left -= size
        last, looked = place, looked + 1
        if looked >= MOST_LOOKED_AT and left < float("inf"):
            return Page(found, total(), last)
    return Page(found, total() if after else None)


# The width of texts in cells of a terminal, and cutting them to a width.


def width(text: str) -> int:
    """Terminal cells of `text`: two for East Asian wide characters, zero for combining ones."""
    if text.isascii():
        return len(text)
    from unicodedata import category, east_asian_width

    shown = [c for c in text if category(c) not in ("Mn", "Me", "Cf")]
    return len(shown) + sum(east_asian_width(c) in ("W", "F") for c in shown)


def clipped(text: str, room: int, keep_end: bool = False) -> str:
    """`text` in at most `room` cells, an ellipsis where something is missing."""
    if width(text) <= room:
        return text
    if room < 1:
        return ""
    try:
        "…".encode(getattr(sys.stdout, "encoding", None) or "utf-8")
        ellipsis = "…"
    except UnicodeEncodeError:  # the terminal has no such character
        ellipsis = "~"
    mark, kept, used = ellipsis, [], 0
    for c in reversed(text) if keep_end else text:
        used += width(c)
        if used > room - width(mark):
            break
        kept.append(c)
    return mark + "".join(reversed(kept)) if keep_end else "".join(kept) + mark


def folded(line: str, room: int, deeper: int = 2) -> list[str]:
    """Fold `line` into parts of at most `room` cells, between words only; further parts are indented by `deeper` cells
    more.

    A word that is longer than a line is not broken.
    """
    if width(line) <= room:
        return [line]
    words = line.lstrip(" ").split(" ")
    margin = " " * (len(line) - len(line.lstrip(" ")))
    below = " " * max(0, len(margin) + deeper)
    parts, current = [], margin + words[0]
    for word in words[1:]:
        if width(current) + 1 + width(word) > room >= len(below) + width(word) and current.strip(" "):
            parts.append(current.rstrip(" "))
            current = below + word
        else:
            current += f" {word}"
    return [*parts, current.rstrip(" ")]


def parted(text: str, room: int) -> list[str]:
    """Split `text` into parts of at most `room` cells, without losing a character.

    The split is after a blank or a slash if possible, else after another separator of file names.
    """
    parts: list[str] = []
    while width(text) > room:
        end = len(text)
        while end > 1 and width(text[:end]) > room:
            end -= 1
        at = max(text.rfind(mark, 0, end) for mark in " /") + 1 or max(text.rfind(mark, 0, end) for mark in "-_.") + 1
        end = at if 0 < at < len(text) else end
        parts.append(text[:end].rstrip(" "))
        text = text[end:]
    return [*parts, text]
