"""Which words name an entry of a work tracker.

Only what says so itself: ``linear:ABC-1``, or the address of an issue on linear.app. A word with a dash
and digits is no such thing; titles are full of UTF-8, SHA-256, ISO-8601 and GPT-4.
"""

from __future__ import annotations

_KEY = r"[A-Za-z][A-Za-z0-9]*-[0-9]+"
_ENTRY = rf"(?<![\w.-])(?:linear:|(?:https?://)?(?:www\.)?linear\.app/[^\s/]+/issue/)({_KEY})(?![\w-])"


def names_entry(text: str | None) -> bool:
    """Whether `text` names an entry."""
    return bool(entry_in(text))


def entry_in(text: str | None) -> str:
    """The first entry that `text` names, ``ABC-1`` for one; empty where it names none."""
    # Most texts are told apart by this alone, and `re` costs commands a few milliseconds.
    if not text or "linear" not in text.lower():
        return ""
    import re

    found = re.search(_ENTRY, text, re.IGNORECASE)
    return found[1].upper() if found else ""
