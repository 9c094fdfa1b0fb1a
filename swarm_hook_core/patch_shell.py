"""Finds patches in a shell command line: simple commands, each with the directories it may run in.

What else a command writes is found by ``effects``, with a real grammar. This is apart from it because a patch in a
shell is the clients' own write tool, read as Codex itself reads it (a test compares), and needs no grammar. One
pass, no recursion, a bounded number of steps. It knows quoting, here-documents, subshells, substitutions and `cd`;
words whose text only a shell could know keep a `$`. Where a `cd` may or may not have happened, both directories
are given.

Only imported for commands that name apply_patch and hold an envelope, hence free to use `re`.
"""

from __future__ import annotations

import os
import re

PATCHERS = ("apply_patch", "applypatch", "--codex-run-as-apply-patch")
SHELLS = ("bash", "sh", "zsh", "dash", "ksh", "su", "eval", "source", ".")
_MOVERS = ("cd", "pushd")
_KEYWORDS = ("{", "}", "!", "if", "then", "elif", "else", "while", "until", "do", "time")
_WRAPPERS = (
    "env",
    "command",
    "exec",
    "builtin",
    "sudo",
    "doas",
    "nohup",
    "nice",
    "timeout",
    "stdbuf",
    "xargs",
    "codex",
)

_MAX_DIRECTORIES = 16
_MAX_STEPS = 140_000  # more than any command of the 128 KiB that Linux passes to a shell can take
_STEPS_A_FRAME = 10
_MAX_PATH = 4096  # bytes; also what keeps thousands of chained cds from growing without bound

_PLAIN = re.compile(r"""[^ \t\n'"\\$`;&|<>()#]+""").match
_QUOTED = re.compile(r'[^"\\$`]+').match
_ANSI = re.compile(r"[^'\\]*(?:\\.[^'\\]*)*", re.DOTALL).match
_REDIRECTION = re.compile(r"<<<|<<-|<<|[<>]\(|[<>]+[|&]?").match
_OPERATOR = re.compile(r"&&|\|\||\|&|;+&?|&|\|").match
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"'}

_BARE_WORD = re.compile(r"""(?:[^\\'"$`]|\\.)+""").fullmatch
_FIRST_LITERAL = re.compile(r'"(?:\$(?:\w+\b|\{[^}"]*\}|\([^)"]*\)|[^\w({])|`[^`"]*`|\n)*((?:[^"\\$`\n]|\\.)+)').match


def commands(
    script: str, directories: tuple[str | None, ...]
) -> list[tuple[list[str], list[str], tuple[str | None, ...]]]:
    """Every simple command as (words, here-documents, directories it may run in).

    Commands in a substitution come before the one they are part of. `directories` are where the
    script itself may run, None for the call's own.
    """
    return _Scan(script, directories).commands()


class _Frame:
    """One command list being read: the whole script, a subshell, a substitution."""

    __slots__ = (
        *("after_next", "arithmetic", "closer", "directories", "documents", "pending"),
        *("operator", "pieces", "previous", "quoted", "raws", "role", "start", "words"),
    )

    def __init__(self, closer: str, directories: tuple, arithmetic: bool = False) -> None:
        self.closer, self.directories, self.arithmetic = closer, directories, arithmetic
        self.previous = directories  # where `cd -` leads
        self.after_next: tuple | None = None  # of `cd x || y`: holds once y is over
        self.pending: list = []  # here-documents whose bodies start at the next newline
        self.pieces: list | None = None  # of the word being read
        self.start, self.quoted, self.role = 0, False, ""
        self.operator = ""  # before the command being read
        self.begin()

    def begin(self) -> None:
        self.words: list = []
        self.raws: list = []
        self.documents: list = []
        self.role = ""  # of the next word: "" argument, or the redirection that takes it


