"""From a stream of bytes to lines of text, in bounded memory."""

from __future__ import annotations

LONGEST_LINE = 4 * 1024 * 1024  # bytes; tool results with pictures have megabytes, and all of it is kept several times


class Lines:
    """What came so far of a line that is not over. One for each stream.

    A line ends with LF or CRLF; the end of the stream ends the last one. Of a line longer than `longest` bytes the
    beginning is kept, and `cut` counts the bytes that are lost.
    """

    def __init__(self, longest: int = LONGEST_LINE):
        self._longest = longest
        self._open = bytearray()
        self._begun = False
        self.cut = 0

    def feed(self, data: bytes) -> list[str]:
        """The lines that `data` completes, without their ends."""
        first, *others = data.split(b"\n")
        self._add(first)
        if not others:
            return []
        found = [self._close()]
        for line in others[:-1]:
            self._add(line)
            found.append(self._close())
        self._begun = False
        self._add(others[-1])
        return found

    def end(self) -> list[str]:
        """The line that the stream's end completes, if there is one."""
        return [self._close()] if self._begun else []

    def _add(self, piece: bytes) -> None:
        room = self._longest - len(self._open)
        self._open += piece[: max(0, room)]
        self.cut += max(0, len(piece) - room)
        self._begun = self._begun or bool(piece)

    def _close(self) -> str:
        line = bytes(self._open)
        self._open.clear()
        self._begun = False
        return text(line[:-1] if line.endswith(b"\r") else line)


def text(line: bytes) -> str:
    """`line` as text that can be written as UTF-8 again; what is no UTF-8 becomes U+FFFD."""
    return line.decode("utf-8", "replace")
