"""Code of JavaScript, Ruby, Perl, PHP and Lua, scanned for calls that write and the paths written in them.

No more is understood than: literal texts, put together and named; lists of them and loops over these; parameters of
functions, from the calls in the same code; the calls of ``languages``. A call that writes and whose path is none
of this is a guess.
"""

import os
import time

from swarm_hook_core.effects.call import Call
from swarm_hook_core.effects.model import UNKNOWN, absolute, is_known
from swarm_hook_core.effects.programs.scripts.languages import language as language_called
from swarm_hook_core.effects.programs.scripts.tokens import NAME, NUMBER, SIGN, TEXT, TooLong, tokens

LONGEST = 64 * 1024
SECONDS = 0.02
CHOICES = 64  # texts that one expression may stand for
OTHER_CODE = "code that runs other code"

_NO_CALL_AFTER = ("function", "def", "sub", "->", ".", "new", "&", "use", "import")
_NO_CALL_BEFORE = ("=", "=>", ",", ")", "]", "}", ".", ";", ":", None)
_OPENING, _CLOSING = ("(", "[", "{"), (")", "]", "}")
_WORDS_BEFORE_NAME = frozenset("const let var my our local final static".split())
_SUFFIX_FOR_STATEMENT = frozenset("if unless or and do while until for foreach rescue then".split())


class Texts(list):
    """What an expression may stand for; `elements`: it is a list of these."""

    elements = False


# Where the arguments are, and the place that the first of them has there
_ARGUMENTS = {"process.argv": 1, "Bun.argv": 1, "ARGV": 0, "$ARGV": 0, "$argv": 1, "arg": 1, "Deno.args": 0}


def perl_code(call, code: str, argv=()) -> None:
    """Tell through `call` what Perl `code` writes; `argv`: what ``@ARGV`` holds."""
    scan(call, "perl", code, argv)


def scan(call, name: str, code: str, argv=()) -> None:
    """Tell through `call` what `code` in the language called `name` writes; `argv`: the arguments that it gets."""
    title = {"php": "PHP", "javascript": "JavaScript"}.get(name, name.capitalize())
    if code == UNKNOWN:
        call.guess(f"computed {title} code")
        return
    if len(code) > LONGEST:
        call.guess(f"{title} code that is too long to follow")
        return
    before = time.thread_time()
    language = language_called(name)
    call.walk.end += time.thread_time() - before
    try:
        scan = Scan(call, language, argv, title)
        scan.go(tokens(code, language, scan.until))
    except (TooLong, RecursionError):
        call.guess(f"{title} code that is too long to follow")


