"""A refusal of ours, found in what a harness prints: which file, who holds it, and with which note.

Harnesses hand on no more than the words (``swarm_hook_core.wording``, ``storms``, ``brief_reason``), each with its own
around them. A test reads back what those write.
"""

from __future__ import annotations

import re
from typing import NamedTuple

BEGINS = "swarm lock blocked "
_QUOTED = r'"(?:[^"\\]|\\.)*"'
_FILE = re.compile(
    rf"(?:(?: \(`[^`]*`\))? for (?P<file>{_QUOTED}|\S+?)(?=: held by |: denied \d| \()"
    rf"|: it may write (?P<possible>{_QUOTED}|\S+?)(?= \())"
)
_TIMES = re.compile(r": denied (\d+) times")
# Behind the holder stand, in brackets, the note, if there is one, and since or until when; a brief refusal ends there.
_HOLDER = re.compile(
    r"held by (?P<who>.+?)(?:, who reads it and keeps it still)?"
    rf"(?: \((?:note: (?P<note>{_QUOTED})|locked |until |lapses |nothing uncertain )|\. Do not write it another)"
)


class Denial(NamedTuple):
    """One refusal. What its words do not tell is empty; `times`: how often it has been given within some minutes."""

    file: str = ""
    holder: str = ""
    note: str = ""
    times: int = 1

    def line(self) -> str:
        """Return the refusal in one line for people."""
        if self.note:
            note = f" ({self.note})"
        else:
            note = ""
        if self.holder:
            held = f", held by {self.holder}{note}"
        else:
            held = ""
        return f"denied: {self.file or 'a locked file'}{held}{f'; {self.times} times now' if self.times > 1 else ''}"


def reason_in(text: str) -> str:
    """Return the words of a refusal that stands in `text`, from their beginning on; empty where there is none."""
    at = text.find(BEGINS)
    if at >= 0:
        return text[at:]
    return ""


def denial_in(text: str) -> Denial | None:
    """Return the refusal that stands in `text`, None for none."""
    reason = reason_in(text)
    if not reason:
        return None
    file, holder, times = _FILE.search(reason), _HOLDER.search(reason), _TIMES.search(reason)
    return Denial(
        _plain(file.group("file") or file.group("possible")) if file else "",
        holder.group("who") if holder else "",
        _plain(holder.group("note") or "") if holder else "",
        int(times.group(1)) if times else 1,
    )


def _plain(words: str) -> str:
    """What was put into quotes, without them."""
    if words.startswith('"'):
        return re.sub(r'\\(["\\])', r"\1", words[1:-1])
    return words
