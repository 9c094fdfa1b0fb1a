"""Columns side by side in the width there is.

The first column tells rows apart: it is cut last. The others give way to it, the widest first, and are left out from
the right where even that is not enough.
"""

from __future__ import annotations

from swarm_mcp.answers.text_width import clipped, width
from swarm_mcp.view.top.picture import Column, Row, Table

GAP = 1
NARROWEST = 6  # cells of a column before another column is left out
FIRST_LEAST = 34  # cells of the first column, before all others


def widths(table: Table, room: int) -> list[int]:
    """Return the width of each column of `table` in `room` cells; columns that have no room are missing at the end."""
    wanted = []
    for at in range(len(table.columns)):
        column = table.columns[at]
        named = width(table.title if at == 0 else column.heading)
        wanted.append(max(named, min(column.most, max((width(row.cells[at]) for row in table.rows), default=0))))
    for count in range(len(wanted), 1, -1):
        first, others = min(wanted[0], max(FIRST_LEAST, room // 3)), wanted[1:count]
        left = room - GAP * len(others)
        while first + sum(others) > left and max(others) > NARROWEST:
            others[others.index(max(others))] -= 1
        spare = left - first - sum(others)
        if spare >= 0:
            more = min(spare, wanted[0] - first)
            others[-1] += spare - more
            return [first + more, *others]
    return [room]


def line(row: Row, columns: tuple[Column, ...], sizes: list[int]) -> list[tuple[str, Column]]:
    """The cells of a row, cut and filled to the widths in `sizes`."""
    parts = []
    for text, column, size in zip(row.cells, columns, sizes):
        if column.tail:
            end = text[-column.tail :]
        else:
            end = ""
        if not end or width(text) <= size or size < 2 * width(end):
            shown = clipped(text, size, column.keep_end)
        else:
            shown = clipped(text, size - width(end)) + end
        parts.append((shown + " " * (size - width(shown)), column))
    return parts


def heading(table: Table, sizes: list[int]) -> str:
    """Return the line above the rows: the table's title over the first column, then the other headings."""
    names = [table.title, *(column.heading for column in table.columns[1:])]
    cells = []
    for text, size in zip(names, sizes):
        shown = clipped(text, size)
        cells.append(shown + " " * (size - width(shown)))
    return (" " * GAP).join(cells)
