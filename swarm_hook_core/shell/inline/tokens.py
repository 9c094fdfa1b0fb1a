"""Code of JavaScript, Ruby, Perl, PHP or Lua, cut into strings, names and operators; comments are gone.

No grammar of theirs is kept: what is wanted is which literal texts stand where, so quoting, here-documents,
interpolation and regular expressions are read with care, and all else is one character at a time.
"""

import re
import time

from swarm_hook_core.shell.model import UNKNOWN

TEXT, NAME, NUMBER, SIGN = "text", "name", "number", "sign"
MOST = 6000  # tokens that are read: 20 ms
LONGEST_HOLE = 2000  # characters of an expression within a string
HOLE_SECONDS = 0.005

_SIMPLE = {"n": "\n", "t": "\t", "r": "\r", "0": "", "\n": ""}
_SIGNS = ("===", "!==", "=>", "==", "!=", "<=", ">=", "||", "&&", "..", "??", "=~", "->")
_CLOSING = {"(": ")", "[": "]", "{": "}", "<": ">"}
_CODED = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|[xu]\{([0-9a-fA-F]{1,5})\})")
_PLAIN = re.compile(r"[\w \t\n.,:;=+*&?-]+")  # characters that neither end a string nor mean more in one
_NUMBER = re.compile(r"\d[\w.]*")
_BEFORE_REGEX = frozenset(
    "return typeof case in of do else void delete and or not if unless while until when split grep map join puts print"
    " then elsif x await yield new throw".split()
)


class Token:
    """The `kind` of token and its `value`: the name, the sign, or for a text its parts: str, or a list of Tokens.

    `shell`: a text in backquotes. `many`: a text that is a list of words (``qw``, ``%w``).
    """

    __slots__ = ("kind", "value", "shell", "many")

    def __init__(self, kind, value, shell=False, many=False):
        self.kind = kind
        self.value = value
        self.shell = shell
        self.many = many


class Language:
    """How a language is written, and which of its calls do what (see ``languages``).

    comments      (start, end) pairs; an end of a newline is kept
    raw, cooked   quotes of strings without and with escapes
    interpolated  quotes of those strings that expressions may stand in, and `holes`: how these are written
    names         a pattern of names, dots and the like included; `joins`: the operators that put texts together
    calls         name -> what calling it does
    shell_quote   the quote of shell text; `own_quotes`: a pattern of quotes with delimiters of one's own
    heredoc       a pattern that opens a here-document
    has_regex     whether ``/x/`` is a regular expression
    bare_calls    whether calls need no parentheses; `newline_ends`: whether a statement ends with its line
    """

    def __init__(self, name, comments, raw, cooked, interpolated, holes, names, joins, calls, **more):
        self.name = name
        self.comments = comments
        self.raw = raw
        self.cooked = cooked
        self.interpolated = interpolated
        self.holes = holes
        self.names = names
        self.joins = joins
        self.calls = calls
        self.shell_quote = more.get("shell_quote", "")
        self.has_regex = more.get("has_regex", False)
        self.bare_calls = more.get("bare_calls", False)
        self.newline_ends = more.get("newline_ends", False)
        self.heredoc = more.get("heredoc")
        self.own_quotes = more.get("own_quotes")

    def prepare(self):
        """The language itself, with its patterns compiled: only of those that are met, since that takes its time."""
        for name in ("names", "heredoc", "own_quotes"):
            pattern = getattr(self, name)
            setattr(self, name, re.compile(pattern) if isinstance(pattern, str) else pattern)
        return self


class TooLong(Exception):
    """There is more code than time."""


