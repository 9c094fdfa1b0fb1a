"""Reading a hook's input and writing its answer, without the ``json`` package.

``json`` costs more at import than everything else a check does, most of it for ``re``. The C
scanner and string encoder under it (``_json``) are what does the work, and load in 0.2 ms.
"""

import os
import sys

LEVELS = 64  # of nesting that are looked at; nothing that a check looks for is deeper
LARGE = 1024 * 1024  # characters of a document
LONG_NUMBER = 400  # digits; the language refuses whole numbers of some thousands, or takes minutes over them


class PayloadError(ValueError):
    """Standard input held no JSON object."""


class _ScannerOptions:
    """What CPython's C scanner wants to find on the decoder that owns it."""

    strict = False
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = staticmethod(lambda digits: int(digits) if len(digits) < LONG_NUMBER else float(digits))
    parse_constant = float
    memo: dict = {}


def loads(text: str) -> object:
    """Parse one JSON document. Raises ValueError, or RecursionError on absurd nesting."""
    try:
        from _json import make_scanner
    except ImportError:  # an interpreter other than CPython
        import json

        return json.loads(text)
    start = len(text) - len(text.lstrip(" \t\r\n\ufeff"))
    try:
        value, end = make_scanner(_ScannerOptions())(text, start)
    except StopIteration:
        raise PayloadError("not JSON") from None
    if text[end:].strip(" \t\r\n"):
        raise PayloadError("text after the JSON document")
    return value


def loads_outer(text: str) -> object:
    """As `loads`, however deep the document is: what nests deeper than `LEVELS` is None. Raises ValueError."""
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


def _loads_outer(text: str) -> object:
    try:
        value = loads(text)
    except RecursionError:
        from swarm_hook_core.deep_json import shallow

        return loads(shallow(text))
    # Most documents have too few brackets to be deep. What a parser can nest may be too deep for what follows.
    return value if text.count("[") + text.count("{") <= LEVELS else pruned(value)


def pruned(value):
    """`value`, as JSON has it, without what nests deeper than `LEVELS`: those lists and objects are None now."""
    level = [value] if isinstance(value, (dict, list)) else []
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
        places = outer.items() if isinstance(outer, dict) else enumerate(outer)
        for place in [place for place, one in places if isinstance(one, (dict, list))]:
            outer[place] = None
    return value


def quote(text: str) -> str:
    """`text` as a JSON string, ASCII only."""
    try:
        from _json import encode_basestring_ascii
    except ImportError:
        from json.encoder import encode_basestring_ascii
    return encode_basestring_ascii(text)


def dumps(value: object, indent: int = 0, depth: int = 0) -> str:
    """`value` (dicts with string keys, lists, strings, numbers, booleans, None) as JSON.

    With `indent`, laid out over lines as ``json.dumps(value, indent=...)`` would.
    """
    if value is None:
        return "null"
    if value is True:
        return "true"
    if value is False:
        return "false"
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, (int, float)):
        return repr(value) if value - value == 0 else "null"  # JSON has no infinity
    if isinstance(value, dict):
        parts = [f"{quote(str(k))}: {dumps(v, indent, depth + 1)}" for k, v in value.items()]
        opening, closing = "{", "}"
    elif isinstance(value, (list, tuple)):
        parts = [dumps(item, indent, depth + 1) for item in value]
        opening, closing = "[", "]"
    else:
        raise TypeError(f"cannot write {type(value).__name__} as JSON")
    if not parts or not indent:
        return opening + ", ".join(parts) + closing
    pad = "\n" + " " * (indent * (depth + 1))
    return opening + pad + ("," + pad).join(parts) + "\n" + " " * (indent * depth) + closing


def read(stdin) -> str:
    """All of `stdin` (text or binary) as text; bytes that are not UTF-8 survive as surrogates."""
    data = getattr(stdin, "buffer", stdin).read()
    return data if isinstance(data, str) else data.decode("utf-8", "surrogateescape")


def parse(text: str) -> dict:
    """The hook payload in `text`, of any depth. Raises PayloadError where it is not a JSON object."""
    value = loads_outer(text)
    if not isinstance(value, dict):
        raise PayloadError("payload is not an object")
    return value


def text_field(payload: dict, key: str) -> str:
    """A string field, or the empty string where it is missing or of another type."""
    value = payload.get(key)
    return value if isinstance(value, str) else ""


def answer(event: str, for_user: str = "", **fields: str) -> None:
    """Print the one object both clients honour, at a session's start with a line `for_user`.

    Nothing else may reach stdout.
    Codex drops a denial that has any further top-level key, and both clients drop one that has
    ``decision`` beside it or text before it.
    """
    body = "".join(f", {quote(key)}: {quote(value)}" for key, value in fields.items())
    shown = f'"systemMessage": {quote(for_user)}, ' if for_user else ""
    line = f'{{{shown}"hookSpecificOutput": {{"hookEventName": {quote(event)}{body}}}}}\n'
    try:
        sys.stdout.write(line)
        sys.stdout.flush()
    except OSError:
        # The client has left. Python would complain once more, and loudly, when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        raise
