"""Reads a row of the `table` and a command, and reports the command's writes through the `Call`.

The language of the rows is described at the top of the table.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from swarm_hook_core import EDIT, REMOVE, REPLACE
from swarm_hook_core.shell.call import Call, Options, split, split_one_dash
from swarm_hook_core.shell.model import Input, Stream, absolute, is_known
from swarm_hook_core.shell.programs import Case, fits
from swarm_hook_core.shell.programs.places import (
    cannot_tell,
    directly_in,
    exists,
    fixed_part,
    is_file,
    is_folder,
    is_pattern,
    is_remote,
    matching,
    put,
    seen,
    with_endings,
    words_of,
)
from swarm_hook_core.shell.programs.table import KINDS

_HOW = {"replace": REPLACE, "remove": REMOVE, "remove-all": REMOVE}
_MANIFESTS = ("pyproject.toml", "Pipfile", "pixi.toml")
_ONLY_ASKS = ("-h", "-V", "help", "version", "-help", "-version")


def follow(call: Call, row: Case, functions: Callable[[str], Callable[..., None]] | None) -> None:
    """Report the effects of `call` by its `row`; `functions(name)` is the function for a ``do name``."""
    found = Reading(call, row, functions)
    if "--" in found.own:
        words = found.own[: found.own.index("--")]
    else:
        words = found.own
    if found.is_quiet or _only_asks(words, row):
        return
    before, ran = call.walk.effects.size, call.walk.effects.runs
    found.say()
    if found.unknown:
        call.guess(f"{call.name} {call.walk.shown(found.unknown[:20])} is not known")
    if found.options.given and "elsewhere" not in found.flags | found.case.flags:
        runs = call.walk.effects.runs != ran  # options after `--` belong to the command it runs
        name_outputs(call, found.own if runs else words, found.declared)
        option = _says_that_it_writes(words, found.declared)
        if option and call.walk.effects.size == before and not runs:
            call.guess(f"`{option[:20]}` may write")


def _only_asks(words: list[str], row: Case) -> bool:
    """Return True if the program is only asked for its version or help."""
    if words == ["version"] and any("version" in case.verbs and case.spec.strip() != "nothing" for case in row.cases):
        return False  # `changeset version` makes one
    if "--help" in words or words[:1] == ["--version"] or words[-1:] == ["--version"]:
        return True
    if words[-1:] == ["-h"] and any(case.verbs for case in row.cases):
        return True
    return len(words) == 1 and words[0] in _ONLY_ASKS


class Reading:
    """A command, read by its row.

    case      the Case that applies
    added     Cases with additional effects
    declared  spelling -> kind of all the options that the row and the case know
    words     the arguments, by default those of the call
    options   the words, parsed; without the subcommands, and without the operands that `skip` passes over
    own       the arguments without those of a command that it runs (``ends``)
    used      the subcommands that led there
    unknown   a subcommand that the row does not have, or an option if it is `strict`; else empty
    is_quiet  True if an option says to write nothing at all (``unless``)
    is_spared True if it writes only the files that its options name (``only``, ``needs``, an unknown subcommand)
    replaced  True if an option names the output in place of all other effects
    """

    def __init__(
        self,
        call: Call,
        row: Case,
        functions: Callable[[str], Callable[..., None]] | None,
        words: list[str] | None = None,
    ) -> None:
        self.call = call
        if words is None:
            words = call.words
        self.words = self.own = words
        self.functions = functions
        self.drops: list[str] = []
        self.declared: dict[str, str] = {}
        self.flags = row.parse().flags
        self.added: list[Case] = []
        self.unknown = ""
        self.is_quiet = self.is_spared = self.replaced = False
        self.used: list[str] = []
        self.case = row
        below: Case | None = row
        while below is not None:
            self.case = below
            self._take_up(below)
            self.added += [one for one in below.cases if one.adds and self._meets(one.whens)]
            below = self._chosen(below)
        for one in self.added:
            self._declare(one.parse())
        if self.added:
            self.options = self._parsed()
        self._pass_over_operands()
        if "strict" in row.flags:
            self.unknown = next((one for one in self.options.given if self._is_strange(one)), "")

    def _take_up(self, case: Case) -> None:
        """The arguments are parsed with the options of `case` as well, and its conditions asked."""
        self._declare(case.parse())
        self.drops += case.words["drop"]
        self.options = self._parsed()
        if case.words["unless"] and self._meets(case.words["unless"]):
            self.is_quiet = True
        if case.words["only"] and not self._meets(case.words["only"]):
            self.is_spared = True

    def _pass_over_operands(self) -> None:
        operands, words = self.options.operands, self.case.words
        del operands[: int((words["skip"] or ["0"])[0])]
        if not operands:
            operands += words["default"]
        if len(operands) < int((words["needs"] or ["0"])[0]):
            self.is_spared = True

    def _declare(self, case: Case) -> None:
        for spelling, kind in case.options.items():
            if kind or spelling not in self.declared:
                self.declared[spelling] = kind

    def _is_strange(self, name: str) -> bool:
        return name[:2] == "--" and name not in self.declared and name[1:] not in self.declared

    def _parsed(self) -> Options:
        options, self.own = self._split(0), self.words
        if "ends" in self.case.flags:
            before = len(self.used) + int((self.case.words["skip"] or ["0"])[0])
            before += bool(options.operands and self._is_dropped(options.operands[0]))
            options = self._split(before + 1)
            self.own = self.words[: len(self.words) - max(len(options.operands) - before, 0)]
        stars = [name for name in self._valued if "*" in name]
        keys = [name for name in self._valued if name[0] != "-"]
        for name in list(options.given) if stars else ():
            for star in stars:
                if name != star and fits(name, star):
                    options.given.setdefault(star, []).extend(options.given[name])
        for word in list(options.operands) if keys else ():
            key, equals, value = word.partition("=")
            if equals and key in keys:
                options.operands.remove(word)
                options.given.setdefault(key, []).append(value)
        for word in self.used:
            if word in options.operands:
                options.operands.remove(word)
        if options.operands and self._is_dropped(options.operands[0]):
            del options.operands[0]
        return options

    def _split(self, stop_early: int) -> Options:
        """Split the arguments into options and operands; this many operands (0: unlimited) end the options."""
        valued = self._valued
        if "onedash" in self.flags:
            switches = [name for name in self.declared if name not in valued]
            return split_one_dash(self.words, valued, switches, "valued" in self.flags)
        short = "".join(name[1] for name in valued if len(name) == 2)
        loose = "".join(name[1] for name, kind in self.declared.items() if len(name) == 2 and kind[:1] == "?")
        return split(self.words, short, valued, loose, stop_early)

    @property
    def _valued(self) -> list[str]:
        """The declared options that take a value from the next word."""
        return [name for name, kind in self.declared.items() if kind and kind[0] == "="]

    def _is_dropped(self, word: str) -> bool:
        return any(fits(word, one) for one in self.drops)

    def _chosen(self, case: Case) -> Case | None:
        """Return the case below `case` that applies, or None. A subcommand that chose one is used up."""
        operands = self.options.operands
        first = (self.words or [""])[0]
        verbs = operands[: 2 if first[:1] == "-" and self.declared.get(first, "")[:1] != "=" else 1]
        other, asks = None, False
        for below in case.cases:
            if below.adds:
                continue
            if self._meets([one for one in below.whens if one[0] in "-<"]):
                return below
            for wanted in below.verbs:
                asks = True
                if wanted == "*":
                    other = below
                    continue
                # An option that stands first may have taken the first of them.
                verb = next((one for one in verbs if fits(one, wanted)), None)
                if verb is not None:
                    self.used.append(verb)
                    return below
        if other is not None and operands:
            self.used.append(operands[0])
            return other
        if asks and operands and "--dry-run" not in self.words:
            self.unknown, self.is_spared = operands[0], True
        return None

    def _meets(self, conditions: list[str]) -> bool:
        """Return True if one of these options was given: by its name, with its value, or as a word of its own."""
        given, words = self.options.given, self.own
        for one in conditions:
            if one in given or one in words or (one == "<" and self.call.stdin is not None):
                return True
            name, equals, value = one.partition("=")
            if equals and value in given.get(name, ()):
                return True
        return False

    # Its writes

    def say(self) -> None:
        """All that it writes, said through the call."""
        if self.is_quiet:
            return
        self.name_declared()
        if not self.is_spared:
            for case in self.added if self.replaced else [self.case, *self.added]:
                self.do(case)

    def name_declared(self) -> None:
        """Report the files named by options that the row declares."""
        for name, kind in self.declared.items():
            if kind not in ("=FILE", "=DIR", "=INSTEAD", "?=FILE", "=CHANGED"):
                continue
            for value in self.options.values(name):
                if kind == "=DIR":
                    self.one("maybe", value)
                elif kind == "=CHANGED":
                    self.one("write", value)
                else:
                    self.one("replace", self.placed(value) if kind == "=INSTEAD" else value, 1)
                self.replaced = self.replaced or kind == "=INSTEAD"

    @property
    def folder(self) -> str:
        """The folder of its targets: the value of an option for that, or empty."""
        names = [name for name, kind in self.declared.items() if kind[-3:] == "=IN"]
        return self.options.value(*names) or ""

    def placed(self, word: str) -> str:
        """`word`, seen from the folder that an option names."""
        if self.folder and word != "-":
            return os.path.join(self.folder, word)
        return word

    def do(self, case: Case) -> None:
        """All effects of `case`."""
        for verb, targets in case.effects:
            if verb == "guess":
                self.call.guess(targets[0], self.folder or None)
            elif verb == "project":
                words = self.words
                if words[:1] not in (["help"], ["version"], ["-version"], ["-V"], ["--v"]) and words != ["-v"]:
                    self.call.runs_project()
            elif verb == "moves":
                self.call.moves()
            elif verb == "shows":
                self.call.shows([word for target in targets for word in words_of(self, target)])
            elif verb == "passes":
                self.call.output = self.call.stdin
            elif verb == "passes-names":
                stream = self.call.stdin
                if stream is not None and stream.found is not None and not self.options.operands:
                    self.call.output = Stream(None, stream.found)
            elif verb == "do" and self.functions is not None:
                self.functions(targets[0])(self.call, self, *targets[1:])
            elif verb == "run":
                self.run([word for target in targets for word in words_of(self, target)])
            elif verb == "text":
                for text in [word for target in targets for word in words_of(self, target)]:
                    self.call.output = self.call.walk.nested(text, self.call.folder, (), self.call.stdin)
            elif verb in ("over", "flat"):
                endings = [end for one in targets for end in KINDS.get(one, one).split() if end != "ANY"]
                self.over([self.placed(word) for word in self.options.operands], tuple(endings), verb == "flat")
            elif verb == "put":
                self.put()
            elif verb == "manifest":
                folder = self.project_folder()
                for name in targets:
                    self.call.write(os.path.join(folder, name) if folder else name)
            else:
                self.targets(verb, targets)

    def run(self, words: list[str]) -> None:
        """Run the command `words`, with the variables that stand first in them set for it alone."""
        call, scope = self.call, self.call.walk.scope.fork()
        if self.folder:
            scope.folder = absolute(call.folder, self.folder)
        else:
            scope.folder = call.folder
        if call.stdin is not None:
            scope.stdin = Input(call.stdin)
        while words and "=" in words[0] and words[0].partition("=")[0].isidentifier():
            name, _, scope.variables[name] = words[0].partition("=")
            words = words[1:]
        if words:
            call.output = call.walk.simple(scope, words)

    def targets(self, verb: str, targets: list[str]) -> None:
        """`verb` for each of `targets`; of those with ``or`` between them the first that there is."""
        had, alternative = True, False
        for target in targets:
            if target == "or":
                alternative = True
                continue
            if alternative and had:
                alternative = False
                continue
            root, mark, ending = target.rpartition("/*.")
            words = words_of(self, root if mark else target)
            had, alternative = bool(words), False
            for word in words:
                if mark:
                    endings = with_endings(("." + ending,))
                    admits = endings
                    if verb == "maybe":
                        admits = _possible(endings)
                    self.call.tree(self.placed(word), admits, _HOW.get(verb, EDIT))
                else:
                    self.one(verb, self.placed(word), 2 if target[:1] == "{" and target[1:2] != "-" else 1)

    def one(self, verb: str, word: str, times: int = 1) -> None:
        """Do `verb` for one file or folder.

        A replaced file that the same command reads is made from itself, so this counts as an edit. The command reads it
        if it stands among the operands this many `times`.
        """
        call = self.call
        if not word or word == "-" or "://" in word or word.endswith(":-"):
            return
        how = _HOW.get(verb, EDIT)
        if how == REPLACE and self._reads(word, times):
            how = EDIT
        if _counts(word):
            call.tree(os.path.dirname(word) or ".", cannot_tell, how)
        elif verb in ("write", "replace", "remove"):
            call.write(word, how)
            path, line = seen(call, word), call.walk.scope.line
            if how == REPLACE and line and path is not None:
                call.walk.files.made_of[path] = line
        elif verb == "mark":
            call.write(word, keeps_text=True)
        elif verb in ("tree", "remove-all"):
            call.tree(word, how=how)
        elif verb == "maybe":
            call.tree(word, cannot_tell)
        elif not is_known(word) or exists(call, word) or seen(call, word) in call.walk.files.contents:
            call.write(word)

    def _reads(self, word: str, times: int) -> bool:
        operands = self.options.operands
        if operands.count(word) >= times:
            return True
        path = seen(self.call, word)
        return len(operands) >= times and sum(seen(self.call, one) == path for one in operands) >= times

    def over(self, operands: list[str], endings: tuple[str, ...], flat: bool) -> None:
        """Go over `operands`: files as they are, in folders names with `endings`, patterns as the tool expands them."""
        call = self.call
        for word in operands:
            if word == "-" or word.startswith("!"):
                continue
            word = word.removesuffix("/...") or "."
            if word == "...":
                word = "."
            if is_pattern(word) and not is_file(call, word) and not is_folder(call, word):
                call.tree(fixed_part(word), matching(word, call.folder or "/") if call.folder else cannot_tell)
            elif not is_folder(call, word):
                call.write(word)
            elif flat:
                call.tree(word, directly_in(seen(call, word), lambda name: name.endswith(endings)))
            else:
                call.tree(word, with_endings(endings) if endings else cannot_tell)

    def project_folder(self) -> str | None:
        """The next folder above that has a manifest of Python's package managers."""
        if self.folder:
            folder = absolute(self.call.folder, self.folder)
        else:
            folder = self.call.folder
        while folder is not None and not any(os.path.exists(os.path.join(folder, name)) for name in _MANIFESTS):
            above = os.path.dirname(folder)
            if above == folder:
                folder = None
            else:
                folder = above
        return folder

    def put(self) -> None:
        """The operands but the last are brought to the last, a file or a folder of this machine."""
        *sources, dest = self.options.operands or [""]
        if not sources or "://" in dest or dest == "-" or is_remote(dest):
            return
        for source in sources:
            name = source
            if is_remote(source):
                name = source[source.index(":") + 1 :]
            put(self.call, name or ".", dest, len(sources) > 1 or None)


