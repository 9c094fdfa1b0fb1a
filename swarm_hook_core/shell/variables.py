"""The state of a shell: its folder, variables and functions, and the assignments to them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Union

from swarm_hook_core.shell.call import split
from swarm_hook_core.shell.lexer import is_name
from swarm_hook_core.shell.model import UNKNOWN, Input, Span, Stream, is_known, text_of
from swarm_hook_core.shell.parser import word_of
from swarm_hook_core.shell.syntax import Array, Node, Word
from swarm_hook_core.shell.words import fields, value
from swarm_hook_core.shell.words import number as number_of

TYPE_CHECKING = False

if TYPE_CHECKING:
    from swarm_hook_core.shell.walk import Walk

DECLARERS = ("export", "local", "declare", "typeset", "readonly")


class Assignment:
    """``name=value``, ``name+=value`` (`adds`), ``name[index]=value``."""

    __slots__ = ("name", "index", "adds", "value")

    def __init__(self, name: str, index: Word | None, adds: bool, value: Word) -> None:
        self.name = name
        self.index = index
        self.adds = adds
        self.value = value


def assignment(word: Word) -> Assignment | None:
    """Return `word` as an Assignment, or None."""
    left, mark, right = word.raw.partition("=")
    name, bracket, index = left.removesuffix("+").partition("[")
    if not mark or not is_name(name) or (bracket and index[-1:] != "]"):
        return None
    first = word.parts[0]
    if isinstance(first, str) and first.startswith(left + "="):
        current = Word(right, [first[len(left) + 1 :], *word.parts[1:]])
    else:  # there are quotes or expansions in the index
        current = word_of(right)
    return Assignment(name, word_of(index[:-1]) if bracket else None, left[-1] == "+", current)


def assign(walk: Walk, scope: Scope, to: Assignment) -> None:
    name, adds = to.name, to.adds
    if to.index is not None:
        _assign_element(walk, scope, name, to.index, value(walk, scope, to.value), adds)
        return
    listed = next((part for part in to.value.parts if isinstance(part, Array)), None)
    if listed is not None:
        items = _items(walk, scope, listed.words, scope.variables.get(name))
        current = None
        if adds:
            current = scope.variables.get(name)
        if isinstance(items, list) and isinstance(current, (list, str)):
            if isinstance(current, str):
                current = [current]
            items = current + items
        scope.variables[name] = items
        return
    text = value(walk, scope, to.value)
    current = None
    if adds:
        current = scope.variable(name)
    if isinstance(current, list):
        scope.variables[name] = [*current[:-1], "".join(current[-1:]) + text]
    else:
        if adds and not isinstance(current, dict):
            text = (current or "") + text
        scope.variables[name] = text


def _assign_element(walk: Walk, scope: Scope, name: str, index: Word, text: str, adds: bool) -> None:
    current = scope.variables.get(name)
    if isinstance(current, dict):
        key = value(walk, scope, index)
        if adds:
            text = current.get(key, "") + text
        scope.variables[name] = {**current, key: text}
        return
    number = number_of(walk, scope, index)
    if isinstance(current, list):
        listed = list(current)
    elif current is None:
        listed = []
    else:
        listed = [current]
    if not is_known(number) or not -len(listed) <= int(number) <= 1000:
        scope.variables[name] = [*listed, UNKNOWN]
        return
    place = int(number)
    listed += [""] * (place + 1 - len(listed))
    if adds:
        text = listed[place] + text
    listed[place] = text
    scope.variables[name] = listed


def _items(walk: Walk, scope: Scope, words: list[Word], current: Variable) -> list[str] | dict[str, str]:
    """A list; a dict where all is ``[key]=value`` and the variable was declared so."""
    named: dict[str, Any] = {}
    if isinstance(current, dict):
        named = dict(current)
    listed: list[str] = []
    for word in words:
        walk.spend()
        key, mark, right = word.raw.partition("]=")
        if not mark or key[:1] != "[":
            listed += fields(walk, scope, word)
            continue
        text = value(walk, scope, word_of(right))
        listed.append(text)
        if isinstance(current, dict):
            named[value(walk, scope, word_of(key[1:]))] = text
    if isinstance(current, dict):
        return named
    return listed


def declare(walk: Walk, scope: Scope, words: list[Word]) -> None:
    """export, local, declare, typeset, readonly."""
    name, local = words[0].raw, words[0].raw in ("local", "declare", "typeset") and scope.locals is not None
    associative = refers = False
    for word in words[1:]:
        if word.raw.startswith(("-", "+")):
            associative = associative or "A" in word.raw
            refers = refers or "n" in word.raw
            local = local and "g" not in word.raw
            continue
        to = assignment(word)
        if to:
            variable = to.name
        else:
            variable = word.raw
        if not variable.isidentifier():
            value(walk, scope, word)
            continue
        if local and scope.locals is not None and variable not in scope.locals:
            scope.locals[variable] = scope.variables.get(variable)
        if associative and not isinstance(scope.variables.get(variable), dict):
            scope.variables[variable] = {}
        if refers and name != "export":  # stands for another variable
            scope.variables[variable] = UNKNOWN
        elif to:
            assign(walk, scope, to)
        elif local and name == "local":
            scope.variables[variable] = ""
    scope.status = True


def declare_texts(walk: Walk, scope: Scope, words: list[str]) -> Stream:
    """The same where the command itself was computed: `command export x=1`."""
    declare(walk, scope, [Word(word, [word]) for word in words])
    return Stream("")


def unset(walk: Walk, scope: Scope, words: list[str]) -> Stream:
    functions = "-f" in words[1:]
    for word in words[1:]:
        if word.startswith("-"):
            continue
        if functions:
            scope.functions.pop(word, None)
        elif "[" in word:
            scope.variables[word.partition("[")[0]] = UNKNOWN
        elif word in scope.variables or word in scope.environment:
            scope.variables[word] = ""
        else:
            scope.functions.pop(word, None)
            scope.variables[word] = ""
    scope.status = True
    return Stream("")


def read(walk: Walk, scope: Scope, words: list[str]) -> Stream:
    given = split(words[1:], short="adinNptu")
    names = [name for name in given.operands if is_known(name)]
    if given.value("-u") not in (None, "0"):
        line, status = UNKNOWN, None
    else:
        end = given.value("-d")
        line, status = scope.stdin.line(walk, "\n" if end is None else end[:1])
    scope.status = status
    array = given.value("-a")
    if array is not None:
        scope.variables[array] = line.split()
        return Stream("")
    if not names:
        scope.variables["REPLY"] = line
        return Stream("")
    separators = scope.separators()
    if len(names) == 1 or not is_known(line) and walk.has_found(line):
        scope.variables[names[0]] = line.strip(" \t") if separators else line
        for name in names[1:]:
            scope.variables[name] = ""
        return Stream("")
    rest = line
    for place, name in enumerate(names):
        if " " in separators:
            rest = rest.lstrip(" \t")
        cut = min((rest.find(one) for one in separators if one in rest), default=-1)
        if place == len(names) - 1 or cut < 0:
            scope.variables[name], rest = rest.rstrip(" \t\n"), ""
        else:
            scope.variables[name], rest = rest[:cut], rest[cut + 1 :]
    return Stream("")


def map_file(walk: Walk, scope: Scope, words: list[str]) -> Stream:
    """mapfile, readarray."""
    given = split(words[1:], short="dnOsuCc")
    name = "MAPFILE"
    if given.operands:
        name = given.operands[0]
    stream = scope.stdin.rest()
    if stream is not None and stream.found is not None:
        text_of(stream)
    if stream is None or (stream.text is None and stream.found is None):
        scope.variables[name] = [UNKNOWN]
    elif stream.text is None:
        scope.variables[name] = [walk.mark(stream.found or [])]
    else:
        scope.variables[name] = stream.text.removesuffix("\n").split("\n") if stream.text else []
    scope.status = True
    return Stream("")


# The state of a shell at one point of a script: its folder, variables, functions, standard input.

Variable = Union[str, list[str], dict[str, str], None]


# Variables that a shell computes each time.
_COMPUTED = frozenset(
    "RANDOM SRANDOM SECONDS LINENO BASHPID PPID EPOCHSECONDS EPOCHREALTIME BASH_SOURCE FUNCNAME REPLY"
    " PIPESTATUS".split()
)

MOST_FOLDERS = 2  # where a shell may be as well; those beyond are forgotten


def options_of(shell: str) -> set[str]:
    """Options that a shell of this name starts with. `zsh` is one here: it splits and matches no variables."""
    if shell == "zsh":
        return {"zsh", "globstar"}
    return set()


class Scope:
    """The state of one shell.

    folder     absolute, or None after a `cd` to an unknown place
    environment  variables that the first shell starts with
    variables  name -> text, list (array) or dict (associative one); others may be in the environment
    words      positional parameters, ``$0`` first
    status     of the last command: True, False, or None if only a run could tell
    predicate  True if the last command asks a question (`test`, `grep`), so that a failure is likely
    tried      the missing folder of a `cd` that has just failed; else None
    if_failed  folders of the shell in case the last command failed, if different from `folder`
    elsewhere  other possible folders of the shell, since an earlier `cd` may have failed
    heard      True if the output goes to another command, or into a variable or a file
    shown      True if the output is certainly shown to the model, as far as the shell can tell
    spans      the lines of it that are shown, as ``spans`` has them; empty for all
    line       (folder, words) of each command so far whose output goes the same way; None if not recorded
    ended      ``exit``, ``return``, ``break`` or ``continue`` if nothing after this point is run; else empty
    """

    __slots__ = (
        "folder", "environment", "previous", "stack", "variables", "functions", "aliases", "words", "stdin", "status",
        "predicate", "tried", "if_failed", "elsewhere", "ended", "options", "locals", "last", "heard",
        "shown", "spans", "line",
    )  # fmt: skip

    def __init__(self, folder: str | None, words: list[str], environment: Mapping[str, str]) -> None:
        self.folder = folder
        self.environment = environment
        self.previous: str | None = None
        self.stack: list[str | None] = []
        self.variables: dict[str, Variable] = {}
        self.functions: dict[str, Node] = {}
        self.aliases: dict[str, str] = {}
        self.words: list[str] = words
        self.stdin = Input(None)
        self.status: bool | None = True
        self.predicate = False
        self.tried: str | None = None
        self.if_failed: tuple[str | None, ...] = ()
        self.elsewhere: tuple[str, ...] = ()
        self.ended = ""
        self.options: set[str] = set()
        self.locals: dict[str, Variable] | None = None  # name -> value before, in a function
        self.heard = False
        self.shown = True
        self.spans: tuple[Span, ...] = ()
        self.line: list[tuple[str | None, list[str]]] | None = None
        self.last = ""  # last word of the last command

    def variable(self, name: str) -> Variable:
        """Return the value of variable `name`: text, list, dict, or None if it is not set as far as is known."""
        current = self.variables.get(name)
        if current is not None or name in self.variables:
            return current
        if name == "PWD":
            return self.folder or UNKNOWN
        if name == "OLDPWD":
            return self.previous or UNKNOWN
        if name in _COMPUTED:
            return UNKNOWN
        return self.environment.get(name)

    def known_text(self, name: str) -> str:
        """Return the text of variable `name`; empty if it is not set, is unknown, or is a list."""
        value = self.variable(name)
        if isinstance(value, str) and is_known(value):
            return value
        return ""

    def parameter(self, name: str, missing: str | None = UNKNOWN) -> str | list[str] | None:
        """Return the text of ``$name``, or a list for ``$@``. `missing`: for unset names; a profile may set them."""
        if name.isdecimal():
            place = 99999
            if len(name) < 6:
                place = int(name)
            if place < len(self.words):
                return self.words[place]
            if UNKNOWN in self.words[1:]:
                return UNKNOWN
            if missing is UNKNOWN:
                return ""
            return missing
        if name in ("@", "*"):
            return self.words[1:]
        if name == "#":
            if UNKNOWN not in self.words:
                return str(len(self.words) - 1)
            return UNKNOWN
        if name == "?":
            if self.status is None:
                return UNKNOWN
            if self.status:
                return "0"
            return "1"
        if name in ("$", "!", "-"):
            return UNKNOWN
        if name == "_":
            return self.last
        current = self.variable(name)
        if isinstance(current, list):
            if "zsh" in self.options:
                return current
            if current:
                return current[0]
            return ""
        if isinstance(current, dict):
            return current.get("0", "")
        if current is None:
            return missing
        return current

    def separators(self) -> str:
        """Return the letters at which unquoted text is split: ``$IFS``."""
        current = self.variables.get("IFS")
        if isinstance(current, str) and is_known(current):
            return current
        return " \t\n"

    def fork(self) -> Scope:
        """A shell that starts from this one's state and does not change it."""
        other = Scope(self.folder, self.words, self.environment)
        other.previous, other.stack, other.stdin = self.previous, list(self.stack), self.stdin
        other.variables, other.functions = dict(self.variables), dict(self.functions)
        other.aliases, other.options, other.locals = dict(self.aliases), set(self.options), self.locals
        other.status, other.predicate, other.last = self.status, self.predicate, self.last
        other.heard, other.shown, other.spans, other.line = self.heard, self.shown, self.spans, self.line
        other.if_failed, other.elsewhere = self.if_failed, self.elsewhere
        return other

    def failed(self) -> Scope:
        """A shell as this one is if its last command failed."""
        other = self.fork()
        if self.if_failed:
            other.folder, other.if_failed = self.if_failed[0], ()
            other.may_be_in(self.if_failed[1:])
        return other

    def may_be_in(self, folders: Iterable[str | None]) -> None:
        """The shell may be in these folders as well."""
        new = dict.fromkeys([*self.elsewhere, *folders])
        self.elsewhere = tuple(one for one in new if one is not None and one != self.folder)[:MOST_FOLDERS]

    def adopt(self, other: Scope) -> None:
        """Go on from the state of `other`, but keep this shell's own `shown` and `spans`."""
        shown, spans = self.shown, self.spans
        for name in self.__slots__:
            setattr(self, name, getattr(other, name))
        self.shown, self.spans = shown, spans

    def merge(self, others: list[Scope], mark_of_values: Callable[[list[str]], str]) -> None:
        """Go on from any of `others`; `mark_of_values(list of texts)` stands for one of several."""
        live = [one for one in others if not one.ended]
        self.shown = self.shown and len(live) == len(others)  # the next command may not be reached
        if not live:
            self.adopt(others[0])
            return
        self.adopt(live[0])
        self.if_failed = ()
        folders = [one for other in live for one in (other.folder, *other.if_failed, *other.elsewhere)]
        if any(other.folder is None for other in live):
            self.folder = None
        self.may_be_in(folders)
        for other in live[1:]:
            if other.words != self.words:
                self.words = self.words[:1] + [UNKNOWN]
            if other.variables != self.variables:
                names = dict.fromkeys([*self.variables, *other.variables])
                self.variables = {
                    name: _either(self.variables.get(name), other.variables.get(name), mark_of_values) for name in names
                }
            self.functions = {**other.functions, **self.functions}
            if other.status != self.status:
                self.status = None


def _either(one: Variable, another: Variable, mark_of_values: Callable[[list[str]], str]) -> Variable:
    """Return a variable's value after two branches that leave `one` and `another` (None: unchanged)."""
    if one == another:
        return one
    if not isinstance(one, str) or not isinstance(another, str):
        known = another
        if isinstance(one, str):
            known = one
        if isinstance(known, str) and known.startswith("-"):
            return known
        return UNKNOWN
    if all(not text or text.startswith("-") for text in (one, another)):
        return max(one, another, key=len)  # `flag=` or `flag=-v`: no operand either way
    return mark_of_values([one, another])
