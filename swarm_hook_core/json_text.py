"""JSON without the ``json`` package: reading, even of absurdly deep nesting, and writing.

``json`` costs more at import than everything else a check does, most of it for ``re``. The C scanner and encoder under
it (``_json``) do the work, and load in 0.2 ms.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

try:
    from _json import encode_basestring_ascii as quote  # a text as a JSON string, ASCII only
    from _json import make_encoder, make_scanner
except ImportError:  # an interpreter other than CPython
    from json.encoder import encode_basestring_ascii as quote

    make_encoder = make_scanner = None  # type: ignore[assignment,misc]  # to the stubs they are classes

__all__ = ["LEVELS", "NotJson", "dumps", "loads", "loads_object", "loads_outer", "pruned", "quote", "shallow"]
LEVELS = 64  # of nesting that are looked at; nothing that a check looks for is deeper
LARGE = 1024 * 1024  # characters of a document
CHUNK = 65536  # characters of a very deep document that are looked at together
_SCALARS = frozenset((str, int, float, bool, type(None)))
LONG_NUMBER = 400  # digits; the language refuses whole numbers of some thousands, or takes minutes over them


class NotJson(ValueError):
    """The text is no JSON document, or not the object that was asked for."""


class _ScannerOptions:
    """The attributes that CPython's C scanner reads from the decoder that owns it."""

    strict = False
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = staticmethod(lambda digits: int(digits) if len(digits) < LONG_NUMBER else float(digits))
    parse_constant = float
    memo: "dict[str, Any]" = {}


def loads(text: str) -> object:
    """Parse one JSON document. Raises ValueError, or RecursionError on absurd nesting."""
    if make_scanner is None:
        import json

        return json.loads(text)
    start = len(text) - len(text.lstrip(" \t\r\n\ufeff"))
    try:
        # The stubs ask for a JSONDecoder; all that the scanner looks at are these attributes of it.
        value, end = make_scanner(_ScannerOptions())(text, start)  # type: ignore[arg-type]
    # SystemError: CPython looks for the error class in `json`, which is not loaded. ValueError: it is.
    except (StopIteration, SystemError, ValueError):
        raise NotJson("not JSON") from None
    if text[end:].strip(" \t\r\n"):
        raise NotJson("text after the JSON document")
    return value


def loads_outer(text: str) -> object:
    """Parse JSON of any depth; values nested deeper than `LEVELS` become None. Raises ValueError."""
    if len(text) < LARGE:
        return _loads_outer(text)
    import gc

    was_on = gc.isenabled()
    gc.disable()  # a document of millions of lists would be searched for garbage over and over: half of its time
    try:
        return _loads_outer(text)
    finally:
        if was_on:
            gc.enable()


def loads_object(text: str) -> "dict[str, Any]":
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


def pruned(value: "Any") -> "Any":
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
    import re

    try:
        from _json import scanstring
    except ImportError:  # an interpreter other than CPython; the stubs do not name it
        from json.decoder import scanstring  # type: ignore[attr-defined,no-redef]

    # Skip an innermost list or object in one step. The count keeps `re` from remembering millions.
    flat = re.compile(r"""(?:[^"\[\]{}]+|\[[^"\[\]{}]*\]|\{[^"\[\]{}]*\}|"[^"\\]*"){0,1000}""")
    opening, closing = re.compile(r"[\[{]+"), re.compile(r"[\]}]+")

    def after(pattern: "Any", at: int) -> int:
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


def _deep(text: str, at: int, depth: int, levels: int, scanstring: "Any") -> "tuple[Any, ...]":
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

    With `indent`, laid out over lines as ``json.dumps(value, indent=...)`` would.
    """
    if not indent or not isinstance(value, (dict, list, tuple)) or not value:
        return _encoded(value, ", ")
    pad = "\n" + " " * (indent * (depth + 1))
    inner: Any = value
    if isinstance(value, dict):
        inner = value.values()
    if _SCALARS.issuperset(map(type, inner)):
        body = _encoded(value, "," + pad)[1:-1]  # of one level: nothing but its separators lays it out
    else:
        parts = [dumps(one, indent, depth + 1) for one in inner]
        if isinstance(value, dict):
            parts = [f"{quote(str(key))}: {part}" for key, part in zip(value, parts)]
        body = ("," + pad).join(parts)
    if isinstance(value, dict):
        ends = "{}"
    else:
        ends = "[]"
    return ends[0] + pad + body + "\n" + " " * (indent * depth) + ends[1]


def _encoded(value: object, separator: str) -> str:
    """`value` as JSON without layout."""
    try:
        return "".join(_parts(value, separator))
    except ValueError:  # a number that JSON lacks
        return "".join(_parts(_finite(value), separator))


def _parts(value: object, separator: str) -> "Any":
    """The same in parts, by the C encoder under ``json``: several times as fast as recursion in Python."""
    if make_encoder is None:
        from json import JSONEncoder

        return JSONEncoder(separators=(separator, ": "), default=_refuse, allow_nan=False).iterencode(value)
    # No marks against circles, no indent; keys are neither sorted nor skipped, and numbers are finite.
    return make_encoder(None, _refuse, quote, None, ": ", separator, False, False, False)(value, 0)


def _finite(value: "Any") -> "object":
    """Return `value` with None for numbers that JSON does not have."""
    if isinstance(value, float):
        if value - value == 0:
            return value
        return None
    if isinstance(value, dict):
        return {key: _finite(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(one) for one in value]
    return value


def _refuse(value: object) -> None:
    raise TypeError(f"cannot write {type(value).__name__} as JSON")
