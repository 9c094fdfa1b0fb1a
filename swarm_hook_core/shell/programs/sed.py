"""sed: files edited in place, and the ``w`` commands of its scripts."""

import os

from swarm_hook_core.shell.model import is_known
from swarm_hook_core.shell.options import split

LONGEST = 8 * 1024  # characters of a script that are read; a sed or awk program is a few lines


def _sed(call) -> None:
    in_place, suffix, words = _in_place(call.words)
    options = split(words, "efl", ("--expression", "--file", "--line-length"))
    if options.has("--help", "--version"):
        return
    operands = list(options.operands)
    scripts = options.values("-e", "--expression")
    files = options.values("-f", "--file")
    if not scripts and not files and operands:
        scripts = [operands.pop(0)]
    for name in files:
        scripts.append(read(call, name))
    for text in scripts:
        for kind, what in commands(text):
            if kind == "w":
                call.write(what)
            elif not options.has("--sandbox", "--posix"):
                call.script(what)
    if not in_place:
        return
    for word in operands:
        if word in ("-", ""):
            continue
        call.write(word)
        if suffix:
            call.write(backup(word, suffix))


def backup(word: str, suffix: str) -> str:
    """The name that sed and perl keep the earlier content of `word` under."""
    folder, name = os.path.split(word)
    name = suffix.replace("*", name) if "*" in suffix else name + suffix
    return name if "/" in name else os.path.join(folder, name)


def read(call, name: str) -> str:
    """The text of a script file, as far as it is known by then; empty where it cannot be had."""
    stream = call.stdin if name in ("-", "/dev/stdin") else call.walk.files.text_of(name, call.folder)
    return (stream and stream.text) or ""


def _in_place(words):
    """``(whether, suffix, the other words)``: GNU attaches the suffix to -i, BSD takes the next word."""
    rest, whether, suffix, at = [], False, "", 0
    words = list(words)
    while at < len(words):
        word = words[at]
        at += 1
        if word == "--":
            rest += words[at - 1 :]
            break
        if word == "--in-place" or word.startswith("--in-place="):
            whether, suffix = True, word[11:]
            continue
        if not word.startswith("-") or word.startswith("--"):
            rest.append(word)
            continue
        place = _place(word, "iI", "efl")
        if place < 0:
            rest.append(word)
            if word[-1] in "efl" and _place(word, word[-1], "efl") == len(word) - 1 and at < len(words):
                rest.append(words[at])
                at += 1
            continue
        whether, suffix = True, word[place + 1 :]
        if place > 1:
            rest.append(word[:place])
        if not suffix and at < len(words) and _is_suffix(words[at]):
            suffix = words[at]
            at += 1
    return whether, suffix, rest


def _is_suffix(word: str) -> bool:
    # What kind of sed it is, nobody says: macOS may have GNU's. A script does not look like `.bak`.
    return word == "" or (word[0] in "._~" and is_known(word) and word[1:].replace("_", "").isalnum()) or word == "~"


def _place(word: str, wanted: str, taking: str) -> int:
    """Where in the cluster `word` one of the letters `wanted` is an option, or -1. `taking`: letters with a value."""
    for place in range(1, len(word)):
        if word[place] in wanted:
            return place
        if word[place] in taking:
            break
    return -1


def commands(script: str) -> list[tuple[str, str]]:
    """What a sed script does besides editing: ``("w", file)`` and, GNU's, ``("e", shell text)``."""
    if not any(letter in script for letter in "wWe"):
        return []
    reader = _Script(script[:LONGEST])
    while reader.step():
        pass
    return list(dict.fromkeys(reader.found))


class _Script:
    """A sed script being read. One that is not understood ends the reading."""

    def __init__(self, text: str):
        self.text = text
        self.at = 0
        self.found: list = []

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
            self.line() if command in "#rR" else self.word()
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
        end = len(self.text) if end < 0 else end
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
            self.at += 2 if char == "\\" else 1
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


RUN = {"sed": _sed, "gsed": _sed}
