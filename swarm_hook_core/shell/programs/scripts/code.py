"""Code of JavaScript, Ruby, Perl, PHP and Lua, scanned for calls that write and the paths written in them.

No more is understood than: literal texts, put together and named; lists of them and loops over these; parameters of
functions, from the calls in the same code; the calls of ``languages``. A call that writes and whose path is none
of this is a guess.
"""

import os
import time

from swarm_hook_core.shell.call import Call
from swarm_hook_core.shell.model import UNKNOWN, absolute, is_known
from swarm_hook_core.shell.programs.scripts.languages import language as language_called
from swarm_hook_core.shell.programs.scripts.names import Names
from swarm_hook_core.shell.programs.scripts.structure import sign_at
from swarm_hook_core.shell.programs.scripts.tokens import NAME, NUMBER, SIGN, TEXT, TooLong, tokens
from swarm_hook_core.shell.programs.scripts.values import texts_of

LONGEST = 64 * 1024
SECONDS = 0.02
OTHER_CODE = "code that runs other code"

_NO_CALL_AFTER = ("function", "def", "sub", "->", ".", "new", "&", "use", "import")
_NO_CALL_BEFORE = ("=", "=>", ",", ")", "]", "}", ".", ";", ":", None)


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


class Scan(Names):
    """One pass over Tokens, in their order."""

    def __init__(self, call, language, argv, title):
        late = time.thread_time() > call.walk.end
        super().__init__(language, time.thread_time() + (SECONDS / 10 if late else SECONDS), call.folder, argv)
        self.call = call
        self.title = title
        self.calls = dict(language.calls)
        self.guessed: set = set()

    def guess(self, why: str) -> None:
        if why not in self.guessed:
            self.guessed.add(why)
            self.call.guess(why)

    def go(self, found: list) -> None:
        """Scan `found`: names first, since a function may be called above or below what it is given."""
        if self.language.name == "javascript":
            from swarm_hook_core.shell.programs.scripts.languages.javascript import (
                bound_names,
                hands_on,
                loaded_files,
            )

            self.calls.update(bound_names(found))
            loaded = loaded_files(found)
            if loaded:
                self.call.runs_project()
            if "script" in loaded or (loaded and self.call.walk.files.contents):
                self.guess(OTHER_CODE)
            if hands_on(found):
                self.computed()
        elif self.language.name == "ruby":
            from swarm_hook_core.shell.programs.scripts.languages.ruby import writes_by_pathname

            if writes_by_pathname(found):
                self.computed()
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
        if name == "->new" and at and found[at - 1].value == "IO::File":
            act = "open 1"
        if act is None or (at and found[at - 1].value in _NO_CALL_AFTER and name != "SplFileObject"):
            return
        place = at + 1
        if sign_at(found, place) == "?." or (name == "eval" and self.language.name == "perl"):
            return
        needs = not self.language.bare_calls and act != "code"
        if sign_at(found, place) != "(" and (needs or sign_at(found, place) in _NO_CALL_BEFORE):
            if not (place < len(found) and found[place].kind in (TEXT, NAME, NUMBER)) or needs:
                return
        given = self.arguments(found, place)
        self.act(act, [self.texts(found, start, stop) for start, stop in given], found, given)

    def act(self, act: str, values: list, found, given) -> None:
        kind, *rest = act.split()
        number = int(rest[0]) if rest and rest[0].isdigit() else 0
        first = values[0] if values else texts_of([UNKNOWN])
        second = values[1] if len(values) > 1 else texts_of([UNKNOWN])
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
                targets = texts_of([self.landed(one, other) for other in second])
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
            elif any(letter in mode.partition(":")[0] for letter in "wax+c>") and not mode.startswith("utf"):
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
            if len(values) > 1 and not listed and sign_at(found, given[1][0]) != "{":
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
                if found[place].kind == NAME and found[place].value in names and sign_at(found, place + 1) == ":":
                    end = next((p for p in range(place + 2, stop) if sign_at(found, p) in (",", "}")), stop)
                    return self.texts(found, place + 2, end)[0]
        return None

    def has_shell(self, found, given) -> bool:
        for start, stop in given:
            for place in range(start, stop - 2):
                if found[place].kind == NAME and found[place].value == "shell" and sign_at(found, place + 1) == ":":
                    return found[place + 2].value != "false"
        return False

    def shell(self, token) -> None:
        for text in self.interpolated(token):
            self.here().script(text)
