"""The parts of a file that head, tail and sed show, from their words.

A *span* is a part of a text: ``("lines", first, last)``, with a `last` of None for the end; ``("last", n)``, its last
lines; ``("bytes", n)``, at most that many bytes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from swarm_hook_core.shell import syntax
from swarm_hook_core.shell.model import Span
from swarm_hook_core.shell.syntax import Node

_DIGITS = frozenset("0123456789")
LONGEST = 9  # digits of a number


def spans_of_head(name: str, words: list[str]) -> tuple[tuple[Span, ...] | None, list[str]]:
    """Return ``(spans, files)`` that head or tail, by its `name`, shows with these arguments; spans of None:
    unknown.
    """
    unit, count, files, given = "lines", "10", [], list(words)
    while given:
        word = given.pop(0)
        if word == "--":
            files += given
            break
        if word[:1] != "-" or word == "-":
            files.append(word)
        elif word in ("-q", "-v", "-f", "-F", "--quiet", "--silent", "--verbose"):
            continue
        elif word[:2] in ("-n", "-c"):
            unit = "bytes"
            if word[1] == "n":
                unit = "lines"
            count = word[2:] or _next(given)
        elif word.partition("=")[0] in ("--lines", "--bytes"):
            unit = word[2:].partition("=")[0]
            count = word.partition("=")[2] or _next(given)
        elif not set(word[1:]) - _DIGITS:
            unit, count = "lines", word[1:]
        else:
            return None, [*files, *given]
    return _counted(name, unit, count), files


def _next(words: list[str]) -> str:
    """Take the next word, or an empty one."""
    if words:
        return words.pop(0)
    return ""


def _counted(name: str, unit: str, count: str) -> tuple[Span, ...] | None:
    sign, number = "", count
    if count[:1] in ("+", "-"):
        sign, number = count[0], count[1:]
    if not _is_number(number):
        return None
    value = int(number)
    if name == "head" and sign == "-":  # all but the last
        if not value:
            return ()
        return None
    if name == "tail" and sign == "+":  # from there on
        if value < 2:
            return ()
        if unit == "lines":
            return (("lines", value, None),)
        return None
    if unit == "bytes":
        return (("bytes", value),)
    if name == "head":
        return (("lines", 1, value),)
    return (("last", value),)


def spans_of_sed(words: list[str]) -> tuple[tuple[Span, ...] | None, list[str]]:
    """Return ``(spans, files)`` that sed shows with these arguments; spans of None if it does more than choose lines.

    sed counts the lines of several files as if they were one.
    """
    scripts, files, is_quiet, given = [], [], False, list(words)
    while given:
        word = given.pop(0)
        if word in ("-n", "--quiet", "--silent"):
            is_quiet = True
        elif word in ("-e", "-ne", "--expression") and given:
            is_quiet = is_quiet or word == "-ne"
            scripts.append(given.pop(0))
        elif word == "--":
            files += given
            break
        elif word[:1] == "-" and word != "-":
            return None, [*files, *given]
        else:
            files.append(word)
    if not scripts:
        if not files:
            return None, files
        scripts = [files.pop(0)]
    return _of_script(";".join(scripts), is_quiet), files


def _of_script(script: str, is_quiet: bool) -> tuple[Span, ...] | None:
    """The spans of lines that a script prints as they are: ``3,9p``, ``20q`` and several of them."""
    ranges, last = [], None
    for command in script.replace("\n", ";").replace(" ", "").split(";"):
        address, letter = command[:-1], command[-1:]
        first, comma, to = address.partition(",")
        if not command:
            continue
        if not _is_number(first) or (comma and to != "$" and not _is_number(to)):
            return None
        if letter == "q" and not comma:
            if last is None:
                last = int(first)
            else:
                last = min(last, int(first))
        elif letter == "p" and is_quiet:
            ranges.append((int(first), None if to == "$" else int(to or first)))
        else:
            return None
    if not is_quiet:
        if last is not None and not ranges:
            return (("lines", 1, last),)
        return None
    if not ranges:
        return None
    found = joined_lines(ranges)
    spans = []
    if len(found) == 1:
        spans = [("lines", *found[0])]
    if spans:
        if last is not None:
            spans.append(("lines", 1, last))
        return tuple(spans)
    return None


def _is_number(text: str) -> bool:
    return 0 < len(text) <= LONGEST and not set(text) - _DIGITS


def joined_lines(ranges: Iterable[tuple[int, int | None]]) -> list[tuple[int, int | None]]:
    """Return these ``(first, last)`` sorted, with touching ones joined; a `last` of None means the end."""
    found: list[Any] = []
    for first, last in sorted(ranges, key=lambda one: one[0]):
        before = None
        if found:
            before = found[-1]
        if before is not None and (before[1] is None or first <= before[1] + 1):
            if last is not None and before[1] is not None:
                last = max(before[1], last)
            else:
                last = None
            found[-1] = (before[0], last)
        else:
            found.append((first, last))
    return found


def are_whole(spans: Iterable[Span], lines: int, size: int) -> bool:
    """Return True if these spans show all of a text with this many `lines` and bytes (`size`)."""
    return all(_is_whole(span, lines, size) for span in spans)


def _is_whole(span: Span, lines: int, size: int) -> bool:
    kind: str = span[0]
    first: int = span[1]
    if kind == "lines":
        return first <= 1 and (span[2] is None or span[2] >= lines)
    if kind == "last":
        return first >= lines
    return first >= size


# Tells from a script's text if the model sees a command's output, and which lines of it.
#
# It looks only at the words as they are written: it is called for each pipe and chain, and must cost nothing.

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
