"""The effects of programs, by their arguments: a row of `table` each. A program without a row is a guess.

name ── row_of ──▶ Case ── program ──▶ Program, a function of the Call
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from swarm_hook_core.shell.programs.table import FAMILIES, ROWS

_CONDITIONS = ("unless", "only")
_LISTS = ("default", "skip", "drop", "needs", "asks")
_FLAGS = ("onedash", "valued", "strict", "ends", "elsewhere", "reads", "nothing")
_EFFECTS = frozenset(
    "shows write replace remove remove-all existing mark tree maybe over flat manifest put run text project passes"
    " passes-names do language moves guess".split()
)


def fits(text: str, pattern: str) -> bool:
    """Return True if `text` equals `pattern`, which may have one ``*`` in it."""
    before, star, after = pattern.partition("*")
    if not star:
        return text == pattern
    return text.startswith(before) and text.endswith(after) and len(text) >= len(before) + len(after)


class Case:
    """A row, or one of the cases below it.

    whens    subcommands and options, one of which must be there; for a row: its names
    adds     True if its effects are added to the other effects and do not replace them
    options  spelling -> text after ``=``: empty for a switch, ``=`` for any value
    words    words after ``unless``, ``only``, ``default``, ``skip``, ``drop``, ``needs``, ``asks``
    flags    ``onedash``, ``valued``, ``strict``, ``ends``, ``elsewhere``, ``reads``
    effects  (word, its targets), in order
    cases    the Cases below it
    spec     the text behind its colon; `parse` fills `options`, `words`, `flags` and `effects` from it
    """

    __slots__ = ("whens", "adds", "options", "words", "flags", "effects", "cases", "spec")

    def __init__(self, whens: list[str], spec: str, cases: list[Case]) -> None:
        self.adds = whens[0] == "+"
        self.whens = whens[self.adds :]
        self.cases = cases
        self.spec = spec
        self.options: dict[str, str] = {}
        self.words: dict[str, list[str]] = {}
        self.flags: set[str] = set()
        self.effects: list[tuple[str, list[str]]] = []

    def parse(self) -> Case:
        """Read the text behind the colon, once, and return the case itself: most cases are never asked for."""
        if self.words:
            return self
        self.words = {name: [] for name in (*_CONDITIONS, *_LISTS)}
        before, guess, why = f" {self.spec} ".partition(" guess ")
        taken: list[str] | None = None
        for word in before.split():
            if word in _EFFECTS:
                taken = []
                self.effects.append((word, taken))
            elif word in self.words:
                taken = self.words[word]
            elif word in _FLAGS:
                self.flags.add(word)
                taken = None
            elif taken is None or (word[-1] in "=?" and word[0] == "-"):
                self._declare(word)
            else:
                taken += word.split(",") if taken is self.words["drop"] else [word]
        if guess:
            self.effects.append(("guess", [why.strip()]))
        asked = [*self.words["unless"], *self.words["only"], *(one for case in self.cases for one in case.whens)]
        for one in asked:
            if one[0] == "-" and "=" not in one:
                self.options.setdefault(one, "")
        return self

    def _declare(self, word: str) -> None:
        """Take up ``-abc,--name=FILE``."""
        if "=" in word:
            at = word.find("=")
        else:
            at = len(word)
        spellings, kind = word[:at], word[at:]
        if spellings.endswith("?"):
            spellings, kind = spellings[:-1], "?" + kind
        for spelling in spellings.split(","):
            if spelling[:1] == "-" and spelling[1:2] != "-" and "onedash" not in self.flags:
                self.options.update(("-" + letter, kind) for letter in spelling[1:])
            else:
                self.options[spelling] = kind

    @property
    def verbs(self) -> list[str]:
        """Its whens that are subcommands."""
        return [one for one in self.whens if one[0] not in "-<"]


def row_of(name: str) -> Case | None:
    """Return the row of program `name`, or None."""
    for table in _tables():
        row = row_in(table, name)
        if row is not None:
            return row
    return None


def _tables() -> Iterator[str]:
    yield ROWS
    for family in FAMILIES:
        yield __import__(f"swarm_hook_core.shell.programs.{family}", fromlist=["ROWS"]).ROWS


def row_in(table: str, name: str) -> Case | None:
    """Return the row of `name` in the text of a table, or None."""
    start = row_at(table, name)
    if start < 0:
        return None
    return _read(lines_of(table, start))


def _read(lines: list[tuple[int, str, str]]) -> Case:
    """The Case of the row that `lines` are, the first of them the row itself."""
    cases: list[Case] = []
    at = 1
    while at < len(lines):
        end = at + 1
        while end < len(lines) and lines[end][0] > lines[at][0]:
            end += 1
        cases.append(_read(lines[at:end]))
        at = end
    _indentation, names, words = lines[0]
    return Case(names.split(), words, cases)


def row_at(table: str, name: str) -> int:
    """Return the place where the row of `name` begins in the text of a table; -1 if it has no row.

    The text is searched as it is: most commands need one row, and an index of all costs more than that.
    """
    if name not in table or name.split() != [name] or name[0] == "#":
        return -1
    for first in (f"\n{name}:", f"\n{name} "):
        at = table.find(first)
        if at >= 0:
            return at + 1
    for later in (f" {name} ", f" {name}:"):
        at = table.find(later)
        while at >= 0:
            start = table.rfind("\n", 0, at) + 1
            if table[start] not in " #" and at < table.index(":", start):
                return start
            at = table.find(later, at + 1)
    return -1


def lines_of(table: str, start: int) -> list[tuple[int, str, str]]:
    """The lines of the row that begins at `start`, each as (indentation, whens, words); lines that go on are one."""
    found: list[tuple[int, str, str]] = []
    while start < len(table):
        end = table.index("\n", start)
        line, start = table[start:end], end + 1
        depth = len(line) - len(line.lstrip(" "))
        if found and not depth:
            return found
        if line[depth : depth + 1] == "#":
            continue
        if found and depth >= found[-1][0] + 4:  # it goes on
            before, names, words = found.pop()
            found.append((before, names, words + line))
        else:
            whens, _colon, words = f"{line} ".partition(": ")
            found.append((depth, whens, words))
    return found


# Programs


class Program:
    """A known program.

    does     a function of a `Call`; through the call it reports the writes, guesses, runs and output
    module   the module that parses its arguments if they are a language of their own, else empty
    reads    True if it writes nothing, with any arguments
    runs     True if it may run other commands
    """

    __slots__ = ("does", "module", "reads", "runs")

    def __init__(self, does: Callable[..., Any], module: str, reads: bool, runs: bool) -> None:
        self.does = does
        self.module = module
        self.reads = reads
        self.runs = runs


MOST_MET = 1000  # names: a process that answers many calls meets ever new ones
_met: dict[str, Program | None] = {}


def program(name: str) -> Program | None:
    """Return the Program `name` (a base name), or None if it is unknown."""
    if name not in _met:
        if len(_met) >= MOST_MET:
            _met.clear()
        _met[name] = _found(name) or _found(name.rstrip("0123456789.-"))  # python3.12, gcc-13
    return _met[name]


def _found(name: str) -> Program | None:
    row = row_of(name)
    if row is None:
        return None
    flags, effects = row.parse().flags, row.effects
    runs = "ends" in flags or any(verb in ("run", "text") for verb, _targets in effects)
    if effects and effects[0][0] == "language":
        module, function = effects[0][1][0].split(".")
        language = __import__(f"swarm_hook_core.shell.programs.{module}", fromlist=[function])
        return Program(getattr(language, function), module, "reads" in flags, runs)
    from swarm_hook_core.shell.programs import engine

    return Program(lambda call: engine.follow(call, row, _function), "", "reads" in flags, runs)


def _function(name: str) -> Callable[..., None]:
    """The function that a row calls ``name``."""
    from swarm_hook_core.shell.programs import functions

    function: Callable[..., None] = getattr(functions, name)
    return function
