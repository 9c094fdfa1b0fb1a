"""Pages of listings: rows after a cursor, as many as an answer has room for.

The store yields the rows of a listing one after the other, each with its cursor (``store.cursors``). `page` takes the
rows that fit.
"""

from __future__ import annotations

from swarm_mcp.answers.size import ROWS_BYTES, sent, shortened
from swarm_mcp.domain.page import Page
from swarm_mcp.store.cursors import cursor, place_of

__all__ = ["cursor", "page", "place_of"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, TypeVar

    from swarm_mcp.answers.size import Measure

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