def tokens(code: str, language, until: float, depth: int = 0) -> list:
    """The Tokens of `code`. Raises TooLong past `MOST` of them, or when this thread has worked up to time `until`."""
    found: list = []
    skips: list = []  # (start, end) of bodies of here-documents
    at = 0
    while at < len(code):
        if not len(found) & 63 and (time.thread_time() > until or len(found) > MOST):
            raise TooLong
        letter = code[at]
        if skips and at >= skips[0][0]:
            at = max(at, skips.pop(0)[1])
            found.append(Token(SIGN, "\n"))
            continue
        if letter in " \t\r":
            while at < len(code) and code[at] in " \t\r":
                at += 1
            continue
        if letter == "\n":
            found.append(Token(SIGN, "\n"))
            at += 1
            continue
        past = _comment(code, at, language, found)
        if past:
            at = past
            continue
        if language.heredoc is not None and letter == "<":
            opening = language.heredoc.match(code, at)
            if opening and _may_start(found, language):
                at = _heredoc(code, opening, skips, found, language, depth)
                continue
        if letter in language.raw or letter in language.cooked or letter == language.shell_quote:
            at = _string(code, at, letter, language, found, depth)
            continue
        past = _special(code, at, language, found, depth)
        if past:
            at = past
            continue
        name = language.names.match(code, at)
        if name:
            found.append(Token(NAME, name.group()))
            at = name.end()
            continue
        number = _NUMBER.match(code, at)
        if number:
            found.append(Token(NUMBER, number.group()))
            at = number.end()
            continue
        sign = next((two for two in _SIGNS if code.startswith(two, at)), letter)
        found.append(Token(SIGN, sign))
        at += len(sign)
    return found


def _comment(code, at, language, found) -> int:
    for start, end in language.comments:
        if code.startswith(start, at):
            if start == "#" and language.name == "perl" and at and code[at - 1] in "$@":
                return 0
            past = code.find(end, at + len(start))
            if past < 0:
                return len(code)
            return past if end == "\n" else past + len(end)
    return 0


def _may_start(found, language) -> bool:
    """Whether a value may start here: what came before was no value."""
    last = next((token for token in reversed(found) if token.value != "\n"), None)
    if last is None or last is not found[-1]:
        return True
    if last.kind == SIGN:
        return last.value not in (")", "]", "}")
    if last.kind != NAME:
        return False
    return last.value in _BEFORE_REGEX or (language.bare_calls and last.value in language.calls)


def _heredoc(code, opening, skips, found, language, depth) -> int:
    word = opening.group("word")
    start = code.find("\n", opening.end())
    start = max(start, skips[-1][1] - 1) if skips and start >= 0 else start
    if start < 0:
        found.append(Token(TEXT, [UNKNOWN]))
        return opening.end()
    ending = re.compile(rf"^[ \t]*{re.escape(word)}\b", re.MULTILINE).search(code, start + 1)
    end = ending.start() if ending else len(code)
    found.append(Token(TEXT, [UNKNOWN]))
    skips.append((start, ending.end() if ending else end))
    return opening.end()


def _string(code, at, quote, language, found, depth) -> int:
    """Read the string that opens at `at`."""
    shell = quote == language.shell_quote
    if quote in language.raw:
        end, text = at + 1, []
        while end < len(code) and code[end] != quote:
            plain = _PLAIN.match(code, end)
            if plain:
                text.append(plain.group())
                end = plain.end()
                continue
            if code[end] == "\\" and end + 1 < len(code) and code[end + 1] in ("\\", quote):
                end += 1
            text.append(code[end])
            end += 1
        found.append(Token(TEXT, ["".join(text)], shell))
        return end + 1
    parts, past = _cooked(code, at + 1, quote, language, depth)
    found.append(Token(TEXT, parts, shell))
    return past


def _cooked(code, at, close, language, depth, opening=""):
    """Parts of a string with escapes up to `close`, and the place behind it."""
    interpolates = close in language.interpolated or bool(opening)
    parts: list = []
    text: list = []
    nested = 0
    while at < len(code):
        plain = _PLAIN.match(code, at)
        if plain:
            text.append(plain.group())
            at = plain.end()
            continue
        letter = code[at]
        if letter == "\\" and at + 1 < len(code):
            after = code[at + 1]
            if after in "xu":
                value = _CODED.match(code, at)
                if value:
                    text.append(chr(int(value.group(1) or value.group(2) or value.group(3), 16) % 0x10000))
                    at = value.end()
                    continue
            text.append(_SIMPLE.get(after, after))
            at += 2
            continue
        if opening and letter == opening:
            nested += 1
        elif letter == close:
            if not nested:
                at += 1
                break
            nested -= 1
        if interpolates:
            hole = _hole(code, at, language, depth)
            if hole is not None:
                inner, at = hole
                parts += ["".join(text), inner]
                text = []
                continue
        text.append(letter)
        at += 1
    return [*parts, "".join(text)], at


