"""Cuts JavaScript, Ruby, Perl, PHP or Lua into texts, names, numbers and signs, without comments.

There is no grammar: only literal texts and their positions are needed. A `Language` has a pattern for each kind of
token. The code is untrusted, so no pattern can match the same characters in two ways.
"""

from __future__ import annotations

import re
import time
from typing import Any

from swarm_hook_core.shell.inline.effects import TooLong
from swarm_hook_core.shell.model import UNKNOWN

TEXT, NAME, NUMBER, SIGN = "text", "name", "number", "sign"
MOST = 6000  # tokens that are read: 20 ms
MOST_DOCUMENTS = 10  # here-documents that are looked for

_SIMPLE = {"n": "\n", "t": "\t", "r": "\r", "0": "", "\n": ""}
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|[xu]\{([0-9a-fA-F]{1,5})\}|([\s\S]))")
_BEFORE_VALUE = frozenset(
    "return typeof case in of do else void delete and or not if unless while until when split grep map join puts print"
    " then elsif x await yield new throw".split()
)
NEVER = "(?!)"  # a pattern of nothing
REGEX = r"/(?![/*])(?:[^/\\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+/"
_BRACES = r"\{(?:[^{}]|\{[^{}]*\})*\}"


def quoted(quote: str, inside: str = "") -> str:
    """Return a pattern of a text between two of `quote`; `inside` begins an expression in braces."""
    plain = rf"{quote}(?:[^{quote}\\]|\\[\s\S])*{quote}"
    if not inside:
        return plain
    return rf"{quote}(?:[^{quote}\\{inside[-1]}]|\\[\s\S]|{inside}{_BRACES}|{inside}(?!\{{))*{quote}|{plain}"


def delimited(kinds: str, delimiters: str, is_double: bool = False) -> str:
    """A pattern of quotes with delimiters of one's own: one of `kinds`, then a bracket or one of `delimiters`.

    `is_double`: there are two texts, as in ``s/a/b/``.
    """
    found = []
    for opening, closing in ("()", "[]", "{}", "<>"):
        nested = rf"\{opening}[^\{opening}\{closing}]*\{closing}"
        pair = rf"\{opening}(?:[^\{opening}\{closing}\\]|\\[\s\S]|{nested})*\{closing}"
        found.append(rf"\s*{pair}\s*{pair}" if is_double else rf"\s*{pair}")
    name = f"delimiter_{''.join(filter(str.isalnum, kinds))}"
    inside = rf"(?:(?!(?P={name}))[^\\]|\\[\s\S])*(?P={name})"
    found.append(f"(?P<{name}>[{re.escape(delimiters)}]){inside}{inside * is_double}")
    return rf"(?:{kinds})(?:{'|'.join(found)})"


class Language:
    """The syntax of a language, and its calls that write (see ``languages``).

    calls        name -> action of a call
    names        a pattern of names, dots and the like included; `joins`: the operator that concatenates texts
    patterns     kind of token -> its pattern: ``raw`` texts without escapes, ``plain`` ones with escapes,
                 ``cooked`` ones that may contain expressions, ``shell`` texts, ``words``: lists of them;
                 ``pattern``: regular expressions
    own          the same, for tokens that begin like an operator, so that they only stand at the start of a value
    hole         a pattern of expressions in texts: its group is their ``code``, or a ``name`` (``braced``: in braces)
    document     a pattern of the opening of a here-document; its last group is the word that ends it
    bare_calls   True if calls need no parentheses; `newline_ends`: True if a statement ends with its line
    """

    def __init__(
        self,
        name: str,
        calls: dict[str, Any],
        names: str,
        joins: str,
        comments: str,
        patterns: dict[str, Any],
        **more: Any,
    ) -> None:
        self.name = name
        self.calls = calls
        self.joins = joins
        self.bare_calls = more.get("bare_calls", False)
        self.newline_ends = more.get("newline_ends", False)
        self._patterns = {"skip": rf"[ \t\r]+|{comments}", "newline": r"\n", **patterns, "name": names}
        self._own = more.get("own", {})
        self._hole = more.get("hole", NEVER)
        self._document = more.get("document", NEVER)

    def prepare(self) -> Language:
        """The language itself, with its patterns compiled: only of those that are met, since that takes its time."""
        if not hasattr(self, "any"):
            signs = r"===|!==|=>|==|!=|<=|>=|\|\||&&|\.\.|\?\?|=~|->|[\s\S]"
            self.any = _compiled({**self._patterns, "number": r"\d[\w.]*", "sign": signs})
            self.own = None
            if self._own:
                self.own = _compiled(self._own)
            self.hole = re.compile(self._hole)
            self.document = re.compile(self._document)
        return self


