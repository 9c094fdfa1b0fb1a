"""Colours and width of the terminal.

Colours follow the conventions of ``NO_COLOR``, ``FORCE_COLOR`` and ``CLICOLOR_FORCE``: ``NO_COLOR`` with any value
beats everything, then come the variables that force colours, then ``TERM=dumb`` and ``CLICOLOR=0``; without any of them
a terminal gets colours and a pipe does not.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
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
