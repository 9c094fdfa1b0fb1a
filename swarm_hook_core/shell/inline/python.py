"""Python code, followed by constant propagation over its syntax tree, without being run.

Statements are walked once, in order, with the known values of names (``python_values``). A loop over known elements
goes round for each; for an unknown condition both branches are walked. The tables of ``python_library`` know the
library's writing calls. Classes and decorators are not followed: their functions are walked with unknown arguments, so
their writes are only possible.
"""

from __future__ import annotations

import _ast as ast  # the classes alone: ``ast`` itself brings ``enum`` and ``re``
import os
import sys
import time
from collections.abc import Sequence
from typing import Any
from warnings import catch_warnings, simplefilter

from swarm_hook_core.shell.call import Call, split
from swarm_hook_core.shell.inline.effects import TOO_LONG, CodeEffects, TooLong
from swarm_hook_core.shell.inline.python_expressions import Expressions, nodes_of, parts_of
from swarm_hook_core.shell.inline.python_library import names_in
from swarm_hook_core.shell.inline.python_values import (
    ANY,
    LEAVES,
    LONGEST,
    MOST,
    Function,
    LibraryName,
    Names,
    Unknown,
    elements,
    is_found,
    operate,
    text_of,
    truth,
)
from swarm_hook_core.shell.model import UNKNOWN, Stream, absolute, is_known
from swarm_hook_core.shell.programs import program

MOST_DENSE = 5000  # signs and words that make parsing slow: some 4 µs each
_DENSE = (*";,\n([{=.+-*/<>:", " and ", " or ", " in ", " is ", " not ", " if ")
_OF_ANOTHER_PYTHON = ("Missing parentheses in call", "multiple exception types", "leading zeros", "f-string", "except*")
_TOO_LONG = (TooLong, OverflowError, RecursionError, MemoryError)
BREAK, CONTINUE, RETURN = "break", "continue", "return"  # how a block is left early


def follow(call: Call, source: str, argv: list[Any], stdin: str | None = None, file: str | None = None) -> None:
    """Report the effects of Python code `source` through `call`. Never raises for anything in the code.

    `argv`: ``sys.argv``; `stdin`: the text it reads, if known; `file`: the absolute path of a script.
    """
    if source == UNKNOWN:
        call.guess("computed Python code")
        return
    source, marks = _without_marks(source)
    effects = CodeEffects(call, "Python", is_script=file is not None)
    try:
        tree = parsed(source)
    except _TOO_LONG as error:
        effects.guess_code(TOO_LONG if isinstance(error, OverflowError) else "code that cannot be read")
        return
    except (SyntaxError, ValueError) as error:
        of_another = call.name.startswith("python2") or any(part in str(error) for part in _OF_ANOTHER_PYTHON)
        if marks or of_another or not isinstance(error, SyntaxError):
            effects.guess_code("code that cannot be read")
        return
    seconds = call.walk.budget.part() - time.thread_time()
    Code(effects, marks, argv, stdin, file, seconds).run(tree)


def parsed(source: str) -> ast.Module:
    """The syntax tree of `source`. Raises OverflowError where it is too long to be read in time, or as ``compile``."""
    if len(source) > LONGEST or sum(map(source.count, _DENSE)) > MOST_DENSE:
        raise OverflowError
    with catch_warnings():
        simplefilter("ignore")
        tree: ast.Module = compile(source, "<code>", "exec", ast.PyCF_ONLY_AST)  # type: ignore[assignment]
        return tree


def _without_marks(source: str) -> tuple[str, dict[str, Any]]:
    """Return `source` with a name in place of each mark, and the mark of each of these names."""
    parts, marks = source.split("\0"), {}
    for place in range(1, len(parts), 2):
        name = f"_swarm_mark_{place}_"
        marks[name] = f"\0{parts[place]}\0"
        parts[place] = name
    return "".join(parts), marks


