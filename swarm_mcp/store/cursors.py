"""Cursors: places in the order of a listing, so that a listing can go on behind one of its rows.

A cursor is the place of a row, not a number of rows. It keeps its meaning while other rows come and go, and after its
own row has gone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from swarm_hook_core.json_text import dumps, loads
from swarm_mcp.errors import UsageError

R = TypeVar("R")

BLOCK = 50  # rows that are read together
LONGEST = 4000  # characters of a cursor; a row with a longer one ends its listing


def cursor(*place: object) -> str:
    """Return the cursor for a place in the order of a listing; empty if it would be longer than `LONGEST`."""
    text = dumps(list(place)).encode().hex()
    if len(text) <= LONGEST:
        return text
    return ""


def place_of(text: str, kinds: Sequence[type]) -> list[Any] | None:
    """Return the place that a cursor stands for; None for an empty cursor.

    `kinds` are the types of its values; ``object`` for any. Raises UsageError if `text` is no cursor of such rows.
    """
    if not text:
        return None
    try:
        place = loads(bytes.fromhex(text).decode())
    except (ValueError, RecursionError):  # no cursor of ours: said below
        place = None
    if not isinstance(place, list) or len(place) != len(kinds) or not all(map(isinstance, place, kinds)):
        raise UsageError(f"{text[:40]!r} is no place in this listing: `after` takes what an earlier answer had as next")
    return place


def rows_after(
    after: str,
    kinds: Sequence[type],
    behind: str,
    read: Callable[[str, list[Any], int], list[R]],
    place: Callable[[R], Sequence[Any]],
) -> Iterator[tuple[str, R]]:
    """Yield the rows of a listing behind the cursor `after` (empty: all rows), each with its own cursor.

    `behind` is the condition in SQL for rows behind a place, `place(row)` the place of a row. `read(behind, place,
    number)` returns the next rows for which that holds; for the first ones both are empty.
    """
    at = place_of(after, kinds) or []
    while True:
        rows = read(behind if at else "", at, BLOCK)
        for row in rows:
            yield cursor(*place(row)), row
        if len(rows) < BLOCK:
            return
        at = list(place(rows[-1]))
