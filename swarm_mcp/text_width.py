"""How many cells of a terminal a text takes, and how it is cut to those there are."""

from __future__ import annotations

import sys


def width(text: str) -> int:
    """Terminal cells that `text` takes: two for East Asian wide characters, none for combining ones."""
    if text.isascii():
        return len(text)
    from unicodedata import category, east_asian_width

    return sum(0 if category(c) in ("Mn", "Me", "Cf") else 2 if east_asian_width(c) in ("W", "F") else 1 for c in text)


def clipped(text: str, room: int, keep_end: bool = False) -> str:
    """`text` in at most `room` cells, an ellipsis where something is missing."""
    if width(text) <= room:
        return text
    if room < 1:
        return ""
    mark, kept, used = _ellipsis(), [], 0
    for c in reversed(text) if keep_end else text:
        used += width(c)
        if used > room - width(mark):
            break
        kept.append(c)
    return mark + "".join(reversed(kept)) if keep_end else "".join(kept) + mark


def folded(line: str, room: int, deeper: int = 2) -> list[str]:
    """`line` in parts of at most `room` cells, parted at blanks alone; further parts stand so many cells `deeper`.

    A word that fits in no line of its own stays where it is: whoever shows it breaks it, or lets it stand out.
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
    """`text` in parts of at most `room` cells, none of it lost.

    It is parted behind a blank or a slash; where there is none, behind what else parts words in names of files.
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


def _ellipsis() -> str:
    try:
        "…".encode(getattr(sys.stdout, "encoding", None) or "utf-8")
        return "…"
    except UnicodeEncodeError:
        return "~"