class Code(Expressions):
    """One run through code.

    effects   the CodeEffects that it adds to
    names     the names that the current statement sees
    argv, stdin, file, marks   as for `follow`
    is_found  True in a loop over files that only the disk knows: it is walked once for all of them
    """

    def __init__(
        self,
        effects: CodeEffects,
        marks: dict[str, Any],
        argv: list[str],
        stdin: str | None,
        file: str | None,
        seconds: float,
    ) -> None:
        names = Names({"__name__": "__main__"})
        if file:
            names.set("__file__", file)
        super().__init__(effects, names, marks, seconds)
        self.argv = argv
        self.stdin = stdin
        self.file = file
        self.is_found = False

    def run(self, tree: ast.Module) -> None:
        """Follow the code to its end."""
        try:
            self.block(tree.body)
        except _TOO_LONG:
            self.effects.guess_code(TOO_LONG)

    # -------------------------------------------------------- for the library

    def variable(self, name: str) -> Any:
        """The environment variable `name`, or `ANY`."""
        found = self.effects.call.walk.scope.variable(name)
        if isinstance(found, str):
            return found
        return ANY

    def home(self) -> str:
        return text_of(self.variable("HOME"))

    def imported(self, module: str) -> None:
        """Follow ``import module``: a project module is the project's code, one made by this command is unknown
        code.
        """
        first = module.partition(".")[0]
        if not first or not is_known(first) or first in getattr(sys, "stdlib_module_names", ()):
            return
        here = self.effects.folder
        if self.file:
            here = os.path.dirname(self.file)
        if here is None or text_of(self.variable("PYTHONPATH")) != UNKNOWN:
            self.effects.runs_project()
            return
        path = os.path.join(here, first)
        if not {f"{path}.py", f"{path}/__init__.py"}.isdisjoint(self.effects.call.walk.files.contents):
            self.effects.guess_code()
        elif os.path.isfile(path + ".py") or os.path.isdir(path):
            self.effects.runs_project()

    # ------------------------------------------------------------- statements

    def block(self, statements: Sequence[ast.stmt]) -> str | None:
        """Walk `statements`. Return the way they are left early, or None."""
        for statement in statements:
            self.tick()
            act = getattr(self, "do_" + type(statement).__name__, self.do_parts)
            left = act(statement)
            if left is not None:
                return left
        return None

    def do_parts(self, node: ast.AST) -> str | None:
        """A statement of a kind that is not followed: its expressions are, and its blocks may be gone."""
        blocks = []
        for part in parts_of(node):
            if isinstance(part, ast.expr):
                self.value(part)
            elif isinstance(part, ast.stmt):
                blocks.append([part])
            elif isinstance(part, ast.AST):  # a case of ``match``
                self.forget([part])
                if hasattr(part, "body"):
                    blocks.append(part.body)
        if blocks:
            return self.fork([*blocks, []])
        return None

    def do_Expr(self, node: ast.Expr) -> str | None:
        if isinstance(node.value, ast.Name) and node.value.id in self.marks:
            self.effects.guess("computed Python code")
        if self.value(node.value) is LEAVES:
            return RETURN
        return None

    def do_Assign(self, node: ast.Assign) -> None:
        value = self.value(node.value)
        for target in node.targets:
            self.assign(target, value)

    def do_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.assign(node.target, self.value(node.value))

    def do_AugAssign(self, node: ast.AugAssign) -> None:
        old, new = self.value(node.target), self.value(node.value)
        if isinstance(old, list) and len(old) < MOST:
            old += elements(new) or [ANY]
        else:
            self.assign(node.target, operate(type(node.op).__name__, old, new))

    def do_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            self.imported(alias.name)
            if alias.asname:
                name = alias.name
            else:
                name = alias.name.partition(".")[0]
            self.names.set(alias.asname or name, LibraryName(name))

    def do_ImportFrom(self, node: ast.ImportFrom) -> None:
        module = node.module or ""
        if node.level:
            self.effects.guess_code()
        else:
            self.imported(module)
        for alias in node.names:
            for name in names_in(module) if alias.name == "*" else [alias.name]:
                self.names.set(alias.asname or name, LibraryName(f"{module}.{name}"))

    def do_FunctionDef(self, node: ast.FunctionDef) -> None:
        function = Function(node, self.names)
        if node.decorator_list:
            for decorator in node.decorator_list:
                self.value(decorator)
            self.names.set(node.name, ANY)
            self.hand_over([function])
        else:
            self.names.set(node.name, function)

    do_AsyncFunctionDef = do_FunctionDef

    def do_ClassDef(self, node: ast.ClassDef) -> None:
        outside, self.names = self.names, Names({}, self.names)
        self.do_parts(node)
        functions = [one for one in self.names.held.values() if isinstance(one, Function)]
        self.names = outside
        self.names.set(node.name, ANY)
        self.hand_over(functions)

    def do_Global(self, node: ast.Global) -> None:
        self.names.outer.update(node.names)

    do_Nonlocal = do_Global

    def do_Return(self, node: ast.Return) -> str:
        self.returned.append(None if node.value is None else self.value(node.value))
        return RETURN

    def do_Raise(self, node: ast.Raise) -> str:
        if node.exc is not None:
            self.value(node.exc)
        return RETURN

    def do_Break(self, _node: ast.Break) -> str:
        return BREAK

    def do_Continue(self, _node: ast.Continue) -> str:
        return CONTINUE

    def do_If(self, node: ast.If) -> str | None:
        known = truth(self.value(node.test))
        if known is None:
            return self.fork([node.body, node.orelse])
        if known:
            return self.block(node.body)
        return self.block(node.orelse)

    def do_Try(self, node: ast.Try) -> str | None:
        left = self.block(node.body)
        if node.handlers:
            self.fork([[], *(handler.body for handler in node.handlers)])
            left = None
        if left is None:
            left = self.block(node.orelse)
        return self.block(node.finalbody) or left

    do_TryStar = do_Try

    def do_With(self, node: ast.With) -> str | None:
        folder = self.effects.folder
        made = []
        for item in node.items:
            made.append(self.value(item.context_expr))
            if item.optional_vars is not None:
                self.assign(item.optional_vars, made[-1])
        left = self.block(node.body)
        if any(isinstance(value, Unknown) and value.made_by == "contextlib.chdir" for value in made):
            self.effects.folder = folder
        return left

    do_AsyncWith = do_With

    def fork(self, blocks: Sequence[Sequence[ast.stmt]]) -> str | None:
        """Walk each of `blocks`, one of them is run, and merge the resulting names."""
        before = self.names.held
        outcomes, ways = [], []
        self.effects.doubt += 1
        for block in blocks:
            self.names.held = dict(before)
            ways.append(self.block(block))
            if ways[-1] is None:
                outcomes.append(self.names.held)
        self.effects.doubt -= 1
        self.names.held = before
        if not outcomes:
            return ways[0]
        self.names.held = self.merged(outcomes)
        if self.is_found and len(outcomes) < len(ways):
            self.effects.doubt += 1  # the rest is only reached by the other branch
        return None

    def do_While(self, node: ast.While) -> str | None:
        self.forget(node.body)
        self.value(node.test)
        if not isinstance(node.test, ast.Constant):
            left = self.fork([node.body, []])
        else:
            left = self.lap(node.body)
        if left == RETURN:
            return left
        return None

    def do_For(self, node: ast.For) -> str | None:
        items = elements(self.value(node.iter))
        was_found, self.is_found = self.is_found, is_found(items)
        if items is None or self.is_found:
            self.forget(node.body)
        left = None
        for item in [ANY] if items is None else items:
            self.assign(node.target, item)
            left = left or self.lap(node.body)
        self.is_found = was_found
        if left is None:
            return self.block(node.orelse)
        if left == RETURN and not self.is_found:
            return left
        return None

    do_AsyncFor = do_For

    def lap(self, body: Sequence[ast.stmt]) -> str | None:
        """Go through `body` once; how it was left, but for ``continue``."""
        doubt = self.effects.doubt
        left = self.block(body)
        self.effects.doubt = doubt
        if left == CONTINUE:
            return None
        return left

    def forget(self, body: Sequence[ast.AST]) -> None:
        """Names that `body` binds are not known on a later lap; lists that it grows are."""
        for node in nodes_of(body):
            bound = None
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                bound = node.id
            for name in (bound, getattr(node, "name", None), getattr(node, "rest", None)):  # of a pattern, a handler
                if isinstance(name, str) and not isinstance(self.names.held.get(name), (list, dict)):
                    self.names.held[name] = ANY


