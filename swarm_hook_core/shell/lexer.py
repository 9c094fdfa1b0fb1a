"""Reads the text between words: blanks, comments, keywords, redirections and here-documents."""

from swarm_hook_core.shell.syntax import Redirect, Word
from swarm_hook_core.shell.word_reader import ENDS_WORD, Allowance, WordReader, is_name

AFTER_WORD = frozenset(["", *ENDS_WORD])
STARTS = frozenset("if while until for select case { function [[ coproc".split())  # of compound commands
ENDS = frozenset("then do else elif fi done esac }".split())
_KEYWORDS = STARTS | ENDS | {"!", "time"}
_FIRST_LETTERS = frozenset(word[0] for word in _KEYWORDS)
_LONGEST_KEYWORD = 8
LONGEST_DESCRIPTOR = 20  # digits
_REDIRECTIONS = ("<<<", "<<-", "<<", "<>", "<&", "&>>", "&>", ">>", ">|", ">&", "<", ">")


class Lexer(WordReader):
    """A reader of words and of the text between them."""

    def __init__(
        self, text: str, at: int = 0, around: "Lexer | None" = None, allowance: "Allowance | None" = None
    ) -> None:
        super().__init__(text, at, around, allowance)
        self.pending: list[Redirect] = []  # here-documents; their bodies start at the next newline

    def loose_words(self, end: str) -> "list[Word]":
        """The words up to `end`, over lines; operators between them are words, too."""
        text = self.text
        found: list[Word] = []
        while True:
            self.spend(2)
            self.lines(with_comments=end != "]]")
            at = self.at
            if at >= len(text) or (text.startswith(end, at) and (end != "]]" or text[at + 2 : at + 3] in AFTER_WORD)):
                return found
            if text[at] in ";&|<>()" and not text.startswith(("<(", ">("), at):
                self.at += 1 + text.startswith(("&&", "||"), at)
                found.append(Word(text[at : self.at], [text[at : self.at]]))
            else:
                found.append(self.word())

    def listed_words(self) -> "list[Word]":
        """The words up to a ``)`` or the end of the command, without reading past it; ``|`` between them is skipped."""
        found: list[Word] = []
        while True:
            self.spend(2)
            self.blanks()
            character = self.text[self.at : self.at + 1]
            if not character or character in "\n;&)":
                return found
            if character in "|(":
                self.at += 1
            elif character == "#":
                self.comment()
            else:
                found.append(self.word())

    def keyword(self) -> str:
        """The keyword that stands here, or nothing."""
        text, at = self.text, self.at
        if text[at : at + 1] not in _FIRST_LETTERS:
            return ""
        end = at + 1
        while end - at <= _LONGEST_KEYWORD and text[end : end + 1] not in AFTER_WORD:
            end += 1
        if text[at:end] in _KEYWORDS:
            return text[at:end]
        return ""

    def is_word(self, word: str) -> bool:
        return (
            self.text.startswith(word, self.at)
            and self.text[self.at + len(word) : self.at + len(word) + 1] in AFTER_WORD
        )

    def required(self, mark: str) -> None:
        """`mark`, a keyword or ``)``, stands here; the script is broken where it does not."""
        self.lines()
        if self.keyword() == mark or (mark == ")" and self.text.startswith(mark, self.at)):
            self.at += len(mark)
            self.blanks()
        else:
            self.broken = True

    def blanks(self) -> None:
        text, first = self.text, self.at
        while True:
            if text[self.at : self.at + 1] in (" ", "\t"):
                self.at += 1
            elif text.startswith("\\\n", self.at):
                self.at += 2
            else:
                if self.at > first + 1:
                    self.spend(self.at - first)
                return

    def comment(self) -> None:
        newline = self.text.find("\n", self.at)
        self.at = newline
        if newline < 0:
            self.at = len(self.text)

    def lines(self, with_comments: bool = True) -> None:
        """Blanks, comments and newlines, and the here-documents that start behind those."""
        text = self.text
        while True:
            self.spend(2)
            self.blanks()
            if with_comments and text.startswith("#", self.at):
                self.comment()
            elif text.startswith("\n", self.at):
                self.at += 1
                if self.pending:
                    self.documents()
            else:
                return

    # Redirections

    def redirection(self, found: "list[Redirect]", descriptor: str = "") -> bool:
        """Append the Redirect that stands here to `found`. Return False if there is no redirection."""
        text, at = self.text, self.at
        if text[at : at + 1] not in ("<", ">", "&") or text.startswith(("<(", ">("), at):
            if descriptor or not (word := self.descriptor()):
                return False
            return self.redirection(found, word)
        operator = next((one for one in _REDIRECTIONS if text.startswith(one, at)), None)
        if operator is None:
            return False
        self.at += len(operator)
        self.blanks()
        at = self.at
        is_word = at < len(text) and (text[at] not in ENDS_WORD or text.startswith(("<(", ">("), at))
        redirect = Redirect(descriptor, operator, self.word() if is_word else Word("", []), None)
        self.broken = self.broken or not is_word
        if operator in ("<<", "<<-"):
            self.pending.append(redirect)
        found.append(redirect)
        self.blanks()
        return True

    def descriptor(self) -> str:
        """The number that stands here right before a redirection, or nothing."""
        end = self.at
        while self.text[end : end + 1].isdecimal() and end - self.at < LONGEST_DESCRIPTOR:
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
            raw = redirect.word.raw
            if len(raw) > 1 and raw[0] in "'\"" and raw[-1] == raw[0] and raw[0] not in raw[1:-1]:
                unquoted = raw[1:-1]
            else:
                unquoted = raw.replace("\\", "").replace("'", "").replace('"', "")
            body = self.document(unquoted, dedent)
            redirect.body = body
            if dedent:
                redirect.body = "\n".join(line.lstrip("\t") for line in body.split("\n"))

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


def is_descriptor(word: str) -> bool:
    return word.isdecimal() or (word[0] == "{" and word[-1] == "}" and is_name(word[1:-1]))
