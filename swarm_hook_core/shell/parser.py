"""Reads shell text into statements (`syntax`): POSIX sh with what bash and zsh add, in one pass and within limits.

What is no shell is skipped, and the script is marked `broken`: what stands around it still counts.
"""

from swarm_hook_core.shell.quoting import ENDS_WORD, NAME_LETTERS, Quoted, TooLong
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
    Redirect,
    Redirected,
    Script,
    Subshell,
    Test,
    While,
)

LONGEST = 256 * 1024  # characters of a script
MOST_WORDS = 6000
MOST_OPEN = 60  # compound commands within each other

_OPERATORS = ("<<<", "<<-", "<<", "<>", "<&", "&>>", "&>", ">>", ">|", ">&", "<", ">")
_STARTS = frozenset("if while until for select case { function [[ coproc".split())
_ENDS = frozenset("then do else elif fi done esac }".split())
_KEYWORDS = _STARTS | _ENDS | {"!", "time"}
_FIRST_LETTERS = frozenset(word[0] for word in _KEYWORDS)
_LONGEST_KEYWORD = 8
_AFTER_TEST = frozenset(["", *ENDS_WORD])
_NOTHING = frozenset()
_END_OF_BRANCH = frozenset(["elif", "else", "fi"])
_END_OF_ITEM = frozenset([";;", "esac"])


def script_of(text: str, known: dict) -> Script:
    """The Script of `text`. `known`: inner texts of substitutions already read; filled. Raises TooLong."""
    if text in known:
        return known[text]
    if len(text) > LONGEST:
        raise TooLong
    return Parser(text, known).script(_NOTHING)


