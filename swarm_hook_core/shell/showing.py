"""Tells from a script's text if the model sees a command's output, and which lines of it.

It looks only at the words as they are written: it is called for each pipe and chain, and must cost nothing.
"""

from __future__ import annotations

from typing import Any

from swarm_hook_core.shell import syntax
from swarm_hook_core.shell.spans import spans_of_head, spans_of_sed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_hook_core.shell.model import Span
    from swarm_hook_core.shell.syntax import Node


# All that comes in at one end of a pipe comes out at the other.
_PASS_ALL = frozenset("cat nl less more tee column fold expand".split())
# These fail only if a file is missing, so the command behind `&&` is nearly always reached.
_RARELY_FAIL = _PASS_ALL | frozenset(
    "head tail sed awk sort uniq cut tr tac fmt bat batcat echo printf pwd ls cd wc date true : set export"
    " mkdir".split()
)
_GIT_LOOKS = frozenset("diff show log status blame".split())


def shown_parts(parts: list[Node]) -> list[tuple[Span, ...] | None]:
    """Return, for each part of a pipe, the spans of its output that reach the end; None if unknown."""
    shown: list[Any] = [()] * len(parts)
    for at in range(len(parts) - 1, 0, -1):
        passed = None
        if shown[at] is not None:
            passed = _passed_on(parts[at])
        if passed is not None:
            passed = (*shown[at], *passed)
        shown[at - 1] = passed
        if shown[at - 1] and not isinstance(parts[at - 1], syntax.Command):
            shown[at - 1] = None  # it may print more than one file, and the cut could be in any of them
    return shown


def _passed_on(part: Node) -> tuple[Span, ...] | None:
    """Return the spans of its input that a command prints; None for all but the plainest commands."""
    if not isinstance(part, syntax.Command) or not part.words:
        return None
    if any(one.operator[0] in ">&" and one.fd in ("", "1") and one.word.raw != "2" for one in part.redirects):
        return None
    name, words = part.words[0].raw, [_unquoted(word.raw) for word in part.words[1:]]
    if name in _PASS_ALL:
        if name == "tee" or all(word[:1] == "-" and word != "-" for word in words):
            return ()
        return None
    if name == "sed":
        spans, files = spans_of_sed(words)
        if spans is not None and not files:
            return spans
        return None
    if name in ("head", "tail"):
        spans, files = spans_of_head(name, words)
        # A number of bytes is useless here: the commands before may have added some.
        if spans is not None and not files and all(one[0] != "bytes" for one in spans):
            return spans
        return None
    return None


def _unquoted(raw: str) -> str:
    if len(raw) > 1 and raw[0] in "'\"" and raw[-1] == raw[0]:
        return raw[1:-1]
    return raw


def rarely_fails(node: Node) -> bool:
    """Return True if the command behind this statement and `&&` is nearly always reached."""
    if isinstance(node, syntax.Pipeline):
        node = node.parts[-1]
    if not isinstance(node, syntax.Command):
        return False
    if not node.words:
        return True
    name = node.words[0].raw
    return name in _RARELY_FAIL or (name == "git" and len(node.words) > 1 and node.words[1].raw in _GIT_LOOKS)
