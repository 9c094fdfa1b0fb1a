"""Python code, followed by constant propagation over its syntax tree, without being run.

Statements are gone through once, in order, with the values of names that are known (``python_values``); loops over
known elements go round for each; both ways are gone where a condition is not known. What a call of the library
writes is in the tables of ``python_library``. Classes and decorators are not followed: their functions are gone through
with arguments that nobody knows, and what these write is only possible.

A loop over files of the disk (``glob``, ``Path.rglob``, ``os.walk``) is gone through once with an element that stands
for any of them. If that writes, each locked file is asked about later: the whole code is followed again with this very
file in place of the others, reading what it reads, so that ``if "x" in text`` has its answer (`_Replay`).
"""

import _ast as ast  # the classes alone: ``ast`` itself brings ``enum`` and ``re``
import os
import time
from warnings import catch_warnings, simplefilter

from swarm_hook_core.shell.inline.effects import SCRATCH, TOO_LONG, CodeEffects
from swarm_hook_core.shell.inline.python_expressions import Exit, Expressions, Names, TooLong, nodes_of, parts_of
from swarm_hook_core.shell.inline.python_values import (
    ANY,
    LONGEST,
    MOST,
    DiskFiles,
    Function,
    LibraryName,
    Unknown,
    elements,
    operate,
    text_of,
    truth,
)
from swarm_hook_core.shell.model import UNKNOWN, absolute, is_known

SECONDS = 0.025  # of this thread's processor time, parsing included
REPLAY_SECONDS, REPLAYS_SECONDS = 0.005, 0.02  # for one file of a loop over the disk, and for all of them
LONGEST_READ = 64 * 1024  # bytes of a file that a replay reads
MOST_DENSE = 5000  # signs and words that make parsing slow: some 4 µs each
_DENSE = (*";,\n([{=.+-*/<>:", " and ", " or ", " in ", " is ", " not ", " if ")
_OF_ANOTHER_PYTHON = ("Missing parentheses in call", "multiple exception types", "leading zeros", "f-string", "except*")


def follow(call, source: str, argv: list, stdin=None, file=None) -> None:
    """Tell through `call` what Python code `source` does. Never raises for what is in it.

    `argv`: ``sys.argv``; `stdin`: the text it reads, if known; `file`: the absolute path of a script.
    """
    if source == UNKNOWN:
        call.guess("computed Python code")
        return
    source, marks = _without_marks(source)
    started = time.thread_time()
    effects = CodeEffects(call, "Python", is_script=file is not None)
    try:
        tree = parsed(source)
    except OverflowError:
        effects.guess_code(TOO_LONG)
        return
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        of_another = call.name.startswith("python2") or any(part in str(error) for part in _OF_ANOTHER_PYTHON)
        if marks or of_another or not isinstance(error, SyntaxError):
            effects.guess_code("code that cannot be read")
        return
    # The walk has its own time; late in it there is little left for code.
    seconds = SECONDS / 10 if started > call.walk.end else max(SECONDS / 4, SECONDS - time.thread_time() + started)
    code = Code(tree, effects, marks, argv, stdin, file, seconds)
    code.run()
    if file is None and code.is_print_known and not effects.reasons:
        call.says("".join(code.prints))


def parsed(source: str):
    """The syntax tree of `source`. Raises OverflowError where it is too long to be read in time, or as ``compile``."""
    if len(source) > LONGEST or sum(map(source.count, _DENSE)) > MOST_DENSE:
        raise OverflowError
    with catch_warnings():
        simplefilter("ignore")
        return compile(source, "<code>", "exec", ast.PyCF_ONLY_AST)


def _without_marks(source: str):
    """`source` with a name in place of each mark, and what each of these names stands for."""
    parts, marks = source.split("\0"), {}
    for place in range(1, len(parts), 2):
        name = f"_swarm_mark_{place}_"
        marks[name] = f"\0{parts[place]}\0"
        parts[place] = name
    return "".join(parts), marks


BREAK, CONTINUE, RETURN, EXIT = "break", "continue", "return", "exit"  # how a block is left early