def _hole(code, at, language, depth):
    """An expression within a string at `at`: (its Tokens, the place behind it), or None."""
    for start in language.holes:
        if start == "$name":
            if code[at] not in "$@":
                continue
            plain = re.compile(r"[$@](?:\{\^?(\w+)\}|(\w+(?:::\w+)*))(?P<more>\[|\{|->)?").match(code, at)
            if not plain or (code[at] == "@" and language.name == "php"):
                continue
            more = plain.group("more")
            if more and (more != "{" or language.name == "perl"):
                return [Token(SIGN, "?")], plain.end("more")  # an element of something: not known
            end = plain.end() - len(plain.group("more") or "")
            return [Token(NAME, code[at] + (plain.group(1) or plain.group(2)))], end
        if code.startswith(start, at):
            end, level = at + len(start), 1
            last = min(len(code), end + LONGEST_HOLE)
            while end < last and level:
                level += {"{": 1, "}": -1}.get(code[end], 0)
                end += 1
            begin = at + len(start) - (1 if start == "{$" else 0)
            inner = code[begin : end - 1]
            if depth > 3:
                return [Token(SIGN, "?")], end
            return tokens(inner, language, time.thread_time() + HOLE_SECONDS, depth + 1), end
    return None


def _special(code, at, language, found, depth) -> int:
    """Regular expressions and quotes with delimiters of one's own; 0 where there is none at `at`."""
    letter = code[at]
    if language.has_regex and letter == "/" and _may_start(found, language):
        end, in_class = at + 1, False
        while end < len(code) and code[end] != "\n":
            if code[end] == "\\":
                end += 1
            elif code[end] == "[":
                in_class = True
            elif code[end] == "]":
                in_class = False
            elif code[end] == "/" and not in_class:
                found.append(Token(TEXT, [UNKNOWN]))
                return end + 1
            end += 1
        return 0
    if language.name == "lua" and code.startswith("[[", at):
        end = code.find("]]", at)
        end = len(code) if end < 0 else end
        found.append(Token(TEXT, [code[at + 2 : end].removeprefix("\n")]))
        return end + 2
    opening = language.own_quotes.match(code, at) if language.own_quotes and letter in "qmstyr%" else None
    if opening is None or (found and found[-1].value in ("->", "{") and language.name == "perl"):
        return 0
    if letter == "%" and not _may_start(found, language):
        return 0
    kind, delimiter = opening.group("kind"), opening.group("open").strip()
    close = _CLOSING.get(delimiter, delimiter)
    if kind in ("q", "qw", "%w", "%i", "%q"):
        text, past = _delimited(code, opening.end(), delimiter, close)
        found.append(Token(TEXT, [text], many=kind in ("qw", "%w", "%i")))
        return past
    if kind in ("s", "tr", "y"):
        _, past = _delimited(code, opening.end(), delimiter, close)
        if close != delimiter:
            while past < len(code) and code[past].isspace():
                past += 1
            past += 1
        _, past = _delimited(code, past, delimiter, close)
        found.append(Token(TEXT, [UNKNOWN]))
        return past
    if kind in ("m", "qr", "%r"):
        _, past = _delimited(code, opening.end(), delimiter, close)
        found.append(Token(TEXT, [UNKNOWN]))
        return past
    parts, past = _cooked(code, opening.end(), close, language, depth, delimiter if close != delimiter else "\0")
    found.append(Token(TEXT, parts, shell=kind in ("qx", "%x")))
    return past


def _delimited(code, at, delimiter, close):
    """The text up to `close`, and the place behind it; delimiters that are pairs nest."""
    start, nested = at, 0
    while at < len(code):
        if code[at] == "\\":
            at += 2
            continue
        if close != delimiter and code[at] == delimiter:
            nested += 1
        elif code[at] == close:
            if not nested:
                return code[start:at], at + 1
            nested -= 1
        at += 1
    return code[start:], len(code)