def _counts(word: str) -> bool:
    """Return True if the name contains a counter for many files: ``frame%03d.png``, curl's ``#1``."""
    for mark in "%#":
        after = word.partition(mark)[2]
        if after[:1].isdigit() or (mark == "%" and after[:1] == "d"):
            return True
    return False


def _possible(admits: Callable[[str], bool | None]) -> Callable[[str], bool | None]:
    return lambda path: None if admits(path) else False


# Options that the program's row does not declare: the common meaning of their names.
#
# ``-o x``, ``--out*``, ``--output*``, ``--*-dir`` and their like name an output, for a known program and an unknown
# one; ``--write``, ``--fix`` and the like announce a write without its name.

_OUTPUTS = ("output", "out-", "outfile", "outdir", "outpath", "outfolder")
# `--output-...` options that describe an output and do not name it
_MANNERS = (
    "format", "type", "encoding", "delimiter", "separator", "mode", "level", "style", "width", "fields", "template",
    "limit", "indent", "error", "errors", "charset", "version", "lines", "sync", "size", "prefix", "suffix", "columns",
)  # fmt: skip
_FOLDERS = ("-dir", "-directory", "-folder")
# `--...-dir` options of folders that are only read, or run in
_READ_FOLDERS = frozenset(
    "add asset assets base cache cert certs change chart config conf current docs exclude exec git home"
    " ignore image in include includes input java key lib library module modules package packages plugin plugins"
    " policy project proj resource resources root rules schema script scripts sdk search site source src start"
    " template templates temp test tests tmp top-level user work working".split()
)
_WRITES = frozenset("write fix autofix inplace in-place overwrite save compile".split())
_WRITES_FIRST = ("write-", "fix-", "save-", "in-place-")


