"""One simple command as the programs see it: its options, and if it says that it updates files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from swarm_hook_core import EDIT
from swarm_hook_core.shell.model import (
    LONGEST_BY,
    Admits,
    Found,
    Guess,
    Read,
    Span,
    Stream,
    Tree,
    absolute,
    cited,
    is_known,
)

TYPE_CHECKING = False

if TYPE_CHECKING:
    from swarm_hook_core.shell.walk import Walk

MANY = 100  # effects; beyond that many the clock is read for each


class Call:
    """A program with its arguments, and methods to report its effects.

    name     base name of the program: ``sed``
    words    its arguments, after quoting and expansion; an unknown part is `UNKNOWN`, a word for many files on the
             disk is the mark of a `Found` (`found`)
    folder   the folder it runs in, absolute; None if unknown
    stdin    the Stream that is piped or redirected into it, or None
    output   set by the program: the Stream that it prints, if known
    walk     the walk it was met on, for programs that run other commands
    """

    __slots__ = ("name", "words", "folder", "stdin", "output", "walk", "_by")

    def __init__(
        self, walk: Walk, name: str, words: list[str], folder: str | None, stdin: Stream | None = None
    ) -> None:
        self.walk = walk
        self.name = name
        self.words = words
        self.folder = folder
        self.stdin = stdin
        self.output: Stream | None = None
        self._by = ""

    @property
    def by(self) -> str:
        """The command, for people: one line, of at most `LONGEST_BY` characters."""
        if not self._by:  # it stands with each of the files that it writes
            words, length = [self.name], 0
            for word in self.words:
                words.append(self.walk.shown(word[: 4 * LONGEST_BY]))
                length += len(word)
                if length > 4 * LONGEST_BY:
                    break
            self._by = cited(" ".join(words))
        return self._by

    def write(self, path: str, how: str = EDIT, keeps_text: bool = False) -> None:
        """Report that it writes, makes or removes the file `path` (a word). ``/dev/...`` and an empty path are ignored.

        `how`: the fate of the text that is there, see `change`. `keeps_text`: the text stays as it is.
        """
        self._stay_in_time()
        self.walk.files.write(path, self.folder, self.by, how, keeps_text)

    def tree(self, path: str, admits: Admits | None = None, how: str = EDIT) -> None:
        """Report that it writes or removes at and under the folder `path` (a word): all, or as `admits` says
        (``model.Tree``).

        `how`: as in `write`, for each of the files.
        """
        if not path:
            return
        self._stay_in_time()
        root = absolute(self.folder, path)
        if root is not None:
            self.walk.effects.add(Tree(root, self.by, admits, how))
            return
        found = self.found(path)
        if found is None:
            self.guess("a computed path")
            return
        for one in found:  # a folder that was found goes with all that is in it
            self.walk.effects.add(Tree(one.root, self.by, _with_inside(one), how))

    def _stay_in_time(self) -> None:
        # Only of a command that names very many files: loading a family takes its time as well.
        if len(self.walk.effects.writes) + len(self.walk.effects.trees) > MANY:
            self.walk.spend(0)

    def guess(self, why: str, folder: str | None = None) -> None:
        """Report that it may write unnamed files: `why` in a few words, under `folder` (default: its own folder)."""
        if folder is None:
            where = self.folder
        else:
            where = absolute(self.folder, folder)
        self.walk.effects.add(Guess(why, where or "", self.by))

    def moves(self) -> None:
        """Report that it may discard or move work of any session in the repository around."""
        self.walk.effects.moves.append((self.folder or "", self.by))

    def runs_project(self) -> None:
        """It runs the project's own code: tests, a build; a guess where the command says that this updates files."""

        self.walk.effects.runs = True
        script = self.walk.project_script(self) if self.walk.project_script is not None else ""
        if script:
            self.walk.nested(script, self.folder)
        why = reason(self)
        if why:
            self.guess(why)

    def found(self, word: str) -> list[Found] | None:
        """Return the list of Founds that `word` as a whole stands for, or None."""
        return self.walk.found(word)

    def says(self, text: str | None = None, found: Found | list[Found] | None = None) -> None:
        """Set the Stream that it prints."""
        self.output = Stream(text, found)

    def shows(self, words: list[str], spans: Sequence[Span] = (), since: str = "") -> None:
        """Report that it prints the content of the files `words`; with no words, of its standard input.

        `spans`, `since`: the part it prints, as in ``model.Read``. If several files are cut together, the missing lines
        are unknown, so nothing is reported.
        """
        walk = self.walk
        if not walk.scope.shown or walk.doubts or (walk.scope.spans and (len(words) > 1 or since)):
            return
        if not words and self.stdin is not None and self.stdin.file:
            words = [self.stdin.file]
        for word in words:
            if word and word != "-" and is_known(word) and (self.folder or word[0] == "/"):
                walk.effects.add(Read(self.folder or "/", word, (*walk.scope.spans, *spans), since))

    def run(self, words: list[str], stdin: Stream | None = None, folder: str | None = None) -> None:
        """It runs the command `words` (name first), in `folder` (a word; default: where itself runs)."""
        where = self.folder
        if folder is not None:
            where = absolute(self.folder, folder)
        self.output = self.walk.run(words, stdin, where)

    def script(self, text: str, words: Sequence[str] = (), stdin: Stream | None = None) -> None:
        """It runs shell text with positional parameters `words` (``$0`` first)."""
        if is_known(text):
            self.output = self.walk.nested(text, self.folder, list(words), stdin)
        else:
            self.guess("a computed command")


