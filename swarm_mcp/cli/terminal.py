"""What people see at a terminal: colours where they are wanted, and tables that fit.

Colours follow the conventions of ``NO_COLOR``, ``FORCE_COLOR`` and ``CLICOLOR_FORCE``: ``NO_COLOR`` with any value
beats everything, then what forces colours, then ``TERM=dumb`` and ``CLICOLOR=0``; without any of them a terminal gets
colours and a pipe none.
"""

from __future__ import annotations

import os
import sys
from itertools import zip_longest

from swarm_mcp.text_width import clipped, width

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TextIO

STYLES = {
    "heading": "1",
    "good": "32",
    "busy": "33",
    "bad": "31",
    "held": "35",
    "faint": "2",
    "name": "36",
}
# What a word means wherever it stands as a state.
MEANINGS = {
    "working": "good", "live": "good", "done": "good", "ok": "good", "completed": "good",
    "claimed": "busy", "in_progress": "busy", "running": "busy", "pending": "busy", "warn": "busy",
    "failed": "bad", "fail": "bad", "offline": "bad",
    "blocked": "held", "approval_required": "held", "locked": "held", "stale": "held",
    "idle": "faint", "cancelled": "faint", "info": "faint",
}  # fmt: skip


def forced() -> bool:
    """Whether colours are asked for even where no terminal shows them."""
    if _no_colour():
        return False
    wish = os.environ.get("FORCE_COLOR", "")
    return wish not in ("", "0", "false") or os.environ.get("CLICOLOR_FORCE", "") not in ("", "0")


def wanted() -> bool:
    """Whether what goes to standard output is to be coloured."""
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
    return f"\x1b[{code}m{text}\x1b[0m" if code and text and wanted() else text


def meaning(text: str) -> str:
    """The style for a state such as ``idle (3s)`` or ``in_progress``; empty for one without a colour."""
    word = text.strip("[] ").partition(" ")[0].lower()
    return MEANINGS.get(word, "")


def _no_colour() -> bool:
    return bool(os.environ.get("NO_COLOR"))


GAP = 2
NARROWEST = 6  # cells that a column keeps when others need its room
STATES = ("state", "status", "result")
WHOLE = ("session", "file", "id", "key", "who")  # tell rows apart: they are parted into lines, but nothing is cut
PATHS = ("file", "directory", "scope", "path")  # their end says more than their beginning
HEADING_STYLE = "heading"
COLUMN_STYLES = {
    "id": "faint",
    "when": "faint",
    "seen": "faint",
    "since": "faint",
    "changed": "faint",
    "asked": "faint",
    "begun": "faint",
    "pid": "faint",
    "session": "name",
    "who": "name",
    "key": "name",
}


def lay_out(headers: tuple[str, ...], rows: list[tuple], details: list[list[str]] | None = None) -> list[str]:
    """The lines of a table, coloured where that is wanted; `details` below their rows.

    Every text in them is one line, and harmless to a terminal (``output.one_line``).
    """
    cells = [["" if value is None else str(value) for value in row] for row in rows]
    numbers = [all(isinstance(row[at], (int, float)) for row in rows) for at in range(len(headers))]
    kept = [at for at in range(len(headers)) if any(row[at] for row in cells)]
    widest = [max(width(headers[at]), *(width(row[at]) for row in cells)) for at in kept]
    whole = [headers[at] in WHOLE for at in kept]
    widths = _fitted(widest, whole, terminal_width())
    heads = [headers[at].upper() for at in kept]
    lines = [_line(heads, widths, [HEADING_STYLE] * len(kept), [numbers[at] for at in kept], [""] * len(kept))]
    for index, row in enumerate(cells):
        styles = [meaning(row[at]) if headers[at] in STATES else COLUMN_STYLES.get(headers[at], "") for at in kept]
        parts = [_parted(row[at], room) if is_whole else [row[at]] for at, room, is_whole in zip(kept, widths, whole)]
        for texts in zip_longest(*parts, fillvalue=""):
            lines.append(_line(texts, widths, styles, [numbers[at] for at in kept], [headers[at] for at in kept]))
        lines += details[index] if details else ()
    return lines


def terminal_width(stream: TextIO | None = None) -> int:
    """Cells in a line of the terminal of `stream` (standard output, unless given); 0 where it has no limit."""
    stream = stream or sys.stdout
    columns = os.environ.get("COLUMNS", "")
    if columns.isascii() and columns.isdigit() and int(columns):
        return int(columns)
    try:
        return os.get_terminal_size(stream.fileno()).columns or 80
    except (OSError, ValueError):  # a pipe, or nothing that has a size
        return 80 if stream.isatty() else 0


def _fitted(widths: list[int], whole: list[bool], limit: int) -> list[int]:
    """Column widths that fit into `limit` cells: the widest give first, and those to be shown whole only after all."""
    widths = list(widths)
    excess = sum(widths) + GAP * (len(widths) - 1) - limit if limit else 0
    for giving in (False, True):
        some = [at for at, is_whole in enumerate(whole) if is_whole == giving]
        while excess > 0 and some:
            widest = max(widths[at] for at in some)
            if widest <= NARROWEST:
                break  # too narrow for a table of so many columns; the terminal wraps it
            second = max([widths[at] for at in some if widths[at] < widest] + [NARROWEST])
            ties = [at for at in some if widths[at] == widest]
            take = min(widest - second, -(-excess // len(ties)))
            for at in ties:
                less = min(take, excess)
                widths[at] -= less
                excess -= less
    return widths


def _parted(text: str, room: int) -> list[str]:
    """`text` in parts of at most `room` cells, parted behind a blank or a slash where there is one; none is lost."""
    parts: list[str] = []
    while width(text) > room:
        end = len(text)
        while end > 1 and width(text[:end]) > room:
            end -= 1
        at = max(text.rfind(" ", 0, end), text.rfind("/", 0, end)) + 1
        end = at if 0 < at < len(text) else end
        parts.append(text[:end].rstrip(" "))
        text = text[end:]
    return [*parts, text]


def _line(texts: Sequence[str], widths: list[int], styles: list[str], numbers: list[bool], headers: list[str]) -> str:
    parts = []
    for at, (text, room) in enumerate(zip(texts, widths)):
        shown = clipped(text, room, headers[at] in PATHS)
        fill = " " * (room - width(shown))
        if numbers[at]:
            parts.append(fill + paint(shown, styles[at]))
        else:
            parts.append(paint(shown, styles[at]) + (fill if at < len(texts) - 1 else ""))
    return (" " * GAP).join(parts).rstrip(" ")