class Scan:
    """One pass over Tokens, in their order."""

    def __init__(self, call, language, argv, title):
        self.call = call
        self.language = language
        self.title = title
        self.folder = call.folder
        self.argv = list(argv)
        self.known: dict = {}  # name -> Texts
        self.calls = dict(language.calls)
        self.guessed: set = set()
        late = time.thread_time() > call.walk.end
        self.until = time.thread_time() + (SECONDS / 10 if late else SECONDS)
        self.depth = 0  # braces that are open

    def tick(self) -> None:
        if time.thread_time() > self.until:
            raise TooLong

    def guess(self, why: str) -> None:
        if why not in self.guessed:
            self.guessed.add(why)
            self.call.guess(why)

    def go(self, found: list) -> None:
        """Scan `found`: names first, since a function may be called above or below what it is given."""
        if self.language.name == "javascript":
            from swarm_hook_core.effects.programs.scripts.languages.javascript import bound_names, loads_files

            self.calls.update(bound_names(found))
            if loads_files(found):
                self.guess(OTHER_CODE)
        definitions = self.functions(found)
        self.pass_over(found, acts=False)
        self.give_parameters(found, definitions)
        self.folder = self.call.folder
        self.pass_over(found, acts=True)

    def pass_over(self, found: list, acts: bool) -> None:
        for at, token in enumerate(found):
            self.tick()
            if token.kind == SIGN:
                self.depth += (token.value == "{") - (token.value == "}")
            elif token.kind == NAME:
                self.binding(found, at)
                if acts:
                    self.called(found, at)
                elif self.calls.get(token.value) == "chdir":
                    continue
            elif token.kind == TEXT and acts:
                if token.shell:
                    self.shell(token)
                for part in token.value:
                    if isinstance(part, list):
                        self.pass_over(part, acts)

    # -- names

    def binding(self, found: list, at: int) -> None:
        """What a name is set to here: an assignment, or the variable of a loop."""
        name = found[at].value
        after = _sign(found, at + 1)
        if after == "=" and _sign(found, at + 2) not in ("=", "~"):
            self.assign(found, at)
        elif after in (":",) and self.language.name == "javascript":
            return
        if name in ("for", "foreach"):
            self.loop(found, at)
        elif name.endswith((".forEach", ".map", ".each", ".each_with_index")) or name in (
            ".forEach",
            ".map",
            ".each",
            ".each_with_index",
        ):
            self.each(found, at)

    def assign(self, found: list, at: int) -> None:
        name = found[at].value
        value = self.texts(found, at + 2, self.end(found, at + 2))
        old = self.known.get(name)
        if old is not None and self.depth and UNKNOWN not in value and not value.elements:
            value = _texts([*old, *value])
        self.known[name] = value

    def loop(self, found: list, at: int) -> None:
        """``for (const x of list)``, ``for my $x (list)``, ``foreach (list as $k => $x)``, ``for x in list``."""
        begin = at + 1
        head_end = self.matching(found, begin) if _sign(found, begin) == "(" else None
        inside = found[begin + 1 : head_end] if head_end is not None else []
        words = [token.value for token in inside]
        if self.language.name == "php" and "as" in words:
            place = words.index("as")
            names = [token.value for token in inside[place + 1 :] if token.kind == NAME]
            value = self.texts(inside, 0, place)
            if "=>" in words[place:] and len(names) > 1:
                self.known[names[0]] = _unlisted(self.keys(inside, 0, place))
                names = names[1:]
            if names:
                self.known[names[0]] = _unlisted(value)
            return
        if self.language.name == "javascript" and head_end is not None:
            place = next((p for p, word in enumerate(words) if word in ("of", "in") and inside[p].kind == NAME), None)
            if place:
                names = [token.value for token in inside[:place] if token.kind == NAME]
                names = [name for name in names if name not in _WORDS_BEFORE_NAME]
                self.bind_each(names, inside, place + 1, len(inside))
            return
        if self.language.name == "perl":
            while begin < len(found) and found[begin].kind == NAME and found[begin].value in _WORDS_BEFORE_NAME:
                begin += 1
            name = "$_"
            if begin < len(found) and found[begin].kind == NAME and found[begin].value.startswith("$"):
                name = found[begin].value
                begin += 1
            if _sign(found, begin) == "(":
                self.known[name] = _unlisted(self.listed(found, begin + 1, self.matching(found, begin)))
            return
        names, place = [], begin
        while place < len(found) and (found[place].kind == NAME or _sign(found, place) == ","):
            if found[place].value == "in":
                break
            if found[place].kind == NAME:
                names.append(found[place].value)
            place += 1
        if names and place < len(found) and found[place].value == "in":
            stop = next((p for p in range(place, len(found)) if found[p].value in ("do", "\n", "{")), len(found))
            start = place + 1
            if found[start : start + 1] and found[start].value in ("ipairs", "pairs"):
                start, stop = start + 2, self.matching(found, start + 1)
            self.known[names[-1]] = _unlisted(self.texts(found, start, stop))

    def bind_each(self, names, found, start, stop) -> None:
        value = self.texts(found, start, stop)
        first = found[start].value if start < len(found) else ""
        if first in ("Object.entries", "Object.keys") and _sign(found, start + 1) == "(":
            value = self.keys(found, start + 2, stop - 1)
        for name in names[:1]:
            self.known[name] = _unlisted(value)
        for name in names[1:]:
            self.known[name] = _texts([UNKNOWN])

    def each(self, found: list, at: int) -> None:
        """``list.forEach(x => ...)``, ``list.each { |x| ... }``."""
        name = found[at].value
        owner = name.rpartition(".")[0]
        if owner:
            value = self.known.get(owner, _texts([UNKNOWN]))
        else:
            start = self.start_of_value(found, at)
            value = self.texts(found, start, at)
            if found[start].value in ("Object.keys", "Object.entries"):
                value = self.keys(found, start + 2, at - 1)
        place = at + 1
        if self.language.name == "ruby":
            while place < len(found) and found[place].value in ("{", "do"):
                place += 1
            names = []
            if _sign(found, place) == "|":
                stop = next((p for p in range(place + 1, len(found)) if _sign(found, p) == "|"), place)
                names = [token.value for token in found[place + 1 : stop] if token.kind == NAME]
        else:
            place += 1
            names = []
            while place < len(found) and found[place].value not in ("=>", "{") and len(names) < 3:
                if found[place].kind == NAME and found[place].value not in ("async", "function"):
                    names.append(found[place].value)
                place += 1
        if names:
            self.known[names[0]] = _unlisted(value)

    def start_of_value(self, found: list, at: int) -> int:
        """Where the value that ends before `at` begins."""
        place = at - 1
        if place >= 0 and _sign(found, place) in _CLOSING:
            depth = 0
            while place >= 0:
                sign = _sign(found, place)
                depth += (sign in _CLOSING) - (sign in _OPENING)
                if not depth:
                    break
                place -= 1
            if place > 0 and found[place - 1].kind == NAME and _sign(found, place) == "(":
                place -= 1
        return max(place, 0)

    def functions(self, found: list) -> dict:
        """name -> parameters, of functions that the code defines."""
        made: dict = {}
        for at, token in enumerate(found):
            if token.value in ("function", "def") and token.kind == NAME and at + 1 < len(found):
                name, place = found[at + 1], at + 2
                if name.kind == NAME and _sign(found, place) == "(":
                    made[name.value] = self.parameters(found, place)
                    if self.language.name == "lua":
                        self.calls.pop(name.value, None)
            elif _sign(found, at) == "=" and at and found[at - 1].kind == NAME:
                place = at + 1
                while place < len(found) and found[place].value in ("async", "function"):
                    place += 1
                if _sign(found, place) == "(":
                    end = self.matching(found, place)
                    if found[place - 1].value == "function" or _sign(found, end + 1) == "=>":
                        made[found[at - 1].value] = self.parameters(found, place)
                elif place + 1 < len(found) and found[place].kind == NAME and _sign(found, place + 1) == "=>":
                    made[found[at - 1].value] = [found[place].value]
        return made

    def parameters(self, found: list, at: int) -> list:
        names: list = []
        for start, stop in self.arguments(found, at):
            named = [token.value for token in found[start:stop] if token.kind == NAME]
            names.append(named[0] if named else "")
        return names

    def give_parameters(self, found: list, definitions: dict) -> None:
        """Parameters stand for what the calls in the code give them."""
        for name, parameters in definitions.items():
            given: dict = {}
            for at, token in enumerate(found):
                if token.kind != NAME or token.value != name or (at and found[at - 1].value in ("function", "def")):
                    continue
                if _sign(found, at + 1) != "(":
                    continue
                for parameter, (start, stop) in zip(parameters, self.arguments(found, at + 1)):
                    given.setdefault(parameter, []).extend(self.texts(found, start, stop))
            for parameter in parameters:
                self.known[parameter] = _texts(given.get(parameter, [UNKNOWN]))

    # -- values

    def texts(self, found: list, start: int, stop: int) -> Texts:
        """What the expression in `found` from `start` up to `stop` may stand for."""
        self.tick()
        while start < stop and found[start].value in ("\n", "new", "await", "return") or _sign(found, start) == "\\":
            start += 1
        while stop > start and found[stop - 1].value == "\n":
            stop -= 1
        if start >= stop:
            return _texts([UNKNOWN])
        if _sign(found, start) in ("(", "[") and self.matching(found, start) == stop - 1:
            if _sign(found, start) == "[" or self.language.name == "perl":
                return self.listed(found, start + 1, stop - 1)
            return self.texts(found, start + 1, stop - 1)
        if _sign(found, start) == "{" and self.language.name == "lua":
            return self.listed(found, start + 1, stop - 1)
        for signs in (("?",), ("||", "??")):
            cuts = self.cuts(found, start, stop, signs)
            if cuts and signs == ("?",):
                other = self.cuts(found, cuts[0] + 1, stop, (":",))
                if other:
                    return _texts(
                        [*self.texts(found, cuts[0] + 1, other[0]), *self.texts(found, other[0] + 1, stop)]
                    )
            elif cuts and self.language.name == "javascript":
                return _texts([*self.texts(found, start, cuts[0]), *self.texts(found, cuts[0] + 1, stop)])
        cuts = self.cuts(found, start, stop, self.language.joins)
        if cuts:
            return self.joined(found, start, stop, cuts)
        token = found[start]
        if token.kind == TEXT and stop - start == 1:
            if token.many:
                return _listed(token.value[0].split())
            return _texts([UNKNOWN]) if token.shell else self.interpolated(token)
        if token.kind == NAME:
            return self.named(found, start, stop)
        if token.kind == NUMBER and stop - start == 1:
            return _texts([token.value])
        return _texts([UNKNOWN])

    def joined(self, found, start, stop, cuts) -> Texts:
        values = [""]
        for begin, end in zip([start, *(cut + 1 for cut in cuts)], [*cuts, stop]):
            values = [one + other for one in values for other in self.texts(found, begin, end)][:CHOICES]
        return _texts(values)

    def interpolated(self, token) -> Texts:
        values = [""]
        for part in token.value:
            more = [part] if isinstance(part, str) else self.texts(part, 0, len(part))
            values = [one + other for one in values for other in more][:CHOICES]
        return _texts(values)

    def named(self, found, start, stop) -> Texts:
        name = found[start].value
        count = stop - start
        if count == 1:
            if name in self.known:
                return self.known[name]
            if name in ("__dirname", "__DIR__", "Dir.pwd") and self.folder:
                return _texts([self.folder])
            if name in ("@ARGV", "ARGV"):
                return _listed(self.argv)
            if self.language.name == "perl" and name == "shift":
                return _texts([self.argv[0] if self.argv else UNKNOWN])
            return _texts([UNKNOWN])
        sign = _sign(found, start + 1)
        if name == "require" and sign == "(" and start + 5 < stop and found[start + 2].kind == TEXT:
            module = found[start + 2].value[0].removeprefix("node:")
            if found[start + 4].kind == NAME and _sign(found, start + 5) == "(":
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
        return _texts([UNKNOWN])

    def element(self, name: str, found, start, stop) -> Texts:
        index = found[start].value if stop - start == 1 and found[start].kind == NUMBER else ""
        if not index.isdigit():
            return _texts([UNKNOWN])
        place = int(index)
        offset = _ARGUMENTS.get(name)
        if offset is not None:
            place -= offset
            return _texts([self.argv[place] if 0 <= place < len(self.argv) else UNKNOWN])
        value = self.known.get("@" + name[1:] if self.language.name == "perl" else name)
        if value is None or not value.elements or place >= len(value):
            return _texts([UNKNOWN])
        return _texts([value[place]])

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
            return _texts(values)
        if name in ("process.cwd", "Dir.pwd", "getcwd", "cwd", "Deno.cwd"):
            return _texts([self.folder or UNKNOWN])
        if name in ("File.expand_path", "Pathname.new", "Pathname", "String", "realpath", "path", "file") and given:
            return self.texts(found, *given[0])
        if name in ("Object.entries", "Object.keys"):
            return self.keys(found, at + 1, self.matching(found, at))
        return _texts([UNKNOWN])

    def listed(self, found, start, stop) -> Texts:
        """A list's elements."""
        values: list = []
        for begin, end in self.split(found, start, stop):
            arrow = self.cuts(found, begin, end, ("=>",))
            begin = arrow[0] + 1 if arrow and self.language.name == "php" else begin
            if begin < end:
                one = self.texts(found, begin, end)
                values += one if one.elements else [one[0] if len(one) == 1 else UNKNOWN]
        return _listed(values)

    def keys(self, found, start, stop) -> Texts:
        """The keys of a literal map, or of lists of pairs their first elements."""
        while start < stop and found[start].value in ("\n", "{", "[", "(") and _sign(found, start) != "(":
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
                key = _texts([found[begin].value])
            values += key
        return _listed(values)

    # -- structure

    def matching(self, found: list, at: int) -> int:
        """Where the bracket at `at` closes."""
        self.tick()
        depth = 0
        for place in range(at, len(found)):
            if found[place].kind == SIGN:
                value = found[place].value
                depth += (value in _OPENING) - (value in _CLOSING)
                if not depth:
                    return place
        return len(found)

    def cuts(self, found, start, stop, signs) -> list:
        """Where one of `signs` stands outside of brackets."""
        self.tick()
        places, depth = [], 0
        for place in range(start, min(stop, len(found))):
            if found[place].kind == SIGN:
                value = found[place].value
                if not depth and value in signs and place > start:
                    places.append(place)
                depth += (value in _OPENING) - (value in _CLOSING)
        return places

    def split(self, found, start, stop) -> list:
        cuts = self.cuts(found, start, stop, (",",))
        pairs = list(zip([start, *(cut + 1 for cut in cuts)], [*cuts, stop]))
        return [(begin, end) for begin, end in pairs if any(token.value != "\n" for token in found[begin:end])]

    def arguments(self, found, at: int) -> list:
        """(start, stop) of each argument of the call whose name is before `at`."""
        if _sign(found, at) == "(":
            return self.split(found, at + 1, self.matching(found, at))
        return self.split(found, at, self.end(found, at, True))

    def end(self, found, at: int, bare=False) -> int:
        """Where the expression that starts at `at` ends."""
        self.tick()
        depth = 0
        for place in range(at, len(found)):
            token = found[place]
            if token.kind == SIGN:
                if token.value in _CLOSING and not depth:
                    return place
                if not depth and (token.value == ";" or (token.value == "," and not bare)):
                    return place
                if not depth and bare and token.value in ("{", "||", "&&"):
                    return place
                if not depth and token.value == "\n" and self.language.newline_ends and place > at:
                    previous, following = found[place - 1], found[place + 1 : place + 2]
                    goes_on = previous.kind == SIGN and previous.value not in (")", "]", "}", ";")
                    if not goes_on and not (following and following[0].value in (*self.language.joins, "?", ":", "||")):
                        return place
                depth += (token.value in _OPENING) - (token.value in _CLOSING)
            elif token.kind == NAME and not depth and place > at and token.value in _SUFFIX_FOR_STATEMENT:
                return place
        return len(found)

    # -- effects

    def called(self, found: list, at: int) -> None:
        """Whether the name at `at` is a call that does something, and what."""
        name = found[at].value
        act = self.calls.get(name)
        if act is None and "." in name:
            last = name.rpartition(".")[2]
            act = self.calls.get("." + last) or self.calls.get(f"{name.rpartition('.')[0].rpartition('.')[2]}.{last}")
            if act is None and self.language.name == "php":
                return
        if act is None and name.startswith("\\"):
            act = self.calls.get(name[1:])
        if act is None or (at and found[at - 1].value in _NO_CALL_AFTER):
            return
        place = at + 1
        if _sign(found, place) == "?." or (name == "eval" and self.language.name == "perl"):
            return
        needs = not self.language.bare_calls and act != "code"
        if _sign(found, place) != "(" and (needs or _sign(found, place) in _NO_CALL_BEFORE):
            if not (place < len(found) and found[place].kind in (TEXT, NAME, NUMBER)) or needs:
                return
        given = self.arguments(found, place)
        self.act(act, [self.texts(found, start, stop) for start, stop in given], found, given)

    def act(self, act: str, values: list, found, given) -> None:
        kind, *rest = act.split()
        number = int(rest[0]) if rest and rest[0].isdigit() else 0
        first = values[0] if values else _texts([UNKNOWN])
        second = values[1] if len(values) > 1 else _texts([UNKNOWN])
        if kind == "write":
            if len(values) > number:
                self.each_path(values[number], self.write)
        elif kind == "writes":
            spared = rest[1] if rest else ""
            for place, value in enumerate(values):
                if str(place) not in spared:
                    self.each_path(value, self.write)
            if not values:
                self.computed()
        elif kind in ("tree", "trees"):
            for value in values[number : number + 1] if kind == "tree" else values:
                self.each_path(value, self.remove)
        elif kind == "make":
            for value in values if rest == ["all"] else values[:1]:
                self.each_path(value, self.make)
        elif kind == "move":
            for one in first:
                target = [self.landed(one, other) for other in second] if rest else second
                self.move(one, target)
        elif kind == "copy":
            for one in first:
                targets = _texts([self.landed(one, other) for other in second])
                full = absolute(self.folder, one)
                folder = rest == ["tree"] and full is not None and os.path.isdir(full)
                self.each_path(second if folder else targets, self.tree if folder else self.write)
        elif kind == "open":
            self.open(values, found, given, rest[0])
        elif kind == "open3":
            self.open_perl(values, given, found)
        elif kind in ("shell", "words"):
            self.command(kind, values, found, given)
        elif kind == "chdir":
            known = len(first) == 1
            self.folder = absolute(self.folder, first[0]) if known else None
        elif kind == "code":
            literal = values and first[0].startswith(("fs", "child_process", "POSIX", "File::", "strict", "node:"))
            if not literal and not ("in" in rest and given and found[given[0][0]].kind == NAME):
                self.guess(OTHER_CODE)
        elif kind == "path":
            self.computed()

    def each_path(self, value, does) -> None:
        for one in value:
            does(one)

    def here(self) -> Call:
        call = self.call
        return call if self.folder == call.folder else Call(call.walk, call.name, call.words, self.folder, call.stdin)

    def computed(self) -> None:
        self.guess(f"{self.title} code that writes a computed path")

    def write(self, path: str) -> None:
        if absolute(self.folder, path) is None:
            self.computed()
        elif path:
            self.here().write(path)

    def tree(self, path: str) -> None:
        if absolute(self.folder, path) is None:
            self.computed()
        elif path:
            self.here().tree(path)

    def remove(self, path: str) -> None:
        full = absolute(self.folder, path)
        if full is not None and os.path.isdir(full) and not os.path.islink(full):
            self.tree(path)
        else:
            self.write(path)

    def make(self, path: str) -> None:
        full = absolute(self.folder, path)
        if full is None or not os.path.isdir(full):
            self.write(path)

    def move(self, source: str, targets) -> None:
        self.remove(source)
        full = absolute(self.folder, source)
        for target in targets:
            (self.tree if full is not None and os.path.isdir(full) else self.write)(target)

    def landed(self, source: str, target: str) -> str:
        """Where `source` lies after it was copied to `target`, which may be a folder."""
        full = absolute(self.folder, target)
        if full is not None and os.path.isdir(full):
            return os.path.join(target, os.path.basename(source.rstrip("/")) if is_known(source) else UNKNOWN)
        return target

    def open(self, values, found, given, place: str) -> None:
        """``open(path, mode)``."""
        if place == "deno":
            words = [token.value for token in found[given[1][0] : given[1][1]]] if len(given) > 1 else []
            if any(word in words for word in ("write", "append", "truncate", "create")):
                self.each_path(values[0], self.write)
            return
        if len(values) < 2:
            if values and self.language.name == "ruby" and any(one.startswith("|") for one in values[0]):
                self.guess("a computed command")
            return
        names = [token.value for token in found[given[1][0] : given[1][1]] if token.kind == NAME]
        if names and any("WR" in name or "CREAT" in name or "APPEND" in name for name in names):
            self.each_path(values[0], self.write)
            return
        for mode in values[1]:
            if not is_known(mode):
                if not (names and any("RDONLY" in name or name.startswith(("encoding", "external")) for name in names)):
                    self.computed()
            elif any(letter in mode.partition(":")[0] for letter in "wax+c") and not mode.startswith("utf"):
                self.each_path(values[0], self.write)

    def open_perl(self, values, given, found) -> None:
        if len(values) == 2:
            for text in values[1]:
                text = text.strip()
                if text.startswith("|") or text.endswith("|"):
                    self.here().script(text.strip("|"))
                elif text.startswith((">", "+")):
                    self.write(text.lstrip("+<> "))
                elif not is_known(text) and text.startswith(UNKNOWN):
                    self.computed()
            return
        if len(values) < 3:
            return
        for mode in values[1]:
            mode = mode.strip()
            if mode.startswith(("|", "-|")):
                words = [one for value in values[2:] for one in value]
                self.here().script(words[0]) if len(words) == 1 else self.here().run(words)
            elif ">" in mode or mode.startswith("+"):
                self.each_path(values[2], self.write)
            elif not is_known(mode):
                self.computed()

    def command(self, kind: str, values, found, given) -> None:
        if not values:
            return
        folder = self.option(found, given, ("cwd", "chdir"))
        call = self.here()
        if folder is not None:
            call = Call(call.walk, call.name, call.words, absolute(call.folder, folder), call.stdin)
        shell = self.has_shell(found, given)
        if kind == "words":
            listed = len(values) > 1 and values[1].elements
            more = list(values[1]) if listed else []
            if len(values) > 1 and not listed and _sign(found, given[1][0]) != "{":
                more = [UNKNOWN]
            for program in values[0]:
                call.script(" ".join([program, *more])) if shell else call.run([program, *more])
            return
        if self.language.name in ("ruby", "perl"):
            plain = [
                value for value, (start, stop) in zip(values, given) if not self.cuts(found, start, stop, ("=>", ":"))
            ]
            words = [one for value in plain for one in (value if value.elements else value[:1])]
            if len(words) > 1 and not any(len(value) > 1 and not value.elements for value in plain):
                call.run(words)
                return
        for text in values[0]:
            call.script(text)

    def option(self, found, given, names):
        """The text given to one of the options `names` in a literal map among the arguments."""
        for start, stop in given:
            for place in range(start, stop - 1):
                if found[place].kind == NAME and found[place].value in names and _sign(found, place + 1) == ":":
                    end = next((p for p in range(place + 2, stop) if _sign(found, p) in (",", "}")), stop)
                    return self.texts(found, place + 2, end)[0]
        return None

    def has_shell(self, found, given) -> bool:
        for start, stop in given:
            for place in range(start, stop - 2):
                if found[place].kind == NAME and found[place].value == "shell" and _sign(found, place + 1) == ":":
                    return found[place + 2].value != "false"
        return False

    def shell(self, token) -> None:
        for text in self.interpolated(token):
            self.here().script(text)


def _sign(found: list, at: int):
    return found[at].value if 0 <= at < len(found) and found[at].kind == SIGN else None


def _texts(values) -> Texts:
    found = Texts(dict.fromkeys(values))
    return found if len(found) <= CHOICES else Texts([UNKNOWN])


def _listed(values) -> Texts:
    found = Texts(values)
    found.elements = True
    return found


def _unlisted(value: Texts) -> Texts:
    """What one element of `value` may be."""
    return _texts(value or [UNKNOWN]) if value.elements else _texts([UNKNOWN])


def _put_together(one: str, other: str) -> str:
    """``path.join``: unlike Python's, an absolute part does not start anew."""
    return f"{one.rstrip('/')}/{other.lstrip('/')}" if one and other else one or other

