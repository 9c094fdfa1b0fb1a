"""JSON as clients send it, of any depth and with bytes that are no UTF-8, and as swarm writes it."""

from __future__ import annotations

import gc
import json
import re
from json.decoder import scanstring  # type: ignore[attr-defined]  # the stubs do not name it
from json.encoder import encode_basestring_ascii as quote  # a text as a JSON string, ASCII only
from typing import Any

__all__ = ["LEVELS", "NotJson", "dumps", "loads", "loads_object", "loads_outer", "pruned", "quote", "shallow"]
LEVELS = 64  # of nesting that are looked at; nothing that a check looks for is deeper
LARGE = 1024 * 1024  # characters of a document
CHUNK = 65536  # characters of a very deep document that are looked at together
LONG_NUMBER = 400  # digits; the language refuses whole numbers of some thousands, or takes minutes over them


class NotJson(ValueError):
    """The text is no JSON document, or not the object that was asked for."""


def _number(digits: str) -> int | float:
    return int(digits) if len(digits) < LONG_NUMBER else float(digits)


_DECODER = json.JSONDecoder(strict=False, parse_int=_number, parse_constant=float)


def loads(text: str) -> object:
    """Parse one JSON document. Raises ValueError, or RecursionError on absurd nesting."""
    try:
        return _DECODER.decode(text.lstrip(" \t\r\n\ufeff"))
    except json.JSONDecodeError as error:
        # Without the text: it is a user's.
        raise NotJson("text after the JSON document" if error.msg == "Extra data" else "not JSON") from None


def loads_outer(text: str) -> object:
    """Parse JSON of any depth; values nested deeper than `LEVELS` become None. Raises ValueError."""
    if len(text) < LARGE:
        return _loads_outer(text)
    was_on = gc.isenabled()
    gc.disable()  # a document of millions of lists would be searched for garbage over and over: half of its time
    try:
        return _loads_outer(text)
    finally:
        if was_on:
            gc.enable()


def loads_object(text: str) -> dict[str, Any]:
    """Parse an object as `loads_outer` does. Raises NotJson for any other document."""
    value = loads_outer(text)
    if not isinstance(value, dict):
        raise NotJson("not an object")
    return value


def _loads_outer(text: str) -> object:
    try:
        value = loads(text)
    except RecursionError:  # deeper than Python can go
        return loads(shallow(text, LEVELS))
    # Most documents have too few brackets to be deep. The parser may accept more depth than the code after it.
    if text.count("[") + text.count("{") <= LEVELS:
        return value
    return pruned(value)


def pruned(value: Any) -> Any:
    """Return a JSON `value` with None for the lists and objects nested deeper than `LEVELS`."""
    if isinstance(value, (dict, list)):
        level = [value]
    else:
        level = []
    for _ in range(LEVELS - 1):
        if not level:
            return value
        level = [
            one
            for outer in level
            for one in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(one, (dict, list))
        ]
    for outer in level:
        places: Any = enumerate(outer)
        if isinstance(outer, dict):
            places = outer.items()
        for place in [place for place, one in places if isinstance(one, (dict, list))]:
            outer[place] = None
    return value


def shallow(text: str, levels: int) -> str:
    """Return the JSON `text` with null for all that nests deeper than `levels`, found without recursion.

    For documents that no parser accepts. Raises ValueError for a string without an end; the parser finds other
    mistakes.
    """
    # Skip an innermost list or object in one step. The count keeps `re` from remembering millions.
    flat = re.compile(r"""(?:[^"\[\]{}]+|\[[^"\[\]{}]*\]|\{[^"\[\]{}]*\}|"[^"\\]*"){0,1000}""")
    opening, closing = re.compile(r"[\[{]+"), re.compile(r"[\]}]+")

    def after(pattern: Any, at: int) -> int:
        found = pattern.match(text, at)
        if found:
            return int(found.end())
        return at

    kept: list[Any] = []
    begin = at = depth = looked = 0  # `begin`: start of the text that is still to be kept
    while at < len(text):
        if depth > levels and at >= looked:
            at, depth = _deep(text, at, depth, levels, scanstring)
            looked = at + CHUNK
        at = after(flat, at)
        sign = text[at : at + 1]
        if sign == '"':
            at = scanstring(text, at + 1, False)[1]
        elif sign in ("[", "{"):
            end = after(opening, at)
            if depth <= levels < depth + end - at:
                kept += (text[begin : at + levels - depth], "null")
            depth, at = depth + end - at, end
        elif sign in ("]", "}"):
            end = after(closing, at)
            if depth > levels >= depth - (end - at):
                begin = at + depth - levels
            depth, at = depth - (end - at), end
    return "".join(kept) + (text[begin:] if depth <= levels else "")


