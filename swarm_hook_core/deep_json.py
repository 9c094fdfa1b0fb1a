"""JSON that nests too deeply for a parser: its text without what is that deep. Loaded only where a parser gave up."""

import re

try:
    from _json import scanstring
except ImportError:  # an interpreter other than CPython
    from json.decoder import scanstring  # type: ignore[attr-defined,no-redef]

CHUNK = 65536  # characters that are looked at together

# What holds no other list or object is passed over in one go. The count keeps `re` from remembering millions.
_flat = re.compile(r"""(?:[^"\[\]{}]+|\[[^"\[\]{}]*\]|\{[^"\[\]{}]*\}|"[^"\\]*"){0,1000}""").match
_opening, _closing = re.compile(r"[\[{]+").match, re.compile(r"[\]}]+").match


def shallow(text: str, levels: int) -> str:
    """The JSON `text` with null for whatever nests deeper than `levels`, found without recursion.

    Raises ValueError where a string does not end. What else is wrong with it is for the parser to say.
    """
    kept: list = []
    begin = at = depth = looked = 0  # `begin`: of what is still to be kept
    while at < len(text):
        if depth > levels and at >= looked:
            at, depth = _deep(text, at, depth, levels)
            looked = at + CHUNK
        at = _flat(text, at).end()  # type: ignore[union-attr]
        sign = text[at : at + 1]
        if sign == '"':
            at = scanstring(text, at + 1, False)[1]
        elif sign in ("[", "{"):
            end = _opening(text, at).end()  # type: ignore[union-attr]
            if depth <= levels < depth + end - at:
                kept += (text[begin : at + levels - depth], "null")
            depth, at = depth + end - at, end
        elif sign in ("]", "}"):
            end = _closing(text, at).end()  # type: ignore[union-attr]
            if depth > levels >= depth - (end - at):
                begin = at + depth - levels
            depth, at = depth - (end - at), end
    return "".join(kept) + (text[begin:] if depth <= levels else "")


def _deep(text: str, at: int, depth: int, levels: int) -> tuple:
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
