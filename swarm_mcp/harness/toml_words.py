"""Values as TOML text, for settings that a program takes one by one on its command line (``-c path=value``).

Only what the language (https://toml.io/en/v1.0.0) needs to say text, whole numbers, truth, lists and tables, all on
one line: Codex splits the path at every dot, quoted or not, so names that are not plain words go into inline tables.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from swarm_mcp.errors import Refused

_PLAIN = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-")
_SHORT = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", '"': '\\"', "\\": "\\\\"}
_LARGEST = (1 << 63) - 1


def override(path: str, value: object) -> str:
    """``path=value``. Raises Refused where a part of the dotted `path` is no plain word."""
    if not all(is_plain(part) for part in path.split(".")):
        raise Refused(f"{path[:60]!r} cannot be the name of a setting")
    return f"{path}={word(value)}"


def word(value: object) -> str:
    """`value` (text, bool, int, float, list, mapping of texts) as TOML. Raises Refused for anything else, None too."""
    if isinstance(value, str):
        return text(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) and -_LARGEST - 1 <= value <= _LARGEST:
        return str(value)
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key(str(name))} = {word(item)}" for name, item in value.items()) + "}"
    if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray)):
        return "[" + ", ".join(word(item) for item in value) + "]"
    raise Refused(f"{type(value).__name__} cannot be written as a setting")


def key(name: str) -> str:
    """`name` as a key: bare where it may be, else quoted."""
    return name if is_plain(name) else text(name)


def text(value: str) -> str:
    """`value` as a basic string. What is no character (half of a surrogate pair) becomes U+FFFD."""
    return '"' + "".join(_escaped(character) for character in value) + '"'


def is_plain(name: str) -> bool:
    """Whether `name` may stand without quotes."""
    return bool(name) and not set(name) - _PLAIN


def _escaped(character: str) -> str:
    if character in _SHORT:
        return _SHORT[character]
    if character < " " or character == "\x7f":
        return f"\\u{ord(character):04x}"
    return "\ufffd" if "\ud800" <= character <= "\udfff" else character
