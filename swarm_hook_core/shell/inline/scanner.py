"""Scans JavaScript, Ruby, Perl, PHP and Lua for calls that write and the paths written in them.

It passes once over the tokens. It understands literal texts, concatenations, names, lists, loops over lists, and the
calls of ``languages``. A writing call with any other path is a guess: parameters of functions are not followed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from swarm_hook_core.shell.call import Call
from swarm_hook_core.shell.inline.effects import TOO_LONG, CodeEffects, TooLong
from swarm_hook_core.shell.inline.languages import LANGUAGES, NODE_MODULES, PATHNAME_METHODS
from swarm_hook_core.shell.inline.scanned_values import Values, as_list, name_at, sign_at, text_or_unknown
from swarm_hook_core.shell.inline.tokens import NAME, SIGN, TEXT, Language, tokens
from swarm_hook_core.shell.model import UNKNOWN, edit_or_replace, is_known

LONGEST = 64 * 1024  # characters of code

_NO_CALL_AFTER = ("function", "def", "sub", "->", ".", "new", "&", "use", "import")
_NO_CALL_BEFORE = ("=", "=>", ",", ")", "]", "}", ".", ";", ":", None)
_WRITING_MODES = ("WR", "CREAT", "APPEND", "write", "append", "truncate", "create")
_READS = "read"  # how an action begins that writes nothing
_OPENING = ("flag", "flags", "append", "mode", "FILE_APPEND")
_HANDED_ON_BEFORE = (";", ",", "\n", ")", None)
_DECLARING = frozenset("const let var my our local final static async function".split())
_LOADING = ("require", "import", "from", "await", "process.getBuiltinModule")
_EACH = (".forEach", ".map", ".each", ".each_with_index")


def scan(call: Call, name: str, code: str, argv: Sequence[str] = ()) -> None:
    """Report the writes of `code` in the language called `name` through `call`; `argv`: its arguments."""
    title = {"php": "PHP", "javascript": "JavaScript"}.get(name, name.capitalize())
    effects = CodeEffects(call, title)
    if code == UNKNOWN:
        call.guess(f"computed {title} code")
        return
    if len(code) > LONGEST:
        effects.guess_code(TOO_LONG)
        return
    language = LANGUAGES[name].prepare()
    until = call.walk.budget.part()
    try:
        found = tokens(code, language, until)
        scanned = Scan(effects, language, list(argv), until)
        if name == "javascript":
            scanned.bind_modules(found)
        scanned.read(found)
    except (TooLong, RecursionError, MemoryError):
        effects.guess_code(TOO_LONG)


class Scan(Values):
    """One pass over code; see `Values` for its arguments.

    calls         name -> action (see ``languages``)
    depth         braces that are open
    has_modules   True if the code loads modules that write, so that their functions may have computed names
    """

    def __init__(self, effects: CodeEffects, language: Language, argv: list[str], until: float) -> None:
        super().__init__(effects, language, argv, until)
        self.calls = dict(language.calls)
        self.depth = 0
        self.has_modules = False

    def read(self, found: list[Any]) -> None:
        """Go through the tokens `found`."""
        for at, token in enumerate(found):
            self.tick()
            if token.kind == SIGN:
                self.depth += (token.value == "{") - (token.value == "}")
                if token.value == "=>" and self.language.name == "javascript":
                    self.forget_parameters(found, at)
                elif token.value == "]" and self.has_modules and sign_at(found, at + 1) == "(":
                    self.effects.guess_path()  # fs["write" + x](..)
            elif token.kind == NAME:
                self.bind(found, at)
                self.meet(found, at)
            elif token.kind == TEXT:
                if token.shell:
                    self.effects.script(self.text_of(token))
                for part in token.value:
                    if isinstance(part, list):
                        self.read(part)
                is_key = (sign_at(found, at - 1), sign_at(found, at + 1)) == ("[", "]")
                if is_key and self.has_modules and self.calls.get(f".{token.value[0]}", _READS)[:4] != _READS:
                    self.effects.guess_path()  # fs["writeFile"]

    # ------------------------------------------------------------------ names

    def bind_modules(self, found: list[Any]) -> None:
        """Bind the names that ``require`` and ``import`` give to writing modules; ``node -e`` has some without
        import.
        """
        for name in ("fs", "child_process"):
            self.calls.update({f"{name}.{function}": action for function, action in NODE_MODULES[name].items()})
        for at, token in enumerate(found):
            if token.kind == NAME and token.value in _LOADING and sign_at(found, at + 1) == "(":
                self.has_modules |= at + 2 < len(found) and found[at + 2].kind != TEXT  # require(m): of any module
            path = ""
            if token.kind == TEXT:
                path = token.value[0]
            before = name_at(found, at - 1) or name_at(found, at - 2) * (sign_at(found, at - 1) == "(")
            if before not in _LOADING or not isinstance(path, str):
                continue
            module = NODE_MODULES.get(path.removeprefix("node:"))
            if module is not None:
                self.bind_module(found, at, module)
            elif path[:1] in (".", "/") and not path.endswith(".json"):
                self.effects.runs_project()
                start = at - (1 if before in ("import", "from") and sign_at(found, at - 1) != "(" else 2)
                start -= name_at(found, start - 1) == "await"
                is_script = before != "from" and sign_at(found, start - 1) in (None, ";", "\n", "{", "}")
                if is_script or self.effects.call.walk.files.contents:
                    self.effects.guess_code()

    def bind_module(self, found: list[Any], at: int, module: dict[str, Any]) -> None:
        """``const {rm: x} = require(..)``, ``import y, * as z from ..``, ``require(..).rm``: its name is at `at`."""
        self.tick()
        self.has_modules = True
        # On any object. But patterns have an ``exec`` as well.
        self.calls.update({f".{name}": action for name, action in module.items() if name != "exec"})
        is_exec = any(name_at(found, place).endswith(".exec") for place in range(at + 1, at + 4))
        if is_exec and "exec" in module:
            self.calls[".exec"] = module["exec"]
        start = at
        while start and at - start < 200 and found[start - 1].value not in (";", "=", *_DECLARING):
            start -= 1
            if name_at(found, start) == "import" and sign_at(found, start + 1) != "(":
                break
        if sign_at(found, start - 1) == "=":
            start = self.start_of_value(found, start - 1)
        for place in range(start, at):
            name = name_at(found, place)
            original = name
            if found[place - 1].value in (":", "as"):
                original = name_at(found, place - 2)
            if name and original in module:
                self.calls[name] = module[original]
            elif name and "exec" in module:
                self.calls[f"{name}.exec"] = module["exec"]

    def bind(self, found: list[Any], at: int) -> None:
        """Bind a name here: an assignment, or the variable of a loop."""
        name, sign = found[at].value, sign_at(found, at + 1)
        if sign == "=" and sign_at(found, at + 2) not in ("=", "~"):
            value = self.value(found, at + 2, self.end(found, at + 2))
            if self.depth and name in self.known:
                value = self.either([self.known[name], value])
            self.known[name] = value
        elif sign in ("+", "-", "*", ".", "..", "||", "&&", "??") and sign_at(found, at + 2) == "=":
            self.known[name] = UNKNOWN
        elif name in ("for", "foreach"):
            self.bind_loop(found, at + 1)
        elif name.endswith(_EACH):
            self.bind_each(found, at)
        elif name in ("function", "def", "sub"):
            opened = next((place for place in (at + 1, at + 2) if sign_at(found, place) == "("), None)
            if opened is not None:
                self.forget(found, opened, self.matching(found, opened))

    def forget(self, found: list[Any], start: int, stop: int) -> None:
        """The names from `start` to `stop` are parameters of a function."""
        for token in found[start:stop]:
            if token.kind == NAME:
                self.known[token.value] = UNKNOWN

    def forget_parameters(self, found: list[Any], arrow: int) -> None:
        start = self.start_of_value(found, arrow)
        if not (sign_at(found, start - 1) == "(" and name_at(found, start - 2).endswith(_EACH)):
            self.forget(found, start, arrow)

    def bind_loop(self, found: list[Any], at: int) -> None:
        """``for (const x of list)``, ``for my $x (list)``, ``foreach (list as $k => $x)``, ``for x in list``."""
        in_brackets = sign_at(found, at) == "("
        start, stop = at + in_brackets, self.matching(found, at) if in_brackets else len(found)
        places = range(start, min(stop, start + 60))
        middle = next((place for place in places if name_at(found, place) in ("of", "in", "as")), None)
        if middle is None:  # Perl
            while name_at(found, at) in _DECLARING:
                at += 1
            name = name_at(found, at) or "$_"
            opened = at + bool(name_at(found, at))
            if sign_at(found, opened) == "(":
                self.known[name] = self.each(self.listed(found, opened + 1, self.matching(found, opened)))
            return
        if found[middle].value == "as":
            value, begin, end = self.value(found, start, middle), middle + 1, stop
        else:
            value = self.value(found, middle + 1, min(stop, self.end(found, middle + 1, True)))
            begin, end = start, middle
        names = [name_at(found, place) for place in range(begin, end)]
        names = [name for name in names if name and name not in _DECLARING]
        self.known.update(dict.fromkeys(names, UNKNOWN))
        if len(names) == 1 or (names and self.language.name == "lua"):
            self.known[names[-1]] = self.each(value)

    def bind_each(self, found: list[Any], at: int) -> None:
        """``list.forEach(x => ..)``, ``list.each { |x| .. }``"""
        owner = found[at].value.rpartition(".")[0]
        if owner:
            value = self.known.get(owner)
        else:
            value = self.value(found, self.start_of_value(found, at), at)
        names = [name_at(found, place) for place in range(at + 1, at + 6)]
        name = next((name for name in names if name and name != "do" and name not in _DECLARING), "")
        self.known[name] = self.each(value)

    # ------------------------------------------------------------------ calls

    def meet(self, found: list[Any], at: int) -> None:
        """Do the action of the name at `at`, if it is a call."""
        name, place = found[at].value, at + 1
        action = self.action_of(name)
        before = ""
        if at:
            before = found[at - 1].value
        if name == "->new" and before == "IO::File":
            action = "open"
        last = name.rpartition(".")[2]
        if action is None and self.language.name == "ruby" and last in PATHNAME_METHODS and self.has_pathnames(found):
            self.effects.guess_path()
        if action is None or (before in _NO_CALL_AFTER and name != "SplFileObject"):
            return
        following = sign_at(found, place)
        if following != "(":
            is_writer = "." in name and action != "chdir" and action[:4] != _READS
            if following in _HANDED_ON_BEFORE and is_writer and not self.language.bare_calls:
                self.effects.guess_path()  # w = fs.writeFile
            is_bare = place < len(found) and found[place].kind != SIGN
            if not (is_bare or following not in _NO_CALL_BEFORE) or not (self.language.bare_calls or action == "code"):
                return
        given = self.arguments(found, place)
        self.act(action, [self.value(found, *bounds) for bounds in given], found, given)

    def has_pathnames(self, found: list[Any]) -> bool:
        return any(token.kind == NAME and token.value.startswith("Pathname") for token in found)

    def action_of(self, name: str) -> str | None:
        """Return the action for a call of `name`, or None."""
        action = self.calls.get(name.lstrip("\\"))
        if action is None and "." in name and self.language.name in ("javascript", "ruby"):
            owner, _, last = name.replace("?.", ".").rpartition(".")
            action = self.calls.get(f".{last}") or self.calls.get(f"{owner.rpartition('.')[2]}.{last}")
        return action

    def act(self, action: str, values: list[Any], found: list[Any], given: list[Any]) -> None:
        """Do `action` (see ``languages``) with the argument `values`; `given`: their positions."""
        kind, _, detail = action.partition(" ")
        place = 0
        if detail.isdigit():
            place = int(detail)
        effects = self.effects
        first, second = map(text_or_unknown, [*values, UNKNOWN, UNKNOWN][:2])
        does = {
            "write": effects.write, "replace": effects.replace, "remove": effects.remove, "tree": effects.change_all,
            "make": effects.make_folder, "read": effects.reads,
        }.get(kind.rstrip("s"))  # fmt: skip
        if kind == "replace":
            self.read_first(found, given)
            if self.appends(found, given):
                does = effects.write
        if does is not None:
            if kind.endswith("s"):
                chosen = values[place:]
            else:
                chosen = values[place : place + 1]
            paths = [path for one in chosen for path in as_list(one)]
            for path in paths or [UNKNOWN] * kind.endswith("s"):
                does(path)
        elif kind == "move":
            effects.move(first, effects.landing(first, second) if detail else second)
        elif kind in ("copy", "link"):
            if detail and effects.is_folder(first):
                effects.copy_tree(first, second)
            else:
                effects.write(effects.landing(first, second), edit_or_replace(kind == "link"))
        elif kind == "open":
            if detail:
                self.open_perl(values)
            else:
                self.open(values, found, given)
        elif kind in ("shell", "words"):
            self.run(kind, values, found, given)
        elif kind == "chdir":
            effects.change_folder(first)
        elif kind == "path":
            effects.guess_path()
        elif kind == "code" and given:
            names_module = self.language.name == "perl" and name_at(found, given[0][0])[:1] not in ("", "$")
            if not names_module:
                effects.guess_code()

    def read_first(self, found: list[Any], given: list[Any]) -> None:
        """Do the reads inside the arguments before the call itself."""
        for start, stop in given[1:]:
            for place in range(start, stop):
                if (self.action_of(name_at(found, place)) or "")[:4] == _READS:
                    self.meet(found, place)

    def appends(self, found: list[Any], given: list[Any]) -> bool:
        """Return True if options among the arguments ask for appending, or for another special way of opening."""
        places = (place for start, stop in given[1:] for place in range(start, stop))
        return any(name_at(found, place) in _OPENING for place in places)

    def open(self, values: list[Any], found: list[Any], given: list[Any]) -> None:
        """``open(path, mode)``, ``openSync(path, O_WRONLY)``, ``Deno.open(path, {write: true})``"""
        if len(values) < 2:
            if values and self.language.name == "ruby" and self.joined(values[:1]).startswith("|"):
                self.effects.guess("a computed command")
            return
        mode = UNKNOWN
        if isinstance(values[1], str):
            mode = values[1]
        names = " ".join(name_at(found, place) for place in range(*given[1])).strip()
        is_writing = is_known(mode) and mode[:3] != "utf" and set("wax+c>") & set(mode.partition(":")[0])
        if is_writing or any(part in names for part in _WRITING_MODES):
            anew = is_known(mode) and mode[:1] in ("w", ">") and mode[:2] != ">>"
            self.effects.write(self.joined(values[:1]), edit_or_replace(not anew))
        elif is_known(mode):
            self.effects.reads(self.joined(values[:1]))
        elif not is_known(mode) and "RDONLY" not in names and not names.startswith(("encoding", "external", "read")):
            self.effects.guess_path()

    def open_perl(self, values: list[Any]) -> None:
        """``open(F, "> path")``, ``open(F, ">", path)``, ``open(F, "|-", command)``"""
        mode, *rest = list(map(text_or_unknown, values[1:])) or [""]
        if not is_known(mode.strip()[:1]):
            self.effects.guess_path()
        elif mode.strip() in ("|-", "-|"):
            if len(rest) > 1:
                self.effects.run(rest)
            else:
                self.effects.script("".join(rest) or UNKNOWN)
        elif not rest and "|" in (mode.strip()[:1], mode.strip()[-1:]):
            self.effects.script(mode.strip().strip("|"))
        elif mode.strip().startswith((">", "+<", "+>")):
            if rest:
                path = rest[0]
            else:
                path = mode.strip().lstrip("+<>").strip()
            if not path.startswith("&"):
                anew = mode.strip().startswith((">", "+>")) and not mode.strip().startswith((">>", "+>>"))
                self.effects.write(path, edit_or_replace(not anew))
        elif rest:
            self.effects.reads(rest[0])

    def run(self, kind: str, values: list[Any], found: list[Any], given: list[Any]) -> None:
        """Commands: as shell text, or as words."""
        if not values:
            return
        folder = self.folder_option(found, given)
        if kind == "words":
            rest = []
            if len(values) > 1 and sign_at(found, given[1][0]) != "{":
                rest = values[1]
            words = [self.joined(values[:1]), *(rest if isinstance(rest, list) else [UNKNOWN])]
        else:
            is_split = self.language.name in ("ruby", "perl")
            signs = ("=>", ":")
            plain = [one for one, (start, stop) in zip(values, given) if len(self.split(found, start, stop, signs)) < 2]
            words = []
            if is_split:
                words = [word for one in plain for word in as_list(one)]
        if len(words) > 1 or (words and kind == "words" and " " not in words[0]):
            self.effects.run(words, None, folder)
        else:
            self.effects.script(words[0] if words else self.joined(values[:1]), None, folder)

    def folder_option(self, found: list[Any], given: list[Any]) -> str | None:
        """Return the folder that an option in a literal map among the arguments names, or None."""
        for start, stop in given:
            for place in range(start, stop - 1):
                if name_at(found, place) in ("cwd", "chdir") and sign_at(found, place + 1) == ":":
                    ends = (end for end in range(place + 2, stop) if sign_at(found, end) in (",", "}"))
                    return self.joined([self.value(found, place + 2, next(ends, stop))])
        return None
