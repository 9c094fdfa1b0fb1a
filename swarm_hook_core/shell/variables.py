"""Variables: assignments to them, to arrays and their elements; declare, unset, read, mapfile."""

from __future__ import annotations

from typing import Any

from swarm_hook_core.shell.model import UNKNOWN, Stream, is_known, text_of
from swarm_hook_core.shell.options import split
from swarm_hook_core.shell.parser import word_of
from swarm_hook_core.shell.syntax import Array, Word
from swarm_hook_core.shell.word_reader import is_name
from swarm_hook_core.shell.words import fields, value
from swarm_hook_core.shell.words import number as number_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_hook_core.shell.scope import Scope, Variable
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
