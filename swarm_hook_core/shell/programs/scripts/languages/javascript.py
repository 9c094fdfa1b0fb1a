"""JavaScript as Node, Deno and Bun run it."""

from swarm_hook_core.shell.programs.scripts.tokens import NAME, SIGN, TEXT, Language

_NODE_FILES = {
    "writeFile": "write 0",
    "appendFile": "write 0",
    "createWriteStream": "write 0",
    "unlink": "write 0",
    "rm": "tree 0",
    "rmdir": "tree 0",
    "truncate": "write 0",
    "chmod": "write 0",
    "lchmod": "write 0",
    "chown": "write 0",
    "utimes": "write 0",
    "lutimes": "write 0",
    "mkdir": "make 0",
    "rename": "move",
    "copyFile": "write 1",
    "cp": "copy tree",
    "symlink": "write 1",
    "link": "write 1",
    "open": "open 1",
}
# Of fs-extra, graceful-fs and the like
_NODE_EXTRA = {
    "writeJson": "write 0",
    "writeJSON": "write 0",
    "outputFile": "write 0",
    "outputJson": "write 0",
    "outputJSON": "write 0",
    "ensureFile": "write 0",
    "ensureDir": "make 0",
    "mkdirp": "make 0",
    "emptyDir": "tree 0",
    "remove": "tree 0",
    "move": "move",
    "copy": "copy tree",
}
_NODE_COMMANDS = {
    "exec": "shell",
    "execSync": "shell",
    "execFile": "words",
    "execFileSync": "words",
    "spawn": "words",
    "spawnSync": "words",
    "fork": "code",
}
_OF_FILES = {**_NODE_FILES, **_NODE_EXTRA}
# module -> name -> what it does; a name is found through what ``require`` or ``import`` bound
NODE_MODULES = {
    "fs": {**_OF_FILES, **{f"{name}Sync": act for name, act in _OF_FILES.items()}},
    "child_process": _NODE_COMMANDS,
}
# Names that nothing else has, whatever they are called on.
_ANYWHERE = ("writeFile", "appendFile", "createWriteStream", "copyFile")
LANGUAGE = Language(
    "javascript",
    comments=(("//", "\n"), ("/*", "*/")),
    raw="",
    cooked="'\"`",
    interpolated="`",
    holes=("${",),
    names=r"\.?#?[A-Za-z_$][\w$]*(?:(?:\?\.|\.)[A-Za-z_$#][\w$]*)*",
    joins=("+",),
    calls={
        **{f".{name}": _NODE_FILES[name] for name in _ANYWHERE},
        **{f".{name}Sync": act for name, act in _NODE_FILES.items()},
        ".execSync": "shell",
        ".spawnSync": "words",
        ".execFileSync": "words",
        "Bun.write": "write 0",
        "Deno.writeTextFile": "write 0",
        "Deno.writeTextFileSync": "write 0",
        "Deno.writeFile": "write 0",
        "Deno.writeFileSync": "write 0",
        "Deno.remove": "tree 0",
        "Deno.removeSync": "tree 0",
        "Deno.rename": "move",
        "Deno.renameSync": "move",
        "Deno.copyFile": "write 1",
        "Deno.copyFileSync": "write 1",
        "Deno.truncate": "write 0",
        "Deno.truncateSync": "write 0",
        "Deno.create": "write 0",
        "Deno.createSync": "write 0",
        "Deno.mkdir": "make 0",
        "Deno.mkdirSync": "make 0",
        "Deno.symlink": "write 1",
        "Deno.symlinkSync": "write 1",
        "Deno.chmod": "write 0",
        "Deno.open": "open deno",
        "Deno.openSync": "open deno",
        "process.chdir": "chdir",
        "eval": "code",
    },
    has_regex=True,
    newline_ends=True,
)

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


def loaded_files(found: list) -> set:
    """How other code of the folder is run: ``script`` for its own sake (``require("./x")``), or ``module`` for what it
    gives (``a = require("./x")``, ``import a from "./x"``). JSON is no code."""
    ways = set()
    for at, token in enumerate(found):
        if at and token.kind == TEXT and len(token.value) == 1 and token.value[0].startswith((".", "/")):
            called = found[at - 1].value == "(" and at > 1
            place = at - 2 if called else at - 1
            if found[place].kind == NAME and found[place].value in ("require", "import", "from"):
                if not token.value[0].endswith(".json"):
                    ways.add("script" if _stands_alone(found, place, at + 2 if called else at + 1) else "module")
    return ways


def _stands_alone(found: list, first: int, after: int) -> bool:
    """Whether what begins at `first` and ends before `after` is a statement whose value nobody takes."""
    if found[first].value == "from":
        return False
    ends = (";", "\n", "}")
    begun = first == 0 or found[first - 1].value in (*ends, "{", "await")
    return begun and (after >= len(found) or found[after].value in ends)


_FILES_WRITTEN = frozenset("writeFile appendFile createWriteStream copyFile truncate unlink".split())


def hands_on(found: list) -> bool:
    """Whether a function that writes is named rather than called: ``w = fs.writeFile``, ``fs["writeFile"]``."""
    has_files = any(token.kind == TEXT and token.value[:1] in (["fs"], ["node:fs"]) for token in found)
    for at, token in enumerate(found):
        if token.kind == NAME and "." in token.value:
            following = found[at + 1].value if at + 1 < len(found) else ";"
            if _writes(token.value.rpartition(".")[2]) and following in (";", ",", "\n", ")"):
                return True
        elif token.kind == TEXT and at and found[at - 1].value == "[" and len(token.value) == 1:
            closed = at + 1 < len(found) and found[at + 1].value == "]"
            if closed and isinstance(token.value[0], str) and _writes(token.value[0]):
                return True
        elif token.value == "]" and has_files and at + 1 < len(found) and found[at + 1].value == "(":
            return True
    return False


def _writes(name: str) -> bool:
    return name.removesuffix("Sync") in _FILES_WRITTEN


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
