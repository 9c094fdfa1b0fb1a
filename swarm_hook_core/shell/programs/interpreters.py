"""Interpreters: code in the command is followed or scanned (``shell.inline``), a script file is a guess.

`SCANNED` has a row for each scanned language; the other features of their command lines are in functions.
"""

from __future__ import annotations

import os
import time
from collections.abc import KeysView
from typing import Any

from swarm_hook_core import REPLACE
from swarm_hook_core.shell.call import Call, split
from swarm_hook_core.shell.model import UNKNOWN, absolute, is_known

OPAQUE = "an opaque script"


class CommandLine:
    """The options by which an interpreter gets its code.

    language   its name in ``inline.scanner``
    code       letters of options that take code; `long_code`: long ones
    values     letters of options with another value
    prints     True if its ``-p`` takes code, too, when no other option does
    quiet      options with which no code is run
    project    options with which the project's own code is run
    """

    __slots__ = ("language", "code", "values", "prints", "long_code", "quiet", "project")

    def __init__(
        self,
        language: str,
        code: str,
        values: str = "",
        prints: bool = False,
        long_code: str = "",
        quiet: str = "",
        project: str = "",
    ) -> None:
        self.language = language
        self.code = code
        self.values = values
        self.prints = prints
        self.long_code = long_code.split()
        self.quiet = quiet.split()
        self.project = project.split()


_NODE = CommandLine(
    *("javascript", "e", "rC", True, "--eval --print"),
    quiet="--version -v --help -h --check -c --v8-options --completion-bash --build-sea --prof-process",
    project="--test --run",
)
_BUN = CommandLine("javascript", "e", "r", True, "--eval --print", quiet="--version -v --help -h --revision")
SCANNED = {
    **dict.fromkeys("node nodejs tsx ts-node".split(), _NODE),
    "bun": _BUN,
    "ruby": CommandLine("ruby", "e", "rICE", quiet="-c --version -h --help --copyright"),
    "php": CommandLine("php", "rBRE", "cdzfStg", quiet="-v -i -l -m -h -s -w -S --version --help --ini --rf --re"),
    **dict.fromkeys("lua luajit".split(), CommandLine("lua", "e", "l", quiet="--version")),
}


def _given(words: list[str], line: CommandLine) -> tuple[list[str], list[str], KeysView[str]]:
    """Split an interpreter's arguments into the codes given to its options, the rest, and all options given."""
    options = split(words, line.code + line.values, line.long_code, stop_early=True)
    codes, rest = options.values(*(f"-{letter}" for letter in line.code), *line.long_code), options.operands
    if line.prints and options.has("-p") and not codes:
        codes, rest = rest[:1], rest[1:]
    return codes, rest, options.given.keys()


def _module(call: Call, name: str) -> Any:
    """Import a module of ``shell.inline``. The time for it is not held against the script."""
    before = time.thread_time()
    module = __import__(f"swarm_hook_core.shell.inline.{name}", fromlist=["*"])
    call.walk.forgive_import(time.thread_time() - before)
    return module


def _scan(call: Call, language: str, code: str, argv: list[str]) -> None:
    _module(call, "scanner").scan(call, language, code, argv)


def scanned(call: Call) -> None:
    """``node [option] ... [-e code | file | -] [argument] ...``, and the like."""
    line = SCANNED[call.name.rstrip("0123456789.-") if call.name not in SCANNED else call.name]
    codes, rest, options = _given(call.words, line)
    only_version = options == {"-v"} and not rest and not codes
    if not options.isdisjoint(line.quiet) or only_version:
        return
    if not options.isdisjoint(line.project):
        call.runs_project()
        return
    for code in codes:
        _scan(call, line.language, code, rest)
    if codes and line.language == "ruby":
        _edited_in_place(call, rest)
    if not codes or (line.language == "lua" and rest):
        _script_or_input(call, ["?"] if line.language == "php" and "-f" in options else rest, line.language)