def _compiled(kinds: dict[str, Any]) -> Any:
    return re.compile("|".join(f"(?P<{kind}>{pattern})" for kind, pattern in kinds.items()))


class Token:
    """The `kind` of token and its `value`: the name, the sign, or for a text its parts: str, or a list of Tokens.

    `shell`: a text in backquotes. `many`: a text that is a list of words (``qw``, ``%w``).
    """

    __slots__ = ("kind", "value", "shell", "many")

    def __init__(self, kind: str, value: list[str] | str, shell: bool = False, many: bool = False) -> None:
        self.kind = kind
        self.value = value
        self.shell = shell
        self.many = many


def tokens(code: str, language: Language, until: float) -> list[Any]:
    """The Tokens of `code`. Raises TooLong past `MOST` of them, or when this thread has worked up to time `until`."""
    found: list[Any] = []
    code, at = _without_documents(code, language), 0
    while at < len(code):
        if not len(found) & 63 and (time.thread_time() > until or len(found) > MOST):
            raise TooLong
        match = None
        if language.own and _may_start(found, language):
            match = language.own.match(code, at)
        match = match or language.any.match(code, at)
        kind, text, at = match.lastgroup, match.group(), match.end()
        if kind in ("name", "number", "sign"):
            found.append(Token({"name": NAME, "number": NUMBER, "sign": SIGN}[kind], text))
        elif kind == "newline":
            found.append(Token(SIGN, "\n"))
        elif kind == "pattern":
            found.append(Token(TEXT, [UNKNOWN]))
        elif kind != "skip":
            found.append(_text(kind, text, language, until))
    return found


def _text(kind: str, text: str, language: Language, until: float) -> Token:
    """The token of a literal `text`, quotes included."""
    start = next(place for place, letter in enumerate(text) if not letter.isalnum() and letter not in "% \n\t")
    if text.startswith("[["):  # of Lua
        return Token(TEXT, [text[2:].removesuffix("]]").removeprefix("\n")])
    quote, inside = text[start], text[start + 1 : -1]
    if kind in ("raw", "words"):
        plain = inside.replace("\\" + quote, quote).replace("\\\\", "\\")
        return Token(TEXT, [plain], many=kind == "words")
    parts: list[Any] = []
    at = 0
    for hole in language.hole.finditer(inside) if kind != "plain" else ():
        groups = hole.groupdict()
        name = groups.get("name") or groups.get("braced")
        parts.append(_ESCAPE.sub(_escaped, inside[at : hole.start()]))
        if name:
            parts.append([Token(NAME, hole.group()[0] + name)])
        else:
            parts.append(tokens(groups["code"], language, until) if groups.get("code") else [Token(SIGN, "?")])
        at = hole.end()
    return Token(TEXT, [*parts, _ESCAPE.sub(_escaped, inside[at:])], shell=kind == "shell")


def _escaped(match: re.Match[str]) -> str:
    code = match.group(1) or match.group(2) or match.group(3)
    if code:
        return chr(int(code, 16) % 0x10000)
    letter: str = match.group(4)
    return _SIMPLE.get(letter, letter)


def _may_start(found: list[Any], language: Language) -> bool:
    """Return True if a value may start here: the token before is no value."""
    if not found or found[-1].kind == SIGN:
        return not found or found[-1].value not in (")", "]", "}")
    last = found[-1]
    if last.kind != NAME:
        return False
    return last.value in _BEFORE_VALUE or (language.bare_calls and last.value in language.calls)


def _without_documents(code: str, language: Language) -> str:
    """Return `code` with an unknown text in place of each here-document."""
    at = 0
    for _ in range(MOST_DOCUMENTS):
        opening = language.document.search(code, at)
        if opening is None:
            return code
        at, line = opening.end(), code.find("\n", opening.end())
        ending = re.compile(rf"^[ \t]*{opening.groups()[-1]}\b", re.MULTILINE).search(code, line + 1)
        if line >= 0 and ending:
            code = f'{code[: opening.start()]}"{UNKNOWN}"{code[at : line + 1]}{code[ending.end() :]}'
            at = opening.start()
    raise TooLong
