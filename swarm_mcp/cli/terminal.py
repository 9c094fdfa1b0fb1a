"""The terminal: colours, width, and tables that fit it.

Colours follow the conventions of ``NO_COLOR``, ``FORCE_COLOR`` and ``CLICOLOR_FORCE``: ``NO_COLOR`` with any value
beats everything, then come the variables that force colours, then ``TERM=dumb`` and ``CLICOLOR=0``; without any of them
a terminal gets colours and a pipe does not.

In a table, texts that tell rows apart are never cut, but broken into several lines. In a narrow terminal a note stands
below its row, and columns for programs are left out.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Sequence
from itertools import zip_longest
from typing import NamedTuple, TextIO

from swarm_hook_core.untrusted_text import one_line
from swarm_mcp.answers.size import clipped, folded, parted, width

STYLES = {
    "heading": "1",
    "good": "32",
    "busy": "33",
    "bad": "31",
    "held": "35",
    "faint": "2",
    "name": "36",
}
# The colour of a word that is a state.
MEANINGS = {
    "working": "good", "live": "good", "done": "good", "ok": "good", "completed": "good",
    "claimed": "busy", "in_progress": "busy", "running": "busy", "pending": "busy", "warn": "busy",
    "failed": "bad", "fail": "bad", "offline": "bad",
    "blocked": "held", "approval_required": "held", "locked": "held", "stale": "held",
    "idle": "faint", "cancelled": "faint", "info": "faint",
}  # fmt: skip


def forced() -> bool:
    """Return True if colours are wanted even in a pipe."""
    if _no_colour():
        return False
    wish = os.environ.get("FORCE_COLOR", "")
    return wish not in ("", "0", "false") or os.environ.get("CLICOLOR_FORCE", "") not in ("", "0")


def wanted() -> bool:
    """Return True if standard output is to be coloured."""
    if _no_colour():
        return False
    if forced():
        return True
    if os.environ.get("TERM") == "dumb" or os.environ.get("CLICOLOR") == "0":
        return False
    if os.environ.get("FORCE_COLOR") in ("0", "false"):
        return False
    return sys.stdout is not None and sys.stdout.isatty()


def paint(text: str, style: str) -> str:
    """`text` in a style of STYLES; unchanged without a style, or where no colours are wanted."""
    code = STYLES.get(style)
    if code and text and wanted():
        return f"\x1b[{code}m{text}\x1b[0m"
    return text


def meaning(text: str) -> str:
    """The style for a state such as ``idle (3s)`` or ``in_progress``; empty for one without a colour."""
    word = text.strip("[] ").partition(" ")[0].lower()
    return MEANINGS.get(word, "")


def _no_colour() -> bool:
    return bool(os.environ.get("NO_COLOR"))


def terminal_width(stream: TextIO | None = None) -> int:
    """Cells in a line of the terminal of `stream` (standard output, unless given); 0 where it has no limit."""
    stream = stream or sys.stdout
    columns = os.environ.get("COLUMNS", "")
    if columns.isascii() and columns.isdigit() and int(columns):
        return int(columns)
    try:
        return os.get_terminal_size(stream.fileno()).columns or 80
    except (OSError, ValueError):  # a pipe, or a stream without a size
        return 80 * stream.isatty()


# ---------------------------------------------------------------- tables

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
