"""Interpreters: code in the command is followed or scanned, a script file is a guess.

Python is followed (``python.command``); of the others the code is scanned for the calls that write and the paths
written in them (``scripts.code``).
"""

import time

OPAQUE = "an opaque script"


def _module(call, name: str):
    """A module of this family. What loading it takes is not held against the script."""
    before = time.thread_time()
    module = __import__(f"swarm_hook_core.shell.{name}", fromlist=["*"])
    call.walk.end += time.thread_time() - before
    return module


def _python(call) -> None:
    _module(call, "inline.python_command").python(call)


def _ipython(call) -> None:
    command = _module(call, "inline.python_command")
    words = call.words
    for place, word in enumerate(words):
        if word in ("--version", "-V", "--help", "-h"):
            return
        if word in ("-c", "-m") and place + 1 < len(words):
            if word == "-m":
                command.run_module(call, words[place + 1], words[place + 2 :])
            else:
                command.follow(call, words[place + 1], ["-c"])
            return
    call.guess(OPAQUE)


class Arguments:
    """An interpreter's arguments: the `codes` given to its options, what follows (`rest`), and all `options` given."""

    __slots__ = ("codes", "rest", "options")

    def __init__(self, words, code, value, flags="", long_code=()):
        """`code`, `value`: letters of options with code, with another value; `flags`: those that may stand before."""
        self.codes: list = []
        self.options: set = set()
        at = 0
        while at < len(words):
            word = words[at]
            at += 1
            if word == "--":
                break
            if word == "-" or not word.startswith("-"):
                at -= 1
                break
            if word.startswith("--"):
                name, equals, given = word.partition("=")
                self.options.add(name)
                if name in long_code:
                    if not equals and at < len(words):
                        given, at = words[at], at + 1
                    self.codes.append(given)
                continue
            place = 1
            while place < len(word):
                letter, after = word[place], word[place + 1 :]
                self.options.add(f"-{letter}")
                place += 1
                if letter in code or letter in value:
                    if letter in code and after and set(after) <= set(code + flags):
                        continue  # ``-pe``: the last letter takes the code
                    if not after and at < len(words):
                        after, at = words[at], at + 1
                    if letter in code:
                        self.codes.append(after)
                    break
        self.rest = list(words[at:])


_NODE_QUIET = frozenset(
    "--version -v --help -h --check -c --v8-options --completion-bash --build-sea --prof-process".split()
)


def _node(call) -> None:
    found = Arguments(call.words, "ep", "rC", "i", ("--eval", "--print"))
    if found.options & _NODE_QUIET:
        return
    if found.options & {"--test", "--run"}:
        call.runs_project()
        return
    if found.codes:
        for code in found.codes:
            _scan(call, "javascript", code, found.rest)
        return
    _script_or_input(call, found.rest, "javascript")


def _scan(call, language: str, code: str, argv) -> None:
    _module(call, "inline.scanner").scan(call, language, code, argv)


def _script_or_input(call, rest, language: str) -> None:
    """A script file, or the code that comes by pipe or here-document."""
    text = None
    if not rest or rest[0] in ("-", "/dev/stdin"):
        text = None if call.stdin is None else call.stdin.text
    if text is None:
        call.guess(OPAQUE)
    else:
        _scan(call, language, _php_within(text) if language == "php" else text, rest)


_DENO_QUIET = frozenset("--version -V --help -h check info lsp doc types completions help lint outdated".split())


def _deno(call) -> None:
    words = call.words
    command = next((word for word in words if not word.startswith("-")), words[0] if words else "")
    rest = words[words.index(command) + 1 :] if command else []
    if command == "eval":
        operands = [word for word in rest if not word.startswith("-")]
        if operands:
            _scan(call, "javascript", operands[0], operands[1:])
    elif command == "fmt":
        if "--check" not in rest:
            for word in [word for word in rest if not word.startswith("-")] or ["."]:
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


def _bun(call) -> None:
    found = Arguments(call.words, "ep", "r", "", ("--eval", "--print"))
    command = found.rest[0] if found.rest else ""
    if found.options & {"--version", "-v", "--help", "-h", "--revision"} or command == "help":
        return
    if found.codes:
        for code in found.codes:
            _scan(call, "javascript", code, found.rest)
    elif command == "test":
        call.runs_project()
    elif command in _BUN_PACKAGES:
        call.run(["npm", *found.rest])
    elif command == "x":
        call.run(["npx", *found.rest[1:]])
    else:
        _script_or_input(call, found.rest, "javascript")


def _ruby(call) -> None:
    found = Arguments(call.words, "e", "rICE", "npl")
    if found.options & {"-c", "--version", "-h", "--help", "--copyright"} or found.options == {"-v"} and not found.rest:
        return
    if found.codes:
        _scan(call, "ruby", "\n".join(found.codes), found.rest)
        edits = next((word for word in call.words if word.startswith("-") and "i" in word.partition("e")[0]), None)
        if edits is not None and not edits.startswith("--"):
            suffix = edits.partition("i")[2] if edits.startswith("-i.") else ""
            for word in found.rest:
                call.write(word)
                if suffix:
                    call.write(word + suffix)
        return
    _script_or_input(call, found.rest, "ruby")


def _php(call) -> None:
    found = Arguments(call.words, "rBRE", "cdzfStg")
    if found.options & {"-v", "-i", "-l", "-m", "-h", "-s", "-w", "-S", "--version", "--help", "--ini", "--rf", "--re"}:
        return
    if found.codes:
        for code in found.codes:
            _scan(call, "php", code, found.rest)
        return
    if "-f" in found.options:
        call.guess(OPAQUE)
        return
    _script_or_input(call, found.rest, "php")


def _php_within(page: str) -> str:
    """The code of a page: what stands between ``<?php`` and ``?>``."""
    parts = page.split("<?")
    return "\n".join(part.removeprefix("php").removeprefix("=").partition("?>")[0] for part in parts[1:])


def _lua(call) -> None:
    found = Arguments(call.words, "e", "l")
    if found.codes:
        for code in found.codes:
            _scan(call, "lua", code, found.rest)
        if found.rest:
            _script_or_input(call, found.rest, "lua")
        return
    if found.options & {"-v", "--version"}:
        return
    _script_or_input(call, found.rest, "lua")


def _other(call) -> None:
    if not any(word in ("--version", "-version", "--help") for word in call.words[:1]):
        call.guess(OPAQUE)


RUN = {
    **dict.fromkeys("python python2 python3 pypy pypy3".split(), _python),
    **dict.fromkeys("node nodejs tsx ts-node".split(), _node),
    **dict.fromkeys("osascript tclsh Rscript".split(), _other),
    "ipython": _ipython,
    "deno": _deno,
    "bun": _bun,
    "ruby": _ruby,
    "php": _php,
    "lua": _lua,
    "luajit": _lua,
}
