"""What a word stands for: quotes, expansions, splitting, patterns.

`fields` gives the arguments that a raw word becomes, `value` the one text of an assignment or a redirection.
Both work on the word as it was written; the syntax tree is not needed for it.
"""

from swarm_hook_core.shell import globs
from swarm_hook_core.shell.braces import braces
from swarm_hook_core.shell.model import UNKNOWN, is_known
from swarm_hook_core.shell.parser import Parser, words_in
from swarm_hook_core.shell.quoting import NAME_LETTERS

LONGEST_VALUE = 128 * 1024  # characters; a longer value is unknown
_BLANK = " \t\n"
_SPECIAL = frozenset("\\'\"$`*?[{~<>(")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v", "e": "\x1b", "E": "\x1b"}


def fields(walk, scope, raw: str) -> list[str]:
    """The arguments that `raw` becomes: none, one, or many."""
    if not _SPECIAL.intersection(raw):
        return [raw]
    found: list[str] = []
    for one in braces(raw):
        found += _one(walk, scope, one)
    return found


def value(walk, scope, raw: str) -> str:
    """The text that `raw` becomes where nothing is split or matched against the disk."""
    if not _SPECIAL.intersection(raw):
        return raw
    out = _Out(splits=False)
    _Scan(walk, scope, _with_home(walk, scope, raw), out).run()
    return _bounded(literal_of(out.finish()))


def document(walk, scope, body: str) -> str:
    """The text of a here-document whose delimiter is not quoted."""
    out = _Out(splits=False)
    _Scan(walk, scope, body, out, in_document=True).run()
    return _bounded(literal_of(out.finish()))


def default(walk, scope, raw: str, quoted: bool):
    """What ``raw`` of ``${x:-raw}`` becomes: a text in double quotes, else a tuple of fields."""
    if quoted:
        out, inside = _Out(splits=False), _without_quotes(walk, raw)
        _Scan(walk, scope, inside, out).quoted(0, len(inside))
        return _bounded(literal_of(out.finish()))
    parts = words_in(raw, walk.known) if any(blank in raw for blank in _BLANK) else [raw]
    return tuple(text for part in parts for text in _one(walk, scope, part))


def _without_quotes(walk, raw: str) -> str:
    """`raw`, which stands in double quotes itself, without quotes of its own."""
    if '"' not in raw and "\\" not in raw:
        return raw
    ends, out, at = Parser(raw, walk.known), [], 0
    while at < len(raw):
        close = at + 1
        if raw[at] == "\\":
            close = at + 2
        elif raw[at] in "$`":
            close = max(close, ends.construct(at, quoted=True))
        if raw[at:close] == "\\}":
            out.append("}")
        elif raw[at] != '"':
            out.append(raw[at:close])
        at = close
    return "".join(out)


def pattern(walk, scope, raw: str) -> str:
    """The shell pattern that `raw` is: what was quoted is escaped."""
    out = _Out(splits=False)
    _Scan(walk, scope, raw, out).run()
    done = out.finish()
    return "".join(text if magic else globs.escaped(text) for text, magic in (done[0] if done else []))


def literal_of(done: list) -> str:
    return "".join(text for text, _magic in done[0]) if done else ""


def _bounded(text: str) -> str:
    return text if len(text) <= LONGEST_VALUE else UNKNOWN


def _one(walk, scope, raw: str) -> list[str]:
    out = _Out(splits=True, separators=walk.separators(scope))
    _Scan(walk, scope, _with_home(walk, scope, raw), out).run()
    found: list[str] = []
    signs = globs.SIGNS if "noglob" not in scope.options else ()
    for chunks in out.finish():
        text = "".join(piece for piece, _magic in chunks)
        if any(magic and any(sign in piece for sign in signs) for piece, magic in chunks) and is_known(text):
            wanted = "".join(piece if magic else globs.escaped(piece) for piece, magic in chunks)
            if globs.is_magic(wanted, True):
                found += walk.listed(scope, wanted) or [globs.literal(wanted)]
                continue
        found.append(_bounded(text))
    return found


