"""Listings in pages: rows after a cursor, as many as an answer has room for.

A part of the store gives the rows of a listing one after the other, each with its cursor (`walk`); `page` takes what
fits. A cursor is the place of a row in the listing's order, not a number of rows: it means the same while other rows
come and go, and when its own row has gone.
"""

from __future__ import annotations

from swarm_hook_core.json_text import dumps, loads
from swarm_mcp.answer_size import ROWS_BYTES, sent, shortened
from swarm_mcp.domain.page import Page
from swarm_mcp.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import TypeVar

    from swarm_mcp.answer_size import Measure

    R = TypeVar("R")

BLOCK = 50  # rows that are read together
MOST_LOOKED_AT = 5000  # rows in search of one page; what the viewer may not see counts
LONGEST = 4000  # characters of a cursor: of what would be longer, the rest cannot be had


def cursor(*place: object) -> str:
    """Return the cursor for a place in a listing's order; empty where it would be absurdly long."""
    text = dumps(list(place)).encode().hex()
    return text if len(text) <= LONGEST else ""


def place_of(text: str, kinds: Sequence[type]) -> list | None:
    """Return the place that a cursor stands for, None for an empty one.

    `kinds`: what each of its values is; ``object`` for anything. Raises UsageError where it is no cursor of such rows.
    """
    if not text:
        return None
    try:
        place = loads(bytes.fromhex(text).decode())
    except (ValueError, RecursionError):
        place = None
    if not isinstance(place, list) or len(place) != len(kinds) or not all(map(isinstance, place, kinds)):
        raise UsageError(f"{text[:40]!r} is no place in this listing: `after` takes what an earlier answer had as next")
    return place


def walk(
    after: str, kinds: Sequence[type], read: Callable[[list | None, int], list[R]], place: Callable[[R], Sequence]
) -> Iterator[tuple[str, R]]:
    """Yield the rows of a listing that follow the cursor `after` (empty: all of them), each with its own cursor.

    `read(place, number)` gives the next rows behind a place (None: the first ones), `place` that of a row.
    """
    at = place_of(after, kinds)
    while True:
        rows = read(at, BLOCK)
        for row in rows:
            yield cursor(*place(row)), row
        if len(rows) < BLOCK:
            return
        at = list(place(rows[-1]))


def page(
    rows: Iterable[tuple[str, R]],
    shown: Callable[[R], dict | None],
    total: Callable[[], int],
    *,
    after: str = "",
    limit: int | None = None,
    most: float = ROWS_BYTES,
    measure: Measure = sent,
) -> Page:
    """Return the next page of a listing: at most `limit` rows, of at most `most` bytes as `measure` counts them.

    `rows` are those behind the cursor `after`, as `walk` gives them; `shown` is how an answer has a row, None for one
    that the viewer is not shown; `total()` counts the listing, and is asked only where it does not fit. A row that is
    too large for any answer is cut (``answer_size``), every other one is whole.
    """
    found: list[dict] = []
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
