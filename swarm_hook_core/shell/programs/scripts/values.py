"""What an expression may stand for: literal texts, put together and named, and lists of them."""

import os

from swarm_hook_core.shell.model import UNKNOWN
from swarm_hook_core.shell.programs.scripts.structure import Structure, sign_at
from swarm_hook_core.shell.programs.scripts.tokens import NAME, NUMBER, TEXT

CHOICES = 64  # texts that one expression may stand for
# Where the arguments are, and the place that the first of them has there
_ARGUMENTS = {"process.argv": 1, "Bun.argv": 1, "ARGV": 0, "$ARGV": 0, "$argv": 1, "arg": 1, "Deno.args": 0}


class Texts(list):
    """What an expression may stand for; `elements`: it is a list of these."""

    elements = False


class Values(Structure):
    """`known`: name -> Texts; `argv`: the arguments of the code; `folder`: where it runs, absolute, or None."""

    def __init__(self, language, until, folder, argv):
        super().__init__(language, until)
        self.folder = folder
        self.argv = list(argv)
        self.known: dict = {}

    def texts(self, found: list, start: int, stop: int) -> Texts:
        """What the expression in `found` from `start` up to `stop` may stand for."""
        self.tick()
        while start < stop and found[start].value in ("\n", "new", "await", "return") or sign_at(found, start) == "\\":
            start += 1
        while stop > start and found[stop - 1].value == "\n":
            stop -= 1
        if start >= stop:
            return texts_of([UNKNOWN])
        if sign_at(found, start) in ("(", "[") and self.matching(found, start) == stop - 1:
            if sign_at(found, start) == "[" or self.language.name == "perl":
                return self.listed(found, start + 1, stop - 1)
            return self.texts(found, start + 1, stop - 1)
        if sign_at(found, start) == "{" and self.language.name == "lua":
            return self.listed(found, start + 1, stop - 1)
        for signs in (("?",), ("||", "??")):
            cuts = self.cuts(found, start, stop, signs)
            if cuts and signs == ("?",):
                other = self.cuts(found, cuts[0] + 1, stop, (":",))
                if other:
                    return texts_of([*self.texts(found, cuts[0] + 1, other[0]), *self.texts(found, other[0] + 1, stop)])
            elif cuts and self.language.name == "javascript":
                return texts_of([*self.texts(found, start, cuts[0]), *self.texts(found, cuts[0] + 1, stop)])
        cuts = self.cuts(found, start, stop, self.language.joins)
        if cuts:
            return self.joined(found, start, stop, cuts)
        token = found[start]
        if token.kind == TEXT and stop - start == 1:
            if token.many:
                return list_of(token.value[0].split())
            return texts_of([UNKNOWN]) if token.shell else self.interpolated(token)
        if token.kind == NAME:
            return self.named(found, start, stop)
        if token.kind == NUMBER and stop - start == 1:
            return texts_of([token.value])
        return texts_of([UNKNOWN])

    def joined(self, found, start, stop, cuts) -> Texts:
        values = [""]
        for begin, end in zip([start, *(cut + 1 for cut in cuts)], [*cuts, stop]):
            values = [one + other for one in values for other in self.texts(found, begin, end)][:CHOICES]
        return texts_of(values)

    def interpolated(self, token) -> Texts:
        values = [""]
        for part in token.value:
            more = [part] if isinstance(part, str) else self.texts(part, 0, len(part))
            values = [one + other for one in values for other in more][:CHOICES]
        return texts_of(values)

    def named(self, found, start, stop) -> Texts:
        name = found[start].value
        count = stop - start
        if count == 1:
            if name in self.known:
                return self.known[name]
            if name in ("__dirname", "__DIR__", "Dir.pwd") and self.folder:
                return texts_of([self.folder])
            if name in ("@ARGV", "ARGV"):
                return list_of(self.argv)
            if self.language.name == "perl" and name == "shift":
                return texts_of([self.argv[0] if self.argv else UNKNOWN])
            return texts_of([UNKNOWN])
        sign = sign_at(found, start + 1)
        if name == "require" and sign == "(" and start + 5 < stop and found[start + 2].kind == TEXT:
            module = found[start + 2].value[0].removeprefix("node:")
            if found[start + 4].kind == NAME and sign_at(found, start + 5) == "(":
                return self.result(module + found[start + 4].value, found, start + 5)
        if sign == "[" and self.matching(found, start + 1) == stop - 1:
            return self.element(name, found, start + 2, stop - 1)
        if sign == "(":
            end = self.matching(found, start + 1)
            if end == stop - 1:
                return self.result(name, found, start + 1)
        if name in ("ipairs", "pairs") and sign == "(":
            return self.texts(found, start + 2, stop - 1)
        if name == "array" and sign == "(":
            return self.listed(found, start + 2, stop - 1)
        return texts_of([UNKNOWN])

    def element(self, name: str, found, start, stop) -> Texts:
        index = found[start].value if stop - start == 1 and found[start].kind == NUMBER else ""
        if not index.isdigit():
            return texts_of([UNKNOWN])
        place = int(index)
        offset = _ARGUMENTS.get(name)
        if offset is not None:
            place -= offset
            return texts_of([self.argv[place] if 0 <= place < len(self.argv) else UNKNOWN])
        value = self.known.get("@" + name[1:] if self.language.name == "perl" else name)
        if value is None or not value.elements or place >= len(value):
            return texts_of([UNKNOWN])
        return texts_of([value[place]])

    def result(self, name: str, found, at: int) -> Texts:
        """What a call of `name` gives, its arguments in the parentheses at `at`."""
        given = self.arguments(found, at)
        last = name.rpartition(".")[2]
        if name in ("path.join", "path.resolve", "path.posix.join", "join", "resolve", "File.join", "Path.join"):
            values = [""]
            for start, stop in given:
                values = [
                    os.path.join(one, other) if last == "resolve" else _put_together(one, other)
                    for one in values
                    for other in self.texts(found, start, stop)
                ][:CHOICES]
            return texts_of(values)
        if name in ("process.cwd", "Dir.pwd", "getcwd", "cwd", "Deno.cwd"):
            return texts_of([self.folder or UNKNOWN])
        if name in ("File.expand_path", "Pathname.new", "Pathname", "String", "realpath", "path", "file") and given:
            return self.texts(found, *given[0])
        if name in ("Object.entries", "Object.keys"):
            return self.keys(found, at + 1, self.matching(found, at))
        return texts_of([UNKNOWN])

    def listed(self, found, start, stop) -> Texts:
        """A list's elements."""
        values: list = []
        for begin, end in self.split(found, start, stop):
            arrow = self.cuts(found, begin, end, ("=>",))
            begin = arrow[0] + 1 if arrow and self.language.name == "php" else begin
            if begin < end:
                one = self.texts(found, begin, end)
                values += one if one.elements else [one[0] if len(one) == 1 else UNKNOWN]
        return list_of(values)

    def keys(self, found, start, stop) -> Texts:
        """The keys of a literal map, or of lists of pairs their first elements."""
        while start < stop and found[start].value in ("\n", "{", "[", "(") and sign_at(found, start) != "(":
            if self.matching(found, start) != stop - 1:
                break
            start, stop = start + 1, stop - 1
        values: list = []
        for begin, end in self.split(found, start, stop):
            while begin < end and found[begin].value == "\n":
                begin += 1
            cut = self.cuts(found, begin, end, ("=>", ":"))
            if not cut:
                values.append(UNKNOWN)
                continue
            key = self.texts(found, begin, cut[0])
            if found[begin].kind == NAME and cut[0] - begin == 1 and self.language.name == "javascript":
                key = texts_of([found[begin].value])
            values += key
        return list_of(values)


def texts_of(values) -> Texts:
    found = Texts(dict.fromkeys(values))
    return found if len(found) <= CHOICES else Texts([UNKNOWN])


def list_of(values) -> Texts:
    found = Texts(values)
    found.elements = True
    return found


def element_of(value: Texts) -> Texts:
    """What one element of `value` may be."""
    return texts_of(value or [UNKNOWN]) if value.elements else texts_of([UNKNOWN])


def _put_together(one: str, other: str) -> str:
    """``path.join``: unlike Python's, an absolute part does not start anew."""
    return f"{one.rstrip('/')}/{other.lstrip('/')}" if one and other else one or other