# ``python`` as a command: finds the code that it runs, and knows the modules run with ``-m``.

OPAQUE = "an opaque script"

_READ_ONLY = frozenset(
    "this http.server calendar site sysconfig platform pprint tokenize dis ast inspect antigravity ensurepip keyword"
    " token tabnanny symtable pickletools pyclbr filecmp difflib base64 quopri uu locale textwrap help py_compile"
    " compileall flake8 pylint pyflakes pycodestyle pydocstyle bandit vulture mccabe radon pipdeptree pip_audit asyncio"
    " pstats smtpd nntplib ftplib webbrowser pydoc".split()
)
# Modules that are programs of their own: ``python -m black`` is ``black``
_PROGRAMS = {"pre_commit": "pre-commit", "sphinx": "sphinx-build", "cmakelang": "cmake-format", "sqlite3": "sqlite3",
             "swarm_mcp": "swarm-mcp"}  # fmt: skip
_PROGRAMS |= {
    name: name
    for name in (
        "black ruff isort autopep8 yapf autoflake pyupgrade docformatter mdformat djlint sqlfluff nbstripout jupytext"
        " pip pytest tox nox mypy pyright coverage mkdocs poetry pipenv hatch uv"
    ).split()
}


def python(call: Call) -> None:
    """``python [option] ... [-c code | -m module | file | -] [argument] ...``"""
    words, at = call.words, 0
    while at < len(words):
        word = words[at]
        if word in ("-V", "--version", "-VV", "-h", "--help", "-?", "--help-all", "--help-env", "--help-xoptions"):
            return
        if word in ("-X", "-W", "--check-hash-based-pycs"):
            at += 2
            continue
        if word == "-" or not word.startswith("-"):
            break
        kind, attached = _deciding(word)
        if kind == "-c":
            code, rest = (attached, words[at + 1 :]) if attached else (_at(words, at + 1), words[at + 2 :])
            return follow(call, code, ["-c", *rest], _text(call.stdin))
        if kind == "-m":
            module, rest = (attached, words[at + 1 :]) if attached else (_at(words, at + 1), words[at + 2 :])
            return run_module(call, module, rest)
        at += 1
    rest = words[at:]
    if not rest or rest[0] in ("-", "/dev/stdin"):
        text = _text(call.stdin)
        if text is None:
            call.guess("Python code that is not known" if call.stdin is not None or rest else OPAQUE)
            return
        follow(call, text, rest or [""], "")
        return
    run_file(call, rest)


