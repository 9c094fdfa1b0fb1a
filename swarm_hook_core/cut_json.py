"""The whole members of JSON that a client has cut short. Loaded for such a call alone."""

from typing import Any

from swarm_hook_core.json_text import loads

_CLOSING = {"{": "}", "[": "]"}
_WHOLE = tuple('"}]el')  # the last characters of values that end by themselves


def loads_cut(text: str, partly: "tuple[Any, ...]" = ()) -> "dict[str, Any]":
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


def _state_at_end(text: str) -> "tuple[list[Any], int, bool]":
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
