"""Reads shell text into words, and what stands between them."""

from __future__ import annotations

import time

from swarm_hook_core.shell.syntax import (
    Array,
    Calculation,
    Double,
    Literal,
    Node,
    Parameter,
    Redirect,
    Script,
    Substitution,
    Word,
)

# Reads the words of shell text into the parts that they are made of, each character once.
#
# No regular expressions: importing ``re`` costs more than most commands take to be read.

DEEPEST = 24  # substitutions within substitutions
LONGEST_ARITHMETIC = 4000  # characters between (( and ))
MOST_STEPS = 40_000  # of reading, a quarter of a microsecond each: one for a character outside quotes, 7 for a word
STEPS_A_LOOK = 400  # at the clock

NAME_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")
ENDS_WORD = frozenset(" \t\n;&|<>()")
_STARTS_PART = frozenset("\\'\"$`")
_QUOTES_OR_LINE = frozenset("\"'\n")
_SPECIAL_PARAMETERS = frozenset("@*#?-$!")
_HAS_LENGTH = NAME_LETTERS | {"@", "*"}
_OPERATORS = (":-", ":=", ":+", ":?", "##", "%%", "//", "/#", "/%", "^^", ",,", *"-=+?#%/^,:@")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v", "e": "\x1b", "E": "\x1b"}
_NO_WORD = Word("", [])


class TooLong(Exception):
    """The text is not read to its end: too deep, or too much of it."""


class Allowance:
    """The steps of reading that are left, until this thread's processor time is `end` (None: no limit)."""

    __slots__ = ("left", "look", "end")

    def __init__(self, end: float | None = None) -> None:
        self.left = MOST_STEPS
        self.look = MOST_STEPS - STEPS_A_LOOK
        self.end = end

    def spend(self, steps: int) -> None:
        """Raises TooLong where there is nothing left, now and whenever it is asked again."""
        self.left -= steps
        if self.left < self.look:
            self.look = self.left - STEPS_A_LOOK
            if self.end is not None and time.thread_time() > self.end:
                self.left = -1
            if self.left < 0:
                self.look = MOST_STEPS
                raise TooLong