def _edited_in_place(call: Call, operands: list[str]) -> None:
    """``ruby -i.bak -pe code file ...``"""
    edits = next((word for word in call.words if word[:1] == "-" != word[1:2] and "i" in word.partition("e")[0]), "")
    if not edits:
        return
    for word in operands:
        call.write(word)
        if edits.startswith("-i."):
            call.write(word + edits[2:], REPLACE)


def _script_or_input(call: Call, rest: list[str], language: str) -> None:
    """A script file, or the code that comes by pipe or here-document."""
    text = None
    if not rest or rest[0] in ("-", "/dev/stdin"):
        text = None
        if call.stdin is not None:
            text = call.stdin.text
    if text is None:
        call.guess(OPAQUE)
    else:
        _scan(call, language, _php_within(text) if language == "php" else text, rest)


def _php_within(page: str) -> str:
    """Return the code of a page: the parts between ``<?php`` and ``?>``."""
    parts = page.split("<?")
    return "\n".join(part.removeprefix("php").removeprefix("=").partition("?>")[0] for part in parts[1:])


_DENO_QUIET = frozenset("--version -V --help -h check info lsp doc types completions help lint outdated".split())


def deno(call: Call) -> None:
    words = call.words
    command = next((word for word in words if not word.startswith("-")), words[0] if words else "")
    rest = []
    if command:
        rest = words[words.index(command) + 1 :]
    operands = [word for word in rest if not word.startswith("-")]
    if command == "eval":
        if operands:
            _scan(call, "javascript", operands[0], operands[1:])
    elif command == "fmt":
        for word in (operands or ["."]) if "--check" not in rest else ():
            call.tree(word, lambda _path: None)
    elif command == "lint" and "--fix" in rest:
        call.guess("deno lint --fix")
    elif command in ("test", "bench", "task"):
        call.runs_project()
    elif command == "run" and rest[-1:] == ["-"]:
        _script_or_input(call, ["-"], "javascript")
    elif command not in _DENO_QUIET:
        call.guess(OPAQUE)


_BUN_PACKAGES = frozenset("install i add a remove rm update link unlink run create init publish pm".split())


def bun(call: Call) -> None:
    codes, rest, _options = _given(call.words, _BUN)
    command = ""
    if rest and not codes:
        command = rest[0]
    if command == "test":
        call.runs_project()
    elif command in _BUN_PACKAGES:
        call.run(["npm", *rest])
    elif command == "x":
        call.run(["npx", *rest[1:]])
    elif command != "help":
        scanned(call)


# Most one-liners of Perl have no such part, and are not scanned: that loads a module.
_PERL_WRITERS = (
    "open unlink rename system exec qx ` truncate mk make rm copy move link spew write ch utime eval require do store"
    " tie dbm :: -> append edit use cp mv remove"
).split()


def perl(call: Call) -> None:
    suffix, codes, operands, checks = _perl_arguments(call.words)
    if checks:
        return
    if not codes and operands[:1] in ([], ["-"]):
        text = None
        if call.stdin:
            text = call.stdin.text
        operands = operands[1:]
        if text is None:
            call.guess("a program that cannot be read")
        else:
            codes = [text]
    elif not codes:
        call.guess(f"runs {operands.pop(0)}" if is_known(operands[0]) else "a computed program")
    if any("$^I" in code for code in codes):
        call.guess("Perl code that edits in place")
    if UNKNOWN in codes or any(word in code for code in codes for word in _PERL_WRITERS):
        _scan(call, "perl", "\n".join(codes), operands)
    if suffix is not None:
        from swarm_hook_core.shell.programs.sed import backup

        for word in operands:
            call.write(word)
            if suffix:
                call.write(backup(word, suffix), REPLACE)


