"""The width of texts in cells of a terminal, and cutting them to a width."""

from __future__ import annotations

import sys


def width(text: str) -> int:
    """Terminal cells of `text`: two for East Asian wide characters, zero for combining ones."""
    if text.isascii():
        return len(text)
    from unicodedata import category, east_asian_width

    shown = [c for c in text if category(c) not in ("Mn", "Me", "Cf")]
    return len(shown) + sum(east_asian_width(c) in ("W", "F") for c in shown)


def clipped(text: str, room: int, keep_end: bool = False) -> str:
    """`text` in at most `room` cells, an ellipsis where something is missing."""
    if width(text) <= room:
        return text
    if room < 1:
        return ""
    try:
        "…".encode(getattr(sys.stdout, "encoding", None) or "utf-8")
        ellipsis = "…"
    except UnicodeEncodeError:  # the terminal has no such character
        ellipsis = "~"
    mark, kept, used = ellipsis, [], 0
    for c in reversed(text) if keep_end else text:
        used += width(c)
        if used > room - width(mark):
            break
        kept.append(c)
    return mark + "".join(reversed(kept)) if keep_end else "".join(kept) + mark


def folded(line: str, room: int, deeper: int = 2) -> list[str]:
    """Fold `line` into parts of at most `room` cells, between words only; further parts are indented by `deeper` cells
    more.

    A word that is longer than a line is not broken.
    """
    if width(line) <= room:
        return [line]
    words = line.lstrip(" ").split(" ")
    margin = " " * (len(line) - len(line.lstrip(" ")))
    below = " " * max(0, len(margin) + deeper)
    parts, current = [], margin + words[0]
    for word in words[1:]:
        if width(current) + 1 + width(word) > room >= len(below) + width(word) and current.strip(" "):
            parts.append(current.rstrip(" "))
            current = below + word
        else:
            current += f" {word}"
    return [*parts, current.rstrip(" ")]


def parted(text: str, room: int) -> list[str]:
    """Split `text` into parts of at most `room` cells, without losing a character.

    The split is after a blank or a slash if possible, else after another separator of file names.
    """
    parts: list[str] = []
    while width(text) > room:
        end = len(text)
        while end > 1 and width(text[:end]) > room:
            end -= 1
        at = max(text.rfind(mark, 0, end) for mark in " /") + 1 or max(text.rfind(mark, 0, end) for mark in "-_.") + 1
        end = at if 0 < at < len(text) else end
        parts.append(text[:end].rstrip(" "))
        text = text[end:]
    return [*parts, text]