class _Scan:
    def __init__(self, script: str, directories: tuple) -> None:
        self.script, self.at = script, 0
        self.frame = _Frame("", directories)
        self.outer: list = []
        self.ticks = 0  # backquote frames open
        self.steps = 0
        self.found: list = []

    def commands(self) -> list:
        script, end = self.script, len(self.script)
        while self.at < end and self.steps < _MAX_STEPS:
            self.steps += 1
            frame = self.frame
            plain = (_QUOTED if frame.quoted else _PLAIN)(script, self.at)
            if plain:
                self.put(plain.group(), len(plain.group()))
                continue
            char = script[self.at]
            if char == "\\":
                self.escape(frame)
            elif char == "$":
                self.dollar(frame)
            elif char == "`":
                self.tick()
            elif char == '"':
                self.put("", 1)
                frame.quoted = not frame.quoted
            elif char == "'":
                close = script.find("'", self.at + 1)
                close = end if close < 0 else close
                self.put(script[self.at + 1 : close], close + 1 - self.at)
            elif char == "#" and frame.pieces is not None:
                self.put("#", 1)
            elif char == "#" and not frame.arithmetic:
                newline = script.find("\n", self.at)
                self.at = end if newline < 0 else newline
            elif char == "(":
                self.end_command(char)  # what stands before it is a function's name, or nothing
                self.open(")", 1)
            elif char == ")":
                self.close(")")
                self.at += 1
            elif char in "<>" and not frame.arithmetic:
                self.redirection(frame)
            elif char in ";&|" and not frame.arithmetic:
                operator = "&" if script.startswith("&>", self.at) else _OPERATOR(script, self.at).group()  # type: ignore[union-attr]
                if operator != "&" or not script.startswith(">", self.at + 1):
                    self.end_command(operator)
                self.at += len(operator)
            else:
                self.end_word()
                self.at += 1
                if char == "\n":
                    self.end_command(char)
                    self.read_documents(frame)
        while self.outer:
            self.close(self.frame.closer)
        self.end_command("")
        return self.found

    def put(self, piece: str, length: int) -> None:
        frame = self.frame
        if frame.pieces is None:
            frame.pieces, frame.start = [], self.at
        frame.pieces.append(piece)
        self.at += length

    def escape(self, frame: _Frame) -> None:
        escaped = self.script[self.at + 1 : self.at + 2]
        if escaped == "\n":
            self.at += 2
        else:
            self.put("\\" + escaped if frame.quoted and escaped not in '$`"\\' else escaped, 2)

    def dollar(self, frame: _Frame) -> None:
        following = self.script[self.at + 1 : self.at + 2]
        if following == "(":
            self.put("$()", 0)  # keeps the word recognisable as one whose text we do not know
            self.open(")", 2)
        elif following == "'" and not frame.quoted:
            body = _ANSI(self.script, self.at + 2).group()  # type: ignore[union-attr]
            self.put(_ESCAPE.sub(lambda found: _ESCAPES.get(found[1], found[0]), body), len(body) + 3)
        else:
            self.put("$", 1)

    def tick(self) -> None:
        if self.ticks:
            while self.frame.closer != "`":
                self.close(self.frame.closer)
            self.close("`")
            self.at += 1
        else:
            self.put("`", 0)
            self.open("`", 1)

    def open(self, closer: str, length: int) -> None:
        arithmetic = self.script.startswith("((", self.at + length - 1)
        self.outer.append(self.frame)
        self.frame = _Frame(closer, self.frame.directories, arithmetic or self.frame.arithmetic)
        self.ticks += closer == "`"
        self.steps += _STEPS_A_FRAME
        self.at += length

    def close(self, closer: str) -> None:
        frame = self.frame
        if not self.outer or frame.closer != closer:  # the ) of a case pattern
            frame.pieces = None
            frame.begin()
            return
        self.end_command(closer)
        self.frame = self.outer.pop()
        self.ticks -= closer == "`"
        if not frame.arithmetic:  # where << is a shift
            self.frame.pending += frame.pending

    def redirection(self, frame: _Frame) -> None:
        if frame.pieces is not None and self.script[frame.start : self.at].isdigit():
            frame.pieces = None
        self.end_word()
        operator = _REDIRECTION(self.script, self.at).group()  # type: ignore[union-attr]
        if operator.endswith("("):
            self.put("$()", 1)
            self.open(")", 1)
        else:
            frame.role = operator
            self.at += len(operator)

    def end_word(self) -> None:
        frame = self.frame
        if frame.pieces is None:
            return
        word, frame.pieces = "".join(frame.pieces), None
        if frame.role == "<<<":
            frame.documents.append(word)
        elif frame.role in ("<<", "<<-"):
            frame.pending.append((word, frame.role == "<<-", frame.documents))
        elif not frame.role:
            frame.words.append(word)
            frame.raws.append(self.script[frame.start : min(self.at, frame.start + _MAX_PATH)])
        frame.role = ""

    def end_command(self, operator: str) -> None:
        self.end_word()
        frame = self.frame
        if frame.words or frame.pending or frame.documents:
            self.found.append((frame.words, frame.documents, frame.directories))
        piped = operator in ("|", "|&", "&")
        led = _led(frame, literally=operator == "&&" and not self.outer and not frame.operator)
        self.steps += _STEPS_A_FRAME if led else 0
        if led and frame.operator == "||":  # perhaps never run
            led = _either(led, frame.directories)
        if frame.after_next and frame.words and not piped:
            leaves = base_name(frame.words[0]) in ("exit", "return")
            frame.previous = frame.directories
            frame.directories = frame.after_next if leaves else _either(frame.after_next, frame.directories)
            frame.after_next = None
        if operator == "||" and led:
            frame.after_next = led
        elif led and not piped:
            frame.previous, frame.directories = frame.directories, led
        if operator != "\n" or frame.words:  # a newline behind an operator changes nothing
            frame.operator = operator
        frame.begin()

    def read_documents(self, frame: _Frame) -> None:
        for delimiter, dedent, documents in frame.pending:
            body = self.document(delimiter, dedent)
            documents.append("\n".join(line.lstrip("\t") for line in body.split("\n")) if dedent else body)
        frame.pending = []

    def document(self, delimiter: str, dedent: bool) -> str:
        """The here-document that starts here; without its delimiter it goes to the end, as shells and Codex have it."""
        script, first = self.script, self.at
        at = first if script.startswith(delimiter, first) else script.find(delimiter, first)
        while at >= 0:
            line, after = at, at + len(delimiter)
            if script[after : after + 1] in ("", "\n"):
                while dedent and line > first and script[line - 1] == "\t":
                    line -= 1
                if line == first or script[line - 1] == "\n":
                    self.at = after + 1
                    return script[first:line]
            at = script.find(delimiter, at + 1)
        self.at = len(script)
        return script[first:]