def _with_inside(found: Found) -> Admits:
    """Return a predicate: a file was found, or lies in a folder that was found."""

    def admits(path: str) -> bool | None:
        answer = found.admits(path)
        while answer is not True and len(path) > len(found.root):
            path = os.path.dirname(path)
            above = found.admits(path)
            if above is not False:
                answer = above
        return answer

    return admits


# Splitting a program's arguments into options and operands, as getopt does.


class Options:
    """`operands` in order; `given`: option -> list of its values (None for an option without a value).

    Short options are keyed ``-x``, long ones ``--name`` (also if written ``--name=value``).
    """

    __slots__ = ("operands", "given")

    def __init__(self, operands: list[str], given: dict[str, list[str | None]]) -> None:
        self.operands = operands
        self.given = given

    def has(self, *names: str) -> bool:
        """Return True if one of these options was given."""
        return any(name in self.given for name in names)

    def values(self, *names: str) -> list[str]:
        """The values given to these options, in the order of `names`."""
        return [value for name in names for value in self.given.get(name, ()) if value is not None]

    def value(self, *names: str) -> str | None:
        """Return the last value given to one of these options, or None."""
        found = self.values(*names)
        if found:
            return found[-1]
        return None


def split(
    words: Iterable[str],
    short: str = "",
    long: Iterable[str] = (),
    optional: str = "",
    stop_early: int = 0,
) -> Options:
    """Split `words` (without the program's name) into options and operands.

    `short`: letters of short options with a value (``-o x``, ``-ox``). `optional`: letters of options with an attached
    value or no value (``-i.bak``). `long`: long options with their value in the next word. `stop_early`: this many
    operands (True: one) end the options, as for programs that run others; 0: never.
    """
    operands: list[str] = []
    given: dict[str, list[str | None]] = {}
    rest = iter(words)
    for word in rest:
        if word == "--":
            operands += rest
        elif word == "-" or not word.startswith("-"):
            operands.append(word)
            if stop_early and len(operands) >= stop_early:
                operands += rest
        elif word.startswith("--"):
            name, equals, value = word.partition("=")
            given.setdefault(name, []).append(_value_of(value if equals else None, name in long, rest))
        else:
            for place, letter in enumerate(word[1:], 2):
                values = given.setdefault(f"-{letter}", [])
                if letter in short:
                    values.append(word[place:] or next(rest, ""))
                    break
                if letter in optional:
                    values.append(word[place:] or None)
                    break
                values.append(None)
    return Options(operands, given)


def split_one_dash(
    words: Iterable[str],
    valued: Iterable[str],
    known: Iterable[str] = (),
    most_take: bool = False,
) -> Options:
    """Split `words` of a program whose long options have one dash, so that letters are not put together (gcc, go).

    `valued`: options with a value, in the next word or behind ``=``; those of one letter also right behind it. `known`:
    other options. `most_take`: an option in neither takes the next word, too (ffmpeg).
    """
    operands: list[str] = []
    given: dict[str, list[str | None]] = {}
    rest = iter(words)
    for word in rest:
        if word == "--":
            operands += rest
        elif word == "-" or word[:1] != "-":
            operands.append(word)
        else:
            name, equals, value = word.partition("=")
            if name not in valued and name not in known:
                if name[:2] == "--":
                    other = name[1:]
                else:
                    other = "-" + name
                if other in valued or other in known:
                    name = other
                elif name[:2] in valued:
                    name, equals, value = name[:2], "=", word[2:]
            takes = name in valued or (most_take and name not in known)
            given.setdefault(name, []).append(_value_of(value if equals else None, takes, rest))
    return Options(operands, given)


def _value_of(attached: str | None, takes: bool, rest: Iterator[str]) -> str | None:
    """Return an option's value: the `attached` one, else the next word of `rest` if the option takes one."""
    if attached is None and takes:
        return next(rest, None)
    return attached


# Recognises commands that run the project's own code and say that this changes files of the checkout.
#
# ``jest -u``, ``go test -update``, ``UPDATE_EXPECT=1 cargo test``, ``npm run lint -- --fix``, ``gradle spotlessApply``.
# Only the project knows the files.

# Words of an option's or a variable's name. `--update-snapshots`, `-update`, `--snapshot-update`, `UPDATE_EXPECT`
_OPTION_WORDS = frozenset(
    "update updates regen regenerate bless fix autofix write overwrite accept approve promote rewrite"
    " autocorrect".split()
)
_VARIABLE_WORDS = frozenset("update bless regen regenerate accept approve overwrite record rewrite".split())
_NOT = frozenset("no not check dry skip disable without notifier only".split())
_OFF = ("", "0", "no", "false", "off", "never", "none")
# Variables and options with a value that says it.
_VALUES = {
    "TRYBUILD": ("overwrite",), "--record-mode": ("rewrite", "all", "once", "new_episodes"),
    "--vcr-record": ("all", "once"),
    "--inline-snapshot": ("create", "fix", "trim", "update"),
}  # fmt: skip
_SHORT = frozenset("jest vitest playwright ava bun npm yarn pnpm deno".split())  # of these -u updates snapshots

