"""Assignments to variables, arrays and their elements."""

from swarm_hook_core.shell.model import UNKNOWN, is_known
from swarm_hook_core.shell.parser import words_in
from swarm_hook_core.shell.quoting import NAME_LETTERS
from swarm_hook_core.shell.words import fields, value


def is_assignment(raw: str) -> bool:
    """Whether `raw` is ``name=value``, ``name+=value`` or ``name[i]=value``."""
    left, mark, _ = raw.partition("=")
    if not mark or not left:
        return False
    name = left[:-1] if left.endswith("+") else left
    if name.endswith("]"):
        name = name.partition("[")[0]
    return bool(name) and not name[0].isdecimal() and all(letter in NAME_LETTERS for letter in name)


def assign(walk, scope, raw: str) -> None:
    """``name=value``, ``name+=value``, ``name[i]=value``, ``name=(a b)``."""
    left, _, right = raw.partition("=")
    adds = left.endswith("+")
    name, bracket, index = left.rstrip("+").partition("[")
    if bracket:
        index = index.rstrip("]")
        _assign_element(walk, scope, name, index, value(walk, scope, right), adds)
        return
    if right.startswith("(") and right.endswith(")"):
        listed = _array(walk, scope, right[1:-1], scope.variables.get(name))
        held = scope.variables.get(name) if adds else None
        if isinstance(listed, list) and isinstance(held, (list, str)):
            listed = ([held] if isinstance(held, str) else held) + listed
        scope.variables[name] = listed
        return
    text = value(walk, scope, right)
    held = walk.variable(scope, name) if adds else None
    if isinstance(held, list):
        scope.variables[name] = [*held[:-1], held[-1] + text] if held else [text]
    else:
        scope.variables[name] = (held or "") + text if adds and not isinstance(held, dict) else text


def _assign_element(walk, scope, name, index, text, adds) -> None:
    held = scope.variables.get(name)
    if isinstance(held, dict):
        key = value(walk, scope, index)
        scope.variables[name] = {**held, key: held.get(key, "") + text if adds else text}
        return
    number = walk.computed(scope, index)
    listed = list(held) if isinstance(held, list) else [] if held is None else [held]
    if not is_known(number) or not -len(listed) <= int(number) <= 1000:
        scope.variables[name] = [*listed, UNKNOWN]
        return
    place = int(number)
    listed += [""] * (place + 1 - len(listed))
    listed[place] = listed[place] + text if adds else text
    scope.variables[name] = listed


def _array(walk, scope, inner: str, held):
    """A list; a dict where all is ``[key]=value`` and the variable was declared so."""
    raws = words_in(inner, walk.known)
    if isinstance(held, dict):
        found = dict(held)
        for raw in raws:
            key, mark, text = raw.partition("]=")
            if mark and key.startswith("["):
                found[value(walk, scope, key[1:])] = value(walk, scope, text)
        return found
    listed: list = []
    for raw in raws:
        walk.spend()
        key, mark, text = raw.partition("]=")
        listed += [value(walk, scope, text)] if mark and key.startswith("[") else fields(walk, scope, raw)
    return listed