def _deep(text: str, at: int, depth: int, levels: int, scanstring: Any) -> tuple[Any, ...]:
    """`at` and `depth` after all chunks that cannot come back up to `levels`: only their brackets are counted."""
    while at < len(text):
        chunk = text[at : at + CHUNK]
        parts = chunk.replace("\\\\", "").replace('\\"', "").split('"')
        outside = "".join(parts[::2])
        closed = outside.count("]") + outside.count("}")
        if depth - closed <= levels:
            break
        depth += outside.count("[") + outside.count("{") - closed
        at += len(chunk)
        if len(parts) % 2 == 0:  # within a string
            cut = (len(chunk) - len(chunk.rstrip("\\"))) % 2  # and within one of its escapes
            at = scanstring(text, at + cut, False)[1]
    return at, depth


def dumps(value: object, indent: int = 0, depth: int = 0) -> str:
    """Return `value` (dicts with string keys, lists, strings, numbers, booleans, None) as JSON.

    Numbers that JSON does not have become null. With `indent`, laid out over lines, as a part that is nested `depth`
    levels deep.
    """
    try:
        text = json.dumps(value, indent=indent or None, allow_nan=False)
    except ValueError:  # a number that JSON lacks
        text = json.dumps(_finite(value), indent=indent or None)
    return text.replace("\n", "\n" + " " * (indent * depth)) if depth else text


def _finite(value: Any) -> object:
    """Return `value` with None for numbers that JSON does not have."""
    if isinstance(value, float):
        return value if value - value == 0 else None
    if isinstance(value, dict):
        return {key: _finite(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(one) for one in value]
    return value


# The whole members of JSON that a client has cut short. Loaded for such a call alone.

_CLOSING = {"{": "}", "[": "]"}
_WHOLE = tuple('"}]el')  # the last characters of values that end by themselves


def loads_cut(text: str, partly: tuple[Any, ...] = ()) -> dict[str, Any]:
    """Return the object that `text` begins, with its whole members; empty if it begins no object.

    The member at the cut is left out, unless it is a text under a key in `partly`: of that, the given part is kept.
    """
    open_ones, separator, in_text = _state_at_end(text)
    closing = "".join(_CLOSING[one] for one in reversed(open_ones))
    tail = text[separator + 1 :].lstrip()
    candidates = []
    if not in_text and text.rstrip()[-1:] in _WHOLE:  # of a number more may have followed
        candidates.append(text + closing)
    if text[separator : separator + 1] == ",":
        candidates.append(text[:separator] + closing)
    candidates.append(text[: separator + 1] + closing)
    if in_text and any(tail.startswith(f'"{key}"') for key in partly):
        candidates.insert(0, _without_broken_escape(text) + '"' + closing)
    for candidate in candidates:
        try:
            found = loads(candidate)
        except (ValueError, RecursionError):  # the next candidate is shorter
            continue
        if isinstance(found, dict):
            return found
    return {}


def _state_at_end(text: str) -> tuple[list[Any], int, bool]:
    """Return the brackets that are open at the end of `text`, the place of the last comma or bracket that counts there,
    and True if it ends inside a text.
    """
    open_ones: list[Any] = []
    separator = at = 0
    while at < len(text):
        mark = text[at]
        if mark == '"':
            at = _end_of_text(text, at + 1)
            if at < 0:
                return open_ones, separator, True
        elif mark in _CLOSING:
            open_ones.append(mark)
            separator = at
        elif mark in "}]" and open_ones:
            open_ones.pop()
        elif mark == ",":
            separator = at
        at += 1
    return open_ones, separator, False


def _end_of_text(text: str, at: int) -> int:
    """Return the place of the quotation mark that ends the text begun before `at`; -1 if it does not end."""
    while True:
        at = text.find('"', at)
        before = at - 1
        while at >= 0 and text[before] == "\\":
            before -= 1
        if at < 0 or (at - before) % 2:
            return at
        at += 1


def _without_broken_escape(text: str) -> str:
    """Return `text`, which ends inside a JSON text, without an incomplete escape at its end."""
    begin = len(text)
    while text[begin - 1 : begin] == "\\":
        begin -= 1
    if (len(text) - begin) % 2:
        return text[:-1]
    escape = text.rfind("\\u", len(text) - 5)
    if escape >= 0 and not text[:escape].endswith("\\"):
        return text[:escape]
    return text