# Programs with names of tasks as operands, and words in a task's name that say it changes sources.
_RUNNERS = frozenset(
    "npm yarn pnpm bun deno make gmake just task mage rake gradle gradlew mvn mvnw mix rails turbo nx ng ant sbt"
    " lerna composer hatch pdm pixi mise poe invoke fab flask django-admin hugo flutter expo vue-cli-service nest cargo"
    " dotnet dune bazel bazelisk storybook molecule devbox stack cabal rebar3".split()
)
_TASK_WORDS = frozenset(
    "update updates upgrade bump regen regenerate generate gen codegen scaffold migrate migration migrations rollback"
    " makemigrations makemessages startapp startproject format fmt reformat prettify prettier fix autofix apply rewrite"
    " accept bless promote changelog scalafmt scalafix g destroy new create init add set use release prepare".split()
)
# Of those the ones that mean something else outside of frameworks' own commands.
_OF_FRAMEWORKS = frozenset("g destroy new create init add".split())
_FRAMEWORKS = frozenset(
    "rails ng nx nest mix flask django-admin hugo flutter expo vue-cli-service dotnet stack cabal rebar3 turbo"
    " storybook molecule".split()
)
_OF_MAVEN = frozenset("set use release prepare".split())  # versions:set, versions:use-latest-versions, release:prepare
_OF_MANY_TASKS = frozenset("make gmake just task mage rake gradle gradlew mvn mvnw ant invoke fab".split())
_ENDS = frozenset("test t check c build b bench exec e x lint serve start doc clippy nextest".split())
_NAME_TESTS = frozenset(("--tests", "-k", "-C", "-f", "-p", "--filter", "--project", "--directory", "--file"))
_LOOKS = frozenset("check verify dry list status show display help plan diff validate report".split())
_ALWAYS = frozenset("fix update".split())  # check:fix, test:update


def reason(call: Call) -> str:
    """Return why `call`, which runs the project's own code, may change files of the checkout; empty if nothing says
    so.
    """
    for word in call.words:
        if word[:1] == "-" and is_known(word) and _is_updating_option(call.name, word):
            return f"`{word[:40]}` updates files"
    variables = call.walk.scope.variables
    for name in variables:
        value = variables[name]
        if isinstance(value, str) and _is_updating_variable(name, value):
            return f"`{name[:40]}` has files updated"
    task = ""
    if call.name in _RUNNERS:
        task = _changing_task(call)
    if task:
        return f"`{task[:40]}` changes files"
    return ""


def _changing_task(call: Call) -> str:
    """Return the first of a runner's tasks with a name that says it changes sources; empty if there is no such task."""
    before = ""
    for word in call.words:
        if word == "--" or (word in _ENDS and call.name not in _OF_MANY_TASKS):
            break  # the rest is for the tests
        is_task = word[:1] not in ("-", ".") and "/" not in word and before not in _NAME_TESTS and is_known(word)
        if is_task and _changes_sources(call.name, word):
            return word
        before = word
    return ""


def _is_updating_option(program: str, word: str) -> bool:
    name, _equals, value = word.partition("=")
    if name in _VALUES:
        return any(one in value for one in _VALUES[name])
    if name == "-u":
        return program in _SHORT
    if value[:1] == "-" and _is_updating_option(program, value):
        return True  # --test-options=--accept
    if program in ("mvn", "mvnw") or value in ("false", "none", "0"):
        return False  # -U, --update-snapshots: of Maven's repository
    words = _words(name)
    return bool(_OPTION_WORDS.intersection(words)) and not _NOT.intersection(words)


def _is_updating_variable(name: str, value: str) -> bool:
    if name in _VALUES:
        return value in _VALUES[name]
    words = _words(name)
    return (
        name.isupper()
        and value.lower() not in _OFF
        and bool(_VARIABLE_WORDS.intersection(words))
        and not _NOT.intersection(words)
    )


def _changes_sources(program: str, task: str) -> bool:
    words = _words(task)
    known = _TASK_WORDS
    if program not in _FRAMEWORKS:
        known = known - _OF_FRAMEWORKS
    if program not in ("mvn", "mvnw"):
        known = known - _OF_MAVEN
    if not known.intersection(words) or "=" in task:
        return False
    return bool(_ALWAYS.intersection(words)) or not _LOOKS.intersection(words)


def _words(name: str) -> list[Any]:
    """Return the words of a name, in lower case: ``updateSnapshot``, ``db:migrate``, ``--force-regen``."""
    found, before = "", ""
    for letter in name:
        if letter.isupper() and before.islower():
            found += " "
        if letter.isalnum():
            found += letter.lower()
        else:
            found += " "
        before = letter
    return found.split()
