"""Code of JavaScript, Ruby, Perl, PHP and Lua, scanned for calls that write and the paths written in them.

One pass over the tokens. No more is understood than literal texts, put together and named; lists of them, and loops
over these; the calls of ``languages``. A call that writes and whose path is none of this is a guess: parameters of
functions are not followed.
"""

import os
import re
import time

from swarm_hook_core.shell.inline.effects import TOO_LONG, CodeEffects
from swarm_hook_core.shell.inline.languages import LANGUAGES, NODE_MODULES, PATHNAME_METHODS
from swarm_hook_core.shell.inline.tokens import NAME, NUMBER, SIGN, TEXT, TooLong, tokens
from swarm_hook_core.shell.model import UNKNOWN, is_known

LONGEST = 64 * 1024  # characters of code
SECONDS = 0.02
MOST_CHOICES = 64  # texts that one expression may stand for

_OPENING, _CLOSING = ("(", "[", "{"), (")", "]", "}")
_SUFFIX_WORDS = frozenset("if unless or and do while until for foreach rescue then".split())
_NO_CALL_AFTER = ("function", "def", "sub", "->", ".", "new", "&", "use", "import")
_NO_CALL_BEFORE = ("=", "=>", ",", ")", "]", "}", ".", ";", ":", None)
_HANDED_ON_BEFORE = (";", ",", "\n", ")", None)
_DECLARING = frozenset("const let var my our local final static async function".split())
_EACH = (".forEach", ".map", ".each", ".each_with_index")
# Where the arguments of the code are, and the place that the first of them has there
_ARGUMENTS = {"process.argv": 1, "Bun.argv": 1, "ARGV": 0, "$ARGV": 0, "$argv": 1, "arg": 1, "Deno.args": 0}
_JOIN = ("path.join", "path.resolve", "path.posix.join", "join", "resolve", "File.join", "Path.join")
_SAME_PATH = ("File.expand_path", "Pathname.new", "Pathname", "String", "realpath")
_FOLDER = ("process.cwd", "Dir.pwd", "getcwd", "cwd", "Deno.cwd", "__dirname", "__DIR__")
# Patterns over code that anybody wrote: blanks are counted, so that no pattern takes long.
_NODE_MODULE = r"['\"`](?:node:)?(?:fs|fs/promises|fs-extra|graceful-fs|child_process)['\"`]"
_NODE_IMPORT = (
    r"(?<![\w$])(?:(?P<name>[\w$]+)\s{0,99},\s{0,99})?(?P<names>\*\s{0,99}as\s{1,99}[\w$]+|[\w$]+|\{[^{}]*\})\s{0,99}"
    r"(?:=\s{0,99}(?:await\s{1,99})?(?:require|import|process\.getBuiltinModule)\s{0,99}\(\s{0,99}|from\s{0,99})"
    r"['\"](?:node:)?(?P<module>fs/promises|fs-extra|graceful-fs|fs|child_process)['\"]\s{0,99}\)?(?P<part>\.promises)?"
)
_NODE_CALL = (  # of what a module gives, without a name for it: require("fs").rm(..), (await import("fs")).rm(..)
    r"['\"](?:node:)?(?P<module>fs/promises|fs-extra|graceful-fs|fs|child_process)['\"]\s{0,99}\)\s{0,99}\)?\s{0,99}"
    r"\??\.(?P<function>[\w$]+)"
)
_OWN_FILE = (
    r"(?P<alone>(?:^|[;\n{}])[ \t]*(?:await[ \t]+)?)?"
    r"(?:require|import|from)\s{0,9}(?:\(\s{0,9})?['\"](?P<path>[./][^'\"]*)['\"]"
)


