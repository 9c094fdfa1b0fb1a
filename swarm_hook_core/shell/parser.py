"""Reads shell text into statements (`syntax`): POSIX sh with what bash and zsh add, in one pass and within limits.

What is no shell is skipped, and the script is marked `broken`: what stands around it still counts.
"""

from swarm_hook_core.shell.lexer import AFTER_WORD, ENDS, STARTS, Lexer, is_descriptor
from swarm_hook_core.shell.quoting import TooLong
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
    Pipeline,
    Redirected,
    Script,
    Subshell,
    Test,
    While,
)

LONGEST = 256 * 1024  # characters of a script
MOST_OPEN = 60  # compound commands within each other

_NOTHING: frozenset = frozenset()
_END_OF_BRANCH = frozenset(["elif", "else", "fi"])
_END_OF_ITEM = frozenset([";;", "esac"])


def script_of(text: str, known: dict) -> Script:
    """The Script of `text`. `known`: inner texts of substitutions already read; filled. Raises TooLong."""
    if text in known:
        return known[text]
    if len(text) > LONGEST:
        raise TooLong
    return Parser(text, known).script(_NOTHING)


class Parser(Lexer):
    """Reads statements. `known`: inner texts of substitutions -> their Scripts."""

    def __init__(self, text, known, at=0, depth=0, places=None):
        super().__init__(text, at, depth, places)
        self.known = known
        self.open = 0  # compound commands around this place

    def script(self, stops) -> Script:
        statements = self.statements(stops)
        if stops and self.at >= len(self.text):
            self.broken = True
        return Script(statements, self.broken, self.at)

    def statements(self, stops) -> list:
        """The statements before one of `stops` (keywords, ``)``, ``;;``), at which it stays, or the end."""
        text, end = self.text, len(self.text)
        found: list = []
        while True:
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

    def block(self, stops) -> list:
        """The statements before one of `stops`, of which there has to be one."""
        found = self.statements(stops)
        self.broken = self.broken or not found
        return found

    def statement(self):
        node = self.chain()
        self.blanks()
        text, at = self.text, self.at
        if text.startswith("&", at) and not text.startswith("&>", at):
            self.at += 1
            return Background(node)
        if text.startswith(";", at) and not text.startswith((";;", ";&"), at):
            self.at += 1
        return node

    def chain(self):
        node = self.pipeline()
        rest: list = []
        while True:
            self.blanks()
            operator = self.text[self.at : self.at + 2]
            if operator not in ("&&", "||"):
                return Chain(node, rest) if rest else node
            self.at += 2
            self.lines()
            rest.append((operator, self.pipeline()))

    def pipeline(self):
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
            self.at += 2 if self.text.startswith("|&", self.at) else 1
            self.lines()
            parts.append(self.command())
        node = parts[0] if len(parts) == 1 else Pipeline(parts)
        return Negated(node) if negated else node

    def command(self):
        """A command, simple or compound, and the blanks behind it."""
        text, keyword = self.text, self.keyword()
        if keyword in STARTS or text.startswith("(", self.at):
            self.open += 1
            if self.open > MOST_OPEN:
                raise TooLong
            node = self.parenthesis() if not keyword else _COMPOUNDS[keyword](self)
            self.open -= 1
            redirects: list = []
            while self.redirection(redirects):
                pass
            return Redirected(node, redirects) if redirects else node
        words: list = []
        redirects = []
        while self.at < len(text):
            character = text[self.at]
            if character in "<>&" and self.redirection(redirects):
                continue
            if character == "#":
                self.comment()
            elif character == "(" and len(words) == 1 and not redirects:
                return self.function_called(words[0])
            elif character in "\n;&|)":
                break
            elif character == "(":
                self.broken = True
                self.at += 1
                break
            else:
                word = self.word()
                if text[self.at : self.at + 1] in ("<", ">") and is_descriptor(word):
                    self.redirection(redirects, word)
                else:
                    words.append(word)
            self.blanks()
        if not words and not redirects:
            self.broken = True
        return Command(words, redirects)

    def substitution(self, at: int) -> int:
        inner = Parser(self.text, self.known, at, self.depth + 1, self.places)
        script = inner.script({")"})
        self.pending += inner.pending
        self.broken = self.broken or script.broken
        self.known[self.text[at : script.end]] = script
        return min(script.end + 1, len(self.text))

    # Compound commands

    def parenthesis(self):
        if self.text.startswith("((", self.at) and (end := self.arithmetic(self.at + 2)) >= 0:
            node = Arithmetic(self.text[self.at + 2 : end - 2])
            self.at = end
            return node
        self.at += 1
        body = self.block({")"})
        self.closing(")")
        return Subshell(body)

    def group(self):
        return Group(self.body("{", "}"))

    def test(self):
        start = self.at + 2
        self.at = self.test_end(start)
        return Test(self.text[start : self.at - 2])

    def branches(self):
        self.at += len("if")
        clauses, otherwise = [], None
        while True:
            condition = self.block({"then"})
            self.closing("then")
            clauses.append((condition, self.block(_END_OF_BRANCH)))
            if self.keyword() != "elif":
                break
            self.at += len("elif")
        if self.keyword() == "else":
            self.at += len("else")
            otherwise = self.block({"fi"})
        self.closing("fi")
        return If(clauses, otherwise)

    def while_loop(self):
        until = self.keyword() == "until"
        self.at += len("while")
        condition = self.block({"do"})
        return While(condition, self.body("do", "done"), until, "")

    def for_loop(self):
        self.at += len(self.keyword())
        self.blanks()
        if self.text.startswith("((", self.at) and (end := self.arithmetic(self.at + 2)) >= 0:
            return self.counting(end)
        name, words = self.word(), ['"$@"']
        self.lines()
        if self.is_word("in"):
            self.at += 2
            words = self.words_before(";\n")
        self.blanks()
        if self.text.startswith(";", self.at):
            self.at += 1
        return For(name, words, self.loop_body())

    def counting(self, end: int):
        """``for ((a; b; c))``."""
        start, condition, step = (self.text[self.at + 2 : end - 2].split(";") + ["", "", ""])[:3]
        self.at = end
        self.blanks()
        if self.text.startswith(";", self.at):
            self.at += 1
        loop = While([Arithmetic(condition.strip() or "1")], self.loop_body(), False, step)
        return Group([Arithmetic(start), loop])

    def loop_body(self) -> list:
        self.lines()
        return self.body("{", "}") if self.keyword() == "{" else self.body("do", "done")

    def body(self, opening: str, end: str) -> list:
        self.closing(opening)
        statements = self.block({end})
        self.closing(end)
        return statements

    def cases(self):
        self.at += len("case")
        self.blanks()
        word = self.word()
        items: list = []
        self.lines()
        if self.is_word("in"):
            self.at += 2
        else:
            self.broken = True
        while True:
            self.lines()
            if self.keyword() == "esac" or self.at >= len(self.text):
                self.closing("esac")
                return Case(word, items)
            if self.text.startswith("(", self.at):
                self.at += 1
            patterns = self.words_before(")")
            self.closing(")")
            body = self.statements(_END_OF_ITEM)
            mark = next((mark for mark in (";;&", ";&", ";;") if self.text.startswith(mark, self.at)), "")
            self.at += len(mark)
            items.append((patterns, body, mark in (";;&", ";&")))

    def function(self):
        self.at += len("function")
        self.blanks()
        name = self.word()
        self.blanks()
        return self.function_called(name)

    def function_called(self, name: str):
        """What stands behind the name of a function: ``()``, mostly, and a command."""
        if self.text.startswith("(", self.at):
            self.at += 1
            self.blanks()
            self.closing(")")
        self.lines()
        return Function(name, self.command())

    def coprocess(self):
        self.at += len("coproc")
        self.blanks()
        name_end = self.word_end(self.at) if self.at < len(self.text) else self.at
        start, self.at = self.at, name_end
        self.blanks()
        if self.text[self.at : self.at + 1] not in ("{", "("):
            self.at = start
        return self.command()


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


def words_in(text: str, known: dict) -> list[str]:
    """The raw words of a condition or an array; its operators are words too."""
    parser = Parser(text, known)
    found: list[str] = []
    while True:
        parser.lines()
        at = parser.at
        if at >= len(text):
            return found
        if text[at] in ";&|<>()" and not text.startswith(("<(", ">("), at):
            parser.at += 2 if text.startswith(("&&", "||"), at) else 1
            found.append(text[at : parser.at])
        else:
            found.append(parser.word())
