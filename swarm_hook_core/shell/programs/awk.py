"""awk: ``-i inplace``, and the files and shell commands that its programs print to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from swarm_hook_core import EDIT, REPLACE
from swarm_hook_core.shell.call import Call
from swarm_hook_core.shell.model import UNKNOWN
from swarm_hook_core.shell.options import split
from swarm_hook_core.shell.programs.sed import LONGEST, read

_HOW = {">": REPLACE, ">>": EDIT}
_ESCAPES = {"n": "\n", "t": "\t", '"': '"', "\\": "\\", "/": "/", "r": "\r"}
_LONG = "--include --file --assign --field-separator --source --load --exec".split()
_DUMPS = (
    ("-o", "--pretty-print", "awkprof.out"),
    ("-p", "--profile", "awkprof.out"),
    ("-d", "--dump-variables", "awkvars.out"),
)


def awk(call: Call) -> None:
    options = split(call.words, "FvfieElmW", _LONG, optional="odpDL")
    if options.has("--version", "-V", "--help", "-h"):
        return
    operands = list(options.operands)
    texts = options.values("-e", "--source")
    files = options.values("-f", "--file", "-E", "--exec")
    if not texts and not files and operands:
        texts = [operands.pop(0)]
    texts += [read(call, name) for name in files]
    for short, long, default in _DUMPS:
        if options.has(short, long):
            call.write(options.value(short, long) or default, REPLACE)
    values = dict(pair.split("=", 1) for pair in options.values("-v", "--assign") if "=" in pair)
    done = actions("\n".join(texts), values)
    is_in_place = "inplace" in [name.removesuffix(".awk") for name in options.values("-i", "--include")]
    for kind, what in done:
        if kind in _HOW:
            call.write(what, _HOW[kind])
        else:
            call.script(what)
    if not is_in_place:
        return
    suffix = values.get("inplace::suffix") or values.get("INPLACE_SUFFIX") or ""
    for word in operands:
        if _is_assignment(word):
            name, value = word.split("=", 1)
            if name in ("inplace::suffix", "INPLACE_SUFFIX"):
                suffix = value
            continue
        call.write(word)
        if suffix:
            call.write(word + suffix, REPLACE)


def _is_assignment(word: str) -> bool:
    name, equals, _value = word.partition("=")
    return bool(equals) and name.replace("::", "_").isidentifier()


def actions(program: str, values: Mapping[str, str] | None = None) -> list[tuple[str, str]]:
    """Return the effects of an awk program besides printing: ``(">" or ">>", file)`` and ``("sh", shell text)``.

    A computed one is `UNKNOWN`. `values`: variables given on the command line.
    """
    if not any(part in program for part in (">", "|", "system")):
        return []
    found: list[Any] = []
    tokens = _tokens(program[:LONGEST])
    values = {**(values or {}), **_constants(tokens)}
    printing, depth = False, 0
    for at, (kind, text) in enumerate(tokens):
        if kind == "name" and text in ("print", "printf"):
            printing, depth = True, 0
        elif kind == "end":
            printing = False
        elif text in "([" and kind == "op":
            depth += 1
            if at and tokens[at - 1] == ("name", "system"):
                found.append(("sh", _value(tokens, at + 1, values)))
        elif text in ")]" and kind == "op":
            depth -= 1
        elif text in (">", ">>") and kind == "op" and printing and depth == 0:
            found.append((text, _value(tokens, at + 1, values)))
            printing = False
        elif text in ("|", "|&") and kind == "op":
            if printing and depth == 0:
                found.append(("sh", _value(tokens, at + 1, values)))
                printing = False
            elif tokens[at + 1 : at + 2] == [("name", "getline")]:
                before = at
                while before and tokens[before - 1][0] in ("string", "name") and tokens[before - 1][1] != "while":
                    before -= 1
                found.append(("sh", _value(tokens, before, values)))
    return [one for one in dict.fromkeys(found) if one not in ((">", "-"), (">>", "-"), ("sh", ""))]


def _constants(tokens: list[tuple[str, str]]) -> dict[str, str]:
    """Variables that are given one string in the program, and nothing else."""
    given: dict[str, Any] = {}
    for at, (kind, text) in enumerate(tokens[:-1]):
        if kind == "name" and tokens[at + 1] == ("op", "=") and (at == 0 or tokens[at - 1][1] != "$"):
            value = _value(tokens, at + 2, {})
            if given.setdefault(text, value) != value:
                given[text] = UNKNOWN
    return given


def _value(tokens: list[tuple[str, str]], at: int, values: Mapping[str, str]) -> str:
    """The text of the strings, and variables of known value, from place `at` on."""
    parts = []
    if tokens[at : at + 1] == [("op", "(")]:
        at += 1
    while at < len(tokens):
        kind, text = tokens[at]
        if kind == "string":
            parts.append(text)
        elif kind == "name" and text in values and tokens[at + 1 : at + 2] != [("op", "[")]:
            parts.append(values[text])
        elif kind == "end" or text in (")", ",", "}", "|", "&&", "?"):
            break
        else:
            return "".join(parts) + UNKNOWN
        at += 1
    return "".join(parts)


def _tokens(program: str) -> list[tuple[str, str]]:
    """Return ``(kind, text)`` of each token: string, name, number, op, regex; ``end`` ends a statement."""
    tokens: list[Any] = []
    at, end = 0, len(program)
    while at < end:
        char = program[at]
        if char == '"':
            text, at = _string(program, at + 1)
            tokens.append(("string", text))
        elif char == "#":
            newline = program.find("\n", at)
            at = newline
            if newline < 0:
                at = end
        elif char == "\\" and program[at + 1 : at + 2] == "\n":
            at += 2
        elif char in ";{}\n":
            tokens.append(("end", char))
            at += 1
        elif char == "/" and _begins_regex(tokens):
            at = _past_regex(program, at + 1)
            tokens.append(("regex", "/"))
        elif char.isalpha() or char == "_":
            start = at
            while at < end and (program[at].isalnum() or program[at] in "_:"):
                at += 1
            tokens.append(("name", program[start:at]))
        elif char.isdigit():
            start = at
            while at < end and (program[at].isalnum() or program[at] == "."):
                at += 1
            tokens.append(("number", program[start:at]))
        elif char.isspace():
            at += 1
        else:
            two = program[at : at + 2]
            text = char
            if two in (">>", "&&", "||", "==", "!=", "<=", ">=", "|&", "++", "--"):
                text = two
            tokens.append(("op", text))
            at += len(text)
    return tokens


def _begins_regex(tokens: list[tuple[str, str]]) -> bool:
    if not tokens:
        return True
    kind, text = tokens[-1]
    return kind == "end" or (kind == "op" and text not in (")", "]", "$")) or text in ("print", "return", "in", "case")


def _string(program: str, at: int) -> tuple[str, int]:
    parts = []
    while at < len(program) and program[at] not in '"\n':
        if program[at] == "\\":
            at += 1
            parts.append(_ESCAPES.get(program[at : at + 1], program[at : at + 1]))
        else:
            parts.append(program[at])
        at += 1
    return "".join(parts), at + 1


def _past_regex(program: str, at: int) -> int:
    in_brackets = False
    while at < len(program) and program[at] != "\n":
        char = program[at]
        if char == "\\":
            at += 1
        elif char == "[":
            in_brackets = True
            if program[at + 1 : at + 2] == "]":
                at += 2
        elif char == "]":
            in_brackets = False
        elif char == "/" and not in_brackets:
            return at + 1
        at += 1
    return at
