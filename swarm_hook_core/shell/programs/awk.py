"""awk: ``-i inplace``, and the files and shell commands that its programs print to."""

from __future__ import annotations

import re

from swarm_hook_core import EDIT, REPLACE
from swarm_hook_core.shell.call import Call
from swarm_hook_core.shell.model import UNKNOWN
from swarm_hook_core.shell.options import split
from swarm_hook_core.shell.programs.sed import LONGEST, read

_HOW = {">": REPLACE, ">>": EDIT}
_LONG = "--include --file --assign --field-separator --source --load --exec".split()
_TOKEN = re.compile(
    r'"(?:[^"\\\n]|\\.)*"|#[^\n]*|(?:^|(?<=[~(,!;{}&|\n]))\s*/(?:[^/\\\n\[]|\\.|\[\]?[^\]\n]*\])*/|[A-Za-z_][\w:]*|>>|&&|'
    r"\|\||\|&|[\s\S]"
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
    if options.has("-o", "--pretty-print", "-p", "--profile", "-d", "--dump-variables"):
        call.guess("writes a dump of the program")
    values = dict(pair.split("=", 1) for pair in options.values("-v", "--assign") if "=" in pair)
    program = "\n".join(texts)
    if any(part in program for part in (">", "|", "system")):
        _report(call, [one for one in _TOKEN.findall(program[:LONGEST]) if one.strip(" \t") and one[0] != "#"], values)
    if "inplace" not in [name.removesuffix(".awk") for name in options.values("-i", "--include")]:
        return
    values |= dict(word.split("=", 1) for word in operands if _is_assignment(word))
    suffix = values.get("inplace::suffix") or values.get("INPLACE_SUFFIX") or ""
    for word in operands:
        if not _is_assignment(word):
            call.write(word)
            if suffix:
                call.write(word + suffix, REPLACE)


def _is_assignment(word: str) -> bool:
    name, equals, _value = word.partition("=")
    return bool(equals) and name.replace("::", "_").isidentifier()


def _report(call: Call, tokens: list[str], values: dict[str, str]) -> None:
    """Report the files and commands that a program prints to; `values`: its variables."""
    for at, token in enumerate(tokens[:-2]):
        if tokens[at + 1] == "=" and tokens[at + 2] != "=":
            value = _text(tokens[at + 2 :], {})
            if values.get(token, value) != value:
                value = UNKNOWN
            values[token] = value
    printing, depth = False, 0
    for at, token in enumerate(tokens):
        depth += (token in ("(", "[")) - (token in (")", "]"))
        to = _text(tokens[at + 1 :], values)
        if token in ("print", "printf", ";", "\n", "{", "}"):
            printing, depth = token.startswith("print"), 0
        elif token in _HOW and printing and not depth and to != "-":
            call.write(to, _HOW[token])
        elif token == "system" or (token in ("|", "|&") and printing and not depth and to):
            call.script(to)
        elif token == "|" and tokens[at + 1 : at + 2] == ["getline"]:
            call.script(_text(tokens[at - 1 :], values))
        else:
            continue
        printing = printing and token.startswith("print")


def _text(tokens: list[str], values: dict[str, str]) -> str:
    """The text of the strings, and of variables of known value, at the start of `tokens`."""
    parts = []
    for token in tokens[tokens[:1] == ["("] :]:
        if token[0] == '"':
            parts.append(token[1:-1].replace('\\"', '"').replace("\\\\", "\\"))
        elif token in values:
            parts.append(values[token])
        elif token in ("\n", ";", "}", ")", ",", "|", "&&", "?"):
            break
        else:
            return UNKNOWN
    return "".join(parts)
