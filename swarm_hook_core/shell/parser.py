"""Reads shell text into statements (`syntax`): POSIX sh plus bash and zsh extensions, in one pass and within limits.

Text that is not shell is skipped, and the script is marked `broken`; the text around it still counts.
"""

from __future__ import annotations

from typing import Any

from swarm_hook_core.shell.lexer import AFTER_WORD, ENDS, ENDS_WORD, STARTS, Allowance, Lexer, TooLong, is_descriptor
from swarm_hook_core.shell.syntax import (
    Arithmetic,
    Background,
    Case,
    Chain,
    Command,
    For,
    Function,
    Group,
    If,
    Negated,
    Node,
    Pipeline,
    Redirected,
    Script,
    Subshell,
    Substitution,
    Test,
    While,
    Word,
)

LONGEST = 256 * 1024  # characters of a script
MOST_OPEN = 60  # compound commands within each other

_NOTHING: frozenset[str] = frozenset()
_PARENTHESIS = frozenset([")"])
_END_OF_BRANCH = frozenset(["elif", "else", "fi"])
_END_OF_ITEM = frozenset([";;", "esac"])


def script_of(text: str, end: float | None = None) -> Script:
    """The Script of `text`, as far as it can be read by `end`, a moment of this thread's processor time.

    Where that is not all, only its first statements, and it is `cut`.
    """
    if len(text) > LONGEST:
        return Script([], False, True, text)
    return Parser(text, allowance=Allowance(end)).script(_NOTHING)


def word_of(text: str) -> Word:
    """`text` as one word, blanks in it included. Raises TooLong."""
    return Parser(text).inside("")


def document_of(text: str) -> list[str | Node]:
    """Return the parts of a here-document with an unquoted delimiter. Raises TooLong."""
    return Parser(text).quoted("")