class _Loop:
    """A loop over files of the disk that is gone through for all of them at once: what it writes of them."""

    def __init__(self, files: DiskFiles, folder):
        element = files.element[1][0] if isinstance(files.element, tuple) else files.element  # a tuple: `os.walk`
        self.mark = text_of(element)
        self.root = files.root
        self.folder = folder
        self.writes_them = False
        self.writes_others = False

    def meet(self, path: str) -> None:
        """A path that is not known is written."""
        before = path[: -len(self.mark)] if path.endswith(self.mark) else None
        if before in ("", UNKNOWN + "/") or (before and absolute(self.folder, before) == self.root):
            self.writes_them = True
        else:
            self.writes_others = True


class _Replay(CodeEffects):
    """What the code does with one file of a disk loop; `written`: absolute path -> True, or None where in doubt."""

    def __init__(self, effects: CodeEffects):
        super().__init__(effects.call, effects.language)
        self.written: dict = {}
        self.is_unclear = False

    def write(self, path: str) -> None:
        whole = absolute(self.folder, path)
        if not path or path.startswith(SCRATCH):
            return
        if whole is None:
            self.is_unclear = True
        elif self.written.get(whole) is not True:
            self.written[whole] = None if self.doubt else True

    def tree(self, path: str, admits=None) -> None:
        self.is_unclear = True

    def guess(self, why: str) -> None:
        self.is_unclear = True

    def run(self, words: list, stdin=None, folder=None):
        return None

    def script(self, text: str, stdin=None, folder=None):
        return None

    def runs_project(self) -> None:
        pass


