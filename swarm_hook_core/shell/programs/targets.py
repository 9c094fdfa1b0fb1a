"""The targets of a row: names made of the operands and options of a command.

`reading` is the ``engine.Reading`` of the command.
"""

from __future__ import annotations

import os

from swarm_hook_core.shell.call import Call
from swarm_hook_core.shell.model import is_known
from swarm_hook_core.shell.programs.places import seen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_hook_core.shell.programs.engine import Reading


def words_of(reading: Reading, target: str) -> list[str]:
    """The words that a target of the table stands for."""
    before, opened, rest = target.partition("{")
    if not opened:
        return [target]
    field, _, after = rest.partition("}")
    if after:
        ends = words_of(reading, after)
    else:
        ends = [""]
    return [before + word + end for word in _field(reading, field) for end in ends]


def _field(reading: Reading, text: str) -> list[str]:
    """Return the words of ``{text}``."""
    if text == "url":
        return _addresses(reading)
    if text == "rest":
        return reading.words[reading.words.index(reading.used[-1]) + 1 :]
    text, added, ending = text.partition("?")
    change = next((one for one in ("//", "/.", "/", ".", ":", "=") if text.endswith(one)), "")
    selector = text[: len(text) - len(change)]
    operands = reading.options.operands
    if selector == "":
        words = operands
    elif selector[0] == "-":
        words = reading.options.values(selector)
    elif selector[0] == "*":
        words = [word for word in operands if word.endswith(selector[1:])]
    elif selector == "last":
        words = operands[-1:]
    elif selector[-1] == "-":
        words = operands[int(selector[:-1]) - 1 :]
    else:
        words = operands[int(selector) - 1 :][:1]
    words = [_changed(reading.call, word, change) for word in words if change not in (":", "=") or change in word]
    if added:
        words = [word if "." in os.path.basename(word) or not is_known(word) else word + ending for word in words]
    return words


def _changed(call: Call, word: str, change: str) -> str:
    """A part of `word`: ``.`` without its ending, ``/`` its last name, ``//`` its folder, ``:`` ``=`` behind these."""
    if change in (":", "="):
        return word.rpartition(change)[2]
    if change == "//":
        return os.path.dirname(word) or "."
    if change in ("/", "/."):
        if word.rstrip("/").rpartition("/")[2] in ("", ".", ".."):
            word = seen(call, word) or word
        word = os.path.basename(word.rstrip("/"))
    if change[-1:] == ".":
        return os.path.splitext(word)[0]
    return word


def _addresses(reading: Reading) -> list[str]:
    """The file names that the operands, addresses, end in."""
    names = []
    for address in reading.options.operands + reading.options.values("--url"):
        name = name_of(address)
        if not is_known(name):
            reading.call.guess("a computed address", reading.folder or None)
        elif name and "=" not in address.partition("?")[0]:
            names.append(name)
    return names


def name_of(address: str) -> str:
    """Return the last name of an address, without its query; empty if it has no name."""
    rest = address.partition("?")[0].partition("#")[0].split("://", 1)[-1]
    if "/" in rest:
        return os.path.basename(rest)
    return ""
