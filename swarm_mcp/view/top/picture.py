"""The content of one screen: tables of plain text, and the facts for the commands on a row."""

from __future__ import annotations

from typing import NamedTuple


class Column(NamedTuple):
    """A column: its heading, its largest width in cells, and its style.

    A long text loses its end; with `keep_end` its beginning; with `tail` the part before its last `tail` characters,
    since a session's number tells it from others. `style` is one of ``styles.STYLES``, or ``state`` if the cell's word
    decides.
    """

    heading: str
    most: int
    style: str = ""
    keep_end: bool = False
    tail: int = 0


class Held(NamedTuple):
    """The grant behind a row, as needed to release it."""

    holder: str
    agent: str = ""


class Row(NamedTuple):
    """A row: `key` identifies it from one picture to the next; the other fields serve the commands on it.

    `scope` is the folder of its checkout. A row that `is_below` another belongs to that one, and does not count.
    """

    key: str
    cells: tuple[str, ...]
    style: str = ""
    file: str = ""
    held: Held | None = None
    run: str = ""
    task: str = ""
    session: str = ""
    scope: str = ""
    is_below: bool = False


class Table(NamedTuple):
    """A titled table with its first rows and their total `number`; `empty` is its text without rows.

    `searched`: the number of rows that were searched for words, if there are more; `number` counts within these.
    """

    name: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...] = ()
    number: int = 0
    empty: str = "none"
    searched: int = 0

    @property
    def title(self) -> str:
        """The table's name, how many rows it has, and how many of them are not shown."""
        more = self.number - len([row for row in self.rows if not row.is_below])
        words = f"{self.name} {self.number:,}"
        if self.searched:
            words += f" of the newest {self.searched:,}"
        return words + (f", {more:,} not shown" if more > 0 else "")


class Picture(NamedTuple):
    """All tables of a moment, under a line that names their subject; `scope` is the folder that `top` was started in.

    `machines`: one line about the machines that share the checkout; empty without one.
    """

    where: str
    tables: tuple[Table, ...]
    scope: str = ""
    machines: str = ""


class Wish(NamedTuple):
    """The wanted rows: only those with these `words`, of one scope or of all."""

    words: str = ""
    everywhere: bool = False


class Trouble(NamedTuple):
    """The reason for a missing picture, in a line."""

    reason: str
