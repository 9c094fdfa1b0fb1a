"""What one screen shows: tables of plain text, whatever they were read from, and what can be asked of a row."""

from __future__ import annotations

from typing import NamedTuple


class Column(NamedTuple):
    """A column: its heading, the cells it takes at most, and how it looks.

    What is too long loses its end, or its beginning with `keep_end`, or what is before its last `tail` characters: the
    number of a session tells it from others. `style` is one of ``styles.STYLES``, or ``state`` where the word in it
    decides.
    """

    heading: str
    most: int
    style: str = ""
    keep_end: bool = False
    tail: int = 0


class Held(NamedTuple):
    """The grant behind a row: what it takes to give it back."""

    holder: str
    agent: str = ""


class Row(NamedTuple):
    """A row: `key` tells it from others from one picture to the next; the rest is what can be asked about it.

    `scope` is the folder of its checkout. One that `is_below` another belongs to that, and does not count.
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
    """Rows under a name, the first of so many (`number`); `empty` is said of none.

    `searched`: how many were looked through for words, where there are more than that; `number` is of these.
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
    """All tables of a moment, under a line that says what is looked at; `scope` is where `top` was started.

    `team`: how that stands in its team, a line; empty where it is in none.
    """

    where: str
    tables: tuple[Table, ...]
    scope: str = ""
    team: str = ""


class Wish(NamedTuple):
    """What is to be shown: only rows with these `words`, and of one scope or of all that there are."""

    words: str = ""
    everywhere: bool = False


class Trouble(NamedTuple):
    """Why there is no new picture, in a line."""

    reason: str