def scan(call, name: str, code: str, argv=()) -> None:
    """Tell through `call` what `code` in the language called `name` writes; `argv`: the arguments that it gets."""
    title = {"php": "PHP", "javascript": "JavaScript"}.get(name, name.capitalize())
    effects = CodeEffects(call, title)
    if code == UNKNOWN:
        call.guess(f"computed {title} code")
        return
    if len(code) > LONGEST:
        effects.guess_code(TOO_LONG)
        return
    # The walk has its own time; late in it there is little left for code.
    until = time.thread_time() + (SECONDS / 10 if time.thread_time() > call.walk.end else SECONDS)
    try:
        reader = Scan(effects, LANGUAGES[name].prepare(), argv, until)
        if name == "javascript":
            reader.bind_node_modules(code)
        reader.read(tokens(code, reader.language, until))
    except (TooLong, RecursionError, MemoryError):
        effects.guess_code(TOO_LONG)


class Texts(list):
    """What an expression may stand for; `is_list`: it is a list of these."""

    is_list = False


NOTHING_KNOWN = Texts([UNKNOWN])


def one_of(values) -> Texts:
    found = Texts(dict.fromkeys(values))
    return found if 0 < len(found) <= MOST_CHOICES else NOTHING_KNOWN


def list_of(values) -> Texts:
    found = Texts(values)
    found.is_list = True
    return found


def sign_at(found: list, at: int):
    """The sign at `at`, or None where there is none."""
    return found[at].value if 0 <= at < len(found) and found[at].kind == SIGN else None