def _with_home(walk, scope, raw: str) -> str:
    """`raw` with a leading ``~`` (or one behind ``=`` of an assignment) replaced by the folder, quoted."""
    if not raw.startswith("~"):
        name, mark, text = raw.partition("=")
        if mark and text.startswith("~") and name.isidentifier():
            return name + mark + _with_home(walk, scope, text)
        return raw
    user, slash, rest = raw[1:].partition("/")
    if user in ("+", "-"):
        home = scope.folder if user == "+" else scope.previous
    elif not user:
        home = walk.variable(scope, "HOME")
    elif all(letter in NAME_LETTERS or letter in "-." for letter in user):
        import os

        home = os.path.expanduser("~" + user)
    else:
        return raw
    if not isinstance(home, str) or home == raw:
        home = UNKNOWN
    return "'" + home.replace("'", "'\\''") + "'" + slash + rest


class _Out:
    """Fields being built: each a list of (text, whether pattern letters in it count)."""

    __slots__ = ("splits", "separators", "done", "open")

    def __init__(self, splits, separators=_BLANK):
        self.splits = splits
        self.separators = separators
        self.done: list = []
        self.open = None

    def put(self, text: str, magic: bool = False) -> None:
        if self.open is None:
            self.open = []
        if text:
            self.open.append((text, magic))

    def next(self) -> None:
        if self.open is not None:
            self.done.append(self.open)
            self.open = None

    def put_split(self, text: str) -> None:
        """An unquoted expansion."""
        if not self.splits:
            if text:
                self.put(text, True)
            return
        piece = ""
        for letter in text if any(one in text for one in self.separators) else ():
            if letter not in self.separators:
                piece += letter
                continue
            if piece:
                self.put(piece, True)
                piece = ""
            elif letter not in _BLANK and self.open is None:
                self.put("")
            self.next()
        else:
            if not any(one in text for one in self.separators):
                piece = text
        if piece:
            self.put(piece, True)

    def put_list(self, texts: list, quoted: bool) -> None:
        """What ``$@`` or ``${a[@]}`` stands for."""
        for place, text in enumerate(texts):
            if place:
                self.next() if self.splits else self.put(" ")
            if quoted:
                self.put(text)
            else:
                self.put_split(text)

    def finish(self) -> list:
        self.next()
        return self.done