class Parser(Lexer):
    """Reads statements."""

    def __init__(
        self, text: str, at: int = 0, around: Parser | None = None, allowance: Allowance | None = None
    ) -> None:
        super().__init__(text, at, around, allowance)
        self.open = 0  # compound commands around this place

    def script(self, stops: frozenset[str]) -> Script:
        start, cut = self.at, False
        statements: list[Any] = []
        try:
            self.statements(stops, statements)
        except (TooLong, RecursionError):
            if stops or self.depth:  # the text around it cannot be read, either
                raise
            cut = True
        if stops and self.at >= len(self.text):
            self.broken = True
        return Script(statements, self.broken, cut, self.text[start : self.at])

    def statements(self, stops: frozenset[str] | set[str], found: list[Any] | None = None) -> list[Any]:
        """Return the statements before one of `stops` (keywords, ``)``, ``;;``) or the end, without reading past it.

        Each is appended to `found` as soon as it has been read.
        """
        text, end = self.text, len(self.text)
        if found is None:
            found = []
        while True:
            self.spend(1)
            self.lines()
            if self.at >= end:
                return found
            mark = text[self.at]
            if mark == ")" or (mark == ";" and text.startswith((";;", ";&"), self.at)):
                if (")" if mark == ")" else ";;") in stops:
                    return found
                self.broken = True
                self.at += 1
            elif mark in ";&|" and not text.startswith("&>", self.at):
                self.broken = self.broken or text.startswith(("&&", "||"), self.at)
                self.at += 1
            elif (keyword := self.keyword()) in stops:
                return found
            elif keyword in ENDS:
                self.broken = True
                self.at += len(keyword)
            else:
                found.append(self.statement())

    def block(self, stops: frozenset[str] | set[str]) -> list[Any]:
        """Return the statements before one of `stops`; at least one is required."""
        found = self.statements(stops)
        self.broken = self.broken or not found
        return found

    def statement(self) -> Node:
        node = self.chain()
        self.blanks()
        text, at = self.text, self.at
        if text.startswith("&", at) and not text.startswith("&>", at):
            self.at += 1
            return Background(node)
        if text.startswith(";", at) and not text.startswith((";;", ";&"), at):
            self.at += 1
        return node

    def chain(self) -> Node:
        node = self.pipeline()
        rest: list[Any] = []
        while True:
            self.blanks()
            operator = self.text[self.at : self.at + 2]
            if operator not in ("&&", "||"):
                if rest:
                    return Chain(node, rest)
                return node
            self.at += 2
            self.lines()
            rest.append((operator, self.pipeline()))

    def pipeline(self) -> Node:
        negated = False
        while (mark := self.keyword()) in ("!", "time"):
            self.at += len(mark)
            self.blanks()
            if mark == "!":
                negated = not negated
            elif self.text.startswith("-p ", self.at):
                self.at += 2
                self.blanks()
            if self.text[self.at : self.at + 1] in AFTER_WORD - {"(", "<", ">"}:
                return Command([], [])  # `time` alone
        parts = [self.command()]
        while self.text.startswith("|", self.at) and not self.text.startswith("||", self.at):
            self.at += 1 + self.text.startswith("|&", self.at)
            self.lines()
            parts.append(self.command())
        if len(parts) == 1:
            node = parts[0]
        else:
            node = Pipeline(parts)
        if negated:
            return Negated(node)
        return node

    def command(self) -> Node:
        """A command, simple or compound, and the blanks behind it."""
        text, keyword = self.text, self.keyword()
        if keyword in STARTS or text.startswith("(", self.at):
            self.open += 1
            if self.open > MOST_OPEN:
                raise TooLong
            if not keyword:
                node = self.parenthesis()
            else:
                node = _COMPOUNDS[keyword](self)
            self.open -= 1
            redirects: list[Any] = []
            while self.redirection(redirects):
                pass
            if redirects:
                return Redirected(node, redirects)
            return node
        words: list[Any] = []
        redirects = []
        while self.at < len(text):
            character = text[self.at]
            if character in "<>&" and self.redirection(redirects):
                continue
            if character == "#":
                self.comment()
            elif character == "(" and len(words) == 1 and not redirects:
                return self.function_called(words[0].raw)
            elif character in "\n;&|)":
                break
            elif character == "(":
                self.broken = True
                self.at += 1
                break
            else:
                word = self.word()
                if text[self.at : self.at + 1] in ("<", ">") and is_descriptor(word.raw):
                    self.redirection(redirects, word.raw)
                else:
                    words.append(word)
            self.blanks()
        if not words and not redirects:
            self.broken = True
        return Command(words, redirects)

    def substitution(self, kind: str) -> Substitution:
        inner = Parser(self.text, self.at, self)
        script = inner.script(_PARENTHESIS)
        self.pending += inner.pending
        self.broken = self.broken or script.broken
        self.at = min(inner.at + 1, len(self.text))
        return Substitution(kind, _printing(script) if kind == "$" else script)

    def script_in(self, text: str) -> Script:
        return _printing(Parser(text, 0, self).script(_NOTHING))

    # Compound commands

    def parenthesis(self) -> Node:
        self.at += 1
        if self.text.startswith("(", self.at):
            self.at += 1
            if (word := self.arithmetic()) is not None:
                return Arithmetic(word)
            self.at -= 1
        body = self.block({")"})
        self.required(")")
        return Subshell(body)

    def group(self) -> Node:
        return Group(self.body("{", "}"))

    def test(self) -> Node:
        self.at += 2
        words = self.loose_words("]]")
        self.close("]]")
        return Test(words)

    def branches(self) -> Node:
        self.at += len("if")
        clauses, otherwise = [], None
        while True:
            condition = self.block({"then"})
            self.required("then")
            clauses.append((condition, self.block(_END_OF_BRANCH)))
            if self.keyword() != "elif":
                break
            self.at += len("elif")
        if self.keyword() == "else":
            self.at += len("else")
            otherwise = self.block({"fi"})
        self.required("fi")
        return If(clauses, otherwise)

    def while_loop(self) -> Node:
        until = self.keyword() == "until"
        self.at += len("while")
        condition = self.block({"do"})
        return While(condition, self.body("do", "done"), until, None)

    def for_loop(self) -> Node:
        self.at += len(self.keyword())
        self.blanks()
        if self.text.startswith("((", self.at):
            start, self.at = self.at, self.at + 2
            if (counted := self.arithmetic()) is not None:
                return self.counting(counted.raw)
            self.at = start
        name, words = self.word().raw, [word_of('"$@"')]
        self.lines()
        if self.is_word("in"):
            self.at += 2
            words = self.listed_words()
        self.blanks()
        if self.text.startswith(";", self.at):
            self.at += 1
        return For(name, words, self.loop_body())

    def counting(self, raw: str) -> Group:
        """``for ((a; b; c))``."""
        start, condition, step = map(word_of, ([*raw.split(";"), "", ""])[:3])
        self.blanks()
        if self.text.startswith(";", self.at):
            self.at += 1
        if not condition.raw.strip():
            condition = word_of("1")
        return Group([Arithmetic(start), While([Arithmetic(condition)], self.loop_body(), False, step)])

    def loop_body(self) -> list[Any]:
        self.lines()
        if self.keyword() == "{":
            return self.body("{", "}")
        return self.body("do", "done")

    def body(self, opening: str, end: str) -> list[Any]:
        self.required(opening)
        statements = self.block({end})
        self.required(end)
        return statements

    def cases(self) -> Node:
        self.at += len("case")
        self.blanks()
        word = self.word()
        items: list[Any] = []
        self.lines()
        if self.is_word("in"):
            self.at += 2
        else:
            self.broken = True
        while True:
            self.lines()
            if self.keyword() == "esac" or self.at >= len(self.text):
                self.required("esac")
                return Case(word, items)
            if self.text.startswith("(", self.at):
                self.at += 1
            patterns = self.listed_words()
            self.required(")")
            body = self.statements(_END_OF_ITEM)
            mark = next((mark for mark in (";;&", ";&", ";;") if self.text.startswith(mark, self.at)), "")
            self.at += len(mark)
            items.append((patterns, body, mark in (";;&", ";&")))

    def function(self) -> Any:
        self.at += len("function")
        self.blanks()
        name = self.word().raw
        self.blanks()
        return self.function_called(name)

    def function_called(self, name: str) -> Node:
        """Read the function behind its name: mostly ``()``, and a command."""
        if self.text.startswith("(", self.at):
            self.at += 1
            self.blanks()
            self.required(")")
        self.lines()
        return Function(name, self.command())

    def coprocess(self) -> Node:
        self.at += len("coproc")
        self.blanks()
        start = self.at
        self.unquoted(ENDS_WORD)
        self.blanks()
        if self.text[self.at : self.at + 1] not in ("{", "("):
            self.at = start
        return self.command()


def _printing(script: Script) -> Script:
    """`script` as a substitution has it: ``$(< file)`` prints the file."""
    only = None
    if len(script.statements) == 1:
        only = script.statements[0]
    if isinstance(only, Command) and not only.words and [one.operator for one in only.redirects] == ["<"]:
        only.words.append(Word("cat", ["cat"]))
    return script


_COMPOUNDS = {
    "{": Parser.group,
    "[[": Parser.test,
    "if": Parser.branches,
    "while": Parser.while_loop,
    "until": Parser.while_loop,
    "for": Parser.for_loop,
    "select": Parser.for_loop,
    "case": Parser.cases,
    "function": Parser.function,
    "coproc": Parser.coprocess,
}
