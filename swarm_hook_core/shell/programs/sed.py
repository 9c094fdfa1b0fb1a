"""sed: files edited in place, and the ``w`` commands of its scripts."""

from __future__ import annotations

import os
import re
from typing import Any

from swarm_hook_core import REPLACE
from swarm_hook_core.shell.call import Call
from swarm_hook_core.shell.model import UNKNOWN, is_known
from swarm_hook_core.shell.options import split
from swarm_hook_core.shell.spans import spans_of_sed

LONGEST = 8 * 1024  # characters of a script that are read; a sed or awk program is a few lines


def sed(call: Call) -> None:
    options = split(call.words, "efl", ("--expression", "--file", "--line-length"), optional="iI")
    if options.has("--help", "--version"):
        return
    operands = list(options.operands)
    in_place = options.has("-i", "-I", "--in-place")
    suffix = options.value("-i", "-I", "--in-place") or ""
    if in_place and not suffix and operands and operands[:1] == _next_word(call.words) and _is_suffix(operands[0]):
        suffix = operands.pop(0)
    scripts = options.values("-e", "--expression")
    files = options.values("-f", "--file")
    if not scripts and not files and operands:
        scripts = [operands.pop(0)]
    for text in [*scripts, *(read(call, name) for name in files)]:
        for kind, target in commands(text):
            if kind == "w":
                call.write(target, REPLACE)
            elif not options.has("--sandbox", "--posix"):
                call.script(target)
    spans, shown = spans_of_sed(call.words)
    if spans is not None and not in_place and len(shown) < 2:
        call.shows(shown, spans)
    for word in operands if in_place else ():
        if word not in ("-", ""):
            call.write(word)
            if suffix:
                call.write(backup(word, suffix), REPLACE)


def backup(word: str, suffix: str) -> str:
    """The name that sed and perl keep the earlier content of `word` under."""
    folder, name = os.path.split(word)
    if "*" in suffix:
        name = suffix.replace("*", name)
    else:
        name = name + suffix
    if "/" in name:
        return name
    return os.path.join(folder, name)


def read(call: Call, name: str) -> str:
    """The text of a script file, as far as it is known by then; empty where it cannot be had."""
    if name in ("-", "/dev/stdin"):
        stream = call.stdin
    else:
        stream = call.walk.files.text_of(name, call.folder)
    return (stream and stream.text) or ""


def _next_word(words: list[str]) -> list[Any]:
    """The word behind a lone ``-i``: GNU attaches the suffix, BSD takes the next word."""
    return next(([after] for word, after in zip(words, words[1:]) if word[:1] == "-" and word[-1] in "iI"), [])


def _is_suffix(word: str) -> bool:
    # The kind of sed is unknown: macOS may have GNU's. A script does not look like `.bak`.
    return word in ("", "~") or (word[0] in "._~" and is_known(word) and word[1:].replace("_", "").isalnum())


_BRACKET = r"\[\^?\]?[^\]\n]*\]|\[(?!\^?\]?[^\]\n]*\])"
_ADDRESS = rf"[0-9$~+,\s!]|/(?:\\.|{_BRACKET}|[^/\\\[\n])*/[IM]*|\\(?P<a>.)(?:\\.|(?!(?P=a))[^\\])*(?P=a)[IM]*"
_COMMAND = re.compile(
    rf"[;}}\s]*(?:{_ADDRESS})*(?:"
    rf"s(?P<s>[^\n\\])(?:\\[\s\S]|{_BRACKET}|(?!(?P=s))[^\\\[])*(?P=s)(?:\\[\s\S]|(?!(?P=s))[^\\])*(?P=s)"
    r"(?P<flags>[gpiImMe0-9 \t]*)(?:w(?P<file>[^\n]*))?"
    r"|y(?P<y>.)(?:\\.|(?!(?P=y))[^\\])*(?P=y)(?:\\.|(?!(?P=y))[^\\])*(?P=y)"
    r"|(?P<kind>[wWe])(?P<rest>[^\n]*)|[aic](?:[^\n]*\\\n)*[^\n]*|[#rR][^\n]*|[:btTv][^;\n}]*"
    r"|[={dDgGhHnNpPxzFqQlL][ \t0-9]*)"
)


def commands(script: str) -> list[tuple[str, str]]:
    """Return a sed script's effects besides editing: ``("w", file)`` and, GNU's, ``("e", shell text)``.

    A command that is not understood ends the reading.
    """
    if not any(letter in script for letter in "wWe"):
        return []
    found: list[tuple[str, str]] = []
    at = 0
    while True:
        match = _COMMAND.match(script[:LONGEST], at)
        if match is None:
            return list(dict.fromkeys(found))
        at = match.end()
        if "e" in (match["flags"] or ""):
            found.append(("e", UNKNOWN))
        for kind, rest in ((match["kind"] or "w", match["rest"]), ("w", match["file"])):
            if rest and rest.strip():
                found.append((kind.lower(), rest.strip()))