class _Scan:
    def __init__(self, walk, scope, raw, out, in_document=False):
        self.walk = walk
        self.scope = scope
        self.raw = raw
        self.out = out
        self.in_document = in_document
        self.ends = Parser(raw, walk.known)
        self.whole = "zsh" in scope.options and "shwordsplit" not in scope.options
        self.vanished = False  # the last double quotes held a list of nothing

    def run(self) -> None:
        if self.in_document:
            self.quoted(0, len(self.raw))
            return
        raw, out, at, end = self.raw, self.out, 0, len(self.raw)
        while at < end:
            character = raw[at]
            if character == "\\":
                if raw[at + 1 : at + 2] != "\n":
                    out.put(raw[at + 1 : at + 2])
                at += 2
            elif character == "'":
                close = self.ends.single(at + 1)
                out.put(raw[at + 1 : close - 1])
                at = close
            elif character == '"':
                close = self.ends.double(at + 1)
                self.vanished = False
                self.quoted(at + 1, close - 1 if raw[close - 1] == '"' and close - 1 > at else close)
                if not self.vanished:  # `"$@"` of nothing is no field, `""` is one
                    out.put("")
                at = close
            elif character in "$`":
                at = self.expansion(at, quoted=False)
            elif character in "<>" and raw.startswith("(", at + 1):
                close = self.ends.substitution(at + 2)
                out.put(self.walk.process(self.scope, raw[at + 2 : close - 1], writes=character == ">"))
                at = close
            else:
                first = at
                while at < end and raw[at] not in "\\'\"$`<>":
                    at += 1
                at += at == first
                out.put(raw[first:at], True)

    def quoted(self, at: int, end: int) -> None:
        """What stands in double quotes, or in a here-document."""
        raw, out = self.raw, self.out
        while at < end:
            place = min(self.ends.next_of("\\$`", at), end)
            if place > at:
                out.put(raw[at:place])
            at = place
            if at >= end:
                return
            if raw[at] == "\\":
                letter = raw[at + 1 : at + 2]
                if letter in ("$", "`", "\\") or (letter == '"' and not self.in_document):
                    out.put(letter)
                elif letter != "\n":
                    out.put("\\" + letter)
                at += 2
            else:
                at = self.expansion(at, quoted=True)

    def expansion(self, at: int, quoted: bool) -> int:
        """Put what stands for the ``$`` or backquote at `at`; the place behind it."""
        raw, walk, scope = self.raw, self.walk, self.scope
        if raw[at] == "`":
            close = self.ends.tick(at + 1)
            inner = raw[at + 1 : close - 1]
            for letter in ("\\", "`", "$", *(['"'] if quoted else [])):
                inner = inner.replace("\\" + letter, "\0" if letter == "\\" else letter).replace("\0", "\\")
            self.put(walk.substituted(scope, inner), quoted)
            return close
        following = raw[at + 1 : at + 2]
        if following == "'" and not quoted:
            close = self.ends.ansi(at + 2)
            self.out.put(ansi(raw[at + 2 : close - 1]))
            return close
        if following == '"' and not quoted:
            return at + 1
        if following == "(":
            close = self.ends.construct(at)
            if raw.startswith("((", at + 1) and raw.endswith("))", at, close) and self.ends.arithmetic(at + 3) == close:
                self.put(walk.computed(scope, raw[at + 3 : close - 2]), quoted)
            else:
                self.put(walk.substituted(scope, raw[at + 2 : close - 1]), quoted)
            return close
        if following == "[" and (close := raw.find("]", at)) > 0:
            self.put(walk.computed(scope, raw[at + 2 : close]), quoted)
            return close + 1
        if following == "{":
            close = self.ends.braced(at + 2, quoted)
            from swarm_hook_core.shell.parameters import expanded

            inner = raw[at + 2 : close - 1]
            found = expanded(walk, scope, inner.removeprefix("="), quoted)
            if isinstance(found, tuple):  # fields already
                self.out.put_list(found, True)
            elif quoted and isinstance(found, list) and (inner.startswith("*") or "[*]" in inner):
                self.put(" ".join(found), quoted)
            else:
                self.put(found, quoted, whole=self.whole and not inner.startswith("="))
            return close
        if following in _PARAMETERS:
            found = walk.parameter(scope, following)
            self.put(" ".join(found) if quoted and following == "*" else found, quoted, self.whole)
            return at + 2
        close = at + 1
        while close < len(raw) and raw[close] in NAME_LETTERS:
            close += 1
        if close == at + 1:
            self.out.put("$")
            return close
        found = walk.parameter(scope, raw[at + 1 : close])
        self.put(" ".join(found) if quoted and isinstance(found, list) else found, quoted, self.whole)
        return close

    def put(self, found, quoted: bool, whole: bool = False) -> None:
        """`found`: a text, or a list for what ``$@`` stands for. `whole`: it is not split where it is not quoted."""
        if whole and not quoted and not isinstance(found, list):
            if found:
                self.out.put(found)
        elif isinstance(found, list):
            self.out.put_list([text for text in found if text] if whole and not quoted else found, quoted or whole)
            self.vanished = quoted and not found
        elif quoted:
            self.out.put(found)
        else:
            self.out.put_split(found)


_PARAMETERS = frozenset("@*#?-$!0123456789")


def ansi(text: str) -> str:
    """What ``$'text'`` stands for."""
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
        digits, base, most = ("x", 16, 2) if letter == "x" else ("u", 16, 4) if letter == "u" else ("U", 16, 8)
        if letter in "01234567":
            at, base, most = at - 1, 8, 3
        elif letter not in "xuU":
            out.append(letter if letter in "\\'\"?" else "\\" + letter)
            continue
        close = at
        while close < end and close - at < most and text[close] in "0123456789abcdefABCDEF"[: 8 if base == 8 else 22]:
            close += 1
        number = int(text[at:close], base) if close > at else 0
        at = close
        if base == 8 or letter == "x":
            number &= 0xFF
            bytewise = bytewise or number > 0x7F
            out.append(chr(number if number < 0x80 else 0xDC00 + number) if number else "")
        elif 0 < number < 0x110000:
            out.append(chr(number))
    return _decoded("".join(out)) if bytewise else "".join(out)


def _decoded(text: str) -> str:
    """`text` with the bytes that stand in it as surrogates read as UTF-8."""
    try:
        return text.encode("utf-8", "surrogateescape").decode("utf-8", "surrogateescape")
    except UnicodeError:
        return text
