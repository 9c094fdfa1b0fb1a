"""The largest size of an answer, and the cutting of larger ones.

An answer has at most `ANSWER_BYTES`, unless the whole of it was asked for. Listings end before they get larger
(``paging``). `fitted` cuts every other answer and notes the omission beside the cut field:

  "not_shown": {"peers": 99950}     so many more ``peers`` exist
  "cut": {"content": 65536}         the length of the whole ``content`` in characters
"""

from __future__ import annotations

from swarm_hook_core.json_text import dumps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Measure = Callable[[object], int]

ANSWER_BYTES = 100_000
ROWS_BYTES = 91_000  # bytes for the rows of a listing; the rest is for the remarks and for the cursor, stored twice
PARTS = 4  # a row, or text, that is too long for an answer gets this part of one
LEAST = 40  # bytes that a cut text or list keeps at least
KEY_BYTES = 24  # bytes of a key with next to nothing under it


def printed(value: object) -> int:
    """Return the bytes that a value takes in the JSON that a command prints, as a row of a list."""
    return len(dumps(value, 2, 1)) + 4


def sent(value: object) -> int:
    """Return the bytes of a value in an answer of the server. The answer has it twice: as content and as text.

    The text is indented JSON inside a JSON string, so its quotes, backslashes and line ends are escaped once more.
    """
    import json

    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    marks = text.count('"') + text.count("\\")
    return 2 * len(text.encode("utf-8", "surrogatepass")) + marks + _layout(value, 1)


def _layout(value: object, depth: int) -> int:
    """Return the bytes of escaped line ends and blanks that lay a value out at this depth."""
    if not value or not isinstance(value, (dict, list, tuple)):
        return 0
    inner = list(value.values()) if isinstance(value, dict) else value
    line = 4 + 2 * depth + isinstance(value, dict)
    return line * len(value) + 2 + 2 * depth + sum(_layout(one, depth + 1) for one in inner)


def fitted(value: dict[str, Any], most: int = ANSWER_BYTES, measure: Measure = sent) -> dict[str, Any]:
    """Return `value`, cut if it takes more than `most` bytes.

    Small parts stay whole; the large lists and texts share the remaining room. A cut list keeps its first rows.
    """
    size = measure(value)
    if size <= most:
        return value
    share = float(most)
    while share > LEAST:
        cut = _dict_cut(value, int(share), measure)
        if measure(cut) <= most:
            return cut
        share *= 0.8
    return {"error": f"this answer has {size} bytes, more than {most}, and nothing in it that can be left out"}


def shortened(row: dict[str, Any], most: int = ROWS_BYTES, measure: Measure = sent) -> dict[str, Any]:
    """Return a row that does not fit into an answer of `most` bytes, cut to a part of one."""
    return fitted(row, most // PARTS, measure)


def text_fitted(text: str) -> str:
    """Return a text of at most about ANSWER_BYTES: the beginning, and how many characters the whole has."""
    if len(text.encode("utf-8", "surrogatepass")) <= ANSWER_BYTES:
        return text
    return f"{_beginning(text, ANSWER_BYTES - 100, sent)} ... ({len(text)} characters)"


# ------------------------------------------------------------------------ cutting


def _cut(value: Any, most: int, measure: Measure) -> Any:
    if isinstance(value, dict):
        if measure(value) > most:
            return _dict_cut(value, most, measure)
        return value
    if isinstance(value, (list, tuple)):
        if measure(value) > most:
            found, left = [], most
            for one in value:
                size = measure(one)
                if size > most:
                    one = _cut(one, most // PARTS, measure)
                    size = measure(one)
                if size > left:
                    break
                found.append(one)
                left -= size
            return found
        return value
    if isinstance(value, str):
        return _beginning(value, most, measure)
    return value


def _dict_cut(value: dict[str, Any], most: int, measure: Measure) -> dict[str, Any]:
    names = list(value)[: max(1, most // KEY_BYTES)]
    if isinstance(value.get("not_shown"), dict):
        left_out: dict[str, Any] = dict(value.get("not_shown") or {})
    else:
        left_out = {}
    if isinstance(value.get("cut"), dict):
        lengths: dict[str, Any] = dict(value.get("cut") or {})
    else:
        lengths = {}
    sizes = {name: measure(value[name]) for name in names}
    left, found = most - sum(KEY_BYTES + len(name) for name in names), dict.fromkeys(names)
    for place, name in enumerate(sorted(names, key=lambda name: sizes[name])):
        found[name] = shown = _cut(value[name], max(LEAST, left // (len(names) - place)), measure)
        left -= measure(shown)
        if isinstance(shown, str) and len(shown) < len(value[name]):
            lengths[name] = len(value[name])
        elif isinstance(shown, list) and len(shown) < len(value[name]):
            left_out[name] = left_out.get(name, 0) + len(value[name]) - len(shown)
    if len(names) < len(value):
        left_out["keys"] = len(value) - len(names)
    said = {"not_shown": left_out, "cut": lengths}
    return {**found, **{name: what for name, what in said.items() if what}}


def _beginning(text: str, most: int, measure: Measure) -> str:
    size, end = measure(text), len(text)
    while end and size > most:
        end = int(end * min(0.9, most / size))
        size = measure(text[:end])
    return text[:end]
