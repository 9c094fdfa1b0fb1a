"""A terminal of so many rows and columns, as a program that fills the screen finds it."""

import re
import unicodedata

SEQUENCE = re.compile(
    r"\x1b\[([?<>=]?)([0-9;]*)([ -/]?)([@-~])"  # a control sequence: private mark, numbers, mark, final
    r"|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)"  # a command to the system: a title, a pointer's shape
    r"|([^\x1b])"
)
UNFINISHED = re.compile(r"\x1b(?:\[[?<>=]?[0-9;]*[ -/]?|\][^\x07\x1b]*\x1b?)?$")
COLOUR = re.compile(r"(?:3|4|9|10)[0-8]$")  # of a text, or behind it; not the terminal's own
ALTERNATE, CURSOR, WRAP = "1049", "25", "7"
AS_IT_SHOULD_BE = frozenset({CURSOR, WRAP})  # the unchanged modes of a terminal


class FullScreen:
    """The screen's text and styles, and its modes: forgotten ones show.

    A sequence without a use for Textual is an error: it must have come from a text.
    """

    def __init__(self, columns: int = 80, rows: int = 24):
        self.columns, self.rows = columns, rows
        self.modes = set(AS_IT_SHOULD_BE)
        self.keyboards = 0  # how many times the keyboard was asked to report more than a key's character
        self.colours: set[str] = set()  # all that were ever set
        self._style = ""
        self._left = ""  # the beginning of an incomplete sequence
        self._cells = self._empty()
        self._under: tuple[list, int, int] | None = None  # the content under the other screen
        self._row = self._column = 0

    def resize(self, columns: int, rows: int) -> None:
        """Give the window another size. Fitting content stays."""
        kept, self.columns, self.rows = self._cells, columns, rows
        self._cells = self._empty()
        for row, cells in zip(self._cells, kept):
            row[: len(cells)] = cells[:columns]

    def feed(self, text: str) -> None:
        """Show more."""
        text, self._left = self._left + text, ""
        unfinished = UNFINISHED.search(text)
        if unfinished:
            text, self._left = text[: unfinished.start()], unfinished[0]
        at = 0
        while at < len(text):
            found = SEQUENCE.match(text, at)
            assert found, f"an escape sequence that no command of ours writes: {text[at : at + 40]!r}"
            at = found.end()
            private, numbers, mark, final, plain = found.groups()
            if plain is not None:
                self._put(plain)
            elif final is not None:
                self._do(private + mark, numbers, final, found[0])

    def _do(self, mark: str, numbers: str, final: str, sequence: str) -> None:
        if mark == "?" and final in "hl":
            for mode in numbers.split(";"):
                self._set(mode, final == "h")
        elif final == "u" and mark in ("<", ">"):
            self.keyboards += 1 if mark == ">" else -1
        elif final == "m" and not mark:
            self._style = "" if numbers in ("", "0") else f"{self._style};{numbers}".strip(";")
            self.colours.update(one for one in numbers.split(";") if COLOUR.match(one))
        elif final == "H" and not mark:
            row, _, column = numbers.partition(";")
            self._row, self._column = int(row or 1) - 1, int(column or 1) - 1
        elif final == "J" and not mark:
            assert numbers == "2", sequence
            self._cells = self._empty()
        else:
            assert sequence in ("\x1b[?2026$p", "\x1b[?2048$p"), f"a sequence that nobody writes: {sequence!r}"

    def _set(self, mode: str, is_on: bool) -> None:
        (self.modes.add if is_on else self.modes.discard)(mode)
        if mode != ALTERNATE:
            return
        if is_on:
            self._under = self._cells, self._row, self._column
            self._cells = self._empty()
        elif self._under:
            self._cells, self._row, self._column = self._under
            self._under = None

    def _put(self, character: str) -> None:
        if character == "\r":
            self._column = 0
        elif character == "\n":
            self._row += 1
            if self._row >= self.rows:
                self._cells = [*self._cells[1:], [(" ", "")] * self.columns]
                self._row = self.rows - 1
        elif character == "\x07":
            pass
        else:
            assert character >= " " and not "\x7f" <= character <= "\x9f", f"a control character: {character!r}"
            size = 2 if unicodedata.east_asian_width(character) in "WF" else 1
            if self._column + size <= self.columns and self._row < self.rows:
                self._cells[self._row][self._column : self._column + size] = [(character, self._style), ("", "")][:size]
            self._column += size
            if self._column >= self.columns and ALTERNATE not in self.modes:
                self._put("\r")
                self._put("\n")

    def _empty(self) -> list[list[tuple[str, str]]]:
        return [[(" ", "")] * self.columns for _ in range(self.rows)]

    @property
    def lines(self) -> list[str]:
        """Return the present text."""
        return ["".join(character for character, _ in row).rstrip() for row in self._cells]

    @property
    def text(self) -> str:
        """Return the lines as one text, without empty space at its end."""
        return "\n".join(self.lines).rstrip()

    @property
    def styled(self) -> list[list[tuple[str, str]]]:
        """The rows, each as pieces of text in one style: the numbers of that, as terminals know them."""
        rows = []
        for row in self._cells:
            pieces: list[tuple[str, str]] = []
            for character, style in row:
                if pieces and pieces[-1][1] == style:
                    pieces[-1] = (pieces[-1][0] + character, style)
                else:
                    pieces.append((character, style))
            rows.append(pieces)
        return rows

    def is_as_before(self) -> bool:
        """Return True if the terminal's modes are the unchanged ones."""
        return self.modes == AS_IT_SHOULD_BE and not self.keyboards
