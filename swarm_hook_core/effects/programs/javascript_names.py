"""Which names of JavaScript code stand for functions of ``fs`` and ``child_process``."""

from swarm_hook_core.effects.programs.script_languages import NODE_MODULES
from swarm_hook_core.effects.programs.script_tokens import NAME, SIGN, TEXT

_MODULES = {
    "fs": "fs",
    "fs/promises": "fs",
    "fs-extra": "fs",
    "graceful-fs": "fs",
    "child_process": "child_process",
}


def bound_names(found: list) -> dict:
    """name as called -> what it does, from every ``require`` and ``import`` in Tokens `found`.

    In code of ``node -e`` the modules are there by their own names without either.
    """
    calls: dict = {}
    for module in ("fs", "child_process"):
        _bind(calls, module, module)
    for at, token in enumerate(found):
        module = _module(token)
        if module is None:
            continue
        before = found[at - 1].value if at else ""
        if before == "(" and at >= 2 and found[at - 2].value in ("require", "import", "process.getBuiltinModule"):
            _required(calls, found, at, module)
        elif before in ("from", "import") and found[at - 1].kind == NAME:
            _imported(calls, found, at - 1, module)
    return calls


def _module(token):
    if token.kind != TEXT or len(token.value) != 1:
        return None
    return _MODULES.get(token.value[0].removeprefix("node:"))


def _bind(calls: dict, name: str, module: str) -> None:
    """`name` stands for `module`: with its functions, and those of its ``promises``."""
    for function, act in NODE_MODULES[module].items():
        calls[f"{name}.{function}"] = act
        calls[f"{name}.promises.{function}"] = act


def _required(calls: dict, found: list, at: int, module: str) -> None:
    """``const name = require("fs")``, ``const {a, b: c} = require("fs")``, ``require("fs").rmSync(..)``."""
    after = found[at + 2] if at + 2 < len(found) else None
    if after is not None and after.kind == NAME and after.value.startswith("."):
        function = after.value[1:].removeprefix("promises.")
        if function in NODE_MODULES[module]:
            calls[after.value] = NODE_MODULES[module][function]
        if after.value != ".promises":
            return
    start = at - 3
    if start >= 0 and found[start].value == "await":
        start -= 1
    if start < 1 or found[start].value != "=":
        return
    _bound(calls, found, start - 1, module, ":")


def _imported(calls: dict, found: list, at: int, module: str) -> None:
    """``import fs from "fs"``, ``import * as fs from "fs"``, ``import {a, b as c} from "fs"``."""
    if found[at].value == "from":
        _bound(calls, found, at - 1, module, "as")


def _bound(calls: dict, found: list, at: int, module: str, renames: str) -> None:
    """The name, or the names in braces, that end at `at`."""
    if found[at].kind == NAME:
        _bind(calls, found[at].value, module)
        return
    if found[at].value != "}":
        return
    names: list = []
    while at > 0 and found[at].value != "{":
        at -= 1
        if found[at].kind == NAME or (found[at].kind == SIGN and found[at].value in (",", ":")):
            names.insert(0, found[at].value)
    if renames == "as":
        names = [":" if name == "as" else name for name in names]
    pairs = "\n".join(names).replace("\n:\n", ":").split("\n")
    for pair in pairs:
        function, _, name = pair.partition(":")
        if function == "promises":
            _bind(calls, name or function, module)
        elif function in NODE_MODULES[module]:
            calls[name or function] = NODE_MODULES[module][function]
    if found[at - 1].kind == NAME and found[at - 1].value not in ("import", "const", "let", "var"):
        _bind(calls, found[at - 1].value, module)
    elif at > 1 and found[at - 1].value == "," and found[at - 2].kind == NAME:
        _bind(calls, found[at - 2].value, module)
