"""Output of commands: lines for pipes and programs, tables for people at a terminal, JSON.

Labels, notes, titles and messages are other sessions' words. They must not move a cursor, ring a bell, change colours
or the order of characters, so everything but JSON, which has its own escapes, goes through `safe`. Hooks start commands
that print through here: tables and colours load only if they are shown.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Sequence
from typing import Any, TextIO

from swarm_hook_core.json_text import dumps
from swarm_hook_core.untrusted_text import one_line, safe
from swarm_mcp.cli.arguments import Arguments
from swarm_mcp.domain import STALE_SECONDS, Session
from swarm_mcp.errors import SwarmError
from swarm_mcp.store.messages import seconds_since

# The beginnings of a patch's lines, and their styles (``terminal.STYLES``); the first one that fits counts.
PATCH_STYLES = (
    ("diff --git ", "heading"), ("--- ", "heading"), ("+++ ", "heading"), ("@@ ", "name"), ("+", "good"), ("-", "bad"),
    ("#", "held"),
)  # fmt: skip
PROSE_WIDTH = 80  # of a line where no terminal says how wide it is


def say(line: str = "") -> None:
    """Print one line on standard output. Line breaks and control characters are escaped.

    At a terminal a longer line is folded between words.
    """
    _write("".join(f"{part}\n" for part in _folded(one_line(line), sys.stdout)))


def say_marked(line: str, mark: str, state: str) -> None:
    """As `say`; the first `mark` in the line is coloured by `state`, a word of ``terminal.MEANINGS`` or ``STYLES``."""
    first, *rest = _folded(one_line(line), sys.stdout)
    if mark and for_people():
        from swarm_mcp.cli.terminal import meaning, paint

        before, found, after = first.partition(mark)
        first = before + paint(found, meaning(state) or state) + after
    _write("".join(f"{part}\n" for part in (first, *rest)))


def say_prose(text: str) -> None:
    """Text of several lines on standard output; each of them as by `say`."""
    for line in text.split("\n"):
        say(line)


def say_text(text: str) -> None:
    """Print text of several lines on standard output; control characters are escaped."""
    _write(safe(text) + "\n")


def say_help(text: str) -> None:
    """Print text of our own on standard output; it may have colours."""
    _write(text + "\n")


def say_patch(data: bytes) -> None:
    """Print a patch on standard output: the bytes themselves in a pipe; coloured and escaped at a terminal."""
    stream = sys.stdout
    if stream is None:  # started with standard output closed
        return
    if not stream.isatty():
        try:
            stream.flush()
            if hasattr(stream, "buffer"):
                stream.buffer.write(data)
            else:  # a text stream of a program that runs commands in its own process
                stream.write(data.decode("utf-8", "surrogateescape"))
        except BrokenPipeError:
            raise
        except OSError as error:
            raise unwritable(error) from None
        return
    from swarm_mcp.cli.terminal import paint

    for line in data.decode("utf-8", "replace").removesuffix("\n").split("\n"):
        style = next((style for mark, style in PATCH_STYLES if line.startswith(mark)), "")
        _write(paint(safe(line), style) + "\n")


def show(value: object) -> None:
    """A value as indented JSON."""
    _write(dumps(value, indent=2) + "\n")


def show_list(items: Iterable[object]) -> None:
    """As `show` of a list, one item after the other as they come.

    If reading the items fails, the list stays open: half a list is not valid JSON.
    """
    _show_items("[", items, "]\n")


def show_with_list(head: dict[str, Any], name: str, items: Iterable[object]) -> None:
    """As `show` of `head` with `items` under `name` at the end, printed as by `show_list`."""
    _show_items(dumps({**head, name: []}, indent=2).removesuffix("]\n}"), items, "]\n}\n", depth=1)


def complain(text: str) -> None:
    """One line on standard error; at a terminal a longer one is folded between words."""
    if sys.stderr is None:
        return
    try:
        lines = "".join(f"{part}\n" for part in _folded(one_line(text), sys.stderr))
        sys.stderr.write(encodable(lines, sys.stderr))
    except (OSError, ValueError):
        pass  # standard error is closed; the exit code is left


def flush() -> bool:
    """Write out all output so far; return False if standard output is closed and the output is lost.

    Raises SwarmError if the output cannot be written, BrokenPipeError if its reader has gone.
    """
    if sys.stdout is None:
        return False
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise unwritable(error) from None
    return True


def answer(args: Arguments, value: object, *lines: str) -> int:
    """Print `value` as JSON if that is wanted, else `lines`. Returns exit code 0."""
    if args.json:
        show(value)
    else:
        for line in lines:
            say(line)
    return 0


def refused(args: Arguments, verb: str, answer: dict[str, Any], reason: str = "") -> int:
    """Report a refusal; exit code 1.

    With ``--json`` it is `answer` (it has ``error``) on standard output, else one line on standard
    error with `reason`, or the error itself.
    """
    if args.json:
        show(answer)
    else:
        complain(f"{verb} failed: {reason or answer['error']}")
    return 1


def agreed(question: str) -> bool | None:
    """Ask the person at the terminal; None if there is none to be asked."""
    if sys.stdin is None or not sys.stdin.isatty() or sys.stderr is None or not sys.stderr.isatty():
        return None
    complain(f"{question} [y/N]")
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def listing(
    headers: tuple[str, ...],
    rows: Sequence[tuple[object, ...]],
    plain: list[str],
    *,
    title: str = "",
    empty: str = "",
    details: list[list[str]] | None = None,
) -> None:
    """Print rows: as `plain` lines in a pipe, as an aligned, coloured table at a terminal.

    `headers` name the columns, and decide their colours and how they are shortened (see ``table``). `rows` hold texts,
    numbers or None, one for each header; the table leaves out empty columns. `plain` are the lines for scripts, in the
    contract's form. `title` goes before either; `empty` is printed if there are no rows. `details` are indented lines
    below each row of the table, such as a message's text; `plain` has them already.
    """
    if not rows and empty:
        say(empty)
        return
    if title:
        say(title)
    if not rows:
        return
    if for_people():
        from swarm_mcp.cli.terminal import lay_out

        for line in lay_out(headers, rows, details):
            _write(line + "\n")
        return
    for line in plain:
        say(line)


def for_people() -> bool:
    """Return True if standard output is a terminal, or colours are forced."""
    if sys.stdout is not None and sys.stdout.isatty():
        return True
    if not os.environ.get("FORCE_COLOR") and not os.environ.get("CLICOLOR_FORCE"):
        return False
    from swarm_mcp.cli.terminal import forced

    return forced()


def line_width() -> int:
    """Cells that a line of prose may take: those of the terminal, else as many as look good in a file."""
    if not for_people():
        return PROSE_WIDTH
    from swarm_mcp.cli.terminal import terminal_width

    return terminal_width() or PROSE_WIDTH


def say_row(parts: tuple[tuple[str, str], ...]) -> None:
    """One line of (text, style) parts, two blanks between them; styles are those of ``terminal.STYLES``.

    At a terminal the last part of a longer one is folded between words, below where it begins; a path that no line
    has room for, behind a slash.
    """
    texts = [one_line(text) for text, _ in parts]
    more: list[str] = []
    if for_people():
        from swarm_mcp.cli.terminal import paint

        if sys.stdout.isatty():
            texts[-1], *more = _below_its_beginning(texts)
        texts = [paint(text, style) for text, (_, style) in zip(texts, parts)]
    _write("".join(f"{line}\n" for line in ("  ".join(texts), *more)))


def _below_its_beginning(texts: list[str]) -> list[str]:
    """The last of the texts of a row in parts that fit the terminal, all but the first of them indented."""
    from swarm_mcp.answers.size import parted, width

    before = sum(width(text) + 2 for text in texts[:-1])
    deeper = 0
    if before > line_width() // 2:
        deeper = 2 - before
    room = max(2, line_width() - before - deeper)
    words = [part for word in texts[-1].split(" ") for part in parted(word, room)]
    first, *more = _folded(" " * before + " ".join(words), sys.stdout, deeper)
    return [first[before:], *more]


def moment(seconds: Any) -> str:
    """Unix seconds as a UTC date and time; other values, from another program, as they are."""
    try:
        return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(seconds))
    except (TypeError, ValueError, OverflowError, OSError):  # another program's value
        return str(seconds)


def presence(row: Session, now: int) -> str:
    """The state of a session (see `state_of`) with the seconds since the last sign of life."""
    return f"{state_of(row, now)} ({seconds_since(row.last_seen or row.heartbeat, now)}s)"


def state_of(row: Session, now: int) -> str:
    """``working`` or ``idle`` for sessions with hooks; ``run`` or ``stale`` for others."""
    if row.last_seen is not None:
        return row.state or "live"
    if seconds_since(row.heartbeat, now) <= STALE_SECONDS:
        return "live"
    return "stale"


# ------------------------------------------------------------------------------------------ the stream


def _show_items(opening: str, items: Iterable[object], ending: str, depth: int = 0) -> None:
    """Write a JSON list at a depth of `depth` levels, between the texts `opening` and `ending`."""
    margin, written = "\n" + "  " * depth, opening
    for item in items:
        _write(f"{written}{margin}  {dumps(item, 2, depth + 1)}")
        written = ","
    if written == opening:  # no items
        margin = opening
    _write(margin + ending)


def _folded(line: str, stream: TextIO, deeper: int = 2) -> list[str]:
    """`line` in parts that fit the terminal that `stream` goes to (as by ``folded``); one where it goes elsewhere."""
    if stream is None or not stream.isatty():
        return [line]
    from swarm_mcp.answers.size import folded
    from swarm_mcp.cli.terminal import terminal_width

    return folded(line, terminal_width(stream), deeper)


def _write(text: str) -> None:
    stream = sys.stdout
    if stream is None:  # started with standard output closed
        return
    try:
        stream.write(encodable(text, stream))
    except BrokenPipeError:
        raise
    except OSError as error:
        raise unwritable(error) from None


def unwritable(error: OSError) -> SwarmError:
    """The error for an output that takes nothing more, such as a full disk."""
    forget_output()
    return SwarmError(f"cannot write the answer: {error.strerror or error}")


def forget_output() -> None:
    """Redirect standard output to nowhere: the interpreter's own flush at exit would fail again."""
    try:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
    except (OSError, ValueError):
        pass  # it has no file behind it


def encodable(text: str, stream: TextIO) -> str:
    """Return `text` with an escape for each character that the stream's encoding lacks."""
    if text.isascii():
        return text
    encoding = getattr(stream, "encoding", None) or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)
