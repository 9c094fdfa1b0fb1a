"""The name that ``rename`` gives to a file: perl's with ``s/a/b/``, util-linux's with two words."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from swarm_hook_core import REMOVE, REPLACE
from swarm_hook_core.shell.call import Call
from swarm_hook_core.shell.model import is_known
from swarm_hook_core.shell.options import Options, split
from swarm_hook_core.shell.programs.places import seen

LONGEST_NAME = 300  # characters that an expression is tried on
LONGEST_CODE = 120
MOST_TRIES = 100_000  # of a pattern on a name, at the worst
# ``s{a}{b}flags`` or ``s/a/b/flags``, to the end or a semicolon.
_STEP = (
    r"s(?:\{((?:\\.|[^\\}])*)\}\{((?:\\.|[^\\}])*)\}"
    r"|([^\w\s\\\0])((?:\\.|(?!\3)[^\\\0])*)\3((?:\\.|(?!\3)[^\\\0])*)\3)([a-z]*)\s*(?:;\s*|$)"
)
_BEYOND = ("@", "\\Q", "(?", "\\K", ")+", ")*", "){")  # perl's patterns that `re` lacks, or takes too long for


def is_perl(code: str) -> bool:
    """Return True if `code` looks like perl: ``s/a/b/``, ``y|a|b|``, ``$_ = lc``."""
    name = next((one for one in ("tr", "s", "y") if code.startswith(one)), "")
    mark = code[len(name) : len(name) + 1]
    return bool(name and mark and not mark.isalnum() and not mark.isspace() and mark not in "_.,-") or (
        "$" in code or ";" in code
    )


def in_words(words: Sequence[str], options: Options) -> Callable[[str], str | None]:
    """A function of a name, as util-linux takes ``rename from to``: the first in the last part, or as `options` say."""
    taken, given = (*words, "", "")[:2]

    def new_name(word: str) -> str | None:
        if "\0" in taken + given or not taken:
            return None
        folder, name = ("", word) if "/" in taken else os.path.split(word)
        if options.has("-l", "--last"):
            return os.path.join(folder, given.join(name.rsplit(taken, 1)))
        return os.path.join(folder, name.replace(taken, given, -1 if options.has("-a", "--all") else 1))

    return new_name


def in_perl(codes: Iterable[str], options: Options) -> Callable[[str], str | None]:
    """Return a function from a name to its new name by perl's `codes`, or to None if unknown."""
    steps = [step for code in codes for step in _steps(code)]

    def new_name(word: str) -> str | None:
        last_part = options.has("-d", "--filename", "--nopath", "--nofullpath")
        folder, name = os.path.split(word) if last_part else ("", word)
        for step in steps:
            changed = None
            if step is not None and len(word) <= LONGEST_NAME:
                changed = step(name)
            if changed is None:
                return None
            name = changed
        return os.path.join(folder, name)

    return new_name


def _steps(code: str) -> list[Callable[[str], str | None] | None]:
    """Return functions of a name, one for each ``s/a/b/`` in `code`; None for an unsupported step."""
    steps: list[Any] = []
    code = code.strip().rstrip(";")
    step, at = re.compile(_STEP), 0
    while at < len(code) <= LONGEST_CODE:
        found = step.match(code, at)
        if found is None:
            break
        in_braces, instead_in_braces, mark, pattern, instead, flags = found.groups()
        if mark is None:
            pattern, instead = in_braces, instead_in_braces
        elif mark not in "|.^$*+?()":
            pattern, instead = pattern.replace("\\" + mark, mark), instead.replace("\\" + mark, mark)
        steps.append(_substitution(pattern, instead, flags))
        at = found.end()
    if steps and at == len(code):
        return steps
    return [None]


def _substitution(pattern: str, replacement: str, flags: str) -> Callable[[str], str | None] | None:
    made = _replacement(replacement)
    if made is None or set(flags) - set("gi") or any(one in pattern for one in _BEYOND):
        return None
    if "$" in pattern[:-1].replace("\\$", ""):
        return None
    repeats = sum(pattern.count(one) for one in "*+{")
    try:
        wanted = re.compile(pattern, re.IGNORECASE if "i" in flags else 0)
    except (re.error, OverflowError, RecursionError):  # not a pattern for Python
        return None

    def step(name: str) -> str | None:
        try:
            tries = len(name) ** repeats
            if tries <= MOST_TRIES:
                return wanted.sub(made, name, count=int("g" not in flags))
            return None
        except (re.error, IndexError):  # the replacement names a missing group
            return None

    return step


def _replacement(text: str) -> str | None:
    """Return `text` with ``$1``, ``${1}``, ``$&`` and ``\\1`` for `re`; None if perl would do more with it."""
    out, at = [], 0
    while at < len(text):
        letter, following = text[at], text[at + 1 : at + 2]
        if following == "{":
            close = text.find("}", at)
        else:
            close = at + 1
        if following == "&":
            group = "0"
        elif following == "{":
            group = text[at + 2 : close]
        else:
            group = following
        if letter == "$" and group.isdigit() or letter == "\\" and following.isdigit():
            out.append(f"\\g<{group}>")
            at = close + 1
        elif letter in "$@" or (letter == "\\" and following.isalpha()):
            return None
        else:
            at += letter == "\\"
            out.append(text[at : at + 1].replace("\\", "\\\\"))
            at += 1
    return "".join(out)


def rename(call: Call) -> None:
    """Two programs have this name: perl's (``rename 's/a/b/' files``) and util-linux's (``rename a b files``)."""
    options = split(call.words, "e", ("--expr", "--expression"))
    if options.has("-n", "--nono", "--no-act", "--just-print", "--dry-run", "-V", "--version", "-h", "--help"):
        return
    operands = list(options.operands)
    codes = options.values("-e", "--expr", "--expression") or operands[:1]
    if options.has("-e", "--expr", "--expression"):
        new_name = in_perl(codes, options)
    elif codes and is_perl(codes[0]):
        new_name, operands = in_perl(codes, options), operands[1:]
    else:
        new_name, operands = in_words(operands[:2], options), operands[2:]
    for word in operands:
        path = seen(call, word)
        if path is not None and call.walk.files.is_missing(path):
            continue
        new = None
        if is_known(word):
            new = new_name(word)
        if new == word:
            continue
        call.write(word, REMOVE)
        if new is None:
            call.guess("renames files", os.path.dirname(word) or None)
        else:
            call.write(new, REPLACE)
