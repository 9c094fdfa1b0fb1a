"""A person's view: a program in a real pseudo-terminal, and the lines that its output leaves on the screen."""

import codecs
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Sequence

SEQUENCE = re.compile(r"\x1b\[(\??[0-9;]*)([A-Za-z])|\x1b\][^\x07]*\x07|([\s\S])")


def read_terminal(terminal: int) -> bytes:
    """Return some of the output at a terminal's outer end, waited for; empty once its inner end is closed.

    Linux answers a closed inner end with an error, and now and then too early: what was written at that very moment
    comes with the next read.
    """
    for is_last in (False, True):
        try:
            return os.read(terminal, 65536)
        except OSError:
            if is_last:
                return b""
    raise AssertionError


class Screen:
    """The lines that `text` leaves on a terminal of `columns`, as high as necessary.

    It knows the sequences of our commands: line ends, returns, colours, one or more lines up, and erasing from the
    cursor on. Any other sequence is an error.
    """

    def __init__(self, columns: int):
        self.columns = columns
        self._rows: list[list[str]] = [[]]
        self._row = self._column = 0
        self.broken: list[str] = []  # words that the terminal had to break at its edge

    def feed(self, text: str) -> None:
        """Show more."""
        for found in SEQUENCE.finditer(text):
            numbers, final, plain = found.groups()
            if plain is not None:
                self._put(plain)
            elif final == "A":
                self._row = max(0, self._row - int(numbers or 1))
            elif final == "K":
                del self._rows[self._row][self._column :]
            elif final == "J":
                del self._rows[self._row][self._column :]
                del self._rows[self._row + 1 :]
            elif final is not None and found[0] not in ("\x1b[?25l", "\x1b[?25h"):  # the cursor, hidden or shown
                assert final == "m", f"an escape sequence that no command of ours writes: {found[0]!r}"

    def _put(self, character: str) -> None:
        if character == "\r":
            self._column = 0
            return
        if character == "\n":
            self._row += 1
            self._column = 0
        elif character >= " ":
            if self._column == self.columns:
                if character != " " and self._rows[self._row][-1] != " ":
                    self.broken.append("".join(self._rows[self._row]).rpartition(" ")[2] + character)
                self._row, self._column = self._row + 1, 0
            self._grow()
            row = self._rows[self._row]
            row[self._column : self._column + 1] = [character]
            self._column += 1
        self._grow()

    def _grow(self) -> None:
        while len(self._rows) <= self._row:
            self._rows.append([])
        row = self._rows[self._row]
        row.extend(" " * (self._column - len(row)))

    @property
    def lines(self) -> list[str]:
        """Return the present text."""
        return ["".join(row).rstrip() for row in self._rows]

    @property
    def text(self) -> str:
        """Return the lines as one text, without empty space at its end."""
        return "\n".join(self.lines).rstrip()


class Played:
    """A program at a terminal of its own: both its outputs, and its input, are that terminal.

    With `echo` typed text is on the screen as well. A program that fills the screen needs a `FullScreen`.
    """

    def __init__(
        self, argv: Sequence[str], columns: int = 80, rows: int = 24, echo: bool = False, screen=None, **options
    ):
        self.screen, self.raw, self.columns = screen or Screen(columns), "", columns
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._terminal, inner = pty.openpty()
        fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        if not echo:
            modes = termios.tcgetattr(inner)
            modes[3] &= ~termios.ECHO
            termios.tcsetattr(inner, termios.TCSANOW, modes)
        settings = {**os.environ, "TERM": "xterm-256color", "LANG": "C.UTF-8", "PYTHONUTF8": "1"}
        settings.pop("COLUMNS", None)
        options["env"] = {**settings, **options.get("env", {})}
        outputs = {"stdin": inner, "stdout": inner, "stderr": inner}
        # The terminal's keys and its end reach the program as signals.
        options.setdefault("preexec_fn", lambda: fcntl.ioctl(inner, termios.TIOCSCTTY, 0))
        self.process = subprocess.Popen(argv, start_new_session=True, **{**outputs, **options})
        os.close(inner)

    def __enter__(self) -> "Played":
        return self

    def __exit__(self, *_exception: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.hangs_up()

    def hangs_up(self) -> None:
        """Close the terminal, as a window that is closed does."""
        if self._terminal >= 0:
            os.close(self._terminal)
            self._terminal = -1

    def resizes(self, columns: int, rows: int) -> None:
        """Make the window that large; its programs are told."""
        self.screen.resize(columns, rows)
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def types(self, text: str) -> None:
        """Type it."""
        os.write(self._terminal, text.encode())

    def until(self, there: Callable[[Screen], object], seconds: float = 60.0) -> str:
        """The screen once `there` holds of it."""
        end = time.monotonic() + seconds
        while not there(self.screen):
            assert time.monotonic() < end, f"it did not come to that:\n{self.screen.text}"
            if not self._read(0.5):
                assert there(self.screen), f"it ended before that:\n{self.screen.text}"
        return self.screen.text

    def ended(self, seconds: float = 60.0) -> int:
        """The exit code, once it has ended and all it wrote is on the screen."""
        end = time.monotonic() + seconds
        while self._read(0.5):
            assert time.monotonic() < end, f"it does not end:\n{self.screen.text}"
        return self.process.wait(timeout=seconds)

    def watch(self, seconds: float) -> None:
        """Show its output for so many seconds."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0 and self._read(left):
            pass

    def _read(self, seconds: float) -> bool:
        """Show its new output; False once nothing can follow."""
        if not select.select([self._terminal], [], [], seconds)[0]:
            if self.process.poll() is None:
                return True
            if not select.select([self._terminal], [], [], 0)[0]:  # it may have written before it ended
                return False
        part = read_terminal(self._terminal)
        text = self._decoder.decode(part)
        self.raw += text
        self.screen.feed(text)
        return bool(part)
