"""What a word stands for: quotes, expansions, splitting, patterns.

`fields` gives the arguments that a raw word becomes, `value` the one text of an assignment or a redirection.
"""

from swarm_hook_core.shell import globs, parameters
from swarm_hook_core.shell.braces import braces
from swarm_hook_core.shell.fields import LONGEST_VALUE, Fields
from swarm_hook_core.shell.lexer import NAME_LETTERS
from swarm_hook_core.shell.model import UNKNOWN, is_known
from swarm_hook_core.shell.parser import Parser, words_in
from swarm_hook_core.shell.quoting import ansi

_BLANK = " \t\n"
_SPECIAL = frozenset("\\'\"$`*?[{~<>(")
_PARAMETERS = frozenset("@*#?-$!0123456789")


def fields(walk, scope, raw: str) -> list[str]:
    """The arguments that `raw` becomes: none, one, or many."""
    if not _SPECIAL.intersection(raw):
        return [raw]
    words = Words(walk, scope)
    return [text for one in braces(raw) for text in words.fields(one)]


def value(walk, scope, raw: str) -> str:
    """The text that `raw` becomes where nothing is split or matched against the disk."""
    return Words(walk, scope).value(raw)


def document(walk, scope, body: str) -> str:
    """The text of a here-document whose delimiter is not quoted."""
    out = Fields()
    _Expansion(walk, scope, body, out).quoted(0, len(body), in_document=True)
    return out.text()


def pattern(walk, scope, raw: str) -> str:
    """The shell pattern that `raw` is: what was quoted is escaped."""
    return Words(walk, scope).pattern(raw)


class Words:
    """Raw words seen from `scope`."""

    __slots__ = ("walk", "scope")

    def __init__(self, walk, scope):
        self.walk = walk
        self.scope = scope

    def fields(self, raw: str) -> list[str]:
        """As the function, but for braces."""
        walk, scope = self.walk, self.scope
        out = Fields(scope.separators())
        _Expansion(walk, scope, self.with_home(raw), out).run()
        found: list[str] = []
        signs = globs.SIGNS if "noglob" not in scope.options else ()
        for chunks in out.finish():
            text = "".join(piece for piece, _magic in chunks)
            if any(magic and any(sign in piece for sign in signs) for piece, magic in chunks) and is_known(text):
                wanted = _pattern(chunks)
                if globs.is_magic(wanted, True):
                    found += walk.listed(scope, wanted) or [globs.literal(wanted)]
                    continue
            found.append(text if len(text) <= LONGEST_VALUE else UNKNOWN)
        return found

    def value(self, raw: str) -> str:
        if not _SPECIAL.intersection(raw):
            return raw
        out = Fields()
        _Expansion(self.walk, self.scope, self.with_home(raw), out).run()
        return out.text()

    def pattern(self, raw: str) -> str:
        out = Fields()
        _Expansion(self.walk, self.scope, raw, out).run()
        done = out.finish()
        return _pattern(done[0]) if done else ""

    def default(self, raw: str, quoted: bool):
        """What ``raw`` of ``${x:-raw}`` becomes: a text in double quotes, else a tuple of fields."""
        if quoted:
            out, inside = Fields(), self.without_quotes(raw)
            _Expansion(self.walk, self.scope, inside, out).quoted(0, len(inside))
            return out.text()
        parts = words_in(raw, self.walk.known) if any(blank in raw for blank in _BLANK) else [raw]
        return tuple(text for part in parts for text in self.fields(part))

    def without_quotes(self, raw: str) -> str:
        """`raw`, which stands in double quotes itself, without quotes of its own."""
        if '"' not in raw and "\\" not in raw:
            return raw
        ends, out, at = Parser(raw, self.walk.known), [], 0
        while at < len(raw):
            close = at + 2 if raw[at] == "\\" else at + 1
            if raw[at] in "$`":
                close = max(close, ends.construct(at, quoted=True))
            out.append("}" if raw[at:close] == "\\}" else raw[at:close] if raw[at] != '"' else "")
            at = close
        return "".join(out)

    def with_home(self, raw: str) -> str:
        """`raw` with a leading ``~`` (or one behind ``=`` of an assignment) replaced by the folder, quoted."""
        if not raw.startswith("~"):
            name, mark, text = raw.partition("=")
            if mark and text.startswith("~") and name.isidentifier():
                return name + mark + self.with_home(text)
            return raw
        user, slash, rest = raw[1:].partition("/")
        if user in ("+", "-"):
            home = self.scope.folder if user == "+" else self.scope.previous
        elif not user:
            home = self.scope.variable("HOME")
        elif all(letter in NAME_LETTERS or letter in "-." for letter in user):
            import os

            home = os.path.expanduser("~" + user)
        else:
            return raw
        if not isinstance(home, str) or home == raw:
            home = UNKNOWN
        return "'" + home.replace("'", "'\\''") + "'" + slash + rest


def _pattern(chunks) -> str:
    return "".join(text if magic else globs.escaped(text) for text, magic in chunks)


class _Expansion:
    """A raw word that is put into `out`, part by part."""

    def __init__(self, walk, scope, raw, out):
        self.walk = walk
        self.scope = scope
        self.raw = raw
        self.out = out
        self.ends = Parser(raw, walk.known)
        self.whole = "zsh" in scope.options and "shwordsplit" not in scope.options  # variables are not split
        self.vanished = False  # the last double quotes held a list of nothing

    def run(self) -> None:
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

    def quoted(self, at: int, end: int, in_document: bool = False) -> None:
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
                if letter in ("$", "`", "\\") or (letter == '"' and not in_document):
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
            self.braced(raw[at + 2 : close - 1], quoted)
            return close
        close = at + 1
        while close < len(raw) and raw[close] in NAME_LETTERS and following not in _PARAMETERS:
            close += 1
        close += following in _PARAMETERS and bool(following)
        if close == at + 1:
            self.out.put("$")
            return close
        found = scope.parameter(raw[at + 1 : close])
        joined = quoted and isinstance(found, list) and following != "@"
        self.put(" ".join(found) if joined else found, quoted, self.whole)
        return close

    def braced(self, inner: str, quoted: bool) -> None:
        """Put what ``${inner}`` stands for."""
        found = parameters.expanded(Words(self.walk, self.scope), inner.removeprefix("="), quoted)
        if isinstance(found, tuple):  # fields already
            self.out.put_list(found, True)
        elif quoted and isinstance(found, list) and (inner.startswith("*") or "[*]" in inner):
            self.put(" ".join(found), quoted)
        else:
            self.put(found, quoted, whole=self.whole and not inner.startswith("="))

    def put(self, found, quoted: bool, whole: bool = False) -> None:
        """`found`: a text, or a list for what ``$@`` stands for. `whole`: it is not split where it is not quoted."""
        if isinstance(found, list):
            texts = [text for text in found if text] if whole and not quoted else found
            self.out.put_list(texts, quoted or whole)
            self.vanished = quoted and not found
        elif quoted or (whole and found):
            self.out.put(found)
        elif not whole:
            self.out.put_split(found)