class Code(Expressions):
    """One run through code.

    effects   what it does
    names     those that the statement at hand sees
    argv, stdin, file, marks   as for `follow`
    only      the absolute path of the one file that loops over the disk go over, in a replay; else None
    prints    what it has printed so far, where `is_print_known`
    """

    def __init__(self, tree, effects: CodeEffects, marks: dict, argv, stdin, file, seconds: float, only=None):
        self.tree = tree
        names = Names({"__name__": "__main__", **({"__file__": file} if file else {})})
        super().__init__(effects, names, marks, seconds)
        self.argv = argv
        self.stdin = stdin
        self.file = file
        self.only = only
        self.prints: list = []
        self.is_print_known = True
        self.given = (list(argv) if isinstance(argv, list) else argv, stdin, effects.folder)  # for replays
        self.seconds_for_replays = REPLAYS_SECONDS

    def run(self) -> None:
        """Follow the code to its end."""
        try:
            self.block(self.tree.body)
        except Exit:
            pass
        except (TooLong, RecursionError, MemoryError):
            self.is_print_known = False
            self.effects.guess_code(TOO_LONG)

    # -------------------------------------------------------- for the library

    def variable(self, name: str):
        """The environment variable `name`, or `ANY`."""
        walk = self.effects.call.walk
        found = walk.scope.variable(name)
        return found if isinstance(found, str) else ANY

    def home(self) -> str:
        return text_of(self.variable("HOME"))

    def says(self, text: str) -> None:
        """The code prints `text`."""
        if self.effects.doubt or not is_known(text) or len(self.prints) > MOST:
            self.is_print_known = False
        else:
            self.prints.append(text)

    def leave(self) -> None:
        raise Exit

    def execute(self, source: str):
        """``exec(source)``, or the value of ``eval(source)``."""
        try:
            body = parsed(source.strip()).body
        except OverflowError:
            raise TooLong from None
        except (SyntaxError, ValueError):
            return ANY
        if len(body) == 1 and isinstance(body[0], ast.Expr):
            return self.value(body[0].value)
        self.block(body)
        return ANY

    def text_of_file(self, path: str):
        """What the file at `path` holds, where a replay may read it, or `ANY`."""
        whole = absolute(self.effects.folder, path) if self.only else None
        try:
            if whole is None or not os.path.isfile(whole) or os.path.getsize(whole) > LONGEST_READ:
                return ANY
            with open(whole, encoding="utf-8") as file:
                return file.read()
        except (OSError, ValueError):
            return ANY

    def imported(self, module: str) -> None:
        """``import module``: one of the project is its own code; one that the same command has made nobody knows."""
        import sys

        first = module.partition(".")[0]
        if not first or not is_known(first) or first in getattr(sys, "stdlib_module_names", ()):
            return
        here = os.path.dirname(self.file) if self.file else self.effects.folder
        more = [absolute(self.effects.folder, one or ".") for one in text_of(self.variable("PYTHONPATH")).split(":")]
        for path in [os.path.join(folder, first) for folder in (here, *more) if folder]:
            if not {f"{path}.py", f"{path}/__init__.py"}.isdisjoint(self.effects.call.walk.files.contents):
                self.effects.guess_code()
            elif os.path.isfile(path + ".py") or os.path.isdir(path):
                self.effects.runs_project()

    # ------------------------------------------------------------- statements

    def block(self, statements):
        """Go through `statements`; how they are left early, or None."""
        for statement in statements:
            self.tick()
            act = getattr(self, "do_" + type(statement).__name__, self.do_parts)
            left = act(statement)
            if left is not None:
                return left
        return None

    def do_parts(self, node):
        """A statement of a kind that is not followed: its expressions are, and its blocks may be gone."""
        blocks = []
        for part in parts_of(node):
            if isinstance(part, ast.expr):
                self.value(part)
            elif isinstance(part, ast.stmt):
                blocks.append([part])
            elif isinstance(part, ast.AST):  # a case of ``match``
                self.forget([part])
                blocks += [part.body] if hasattr(part, "body") else []
        return self.fork([*blocks, []]) if blocks else None

    def do_Expr(self, node):
        if isinstance(node.value, ast.Name) and node.value.id in self.marks:
            self.effects.guess("computed Python code")
        self.value(node.value)

    def do_Assign(self, node):
        value = self.value(node.value)
        for target in node.targets:
            self.assign(target, value)

    def do_AnnAssign(self, node):
        if node.value is not None:
            self.assign(node.target, self.value(node.value))

    def do_AugAssign(self, node):
        old, new = self.value(node.target), self.value(node.value)
        if isinstance(old, list) and len(old) < MOST:
            old += elements(new) or [ANY]
        else:
            self.assign(node.target, operate(type(node.op).__name__, old, new))

    def do_Import(self, node):
        for alias in node.names:
            self.imported(alias.name)
            name = alias.name if alias.asname else alias.name.partition(".")[0]
            self.names.set(alias.asname or name, LibraryName(name))

    def do_ImportFrom(self, node):
        module = node.module or ""
        if node.level:
            self.effects.guess_code()
        else:
            self.imported(module)
        for alias in node.names:
            if alias.name == "*":
                self.star_modules.append(module)
            else:
                self.names.set(alias.asname or alias.name, LibraryName(f"{module}.{alias.name}"))

    def do_FunctionDef(self, node):
        function = Function(node, self.names)
        if node.decorator_list:
            for decorator in node.decorator_list:
                self.value(decorator)
            self.names.set(node.name, ANY)
            self.suspect([function])
        else:
            self.names.set(node.name, function)

    do_AsyncFunctionDef = do_FunctionDef

    def do_ClassDef(self, node):
        for part in (*node.decorator_list, *node.bases, *node.keywords):
            self.value(part)
        outside, self.names = self.names, Names({}, self.names)
        try:
            self.block(node.body)
            functions = [one for one in self.names.held.values() if isinstance(one, Function)]
        finally:
            self.names = outside
        self.names.set(node.name, ANY)
        self.suspect(functions)

    def do_Global(self, node):
        self.names.outer.update(node.names)

    do_Nonlocal = do_Global

    def do_Return(self, node):
        self.returned.append(None if node.value is None else self.value(node.value))
        return RETURN

    def do_Raise(self, node):
        if node.exc is not None:
            self.value(node.exc)
        return RETURN if self.depth else EXIT

    def do_Break(self, _node):
        return BREAK

    def do_Continue(self, _node):
        return CONTINUE

    def do_If(self, node):
        known = truth(self.value(node.test))
        return self.fork([node.body, node.orelse]) if known is None else self.block(node.body if known else node.orelse)

    def do_Try(self, node):
        left = self.block(node.body)
        if node.handlers:
            self.fork([[], *(handler.body for handler in node.handlers)])
        if left is None and node.orelse:
            left = self.block(node.orelse)
        return self.block(node.finalbody) or (None if left == EXIT and node.handlers else left)

    do_TryStar = do_Try

    def do_With(self, node):
        folder, moved = self.effects.folder, False
        for item in node.items:
            value = self.value(item.context_expr)
            moved = moved or (isinstance(value, Unknown) and value.made_by == "contextlib.chdir")
            if item.optional_vars is not None:
                self.assign(item.optional_vars, value)
        left = self.block(node.body)
        if moved:
            self.effects.folder = folder
        return left

    do_AsyncWith = do_With

    def fork(self, blocks):
        """Go through each of `blocks`, one of which a run would; names may then be what either made them."""
        before = self.names.held
        outcomes, ways = [], []
        for block in blocks:
            self.names.held = dict(before)
            self.effects.doubt += 1
            try:
                left = self.block(block)
            except Exit:
                left = EXIT
            finally:
                self.effects.doubt -= 1
            if left is None:
                outcomes.append(self.names.held)
            ways.append(left)
        if not outcomes:
            self.names.held = before
            if all(way == EXIT for way in ways):
                raise Exit
            return next(way for way in ways if way != EXIT)
        self.names.held = self.merged(outcomes)
        if (self.only or self.effects.loops) and any(way not in (None, EXIT) for way in ways):
            self.effects.doubt += 1  # what follows is only reached where the other way was taken
        return None

    def do_While(self, node):
        self.forget(node.body)
        self.value(node.test)
        left = self.fork([node.body, []]) if not isinstance(node.test, ast.Constant) else self.lap(node.body)
        return left if left in (RETURN, EXIT) else None

    def do_For(self, node):
        iterable = self.value(node.iter)
        if isinstance(iterable, DiskFiles):
            self.forget(node.body)
            self.assign(node.target, iterable.element)
            self.in_loop(iterable, lambda: self.block(node.body))
            return self.block(node.orelse)
        items = elements(iterable)
        if items is None:
            self.forget(node.body)
        for item in [ANY] if items is None else items:
            self.assign(node.target, item)
            left = self.lap(node.body)
            if left in (RETURN, EXIT):
                return left
            if left == BREAK:
                return None
        return self.block(node.orelse)

    do_AsyncFor = do_For

    def lap(self, body):
        """Go through `body` once; how it was left, but for ``continue``."""
        doubt = self.effects.doubt
        left = self.block(body)
        self.effects.doubt = doubt
        return None if left == CONTINUE else left

    def forget(self, body) -> None:
        """Names that `body` binds are not known on a later lap; lists that it grows are."""
        for node in nodes_of(body):
            bound = node.id if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) else None
            for name in (bound, getattr(node, "name", None), getattr(node, "rest", None)):  # of a pattern, a handler
                if isinstance(name, str) and not isinstance(self.names.held.get(name), (list, dict)):
                    self.names.held[name] = ANY

    # ------------------------------------------------------- loops over the disk

    def in_loop(self, files: DiskFiles, act):
        """Do `act`, a lap over all of `files` at once; then see to what it writes of them."""
        loop = _Loop(files, self.effects.folder)
        before, doubt, result = dict(self.names.held), self.effects.doubt, ANY
        self.effects.loops.append(loop)
        try:
            result = act()
        except Exit:
            pass
        finally:
            self.effects.loops.pop()
            self.effects.doubt = doubt
            self.names.held = self.merged([before, self.names.held])
        if self.effects.loops:  # the outer loop's replays go through this one, too
            self.effects.loops[-1].writes_them |= loop.writes_them
            self.effects.loops[-1].writes_others |= loop.writes_others
        elif loop.writes_them or loop.writes_others:
            self.effects.tree(files.root, self.admits)
            if loop.writes_others:  # files whose names are made of theirs
                self.effects.guess_path()
        return result

    def admits(self, path: str):
        """Whether the code writes the file at absolute `path` (see ``model.Tree``)."""
        replay = self.replayed(path)
        return replay.written.get(path, None if replay.is_unclear else False)

    def replayed(self, path: str) -> _Replay:
        """What the code does if loops over the disk find `path` alone."""
        effects = _Replay(self.effects)
        argv, stdin, effects.folder = self.given
        if self.seconds_for_replays <= 0:
            effects.is_unclear = True
            return effects
        started = time.thread_time()
        code = Code(self.tree, effects, self.marks, argv, stdin, self.file, REPLAY_SECONDS, only=path)
        code.run()
        self.seconds_for_replays -= time.thread_time() - started
        return effects

    # ------------------------------------------------------------ expressions

    # ------------------------------------------------------------------ calls