class Parser(Quoted):
    """A position in shell text. Each method reads what it is named for, from that position on."""

    def __init__(self, text, known, at=0, depth=0, places=None):
        super().__init__(text, at, depth, places)
        self.known = known
        self.pending: list = []  # here-documents whose bodies start at the next newline
        self.open = 0  # compound commands around this place
        self.words = 0

    def script(self, stops) -> Script:
        statements = self.statements(stops)
        if stops and self.at >= len(self.text):
            self.broken = True
        return Script(statements, self.broken, self.at)

    def statements(self, stops) -> list:
        """The statements before one of `stops` (keywords, ``)``, ``;;``), at which it stays, or the end."""
        text, end, found = self.text, len(self.text), []
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
            elif keyword in _ENDS:
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
        node, rest = self.pipeline(), []
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
            if self.text[self.at : self.at + 1] in _AFTER_TEST - {"(", "<", ">"}:
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
        if keyword in _STARTS or text.startswith("(", self.at):
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
                if text[self.at : self.at + 1] in ("<", ">") and _is_descriptor(word):
                    self.redirection(redirects, word)
                else:
                    words.append(word)
            self.blanks()
        if not words and not redirects:
            self.broken = True
        return Command(words, redirects)

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
        return While(condition, self.body("do", "done"), until)

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
        loop = While([Arithmetic(condition.strip() or "1")], self.loop_body(), step=step)
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
        word, items = self.word(), []
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

    # Words

    def word(self) -> str:
        """The word that starts here, raw; empty at the end."""
        start = self.at
        if start >= len(self.text):
            self.broken = True
            return ""
        self.words += 1
        if self.words > MOST_WORDS:
            raise TooLong
        self.spend(6)
        self.at = self.word_end(start)
        return self.text[start : self.at]

    def words_before(self, ends: str) -> list:
        """The words up to one of `ends`, at which it stays; ``|`` between them means nothing."""
        found: list = []
        while True:
            self.blanks()
            character = self.text[self.at : self.at + 1]
            if not character or character in ends or character in "\n;&)":
                return found
            if character in "|(":
                self.at += 1
            elif character == "#":
                self.comment()
            else:
                found.append(self.word())

    def word_end(self, at: int) -> int:
        text, end, first, steps = self.text, len(self.text), at, 0
        while at < end:
            steps += 1
            character = text[at]
            if character in "\\'\"$`":
                at = self.construct(at)
            elif character not in ENDS_WORD:
                at += 1
                while text[at : at + 8].isalnum():
                    at += 8
            elif character in "<>" and at == first and text.startswith("(", at + 1):
                at = self.substitution(at + 2)
            elif character == "(" and at > first and (text[at - 1] in "@!+*?" or _assigns(text[first:at])):
                at = self.balanced(at + 1)
            else:
                break
        self.spend(steps)
        return min(at, end) if at > first else at + 1

    def substitution(self, at: int) -> int:
        inner = Parser(self.text, self.known, at, self.depth + 1, self.places)
        script = inner.script({")"})
        self.pending += inner.pending
        self.broken = self.broken or script.broken
        self.known[self.text[at : script.end]] = script
        return min(script.end + 1, len(self.text))

    def test_end(self, at: int) -> int:
        """Behind ``]]``."""
        text, end = self.text, len(self.text)
        while at < end:
            self.spend(1)
            if text[at] in "\\'\"$`":
                at = self.construct(at)
            elif text.startswith("]]", at) and text[at - 1] in " \t\n" and text[at + 2 : at + 3] in _AFTER_TEST:
                return at + 2
            else:
                at += 1
        return self.closed(-1)

    def keyword(self) -> str:
        """The keyword that stands here, or nothing."""
        text, at = self.text, self.at
        if text[at : at + 1] not in _FIRST_LETTERS:
            return ""
        end = at + 1
        while end - at <= _LONGEST_KEYWORD and text[end : end + 1] not in _AFTER_TEST:
            end += 1
        return text[at:end] if text[at:end] in _KEYWORDS else ""

    def is_word(self, word: str) -> bool:
        return self.text.startswith(word, self.at) and self.text[self.at + len(word) :][:1] in _AFTER_TEST

    def closing(self, mark: str) -> None:
        """`mark`, a keyword or ``)``, stands here; the script is broken where it does not."""
        self.lines()
        if self.text.startswith(mark, self.at) if mark == ")" else self.keyword() == mark:
            self.at += len(mark)
            self.blanks()
        else:
            self.broken = True

    # Blanks, comments, newlines

    def blanks(self) -> None:
        text = self.text
        while True:
            if text[self.at : self.at + 1] in (" ", "\t"):
                self.at += 1
            elif text.startswith("\\\n", self.at):
                self.at += 2
            else:
                return

    def comment(self) -> None:
        newline = self.text.find("\n", self.at)
        self.at = len(self.text) if newline < 0 else newline

    def lines(self) -> None:
        """Blanks, comments and newlines, and the here-documents that start behind those."""
        text = self.text
        while True:
            self.blanks()
            if text.startswith("#", self.at):
                self.comment()
            elif text.startswith("\n", self.at):
                self.at += 1
                if self.pending:
                    self.documents()
            else:
                return

    # Redirections

    def redirection(self, found: list, descriptor: str = "") -> bool:
        """Append the Redirect that stands here to `found`; whether there is one."""
        text, at = self.text, self.at
        if text[at : at + 1] not in ("<", ">", "&") or text.startswith(("<(", ">("), at):
            if descriptor or not (word := self.descriptor()):
                return False
            return self.redirection(found, word)
        operator = next((one for one in _OPERATORS if text.startswith(one, at)), None)
        if operator is None:
            return False
        self.at += len(operator)
        self.blanks()
        at = self.at
        is_word = at < len(text) and (text[at] not in ENDS_WORD or text.startswith(("<(", ">("), at))
        redirect = Redirect(descriptor, operator, self.word() if is_word else "")
        self.broken = self.broken or not is_word
        if operator in ("<<", "<<-"):
            self.pending.append(redirect)
        found.append(redirect)
        self.blanks()
        return True

    def descriptor(self) -> str:
        """The number that stands here right before a redirection, or nothing."""
        end = self.at
        while self.text[end : end + 1].isdecimal():
            end += 1
        word = self.text[self.at : end]
        if not word or self.text[end : end + 1] not in ("<", ">"):
            return ""
        self.at = end
        return word

    def documents(self) -> None:
        pending, self.pending = self.pending, []
        for redirect in pending:
            dedent = redirect.operator == "<<-"
            body = self.document(_unquoted(redirect.word), dedent)
            redirect.body = "\n".join(line.lstrip("\t") for line in body.split("\n")) if dedent else body

    def document(self, delimiter: str, dedent: bool) -> str:
        """The here-document that starts here; without its delimiter it goes to the end, as shells have it."""
        text, first = self.text, self.at
        line, needle = first, "\n" if dedent else "\n" + delimiter
        while True:
            self.spend(8)
            start = line
            while dedent and text.startswith("\t", start):
                start += 1
            after = start + len(delimiter)
            if text.startswith(delimiter, start) and text[after : after + 1] in ("", "\n"):
                self.at = min(after + 1, len(text))
                return text[first:line]
            line = text.find(needle, line) + 1
            if not line:
                self.at = len(text)
                return text[first:]


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


def _unquoted(raw: str) -> str:
    """A here-document's delimiter without its quotes."""
    if len(raw) > 1 and raw[0] in "'\"" and raw[-1] == raw[0] and raw[0] not in raw[1:-1]:
        return raw[1:-1]
    return raw.replace("\\", "").replace("'", "").replace('"', "")


def _is_descriptor(word: str) -> bool:
    return word.isdecimal() or (word[0] == "{" and word[-1] == "}" and _is_name(word[1:-1]))


def _is_name(text: str) -> bool:
    return text[:1] not in ("", *"0123456789") and all(letter in NAME_LETTERS for letter in text)


def _assigns(text: str) -> bool:
    """Whether `text` is ``name=`` or ``name+=``."""
    return text[-1:] == "=" and _is_name(text[: -2 if text[-2:-1] == "+" else -1])


def words_in(text: str, known: dict) -> list[str]:
    """The raw words of a condition or an array; its operators are words too."""
    parser, found = Parser(text, known), []
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
