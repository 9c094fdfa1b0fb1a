"""sed and awk: files edited in place, and the files that their scripts write."""

from __future__ import annotations

import os
import re
from typing import Any

from swarm_hook_core import EDIT, REPLACE
from swarm_hook_core.shell.call import Call, split
from swarm_hook_core.shell.model import UNKNOWN, is_known
from swarm_hook_core.shell.spans import spans_of_sed


def part(call: Call) -> None:
    """Report the parts of its input that it prints; the module is loaded for that alone."""
    if call.stdin is not None and call.stdin.found is not None:
        from swarm_hook_core.shell.programs import searches

        searches.part(call)


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
    if not (in_place or operands or files) and not any("w" in one or "e" in one for one in scripts):
        part(call)
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
_COMMAND = (
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
    command, at = re.compile(_COMMAND), 0
    while True:
        match = command.match(script[:LONGEST], at)
        if match is None:
            return list(dict.fromkeys(found))
        at = match.end()
        if "e" in (match["flags"] or ""):
            found.append(("e", UNKNOWN))
        for kind, rest in ((match["kind"] or "w", match["rest"]), ("w", match["file"])):
            if rest and rest.strip():
                found.append((kind.lower(), rest.strip()))


# awk: ``-i inplace``, and the files and shell commands that its programs print to.

_HOW = {">": REPLACE, ">>": EDIT}
_LONG = "--include --file --assign --field-separator --source --load --exec".split()
_TOKEN = (
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
    if any(word in program for word in (">", "|", "system")):
        tokens = re.findall(_TOKEN, program[:LONGEST])
        _report(call, [one for one in tokens if one.strip(" \t") and one[0] != "#"], values)
    elif not (operands or files or options.has("-i", "-l", "--include", "--load") or "@" in program):
        part(call)
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