def name_outputs(call: Call, words: list[str] | None = None, declared: dict[str, str] | tuple[Any, ...] = ()) -> None:
    """Report the outputs that the options of `call` name (or of `words`, the last of its arguments).

    `declared`: the options that its row declares. The ``-o`` of a program without a row may be a level: a number is no
    file.
    """
    has_row = words is not None
    if words is None:
        words = call.words
    for place, word in enumerate(words):
        if len(word) < 2 or word[0] != "-" or not is_known(word[:2]):
            continue
        name, equals, value = word.partition("=")
        if name in declared or "-" + name.lstrip("-") in declared:
            continue
        kind = _kind(name)
        if not kind and word.startswith("-o") and "-o" not in declared:
            kind = "file"
            if name != "-o":
                value, equals = word[2:], "="
        if not kind:
            continue
        if not equals:
            value = ""
            if place + 1 < len(words):
                value = words[place + 1]
        if value and value[0] != "-" and (has_row or word[:2] == "--" or value.strip("0123456789.")):
            _written(call, kind, value)


def _says_that_it_writes(words: list[str], declared: dict[str, str]) -> str:
    """Return the first option of `words` with a name that announces a write, or empty. `declared` ones do not count."""
    for word in words:
        bare = ""
        if word[:2] == "--":
            bare = word[2:].partition("=")[0]
        known = not bare or "--" + bare in declared or "dry" in bare
        if not known and (bare in _WRITES or bare.startswith(_WRITES_FIRST)):
            return "--" + bare
    return ""


def _written(call: Call, kind: str, word: str) -> None:
    if kind == "file" and not is_folder(call, word):
        call.write(word)
        if exists(call, word) or not is_known(word):
            return
    call.tree(word, cannot_tell)


def _kind(name: str) -> str:
    """Return ``views`` or ``folder`` for an option (``--name``) whose argument is written, else empty."""
    bare = name.lstrip("-")
    if len(bare) < 3:
        return ""
    if bare[-3:] == "Dir" and bare[-4:-3] not in ("", "-"):
        bare = bare[:-3] + "-dir"
    bare = bare.lower().replace("_", "-")
    if bare == "out" or bare.startswith(_OUTPUTS) or bare.endswith(("-out", "-output", "-outfile", "-output-file")):
        if bare.endswith(_MANNERS):
            return ""
        if bare.endswith(("dir", "directory", "folder")):
            return "folder"
        return "file"
    if name[:2] == "--" and bare.endswith(_FOLDERS) and bare.rpartition("-")[0] not in _READ_FOLDERS:
        return "folder"
    if name in ("--log-file", "--logfile"):
        return "file"
    return ""
