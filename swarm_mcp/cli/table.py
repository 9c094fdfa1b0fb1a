"""Tables that fit a terminal.

Texts that tell rows apart are never cut, but broken into several lines. In a narrow terminal a note stands below its
row, and columns for programs are left out.
"""

from __future__ import annotations

from itertools import zip_longest

from swarm_hook_core.untrusted_text import one_line
from swarm_mcp.answers.size import clipped, folded, parted, width
from swarm_mcp.cli.terminal import meaning, paint, terminal_width

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from typing import NamedTuple
else:
    from swarm_mcp.domain import NamedValues as NamedTuple

GAP = 2
NARROWEST = 6  # cells that a column keeps when others need its room
STATES = ("state", "status", "result")
LONG = ("file", "directory", "title", "can")  # parted into lines, as the next are, but later
NAMES = ("session", "who", "assignee", "from", "to", "key", "id")
TEXTS = ("note", "message")  # cut where they are too long
BELOW = "note"  # stands below its row rather than that names are parted for it
SPARE = ("fence", "pid")  # left out where the table would be too wide
PATHS = ("scope", "path")  # their end says more than their beginning
HEADING_STYLE = "heading"
COLUMN_STYLES = {
    "id": "faint", "when": "faint", "seen": "faint", "since": "faint", "changed": "faint", "asked": "faint",
    "begun": "faint", "pid": "faint", "session": "name", "who": "name", "key": "name",
}  # fmt: skip
# Kinds of column in the order in which they give room, each with the width it keeps. The other columns give after
# these.
_AT_EASE: tuple[tuple[Collection[str], int], ...] = ((TEXTS, 24), (LONG, 24))
_ROUNDS = (*_AT_EASE, (NAMES, 12), (TEXTS, NARROWEST), (LONG, 16))


class Column(NamedTuple):
    """One column: its name, the texts of its rows, and `is_number` if all of them are numbers."""

    name: str
    cells: list[str]
    is_number: bool

    @property
    def width(self) -> int:
        return max(width(self.name), *map(width, self.cells))

    def style(self, text: str) -> str:
        """Return the style of a cell with this text."""
        if self.name in STATES:
            return meaning(text)
        return COLUMN_STYLES.get(self.name, "")

    def parts(self, text: str, room: int) -> list[str]:
        """Return a cell's text as lines: several if it must not be cut."""
        if self.name in LONG or self.name in NAMES:
            return parted(text, room)
        return [text]


def lay_out(
    headers: Sequence[str], rows: Sequence[tuple[object, ...]], details: Sequence[Sequence[str]] | None = None
) -> list[str]:
    """Return the lines of a table, with colours if they are wanted; `details` below their rows.

    Control characters and line breaks are escaped (``untrusted_text.one_line``). Empty columns are left out.
    """
    columns = []
    for name, values in zip(headers, zip(*rows)):
        if any(value not in (None, "") for value in values):
            is_number = all(isinstance(value, (int, float)) or value is None for value in values)
            columns.append(Column(name, [_text(value) for value in values], is_number))
    limit = terminal_width()
    below = [[one_line(line) for line in lines] for lines in details or [()] * len(rows)]
    if limit and _total([column.width for column in columns]) > limit:
        columns = [column for column in columns if column.name not in SPARE]
    floors = {name: floor for kind, floor in _AT_EASE for name in kind}
    at_ease = _total([min(column.width, floors.get(column.name, column.width)) for column in columns])
    notes = next((column for column in columns if column.name == BELOW), None)
    if notes and limit and at_ease > limit:
        columns.remove(notes)
        for lines, note in zip(below, notes.cells):
            if note:
                lines.insert(0, f"    {note}")
    widths = fitted([column.width for column in columns], [column.name for column in columns], limit)
    lines = [_line([column.name.upper() for column in columns], columns, widths, [HEADING_STYLE] * len(columns))]
    for index in range(len(rows)):
        cells = [column.cells[index] for column in columns]
        styles = [column.style(text) for column, text in zip(columns, cells)]
        parts = [column.parts(text, room) for column, text, room in zip(columns, cells, widths)]
        lines += [_line(texts, columns, widths, styles) for texts in zip_longest(*parts, fillvalue="")]
        for line in below[index]:
            lines += folded(line, limit or width(line))
    return lines


def _text(value: object) -> str:
    if value is None:
        return ""
    return one_line(str(value))


def fitted(widths: list[int], names: Sequence[str], limit: int) -> list[int]:
    """Widths of columns with these names that fit into `limit` cells (0: no limit), as far as that can be.

    The kinds give room in their turn, and of one kind the widest first.
    """
    widths = list(widths)
    others = [name for name in names if name not in (*LONG, *NAMES)]
    excess = _total(widths) - (limit or _total(widths))
    for kind, floor in (*_ROUNDS, (others, NARROWEST), (names, NARROWEST)):
        some = [at for at, name in enumerate(names) if name in kind]
        while excess > 0 and some:
            widest = max(widths[at] for at in some)
            if widest <= floor:
                break
            second = max([widths[at] for at in some if widths[at] < widest] + [floor])
            ties = [at for at in some if widths[at] == widest]
            take = min(widest - second, -(-excess // len(ties)))
            for at in ties:
                less = min(take, excess)
                widths[at] -= less
                excess -= less
    return widths


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + GAP * (len(widths) - 1)


def _line(texts: Sequence[str], columns: Sequence[Column], widths: Sequence[int], styles: Sequence[str]) -> str:
    parts = []
    for at, (text, column, room) in enumerate(zip(texts, columns, widths)):
        shown = clipped(text, room, column.name in PATHS)
        fill = " " * (room - width(shown))
        if column.is_number:
            parts.append(fill + paint(shown, styles[at]))
        else:
            parts.append(paint(shown, styles[at]) + fill)
    return (" " * GAP).join(parts).rstrip(" ")