class Scan:
    """One pass over code in `language`, up to time `until` of this thread. `argv`: the arguments that it gets.

    calls   name -> action; `known`: name -> Texts; `depth`: braces that are open
    """

    def __init__(self, effects: CodeEffects, language, argv, until: float):
        self.effects = effects
        self.language = language
        self.argv = list(argv)
        self.until = until
        self.calls = dict(language.calls)
        self.known: dict = {}
        self.depth = 0
        self.may_compute_names = False  # whether the name of a function of a module may be worked out

    def tick(self) -> None:
        if time.thread_time() > self.until:
            raise TooLong

    def read(self, found: list) -> None:
        """Go through the tokens `found`."""
        for at, token in enumerate(found):
            self.tick()
            if token.kind == SIGN:
                self.depth += (token.value == "{") - (token.value == "}")
                if token.value == "=>" and self.language.name == "javascript":
                    self.forget_parameters(found, at)
                elif token.value == "]" and self.may_compute_names and sign_at(found, at + 1) == "(":
                    self.effects.guess_path()  # fs["write" + x](..)
            elif token.kind == NAME:
                self.bind(found, at)
                self.meet(found, at)
            elif token.kind == TEXT:
                for text in self.interpolated(token) if token.shell else ():
                    self.effects.script(text)
                for part in token.value:
                    if isinstance(part, list):
                        self.read(part)
                name = f".{token.value[0]}" if len(token.value) == 1 and isinstance(token.value[0], str) else ""
                if name in self.calls and (sign_at(found, at - 1), sign_at(found, at + 1)) == ("[", "]"):
                    self.effects.guess_path()  # fs["writeFile"]

    # ------------------------------------------------------------------ names

    def bind_node_modules(self, code: str) -> None:
        """Names for what ``require`` and ``import`` give; in code of ``node -e`` the modules have names without."""
        self.may_compute_names = re.search(_NODE_MODULE, code) is not None
        bound = [(module, module) for module in NODE_MODULES]
        for match in re.finditer(_NODE_IMPORT, code):
            module = "child_process" if match.group("module") == "child_process" else "fs"
            names = match.group("names").strip()
            bound += [(match.group("name"), module)] if match.group("name") else []
            if not names.startswith("{"):
                bound.append((names.rpartition(" ")[2], module))
                continue
            for pair in names.strip("{}").split(","):
                function, _, name = pair.replace(" as ", ":").partition(":")
                function, name = function.strip(), name.strip() or function.strip()
                if function == "promises":
                    bound.append((name, module))
                elif function in NODE_MODULES[module]:
                    self.calls[name] = NODE_MODULES[module][function]
        for name, module in bound:
            for function, action in NODE_MODULES[module].items():
                self.calls[f"{name}.{function}"] = self.calls[f"{name}.promises.{function}"] = action
        for function, action in NODE_MODULES["fs"].items():
            self.calls[f".promises.{function}"] = action  # require("fs").promises.rm(..)
        for match in re.finditer(_NODE_CALL, code):
            module = "child_process" if match.group("module") == "child_process" else "fs"
            function = match.group("function")
            if function in NODE_MODULES[module]:
                self.calls[f".{function}"] = NODE_MODULES[module][function]
        ends = re.compile(r"[ \t]*(?:\)[ \t]*)?(?:[;\n}]|$)")
        for match in re.finditer(_OWN_FILE, code):
            if not match.group("path").endswith(".json"):
                self.effects.runs_project()
                is_script = match.group("alone") is not None and ends.match(code, match.end())
                if is_script or self.effects.call.walk.files.contents:
                    self.effects.guess_code()

    def bind(self, found: list, at: int) -> None:
        """What a name is set to here: an assignment, or the variable of a loop."""
        name = found[at].value
        if sign_at(found, at + 1) == "=" and sign_at(found, at + 2) not in ("=", "~"):
            value = self.texts(found, at + 2, self.end(found, at + 2))
            old = self.known.get(name)
            if old is not None and self.depth and not value.is_list:
                value = one_of([*old, *value])
            self.known[name] = value
        elif name in ("for", "foreach"):
            self.bind_loop(found, at + 1)
        elif name.endswith(_EACH):
            self.bind_each(found, at)
        elif name in ("function", "def", "sub"):
            opened = next((place for place in (at + 1, at + 2) if sign_at(found, place) == "("), None)
            if opened is not None:
                self.forget(found, opened, self.matching(found, opened))

    def forget(self, found, start, stop) -> None:
        """The names from `start` to `stop` are parameters of a function."""
        for token in found[start:stop]:
            if token.kind == NAME:
                self.known[token.value] = NOTHING_KNOWN

    def forget_parameters(self, found: list, arrow: int) -> None:
        start = self.start_of_value(found, arrow)
        if not (start > 1 and sign_at(found, start - 1) == "(" and found[start - 2].value.endswith(_EACH)):
            self.forget(found, start, arrow)

    def bind_loop(self, found: list, at: int) -> None:
        """``for (const x of list)``, ``for my $x (list)``, ``foreach (list as $k => $x)``, ``for x in list``."""
        stop = self.matching(found, at) if sign_at(found, at) == "(" else len(found)
        start = at + 1 if sign_at(found, at) == "(" else at
        head = [token.value if token.kind == NAME else "" for token in found[start : min(stop, start + 60)]]
        parts = next((start + place for place, word in enumerate(head) if word in ("of", "in", "as")), None)
        if parts is None:  # Perl
            while at < len(found) and found[at].kind == NAME and found[at].value in _DECLARING:
                at += 1
            name = found[at].value if at < len(found) and found[at].kind == NAME else "$_"
            opened = at + 1 if name != "$_" else at
            if sign_at(found, opened) == "(":
                self.known[name] = one_of(self.listed(found, opened + 1, self.matching(found, opened)))
            return
        before = [token.value for token in found[start:parts] if token.kind == NAME and token.value not in _DECLARING]
        if found[parts].value == "as":
            before = [token.value for token in found[parts + 1 : stop] if token.kind == NAME]
            value = self.texts(found, start, parts)
        else:
            value = self.texts(found, parts + 1, min(stop, self.end(found, parts + 1, True)))
        for name in before:
            self.known[name] = NOTHING_KNOWN
        if before and value.is_list and (len(before) == 1 or self.language.name == "lua"):
            self.known[before[-1]] = one_of(value)

    def bind_each(self, found: list, at: int) -> None:
        """``list.forEach(x => ..)``, ``list.each { |x| .. }``"""
        owner = found[at].value.rpartition(".")[0]
        if owner:
            value = self.known.get(owner, NOTHING_KNOWN)
        else:
            value = self.texts(found, self.start_of_value(found, at), at)
        names = [
            token for token in found[at + 1 : at + 6] if token.kind == NAME and token.value not in ("do", *_DECLARING)
        ]
        if names:
            self.known[names[0].value] = one_of(value) if value.is_list else NOTHING_KNOWN

    # -------------------------------------------------------------- structure

    def matching(self, found: list, at: int) -> int:
        """Where the bracket at `at` closes."""
        self.tick()
        depth = 0
        for place in range(at, len(found)):
            if found[place].kind == SIGN:
                depth += (found[place].value in _OPENING) - (found[place].value in _CLOSING)
                if not depth:
                    return place
        return len(found)

    def start_of_value(self, found: list, at: int) -> int:
        """Where the value that ends before `at` begins."""
        place, depth = at - 1, 0
        while place > 0 and sign_at(found, at - 1) in _CLOSING:
            depth += (sign_at(found, place) in _CLOSING) - (sign_at(found, place) in _OPENING)
            if not depth:
                break
            place -= 1
        self.tick()
        return max(place, 0)

    def cuts(self, found, start, stop, signs) -> list:
        """Where one of `signs` stands outside of brackets."""
        self.tick()
        places, depth = [], 0
        for place in range(start, min(stop, len(found))):
            if found[place].kind == SIGN:
                if not depth and found[place].value in signs and place > start:
                    places.append(place)
                depth += (found[place].value in _OPENING) - (found[place].value in _CLOSING)
        return places

    def split(self, found, start, stop) -> list:
        """(start, stop) of what stands between commas."""
        cuts = self.cuts(found, start, stop, (",",))
        pairs = zip([start, *(cut + 1 for cut in cuts)], [*cuts, stop])
        return [(begin, end) for begin, end in pairs if any(token.value != "\n" for token in found[begin:end])]

    def arguments(self, found, at: int) -> list:
        """(start, stop) of each argument of the call whose name is before `at`."""
        if sign_at(found, at) == "(":
            return self.split(found, at + 1, self.matching(found, at))
        return self.split(found, at, self.end(found, at, True))

    def end(self, found, at: int, bare=False) -> int:
        """Where the expression that starts at `at` ends; `bare`: a list of them, without parentheses."""
        self.tick()
        depth = 0
        for place in range(at, len(found)):
            token = found[place]
            if token.kind == NAME and not depth and place > at and token.value in _SUFFIX_WORDS:
                return place
            if token.kind != SIGN:
                continue
            if not depth:
                if token.value in _CLOSING or token.value == ";" or (token.value == "," and not bare):
                    return place
                if bare and token.value in ("{", "||", "&&"):
                    return place
                if token.value == "\n" and self.language.newline_ends and place > at:
                    before, after = found[place - 1], sign_at(found, place + 1)
                    goes_on = before.kind == SIGN and before.value not in (*_CLOSING, ";")
                    if not goes_on and after not in (*self.language.joins, "?", ":", "||"):
                        return place
            depth += (token.value in _OPENING) - (token.value in _CLOSING)
        return len(found)

    # ----------------------------------------------------------------- values

    def texts(self, found: list, start: int, stop: int) -> Texts:
        """What the expression from `start` to `stop` may stand for."""
        self.tick()
        while start < stop and (found[start].value in ("\n", "new", "await", "return", "\\")):
            start += 1
        while stop > start and found[stop - 1].value == "\n":
            stop -= 1
        if start >= stop:
            return NOTHING_KNOWN
        opening = sign_at(found, start)
        if opening in ("(", "[", "{") and self.matching(found, start) == stop - 1:
            if opening == "[" or (opening, self.language.name) in (("(", "perl"), ("{", "lua")):
                return self.listed(found, start + 1, stop - 1)
            return self.texts(found, start + 1, stop - 1) if opening == "(" else NOTHING_KNOWN
        cuts = self.cuts(found, start, stop, ("?", ":", "||", "??"))
        if cuts:
            first = start if sign_at(found, cuts[0]) != "?" else cuts[0] + 1
            begins = [first, *(cut + 1 for cut in cuts if cut >= first)]
            ends = [*(cut for cut in cuts if cut >= first), stop]
            return one_of([text for begin, end in zip(begins, ends) for text in self.texts(found, begin, end)])
        cuts = self.cuts(found, start, stop, self.language.joins)
        if cuts:
            parts = zip([start, *(cut + 1 for cut in cuts)], [*cuts, stop])
            return self.joined([self.texts(found, begin, end) for begin, end in parts], "".join)
        token = found[start]
        if stop - start == 1 and token.kind == TEXT:
            if token.many:
                return list_of(token.value[0].split())
            return NOTHING_KNOWN if token.shell else self.interpolated(token)
        if stop - start == 1 and token.kind == NUMBER:
            return one_of([token.value])
        return self.named(found, start, stop) if token.kind == NAME else NOTHING_KNOWN

    def joined(self, parts: list, join) -> Texts:
        """`join` of each combination of what `parts` may be."""
        rows: list = [[]]
        for part in parts:
            rows = [[*row, one] for row in rows for one in part][: MOST_CHOICES + 1]
        return one_of(map(join, rows))

    def interpolated(self, token) -> Texts:
        parts = [[part] if isinstance(part, str) else self.texts(part, 0, len(part)) for part in token.value]
        return self.joined(parts, "".join)

    def named(self, found, start, stop) -> Texts:
        """What a name, an element of a list or the result of a call may stand for."""
        name, sign = found[start].value, sign_at(found, start + 1)
        if stop - start == 1:
            if name in self.known:
                return self.known[name]
            if name in _FOLDER:
                return one_of([self.effects.folder or UNKNOWN])
            if name in ("@ARGV", "ARGV"):
                return list_of(self.argv)
            is_shift = self.language.name == "perl" and name == "shift"
            return one_of(self.argv[:1]) if is_shift else NOTHING_KNOWN
        if name == "require" and sign == "(" and start + 5 < stop and found[start + 4].kind == NAME:
            return self.result(
                f"{self.texts(found, start + 2, start + 3)[0]}{found[start + 4].value}", found, start + 5
            )
        if sign in ("(", "[") and self.matching(found, start + 1) == stop - 1:
            if sign == "[":
                return self.element(name, found[start + 2].value if stop - start == 4 else "")
            if name in ("ipairs", "pairs", "array"):
                return (
                    self.listed(found, start + 2, stop - 1)
                    if name == "array"
                    else self.texts(found, start + 2, stop - 1)
                )
            return self.result(name, found, start + 1)
        return NOTHING_KNOWN

    def element(self, name: str, index) -> Texts:
        """What ``name[index]`` stands for."""
        if not isinstance(index, str) or not index.isdecimal():
            return NOTHING_KNOWN
        place = int(index)
        items = self.known.get("@" + name[1:] if self.language.name == "perl" else name, NOTHING_KNOWN)
        if name in _ARGUMENTS:
            place, items = place - _ARGUMENTS[name], list_of(self.argv)
        known = items.is_list and 0 <= place < len(items)
        return one_of([items[place]]) if known else NOTHING_KNOWN

    def result(self, name: str, found, at: int) -> Texts:
        """What a call of `name` gives, its arguments in the parentheses at `at`."""
        given = [self.texts(found, *bounds) for bounds in self.arguments(found, at)]
        if name.removeprefix("node:") in _JOIN:
            if name.endswith("resolve"):
                return self.joined(given, lambda row: os.path.join(*row))
            return self.joined(given, lambda row: re.sub("/+", "/", "/".join(row)))
        if name in _FOLDER:
            return one_of([self.effects.folder or UNKNOWN])
        return given[0] if name in _SAME_PATH and given else NOTHING_KNOWN

    def listed(self, found, start, stop) -> Texts:
        """The elements of a list."""
        values: list = []
        for begin, end in self.split(found, start, stop):
            one = self.texts(found, begin, end)
            values += one if one.is_list or len(one) == 1 else [UNKNOWN]
        return list_of(values)

    # ------------------------------------------------------------------ calls

    def meet(self, found: list, at: int) -> None:
        """Do what the name at `at` does, if it is a call."""
        name, place = found[at].value, at + 1
        action = self.action_of(name)
        if self.language.name == "ruby" and action is None:
            owner, _, last = name.rpartition(".")
            if last in PATHNAME_METHODS and ("Pathname" in owner or "Pathname" in self.known_classes(found)):
                self.effects.guess_path()
        if name == "->new" and at and found[at - 1].value == "IO::File":
            action = "open"
        if action is None or (at and found[at - 1].value in _NO_CALL_AFTER and name != "SplFileObject"):
            return
        following = sign_at(found, place)
        if following != "(":
            if following in _HANDED_ON_BEFORE and "." in name and action != "chdir" and not self.language.bare_calls:
                self.effects.guess_path()  # w = fs.writeFile
            is_bare = place < len(found) and found[place].kind in (TEXT, NAME, NUMBER)
            if not (is_bare or (following is not None and following not in _NO_CALL_BEFORE)):
                return
            if not (self.language.bare_calls or action == "code"):
                return
        given = self.arguments(found, place)
        self.act(action, [self.texts(found, start, stop) for start, stop in given], found, given)

    def known_classes(self, found: list) -> frozenset:
        return frozenset(token.value.partition(".")[0] for token in found if token.kind == NAME)

    def action_of(self, name: str):
        """What a call of `name` does, or None."""
        action = self.calls.get(name.lstrip("\\"))
        if action is None and "." in name and self.language.name in ("javascript", "ruby"):
            owner, _, last = name.replace("?.", ".").rpartition(".")
            action = self.calls.get(f".{last}") or self.calls.get(f"{owner.rpartition('.')[2]}.{last}")
        return action

    def act(self, action: str, values: list, found, given) -> None:
        """Do `action` (see ``languages``) with what the arguments `values` stand for; `given`: where these stand."""
        kind, _, detail = action.partition(" ")
        place = int(detail) if detail.isdigit() else 0
        effects = self.effects
        first, second = [*values, NOTHING_KNOWN, NOTHING_KNOWN][:2]
        does = {"write": effects.write, "tree": effects.remove, "make": effects.make_folder}.get(kind.rstrip("s"))
        if does is not None:
            several = kind.endswith("s")
            chosen = values[place:] if several else values[place : place + 1]
            for path in [path for value in chosen for path in value] or ([UNKNOWN] if several else []):
                does(path)
        elif kind == "move":
            for source in first:
                for target in second:
                    effects.move(source, effects.landing(source, target) if detail else target)
        elif kind == "copy":
            for source in first:
                for target in second:
                    if detail and effects.is_folder(source):
                        effects.copy_tree(source, target)
                    else:
                        effects.write(effects.landing(source, target))
        elif kind == "open":
            {"perl": self.open_perl, "deno": self.open_deno}.get(detail, self.open)(values, found, given)
        elif kind in ("shell", "words"):
            self.run(kind, values, found, given)
        elif kind == "chdir":
            effects.change_folder(first[0] if len(first) == 1 else UNKNOWN)
        elif kind == "path":
            effects.guess_path()
        elif kind == "code":
            self.run_code(first, found, given)

    def run_code(self, first: Texts, found, given) -> None:
        if not given and self.language.name == "perl":
            return  # ``do { .. }``
        names_module = (
            self.language.name == "perl" and found[given[0][0]].kind == NAME and found[given[0][0]].value[0] != "$"
        )
        if not names_module and not first[0].startswith(("fs", "child_process", "node:")):
            self.effects.guess_code()

    def open(self, values, found, given) -> None:
        """``open(path, mode)``"""
        if len(values) < 2:
            if values and self.language.name == "ruby" and any(one.startswith("|") for one in values[0]):
                self.effects.guess("a computed command")
            return
        names = [token.value for token in found[given[1][0] : given[1][1]] if token.kind == NAME]
        writes = any(part in name for name in names for part in ("WR", "CREAT", "APPEND"))
        reads = any("RDONLY" in name or name.startswith(("encoding", "external")) for name in names)
        for mode in values[1]:
            if writes or (
                is_known(mode) and not mode.startswith("utf") and set("wax+c>") & set(mode.partition(":")[0])
            ):
                for path in values[0]:
                    self.effects.write(path)
            elif not is_known(mode) and not reads:
                self.effects.guess_path()

    def open_deno(self, values, found, given) -> None:
        """``Deno.open(path, {write: true})``"""
        words = {token.value for start, stop in given[1:] for token in found[start:stop] if token.kind == NAME}
        for path in values[0] if words & {"write", "append", "truncate", "create"} else ():
            self.effects.write(path)

    def open_perl(self, values, _found, _given) -> None:
        """``open(handle, ">path")``, ``open(handle, ">", path)``"""
        for mode in values[1] if len(values) > 1 else ():
            mode = mode.strip()
            if mode.startswith(("|", "-|")) or mode.endswith("|"):
                words = [one for value in values[2:] for one in value]
                self.effects.run(words) if len(words) > 1 else self.effects.script((words or [mode.strip("|")])[0])
            elif len(values) == 2 and mode.startswith((">", "+")):
                self.effects.write(mode.lstrip("+<> "))
            elif len(values) > 2 and (">" in mode or mode.startswith("+")):
                for path in values[2]:
                    self.effects.write(path)
            elif not is_known(mode) and (len(values) > 2 or mode.startswith(UNKNOWN)):
                self.effects.guess_path()

    def run(self, kind: str, values, found, given) -> None:
        """Run a command: shell text, or a program and its words."""
        if not values:
            return
        folder = self.option(found, given, ("cwd", "chdir"))
        if kind == "words":
            listed = len(values) > 1 and values[1].is_list
            more = values[1] if listed else [] if len(values) < 2 or sign_at(found, given[1][0]) == "{" else [UNKNOWN]
            in_shell = self.option(found, given, ("shell",)) not in (None, "false")
            for program in values[0]:
                words = [program, *more]
                self.effects.script(" ".join(words), None, folder) if in_shell else self.effects.run(
                    words, None, folder
                )
            return
        if self.language.name in ("ruby", "perl"):
            plain = [
                value for value, (start, stop) in zip(values, given) if not self.cuts(found, start, stop, ("=>", ":"))
            ]
            words = [one for value in plain for one in (value if value.is_list or len(value) == 1 else [UNKNOWN])]
            if len(words) > 1:
                self.effects.run(words, None, folder)
                return
        for text in values[0]:
            self.effects.script(text, None, folder)

    def option(self, found, given, names):
        """The text given to one of the options `names` in a literal map among the arguments, or None."""
        for start, stop in given:
            for place in range(start, stop - 1):
                if found[place].kind == NAME and found[place].value in names and sign_at(found, place + 1) == ":":
                    end = next((p for p in range(place + 2, stop) if sign_at(found, p) in (",", "}")), stop)
                    is_word = (
                        end == place + 3
                        and found[place + 2].kind == NAME
                        and found[place + 2].value in ("true", "false")
                    )
                    return found[place + 2].value if is_word else self.texts(found, place + 2, end)[0]
        return None