class WordReader:
    """A position (`at`) in shell text. Each method reads the construct it is named for, and goes behind it.

    A construct that is never closed ends with the text, and sets `broken`.
    """

    def __init__(
        self, text: str, at: int = 0, around: WordReader | None = None, allowance: Allowance | None = None
    ) -> None:
        self.text = text
        self.at = at
        if around:
            self.depth: int = around.depth
        else:
            self.depth = -1
        self.broken = False
        if around:
            self.allowance: Allowance = around.allowance
        else:
            self.allowance = allowance or Allowance()
        self.spend = self.allowance.spend
        # character -> (searched from, found at)
        self.places: dict[str, tuple[int, int]] = {}
        if around and around.text is text:
            self.places = around.places
        self.deepen()

    def deepen(self) -> None:
        self.depth += 1
        if self.depth > DEEPEST:
            raise TooLong

    def next_of(self, characters: str, at: int) -> int:
        """Return the place of the first of `characters` from `at` on, or the end of the text."""
        places, text = self.places, self.text
        first = len(text)
        for character in characters:
            place = places.get(character)
            if place is None or not place[0] <= at <= place[1]:
                found = text.find(character, at)
                place = places[character] = (at, len(text) if found < 0 else found)
            if place[1] < first:
                first = place[1]
        return first

    def close(self, mark: str) -> None:
        """`mark` has to stand here."""
        if self.text.startswith(mark, self.at):
            self.at += len(mark)
        else:
            self.broken = True

    # Words and their parts

    def word(self) -> Word:
        """The word that starts here; empty at the end."""
        start = self.at
        if start >= len(self.text):
            self.broken = True
            return Word("", [])
        self.spend(6)
        parts = self.unquoted(ENDS_WORD)
        if self.at == start:
            self.at += 1
            parts = [self.text[start]]
        return Word(self.text[start : self.at], parts)

    def unquoted(self, ends: frozenset[str]) -> list[str | Node]:
        """Return the parts of the unquoted text here, up to one of the characters `ends`."""
        text, end, first = self.text, len(self.text), self.at
        parts: list[str | Node] = []
        at = plain = first  # from `plain` on there is nothing but text
        deep = steps = 0  # parentheses of ``@(a|b)`` that are open
        while at < end:
            steps += 1
            if steps > STEPS_A_LOOK:
                self.spend(steps)
                steps = 0
            character = text[at]
            if character in _STARTS_PART:
                self.at = at
                part: str | Node | None = self.part()
            elif deep:
                deep += {"(": 1, ")": -1}.get(character, 0)
                at += 1
                continue
            elif character == "(" and at > first and text[at - 1] in "@!+*?":
                deep, at = 1, at + 1
                continue
            elif character == "(" and text[at - 1] == "=" and _assigns(text[first:at]):
                self.at = at
                part = self.array()
            elif character in "<>" and at == first and text.startswith("(", at + 1):
                self.at = at + 2
                part = self.substitution(character)
            elif character in ends:
                break
            else:
                at += 1
                while text[at : at + 8].isalnum():
                    at += 8
                continue
            if at > plain:
                parts.append(text[plain:at])
            if part is not None:
                parts.append(part)
            at = plain = self.at
        self.spend(steps)
        at = min(at, end)
        if at > plain:
            parts.append(text[plain:at])
        self.at = at
        self.broken = self.broken or deep > 0
        return parts

    def quoted(self, ends: str) -> list[str | Node]:
        """Return the parts of the text here as in double quotes, up to one of `ends`; all of it if `ends` is empty."""
        text, end = self.text, len(self.text)
        stops = ends + ("\\$`" if not ends or '"' in ends else '\\$`"')
        escapes = "$`\\" + (ends + '"' if ends else "")
        parts: list[str | Node] = []
        while True:
            place = self.next_of(stops, self.at)
            if place > self.at:
                parts.append(text[self.at : place])
            self.at = place
            if place >= end or text[place] in ends:
                self.broken = self.broken or bool(ends) and place >= end
                return parts
            if text[place] == '"':  # those within "${x:-"y"}" mean nothing
                parts += self.double().parts
            elif (part := self.part(escapes)) is not None:
                parts.append(part)

    def part(self, escapes: str = "") -> str | Node | None:
        r"""Return the part that starts here with one of ``\ ' " $ ` ``. `escapes`: letters that a backslash escapes
        here.
        """
        text, at = self.text, self.at
        character, following = text[at], text[at + 1 : at + 2]
        self.spend(12)
        if character == "\\":
            self.at = min(at + 2, len(text))
            if following == "\n":
                return None
            if not escapes:
                return Literal(following)
            if following and following in escapes:
                return following
            return "\\" + following
        if character == "'":
            close = text.find("'", at + 1)
            self.at = close + 1 or len(text)
            self.broken = self.broken or close < 0
            return Literal(text[at + 1 : close if close >= 0 else None])
        if character == '"':
            return self.double()
        if character == "`":
            self.at = at + 1
            return self.backquoted(bool(escapes))
        self.at = at + 2
        if following == "(":
            return self.parenthesised()
        if following == "{":
            self.deepen()
            part = self.parameter(bool(escapes))
            self.depth -= 1
            return part
        if following == "[" and (close := text.find("]", at)) > 0 and not _QUOTES_OR_LINE.intersection(text[at:close]):
            word = self.inside("]")
            self.close("]")
            return Calculation(word)
        if following == "'" and not escapes:
            return Literal(ansi(self.escaped("'")))
        self.at = at + 1
        if following == '"' and not escapes:
            return None
        name = self.name()
        if name:
            return Parameter("$", name, None, "", _NO_WORD, None)
        return "$"

    def double(self) -> Double:
        self.at += 1
        parts = self.quoted('"')
        self.close('"')
        return Double(parts)

    def escaped(self, mark: str) -> str:
        """Return the text up to `mark`; a backslash escapes it."""
        first = at = self.at
        while (at := self.next_of(mark + "\\", at)) < len(self.text):
            self.spend(4)
            if self.text[at] == mark:
                self.at = at + 1
                return self.text[first:at]
            at += 2
        self.broken, self.at = True, len(self.text)
        return self.text[first:]

    def backquoted(self, quoted: bool) -> Node:
        text = self.escaped("`")
        for letter in ("\\", "`", "$", *(['"'] if quoted else [])):
            text = text.replace("\\" + letter, "\0" if letter == "\\" else letter)
        return Substitution("$", self.script_in(text.replace("\0", "\\")))

    def parenthesised(self) -> Node:
        """Read ``$((`` or ``$(``, depending on the end."""
        if self.text.startswith("(", self.at):
            start, self.at = self.at, self.at + 1
            word = self.arithmetic()
            if word is not None:
                return Calculation(word)
            self.at = start
        return self.substitution("$")

    def arithmetic(self) -> Word | None:
        """Return the word before ``))``; None, with nothing read, for a subshell in a subshell."""
        text, start, broken, depth = self.text, self.at, self.broken, self.depth
        parts: list[str | Node] = []
        deep, limit = 0, min(len(text), start + LONGEST_ARITHMETIC)
        self.deepen()
        while True:
            parts += self.quoted("()'")
            self.spend(10)
            if self.at >= limit:
                break
            first, mark = self.at, text[self.at]
            if mark != "'":
                self.at = first + 1
            else:
                self.at = text.find("'", first + 1) + 1 or len(text)
            deep += {"(": 1, ")": -1}.get(mark, 0)
            if deep < 0:
                if text.startswith("))", first):
                    self.at, self.depth = first + 2, depth
                    return Word(text[start:first], parts)
                break
            parts.append(text[first : self.at])
        self.at, self.broken, self.depth = start, broken, depth
        return None

    def name(self) -> str:
        """The name of the variable or parameter that stands here, or nothing."""
        text, start = self.text, self.at
        end = start
        if text[start : start + 1] in _SPECIAL_PARAMETERS or text[start : start + 1].isdecimal():
            end = start + 1
        else:
            while text[end : end + 1] in NAME_LETTERS:
                end += 1
        self.at = end
        return text[start:end]

    def parameter(self, quoted: bool) -> Node:
        """Read the rest of ``${``."""
        text, flag = self.text, self.text[self.at : self.at + 1]
        following = text[self.at + 1 : self.at + 2]
        if flag == "=" or (flag == "!" and following != "}") or (flag == "#" and following in _HAS_LENGTH):
            self.at += 1
        else:
            flag = ""
        start, name = self.at, self.name()
        while name[:1].isdecimal() and text[self.at : self.at + 1].isdecimal():
            name += text[self.at]
            self.at += 1
        index = None
        if name and name not in _SPECIAL_PARAMETERS and text.startswith("[", self.at):
            self.at += 1
            index = self.inside("]")
            self.close("]")
        operator = next((one for one in _OPERATORS if text.startswith(one, self.at)), "")
        self.at += len(operator)
        argument, other = _NO_WORD, None
        if operator and operator[-1] in "-=+?":
            argument = self.inside("}", quoted)
        elif operator[:1] in (":", "/"):
            leads = operator[0] == "/" and text.startswith("/", self.at)
            argument, other = self.halves(operator[0], leads)
        elif operator:
            argument = self.inside("}")
        elif not text.startswith("}", self.at):
            self.at, name = start, ""
            self.inside("}")
        self.close("}")
        return Parameter(flag, name, index, operator, argument, other)

    def inside(self, ends: str, quoted: bool = False) -> Word:
        """The word up to one of `ends`, blanks in it included."""
        start = self.at
        if quoted:
            parts = self.quoted(ends)
        else:
            parts = self.unquoted(frozenset(ends))
        return Word(self.text[start : self.at], parts)

    def halves(self, mark: str, leads: bool) -> tuple[Word, Word | None]:
        """Return the words before and after `mark`, up to ``}``. `leads`: the `mark` that stands here is a letter."""
        start = self.at
        self.at += leads
        first = self.inside(mark + "}")
        if leads:
            first = Word(self.text[start : self.at], [mark, *first.parts])
        if not self.text.startswith(mark, self.at):
            return first, None
        self.at += 1
        return first, self.inside("}")

    def array(self) -> Array:
        """The words in parentheses."""
        self.at += 1
        words = self.loose_words(")")
        self.close(")")
        return Array(words)

    def loose_words(self, end: str) -> list[Word]:
        """The words up to `end`, over lines; operators between them are words, too."""
        raise NotImplementedError

    def substitution(self, kind: str) -> Node:
        """Read the script of ``$(`` or ``<(``; the parser of commands does it."""
        raise NotImplementedError

    def script_in(self, text: str) -> Script:
        """Read the script `text` of a substitution; the parser of commands does it."""
        raise NotImplementedError