def _deciding(word: str) -> tuple[str, str]:
    """Return ``-c`` or ``-m`` and the text attached to it, for an option cluster such as ``-Ic`` or ``-uc'code'``."""
    if word.startswith("--"):
        return "", ""
    for place, letter in enumerate(word[1:], 1):
        if letter in "cm":
            return f"-{letter}", word[place + 1 :]
        if letter in "XW":
            return "", ""
    return "", ""


def _at(words: list[str], place: int) -> str:
    if place < len(words):
        return words[place]
    return ""


def _text(stream: Stream | None) -> str | None:
    if stream is None:
        return None
    return stream.text


def run_file(call: Call, words: list[str]) -> None:
    """Run a script file. It is opaque, but a small one's literal writes are as certain as in the command."""
    if words[1:] in (["--help"], ["-h"]):
        call.runs_project()
        return
    call.guess(OPAQUE)
    path = absolute(call.folder, words[0])
    stream = None
    if path is not None:
        stream = call.walk.files.text_of(path)
    if stream is not None and stream.text is not None:
        follow(call, stream.text, list(words), _text(call.stdin), path)


def run_module(call: Call, module: str, rest: list[Any]) -> None:
    """``python -m module rest``"""
    if not is_known(module):
        call.guess(OPAQUE)
        return
    special = _MODULES.get(module)
    if special is not None:
        special(call, rest)
        return
    is_writing = module == "pydoc" and "-w" in rest
    if (module in _READ_ONLY and not is_writing) or rest[:1] in (["--version"], ["--help"]):
        return

    name = _PROGRAMS.get(module.partition(".")[0], "")
    if name and program(name) is not None:
        call.run([name, *rest], call.stdin)
    else:
        call.guess(OPAQUE)


def _json_tool(call: Call, rest: list[str]) -> None:
    found = split(rest, long=("--indent",))
    if len(found.operands) > 1 and found.operands[1] != "-":
        call.write(found.operands[1])


def _environment_made(call: Call, rest: list[str]) -> None:
    for folder in split(rest, short="p", long=("--prompt", "--python", "--system-site-packages")).operands:
        call.tree(folder)


def _archive(call: Call, rest: list[str]) -> None:
    if {"-l", "--list", "-t", "--test"}.isdisjoint(rest):
        call.guess("packs or unpacks an archive")


def _tests(call: Call, rest: list[str]) -> None:
    call.runs_project()


_MODULES = {
    "json.tool": _json_tool,
    "json": _json_tool,
    "venv": _environment_made,
    "virtualenv": _environment_made,
    "zipfile": _archive,
    "tarfile": _archive,
    "unittest": _tests,
    "doctest": _tests,
}
