"""Adding to a list that is kept as JSON text, without reading its numbers.

A number read and written again changes: ``1.50`` loses a digit, ``1e400`` becomes infinite, and a
program with 64-bit floats rounds large ids. So texts are checked and joined, never rebuilt.
"""

from __future__ import annotations

import json
import re

_BLANKS = re.compile(r'("(?:[^"\\]|\\.)*")|[ \t\r\n]+')


def compact(text: str) -> str:
    """One JSON document without the blanks between its parts. Raises ValueError where `text` is none."""
    _read(text)
    return _BLANKS.sub(lambda found: found[1] or "", text)


def appended(kept: object, item: str) -> tuple[str, int]:
    """The list under a key with `item` (compact JSON) added, and its length.

    `kept` is what is there: a list, other JSON or plain text, which becomes the first item; or None.
    """
    if kept is None:
        return f"[{item}]", 1
    text = kept if isinstance(kept, str) else str(kept)
    try:
        value = _read(text)
    except ValueError:
        return f"[{_quoted(text)},{item}]", 2
    if not isinstance(value, list):
        return f"[{compact(text)},{item}]", 2
    inner = compact(text)[1:-1]
    return (f"[{inner},{item}]" if inner else f"[{item}]"), len(value) + 1


def _read(text: str) -> object:
    try:
        # Digits are kept as text: an interpreter refuses whole numbers of more than 4300.
        return json.loads(text, parse_int=str, parse_float=str, parse_constant=_refuse)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _refuse(name: str):
    raise ValueError(f"{name} is not JSON")


def _quoted(text: str) -> str:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return json.dumps(text)  # bytes that are no UTF-8, as another program stored them
    return json.dumps(text, ensure_ascii=False)