def is_name(text: str) -> bool:
    return text[:1] not in ("", *"0123456789") and all(letter in NAME_LETTERS for letter in text)


def _assigns(text: str) -> bool:
    """Return True if `text` is ``name=`` or ``name+=``."""
    return text[-1:] == "=" and is_name(text[: -2 if text[-2:-1] == "+" else -1])


def ansi(text: str) -> str:
    """Return the text of ``$'text'``."""
    if "\\" not in text:
        return text
    out, at, end, bytewise = [], 0, len(text), False
    while at < end:
        if text[at] != "\\" or at + 1 >= end:
            out.append(text[at])
            at += 1
            continue
        letter = text[at + 1]
        at += 2
        if letter in _ESCAPES:
            out.append(_ESCAPES[letter])
            continue
        base, most = 16, {"x": 2, "u": 4}.get(letter, 8)
        if letter in "01234567":
            at, base, most = at - 1, 8, 3
        elif letter not in "xuU":
            if letter not in "\\'\"?":
                out.append("\\")
            out.append(letter)
            continue
        close = at
        while close < end and close - at < most and text[close] in "0123456789abcdefABCDEF"[: 8 if base == 8 else 22]:
            close += 1
        number = 0
        if close > at:
            number = int(text[at:close], base)
        at = close
        if base == 8 or letter == "x":
            number &= 0xFF
            bytewise = bytewise or number > 0x7F
            if number >= 0x80:
                number += 0xDC00
            out.append(chr(number) * (number > 0))
        elif 0 < number < 0x110000:
            out.append(chr(number))
    if bytewise:
        return _decoded("".join(out))
    return "".join(out)


def _decoded(text: str) -> str:
    """`text` with the bytes that stand in it as surrogates read as UTF-8."""
    try:
        return text.encode("utf-8", "surrogateescape").decode("utf-8", "surrogateescape")
    except UnicodeError:  # not UTF-8: left as it is
        return text


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

    def __init__(self, text: str, at: int = 0, around: Lexer | None = None, allowance: Allowance | None = None) -> None:
        super().__init__(text, at, around, allowance)
        self.pending: list[Redirect] = []  # here-documents; their bodies start at the next newline

    def loose_words(self, end: str) -> list[Word]:
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

    def listed_words(self) -> list[Word]:
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

    def redirection(self, found: list[Redirect], descriptor: str = "") -> bool:
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
