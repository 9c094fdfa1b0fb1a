"""sed: files edited in place, and the ``w`` commands of its scripts."""

from __future__ import annotations

import os
from typing import Any

from swarm_hook_core import REPLACE
from swarm_hook_core.shell.call import Call
from swarm_hook_core.shell.model import is_known
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
        for kind, what in commands(text):
            if kind == "w":
                call.write(what, REPLACE)
            elif not options.has("--sandbox", "--posix"):
                call.script(what)
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


def commands(script: str) -> list[tuple[str, str]]:
    """Return a sed script's effects besides editing: ``("w", file)`` and, GNU's, ``("e", shell text)``."""
    if not any(letter in script for letter in "wWe"):
        return []
    reader = _Script(script[:LONGEST])
    while reader.step():
        pass
    return list(dict.fromkeys(reader.found))


class _Script:
    """A sed script being read. One that is not understood ends the reading."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.found: list[Any] = []

    def step(self) -> bool:
        """One command. False at the end."""
        self.skip(" \t\n;}")
        if self.at >= len(self.text):
            return False
        while True:  # addresses
            char = self.here()
            if char == "/":
                self.at += 1
                self.delimited("/")
                self.skip("IM")
            elif char == "\\":
                self.at += 2
                self.delimited(self.text[self.at - 1 : self.at])
                self.skip("IM")
            elif char and char in "0123456789$~+, \t!":
                self.at += 1
            else:
                break
        command = self.here()
        self.at += 1
        if not command:
            return False
        if command in "{}":
            return True
        if command in "#:btTvrR":
            if command in "#rR":
                self.line()
            else:
                self.word()
        elif command in "wW":
            self.file("w")
        elif command == "e":
            self.file("e")
        elif command in "aic":
            self.appended()
        elif command == "s":
            return self.substitution()
        elif command == "y":
            delimiter = self.here()
            self.at += 1
            self.delimited(delimiter)
            self.delimited(delimiter)
        elif command in "=dDgGhHnNpPxzFqQlL":
            self.skip(" \t0123456789")
        else:
            return False
        return True

    def here(self) -> str:
        return self.text[self.at : self.at + 1]

    def skip(self, chars: str) -> None:
        while self.at < len(self.text) and self.text[self.at] in chars:
            self.at += 1

    def line(self) -> str:
        end = self.text.find("\n", self.at)
        if end < 0:
            end = len(self.text)
        line, self.at = self.text[self.at : end], end + 1
        return line

    def word(self) -> None:
        while self.at < len(self.text) and self.text[self.at] not in ";\n}":
            self.at += 1

    def file(self, kind: str) -> None:
        name = self.line().strip()
        if name:
            self.found.append((kind, name))

    def delimited(self, delimiter: str) -> None:
        """Past the next `delimiter` that is neither escaped nor in brackets."""
        while self.at < len(self.text):
            char = self.text[self.at]
            self.at += 1
            if char == "\\":
                self.at += 1
            elif char == delimiter:
                return
            elif char == "[":
                close = self.text.find("]", self.at + (2 if self.text[self.at : self.at + 1] == "^" else 1))
                newline = self.text.find("\n", self.at)
                if close >= 0 and not 0 <= newline < close and self.text.find(delimiter, close) >= 0:
                    self.at = close + 1

    def appended(self) -> None:
        """The text of a, i and c: up to a line end without a backslash before it."""
        while self.at < len(self.text):
            line = self.line()
            if not line.endswith("\\"):
                return

    def substitution(self) -> bool:
        delimiter = self.here()
        self.at += 1
        if not delimiter or delimiter in "\n\\":
            return False
        self.delimited(delimiter)
        while self.at < len(self.text):  # brackets mean nothing in the replacement
            char = self.text[self.at]
            self.at += 1 + (char == "\\")
            if char == delimiter:
                break
        while self.here() and self.here() in "gpiImMe0123456789 \t":
            if self.here() == "e":
                self.found.append(("e", "\0?\0"))
            self.at += 1
        if self.here() == "w":
            self.at += 1
            self.file("w")
        return True