def program(words: list[str]) -> int | None:
    """Where the name of the program stands, behind assignments, keywords and the likes of `sudo -u x`."""
    wrapped = False
    for at, word in enumerate(words):
        name = base_name(word)
        if name in PATCHERS or name in SHELLS or name in _MOVERS:
            return at
        if wrapped or name in _KEYWORDS or ("=" in word and word.partition("=")[0].isidentifier()):
            continue
        if name not in _WRAPPERS:
            return at
        wrapped = True
    return None


def base_name(word: str) -> str:
    return word[-_MAX_PATH:].rpartition("/")[2]


def _led(frame: _Frame, literally: bool) -> tuple | None:
    """Directories that a `cd` may lead to; None where the command is none, or leads where we cannot know.

    `literally`: it may be a `cd DIR && apply_patch` that Codex runs itself.
    """
    at = program(frame.words)
    if at is None or base_name(frame.words[at]) not in _MOVERS:
        return None
    words, raws = frame.words[at + 1 :], frame.raws[at + 1 :]
    literal = _as_codex(raws[0]) if literally and len(raws) == 1 else None
    targets: list = [literal] if literal else []
    targets += [_as_shell(word, raw) for word, raw in zip(words, raws) if not word.startswith("-")][:1]
    if not words:
        targets = [os.path.expanduser("~")]
    led: dict = {}
    for directory in frame.directories:
        for target in targets:
            path = directory if target is None else target if directory is None else os.path.join(directory, target)
            led[path if path is None or len(path) < _MAX_PATH else directory] = None
    if "-" in words:
        led.update(dict.fromkeys(frame.previous))
    return tuple(led)[:_MAX_DIRECTORIES] or None


def _either(some: tuple, others: tuple) -> tuple:
    return tuple(dict.fromkeys(some + others))[:_MAX_DIRECTORIES]


def _as_codex(raw: str) -> str | None:
    """What Codex itself takes a `cd` argument for: no escapes, no `~`, of "$x/y" its first literal part."""
    if raw[:1] == "'":
        literal = raw[1:-1] if raw.count("'") == 2 and raw.endswith("'") else None
    elif raw[:1] == '"':
        match = _FIRST_LITERAL(raw) if raw.endswith('"') else None
        literal = match and match[1]
    else:
        literal = raw if _BARE_WORD(raw) else None
    return literal and literal.replace("\t", "").replace("\r", "")


def _as_shell(word: str, raw: str) -> str | None:
    if raw[:1] == "~":
        return os.path.expanduser(word)
    if raw[:1] != "'" and ("$" in word or "`" in word):
        word = os.path.expandvars(word)
        return None if "$" in word or "`" in word else word
    return word or None
