"""Refusals of ours in a harness's output: the file, its holder, and the holder's note.

Harnesses pass on the words only (``swarm_hook_core.wording``, ``storms``, ``denial``), each in its own frame. A
test reads the words of those modules back.
"""

from __future__ import annotations

import contextlib
import json
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
    """One refusal. Facts missing in its words are empty; `times`: the number of equal ones within some minutes."""

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
    """Return the words of a refusal in `text`, from their beginning on; empty for none."""
    at = text.find(BEGINS)
    if at < 0:
        return ""
    if text[at - 1 : at] == '"':  # some agents show a whole message of their protocol
        with contextlib.suppress(ValueError):
            return str(json.JSONDecoder().raw_decode(text, at - 1)[0])
    return text[at:]


def denial_in(text: str) -> Denial | None:
    """Return the refusal in `text`, or None."""
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
    """Return quoted words without the quotes."""
    if words.startswith('"'):
        return re.sub(r'\\(["\\])', r"\1", words[1:-1])
    return words