def _perl_arguments(words: list[str]) -> tuple[str | None, list[str], list[str], bool]:
    """Return ``(suffix of -i or None, codes, operands, True if nothing runs)``."""
    suffix, codes, checks, at = None, [], False, 0
    while at < len(words) and words[at] not in ("-", "--") and words[at].startswith("-"):
        word = words[at]
        at += 1
        place = 1
        while place < len(word):
            letter, rest = word[place], word[place + 1 :]
            place += 1
            checks = checks or letter in "cvV"
            if letter in "eEIF":  # -F is attached in truth, but a lone one takes the next word since 5.20
                if not rest and at < len(words):
                    rest, at = words[at], at + 1
                if letter in "eE":
                    codes.append(rest)
                break
            if letter == "i":
                suffix = rest
            if letter in "imMxdDCV":
                break
            if letter in "0l":  # the number of a character
                digits = "0123456789"
                if word[2:3] == "x":
                    digits = "xabcdefABCDEF0123456789"
                while place < len(word) and word[place] in digits:
                    place += 1
    return suffix, codes, list(words[at + (words[at : at + 1] == ["--"]) :]), checks


def python(call: Call) -> None:
    _module(call, "python").python(call)


def opaque(call: Call) -> None:
    if not any(word in ("--version", "-version", "--help") for word in call.words[:1]):
        call.guess(OPAQUE)


# Shells: a script or a command that they are given.

_SHELLS = ("sh", "bash", "zsh", "dash", "ksh")


def is_shell_script(text: str, name: str) -> bool:
    """Return True if `text`, of file `name`, is for a shell: by its first line, else by its name."""
    first = text.partition("\n")[0]
    if first.startswith("#!"):
        words = first[2:].replace("/usr/bin/env -S", "").split()
        return any(word.rpartition("/")[2] in _SHELLS for word in words[:2])
    return name.endswith((".sh", ".bash", ".zsh"))


def shell(call: Call) -> None:
    """bash, sh and the like: ``-c text``, a script file, or a script on standard input."""
    words, command, reads_only, from_input = list(call.words), False, False, False
    while words and words[0][:1] in ("-", "+") and len(words[0]) > 1:
        word = words.pop(0)
        if word == "--":
            break
        if word in ("--rcfile", "--init-file"):
            words[:1] = []
        elif word.startswith("--"):
            if word in ("--version", "--help"):
                return
        else:
            letters = word[1:]
            command = command or "c" in letters
            reads_only = reads_only or "n" in letters
            from_input = from_input or "s" in letters
            if letters[-1:] in ("o", "O") and words:
                words.pop(0)
    if reads_only:
        return
    if command:
        if words:
            call.output = call.walk.nested(words[0], call.folder, words[1:] or [call.name], call.stdin, call.name)
        return
    if words and not from_input:
        _script_file(call, words)
        return
    stdin = call.stdin
    if stdin is not None and stdin.text is not None:
        call.output = call.walk.nested(stdin.text, call.folder, [call.name, *words], None, call.name)
    elif stdin is not None or not call.words or from_input:
        call.guess("a script that is not known")


def _script_file(call: Call, words: list[str]) -> None:
    whole = absolute(call.folder, words[0])
    if whole is not None and call.walk.files.is_missing(whole):
        return
    stream = call.walk.files.text_of(words[0], call.folder)
    if (
        stream is None
        or stream.text is None
        or not is_known(words[0])
        or stream.text.startswith("#!")
        and not is_shell_script(stream.text, "")
    ):
        call.guess("an opaque script")
    else:
        call.output = call.walk.nested(stream.text, call.folder, words, call.stdin, call.name)


# Swarm's own command: its request is kept for ``protected``, and the command that it runs is read.

# A command that sets one of these has its state elsewhere.
_PLACES = ("HOME", "SWARM_CONFIG_DIR", "SWARM_STATE_DIR", "SWARM_DB_PATH", "XDG_CONFIG_HOME", "XDG_STATE_HOME")


def swarm(call: Call) -> None:
    is_here = all((call.walk.scope.variable(name) or "") == os.environ.get(name, "") for name in _PLACES)
    if is_here and all(map(is_known, call.words[:3])):
        call.walk.effects.add_deed([call.name, *call.words], call.folder, call.by)
    # `try` keeps writes in the checkout from it; they count all the same, as those elsewhere are real.
    if call.words[:1] in (["hold"], ["try"]) and "--" in call.words:
        call.run(call.words[call.words.index("--") + 1 :], call.stdin)
