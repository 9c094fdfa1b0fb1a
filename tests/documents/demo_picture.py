"""Record `swarm-mcp demo` in a terminal, and draw the refusals of its first two scenes as a still SVG, light and dark.

usage: python tests/documents/demo_picture.py docs/images/demo.svg docs/images/demo-dark.svg     (`make picture`)

The drawings show lines of a real run. Another recorder takes `picture` from here: an animated SVG of a whole recording,
in the reader's theme. With `prefers-reduced-motion` it shows the last screen.
"""

import fcntl
import os
import pty
import re
import struct
import sys
import tempfile
import termios
from pathlib import Path

from terminal_svg import DARK, LIGHT, LINE, TOP, Row, drawn, framed, stacked, text_of

TITLE = "Two scenes of `swarm-mcp demo`: an agent's `git checkout .` is refused"
MARGIN = "   "  # of the lines in a scene
COLUMNS, ROWS = 92, 30
NARROW = 80  # columns of the demo's terminal
SHORTEST, EACH, AT_THE_END = 0.5, 0.016, 6.0  # seconds: of a line, of a character to be read, of the last screen
TOKEN = re.compile(r"\x1b\[([\d;?]*)([A-Za-z])|\x1b.|([\r\n])|([^\x1b\r\n]+)")


def recorded(argv: list[str], columns: int = COLUMNS) -> str:
    """Return the command's output at a terminal of so many columns, in a home of its own. Raises OSError for a failure."""
    with tempfile.TemporaryDirectory() as home:
        pid, terminal = pty.fork()
        if not pid:
            os.environ.update(HOME=home, TERM="xterm-256color", COLUMNS=str(columns), LINES=str(ROWS))
            os.environ.pop("NO_COLOR", None)
            try:
                os.execvp(argv[0], argv)
            finally:
                os._exit(127)
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, columns, 0, 0))
        printed = b""
        while True:
            try:
                some = os.read(terminal, 65536)
            except OSError:  # how a terminal's end looks on Linux
                some = b""
            if not some:
                break
            printed += some
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        os.close(terminal)
    if status:
        raise OSError(f"{' '.join(argv)} ended with {status}: {printed[-2000:].decode(errors='replace')}")
    return printed.decode()


def rows_of(printed: str, columns: int = COLUMNS) -> list[Row]:
    """The rows that a terminal shows in the end, without a limit to its height."""
    cells: list[list[tuple[str, str]]] = [[]]
    column, style = 0, ""
    for token in TOKEN.finditer(printed):
        numbers, letter, control, text = token.groups()
        if letter == "m":
            style = " ".join(f"s{int(one) % 60}" for one in (numbers or "0").split(";") if int(one or 0))
        elif letter == "K":
            del cells[-1][column:]
        elif control == "\r":
            column = 0
        elif control == "\n":
            cells.append([])
        for character in text or "":
            if column == columns:
                cells.append([])
                column = 0
            row = cells[-1]
            row += [("", " ")] * (column + 1 - len(row))
            row[column] = (style, character)
            column += 1
    rows = [_joined(row) for row in cells]
    while rows and not rows[-1]:
        rows.pop()
    return rows


def _joined(cells: list[tuple[str, str]]) -> Row:
    row: Row = []
    for style, character in cells:
        if row and row[-1][0] == style:
            row[-1] = (style, row[-1][1] + character)
        else:
            row.append((style, character))
    return row


def picture(rows: list[Row], title: str) -> str:
    """The rows as an animated SVG: each appears in its turn, and the whole goes up when the screen is full."""
    appears, clock = [], 0.8
    for line in text_of(rows):
        appears.append(clock)
        clock += SHORTEST / 3 if not line else max(SHORTEST, EACH * len(line))
    total = clock + AT_THE_END
    style = [
        f"\n.row,.all{{animation-duration:{total:.1f}s;animation-iteration-count:infinite;animation-timing-function:step-end}}"
    ]
    for number, at in enumerate(appears):
        style.append(f".r{number}{{animation-name:r{number}}}")
        style.append(f"@keyframes r{number}{{0%{{opacity:0}}{100 * at / total:.2f}%{{opacity:1}}}}")
    steps = [(0.0, 0)] + [(at, -(n + 1 - ROWS) * LINE) for n, at in enumerate(appears) if n + 1 > ROWS]
    style.append(
        "@keyframes up{" + "".join(f"{100 * at / total:.2f}%{{transform:translateY({y}px)}}" for at, y in steps) + "}"
    )
    style.append(f".all{{animation-name:up;transform:translateY({steps[-1][1]}px)}}")
    style.append("@media(prefers-reduced-motion:reduce){.row,.all{animation:none}}")
    seen = f'<clipPath id="seen"><rect x="0" y="{TOP}" width="100%" height="{ROWS * LINE}"/></clipPath>'
    lines = [drawn(row, number, f"row r{number}") for number, row in enumerate(rows)]
    body = [seen, '<g clip-path="url(#seen)"><g class="all">', *lines, "</g></g>"]
    return framed(body, COLUMNS, ROWS, title, "\n".join(style))


def refusals(rows: list[Row]) -> list[tuple[str, list[Row]]]:
    """Return the first two scenes as (heading, rows up to the first check), without the scenes' margin."""
    found: list[tuple[str, list[Row]]] = []
    is_over = True
    for row, text in zip(rows, text_of(rows)):
        if heading := re.match(r"(\d)\. (.*)", text):
            found.append((heading[2], []))
            is_over = False
        elif not is_over:
            found[-1][1].append(_without_margin(row))
            is_over = text.startswith(f"{MARGIN}ok ")
    return found[:2]


def _without_margin(row: Row) -> Row:
    if row and row[0][1].startswith(MARGIN):
        return [(row[0][0], row[0][1][len(MARGIN) :]), *row[1:]]
    return row


def main(light: str, dark: str) -> None:
    program = Path(sys.executable).with_name("swarm-mcp")
    windows = refusals(rows_of(recorded([str(program), "demo"], NARROW), NARROW))
    for target, theme in ((light, LIGHT), (dark, DARK)):
        Path(target).write_text(stacked(windows, NARROW - 3, TITLE, theme), encoding="utf-8")
        print(f"{target}: {sum(len(rows) for _heading, rows in windows)} lines")


if __name__ == "__main__":
    main(*sys.argv[1:])
