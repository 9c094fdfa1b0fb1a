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

from swarm_hook_core.shell.inline import python_library as library
from swarm_hook_core.shell.inline.effects import SCRATCH, TOO_LONG, CodeEffects
from swarm_hook_core.shell.inline.python_values import (
    ANY,
    LONGEST,
    MOST,
    DiskFiles,
    Function,
    LibraryName,
    Method,
    OpenFile,
    Path,
    SomeFiles,
    Unknown,
    bounded,
    compare,
    elements,
    formatted,
    is_plain,
    item_of,
    operate,
    path_attribute,
    same,
    text_of,
    truth,
)
from swarm_hook_core.shell.model import UNKNOWN, absolute, is_known

STEPS = 20_000
SECONDS = 0.025  # of this thread's processor time, parsing included
REPLAY_SECONDS, REPLAYS_SECONDS = 0.005, 0.02  # for one file of a loop over the disk, and for all of them
DEEPEST = 12  # calls of the code's own functions in one another
LONGEST_READ = 64 * 1024  # bytes of a file that a replay reads
MOST_DENSE = 5000  # signs and words that make parsing slow: some 4 µs each
_DENSE = (*";,\n([{=.+-*/<>:", " and ", " or ", " in ", " is ", " not ", " if ")
_OF_ANOTHER_PYTHON = ("Missing parentheses in call", "multiple exception types", "leading zeros", "f-string", "except*")

BREAK, CONTINUE, RETURN, EXIT = "break", "continue", "return", "exit"


class TooLong(Exception):
    """The code takes more steps than are left."""


class Exit(Exception):
    """The code ends here."""


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
    if file is None and code.printed is not None and not effects.reasons:
        call.says("".join(code.printed))


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


class Names:
    """What names stand for in a function or module; `above` is where those that are not here are looked up."""

    __slots__ = ("held", "above", "outer")

    def __init__(self, held: dict, above=None):
        self.held = held
        self.above = above
        self.outer: set = set()  # declared ``global`` or ``nonlocal``

    def find(self, name: str):
        """(value, True), or (None, False)."""
        names = self
        while names is not None:
            if name in names.held:
                return names.held[name], True
            names = names.above
        return None, False

    def set(self, name: str, value) -> None:
        names = self
        if name in self.outer:
            names = self.above
            while names.above is not None and name not in names.held:
                names = names.above
        names.held[name] = value


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

    script = run

    def runs_project(self) -> None:
        pass


class Code:
    """One run through code.

    effects   what it does
    names     those that the statement at hand sees
    argv, stdin, file, marks   as for `follow`
    only      the absolute path of the one file that loops over the disk go over, in a replay; else None
    printed   what it has printed, or None where that is not known
    """

    def __init__(self, tree, effects: CodeEffects, marks: dict, argv, stdin, file, seconds: float, only=None):
        self.tree = tree
        self.effects = effects
        self.marks = marks
        self.argv = argv
        self.stdin = stdin
        self.file = file
        self.only = only
        self.names = Names({"__name__": "__main__", **({"__file__": file} if file else {})})
        self.printed: list = []
        self.given = (list(argv) if isinstance(argv, list) else argv, stdin, effects.folder)  # for replays
        self.star_modules: list = []
        self.depth = 0
        self.steps = 0
        self.until = time.thread_time() + seconds
        self.seconds_for_replays = REPLAYS_SECONDS
        self.returned: list = []

    def run(self) -> None:
        """Follow the code to its end."""
        try:
            self.block(self.tree.body)
        except Exit:
            pass
        except (TooLong, RecursionError, MemoryError):
            self.printed = None
            self.effects.guess_code(TOO_LONG)

    def tick(self) -> None:
        self.steps += 1
        if self.steps > STEPS or (not self.steps & 63 and time.thread_time() > self.until):
            raise TooLong

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
        if self.printed is None or self.effects.doubt or not is_known(text) or len(self.printed) > MOST:
            self.printed = None
        else:
            self.printed.append(text)

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

    def merged(self, outcomes: list) -> dict:
        """What names stand for after one of `outcomes`, nobody knows which."""
        merged: dict = {}
        for name in dict.fromkeys(name for outcome in outcomes for name in outcome):
            merged[name] = self.either([outcome[name] for outcome in outcomes if name in outcome])
        return merged

    def either(self, values: list):
        """What is one of `values`, nobody knows which: texts stay possible, all else is not known."""
        first = values[0]
        if all(one is first or same(one, first) for one in values[1:]):
            return first
        if all(isinstance(one, (str, Path)) for one in values):
            text = self.effects.call.walk.one_of(list(map(text_of, values)))
            return Path(text) if any(isinstance(one, Path) for one in values) else text
        self.hand_over(values)
        return ANY

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

    def assign(self, target, value) -> None:
        if isinstance(target, ast.Name):
            self.names.set(target.id, value)
        elif isinstance(target, ast.Starred):
            self.assign(target.value, value)
        elif isinstance(target, (ast.Tuple, ast.List)):
            for one, part in zip(target.elts, _shared(target.elts, value)):
                self.assign(one, part)
        elif isinstance(target, ast.Attribute):
            owner = self.value(target.value)
            if isinstance(owner, LibraryName) and (owner.dotted, target.attr) == ("sys", "argv"):
                self.argv = value
            else:
                self.hand_over([value])
        elif isinstance(target, ast.Subscript):
            owner, key = self.value(target.value), self.value(target.slice)
            if not _put(owner, key, value):
                self.hand_over([value])

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

    def value(self, node):
        """What expression `node` stands for; its effects happen."""
        self.tick()
        act = getattr(self, "of_" + type(node).__name__, None)
        if act is not None:
            return act(node)
        for part in parts_of(node):
            self.value(part)
        return ANY

    def of_Constant(self, node):
        value = node.value
        if isinstance(value, str) and self.marks:
            for placeholder, mark in self.marks.items():
                value = value.replace(placeholder, mark)
        return value

    def of_Name(self, node):
        found, is_there = self.names.find(node.id)
        if is_there or node.id in self.marks:
            return found if is_there else ANY
        for module in self.star_modules:
            if library.is_in(module, node.id):
                return LibraryName(f"{module}.{node.id}")
        return library.builtin(node.id)

    def of_JoinedStr(self, node):
        return bounded("".join([text_of(self.value(part)) for part in node.values]))

    def of_FormattedValue(self, node):
        spec = "" if node.format_spec is None else text_of(self.value(node.format_spec))
        value = self.value(node.value)
        if node.conversion in (114, 97):  # !r, !a
            value = repr(value) if is_plain(value) else ANY
        return formatted(value, spec)

    def of_BinOp(self, node):
        return operate(type(node.op).__name__, self.value(node.left), self.value(node.right))

    def of_BoolOp(self, node):
        is_and, found = isinstance(node.op, ast.And), []
        for part in node.values:
            value = self.value(part)
            known = truth(value)
            if known is None or known != is_and or part is node.values[-1]:
                found.append(value)
            if known is not None and known != is_and:
                break
        return ANY if is_and and len(found) > 1 else self.either(found)

    def of_UnaryOp(self, node):
        value = self.value(node.operand)
        if isinstance(node.op, ast.Not):
            known = truth(value)
            return ANY if known is None else not known
        return -value if isinstance(node.op, ast.USub) and isinstance(value, (int, float)) else ANY

    def of_Compare(self, node):
        left, answer = self.value(node.left), True
        for op, part in zip(node.ops, node.comparators):
            right = self.value(part)
            known = truth(compare(type(op).__name__, left, right))
            if known is False:
                return False
            answer, left = ANY if known is None else answer, right
        return answer

    def of_IfExp(self, node):
        known = truth(self.value(node.test))
        if known is not None:
            return self.value(node.body if known else node.orelse)
        self.effects.doubt += 1
        found = [self.value(node.body), self.value(node.orelse)]
        self.effects.doubt -= 1
        return self.either(found)

    def of_List(self, node):
        return self.several(node.elts)

    of_Set = of_List

    def of_Tuple(self, node):
        return tuple(self.several(node.elts))

    def several(self, nodes) -> list:
        """The values of `nodes`, starred ones spread out."""
        found: list = []
        for node in nodes:
            value = self.value(node)
            if not isinstance(node, ast.Starred):
                found.append(value)
            else:
                found += [value.element] if isinstance(value, DiskFiles) else elements(value) or [ANY]
        return found

    def of_Starred(self, node):
        return self.value(node.value)

    of_Await = of_Starred

    def of_Dict(self, node):
        found: dict = {}
        for key, part in zip(node.keys, node.values):
            value = self.value(part)
            if key is None:
                found.update(value if isinstance(value, dict) else {})
                continue
            name = self.value(key)
            found[name if isinstance(name, (str, int, tuple)) and is_plain(name) else text_of(name)] = value
        return found

    def of_Lambda(self, node):
        return Function(node, self.names)

    def of_NamedExpr(self, node):
        value = self.value(node.value)
        self.assign(node.target, value)
        return value

    def of_Slice(self, node):
        bounds = [None if part is None else self.value(part) for part in (node.lower, node.upper, node.step)]
        known = all(one is None or isinstance(one, int) for one in bounds) and bounds[2] != 0
        return slice(*bounds) if known else ANY

    def of_Subscript(self, node):
        owner, key = self.value(node.value), self.value(node.slice)
        if isinstance(key, slice):
            if isinstance(owner, (DiskFiles, SomeFiles)):
                return owner
            known = isinstance(owner, (list, tuple)) or (isinstance(owner, str) and is_known(owner))
            return owner[key] if known else ANY
        if isinstance(owner, LibraryName):
            return self.variable(text_of(key)) if owner.dotted == "os.environ" else LibraryName(library.ANYTHING)
        if isinstance(owner, Unknown) and owner.made_by in ("globals", "locals", "vars"):
            return LibraryName(library.ANYTHING)
        if isinstance(owner, DiskFiles):
            return owner.element
        found = item_of(owner, key)
        if found is ANY and isinstance(owner, (list, tuple, dict)):
            self.hand_over(owner.values() if isinstance(owner, dict) else owner)
        return found

    def of_ListComp(self, node):
        made: list = []
        first = self.value(node.generators[0].iter)
        outside, self.names = self.names, Names({}, self.names)
        doubt = self.effects.doubt
        try:
            if isinstance(first, DiskFiles):
                return self.comprehended_files(node, first)
            self.comprehend(node, 0, made, first)
        finally:
            self.names = outside
            self.effects.doubt = doubt
        return SomeFiles(made) if isinstance(first, SomeFiles) else made

    of_SetComp = of_GeneratorExp = of_ListComp

    def of_DictComp(self, node):
        made = self.of_ListComp(node)
        return dict(pair for pair in made if is_plain(pair[0])) if isinstance(made, list) else ANY

    def comprehend(self, node, level: int, made: list, iterable) -> None:
        generator = node.generators[level]
        for item in elements(iterable) or ([ANY] if elements(iterable) is None else []):
            self.assign(generator.target, item)
            answers = [truth(self.value(test)) for test in generator.ifs]
            if False in answers or len(made) >= MOST:
                continue
            self.effects.doubt += None in answers
            if level + 1 < len(node.generators):
                self.comprehend(node, level + 1, made, self.value(node.generators[level + 1].iter))
            elif isinstance(node, ast.DictComp):
                made.append((text_of(self.value(node.key)), self.value(node.value)))
            else:
                made.append(self.value(node.elt))
            self.effects.doubt -= None in answers

    def comprehended_files(self, node, files: DiskFiles):
        """A comprehension over files of the disk."""
        made: list = []
        self.in_loop(files, lambda: self.comprehend(node, 0, made, [files.element]))
        return DiskFiles(files.root, made[0] if made else ANY)

    def of_Attribute(self, node):
        return self.attribute(self.value(node.value), node.attr)

    def attribute(self, owner, name: str):
        """The attribute `name` of a value."""
        if isinstance(owner, LibraryName):
            return library.named(self, f"{owner.dotted}.{name}")
        if isinstance(owner, Path):
            found = path_attribute(owner, name)
            return Method(owner, name) if found is None else found
        if isinstance(owner, OpenFile) and name in ("name", "stdout"):
            return owner.path if name == "name" else owner.text
        return Method(owner, name)

    # ------------------------------------------------------------------ calls

    def of_Call(self, node):
        callee, args, named = self.value(node.func), self.several(node.args), {}
        for keyword in node.keywords:
            value = self.value(keyword.value)
            named.update({keyword.arg: value} if keyword.arg is not None else value if isinstance(value, dict) else {})
        return self.call(callee, args, named)

    def call(self, callee, args: list, named: dict):
        """Call a value."""
        self.tick()
        if isinstance(callee, LibraryName):
            return library.call(self, callee.dotted, args, named)
        if isinstance(callee, Function):
            return self.enter(callee, args, named)
        if isinstance(callee, Method):
            return library.call_method(self, callee.of, callee.name, args, named)
        self.hand_over([*args, *named.values()])
        return ANY

    def hand_over(self, values) -> None:
        """Functions among `values` are given to what nobody knows: they may be called there, with anything."""
        self.suspect(values)

    def suspect(self, functions) -> None:
        """Go through `functions` with arguments that nobody knows: what they write is only possible."""
        for function in functions:
            if isinstance(function, (list, tuple)):
                self.suspect(function if len(function) < 20 else ())
            elif isinstance(function, LibraryName) and library.is_writer(function.dotted):
                self.effects.guess_path()
            elif isinstance(function, (Function, Method)):
                self.effects.call.walk.in_doubt(self._suspect, function)

    def _suspect(self, _walk, function) -> None:
        self.effects.doubt += 1
        try:
            if isinstance(function, Function):
                self.enter(function, None, {})
            elif isinstance(function.of, Path):
                self.call(function, [ANY], {})
        except Exit:
            pass
        finally:
            self.effects.doubt -= 1

    def enter(self, function: Function, args, named: dict):
        """Call a function of the code; `args` None: with arguments nobody knows."""
        node = function.node
        if self.depth >= DEEPEST:
            if any(map(may_write, nodes_of([node]))):
                raise TooLong
            return ANY
        names = Names(self.parameters(node.args, args, named), function.names)
        outside = self.names, self.returned, self.effects.doubt
        self.names, self.returned = names, []
        self.depth += 1
        try:
            if isinstance(node, ast.Lambda):
                return self.value(node.body)
            self.block(node.body)
            return self.either(self.returned) if self.returned else ANY
        finally:
            self.depth -= 1
            self.names, self.returned, self.effects.doubt = outside

    def parameters(self, wanted, args, named: dict) -> dict:
        """What the parameters `wanted` of a function stand for."""
        places = [one.arg for one in (*wanted.posonlyargs, *wanted.args)]
        every = [*places, *(one.arg for one in wanted.kwonlyargs)]
        held = dict.fromkeys(every, ANY)
        if args is not None:
            for name, default in zip(reversed(places), reversed(wanted.defaults)):
                held[name] = self.value(default)
            for one, default in zip(wanted.kwonlyargs, wanted.kw_defaults):
                held[one.arg] = ANY if default is None else self.value(default)
            held.update(zip(places, args))
            held.update({name: value for name, value in named.items() if name in every})
        if wanted.vararg is not None:
            held[wanted.vararg.arg] = ANY if args is None else list(args[len(places) :])
        if wanted.kwarg is not None:
            held[wanted.kwarg.arg] = {name: value for name, value in named.items() if name not in every}
        return held


def _shared(targets, value) -> list:
    """What each of `targets` gets of `value`."""
    items = elements(value)
    star = next((place for place, target in enumerate(targets) if isinstance(target, ast.Starred)), None)
    if items is None or (star is None and len(items) != len(targets)) or len(items) < len(targets) - 1:
        return [ANY] * len(targets)
    if star is None:
        return items
    after = len(items) - (len(targets) - star - 1)
    return [*items[:star], items[star:after], *items[after:]]


def _put(owner, key, value) -> bool:
    """``owner[key] = value``; whether that is known."""
    if isinstance(owner, dict):
        known = isinstance(key, (str, int)) and is_plain(key) and len(owner) < MOST
    else:
        known = isinstance(owner, list) and isinstance(key, int) and -len(owner) <= key < len(owner)
    if known:
        owner[key] = value
    return known


_LAST_NAMES = frozenset(name.rpartition(".")[2] for name in library.WRITERS) | frozenset(library.METHODS)


def may_write(node) -> bool:
    """Whether `node` is the call of something that bears the name of a writer."""
    if not isinstance(node, ast.Call):
        return False
    name = getattr(node.func, "attr", getattr(node.func, "id", ""))
    return name in _LAST_NAMES and (name != "open" or len(node.args) + len(node.keywords) > 1)


def parts_of(node):
    """The nodes right below `node`."""
    for name in node._fields:
        value = getattr(node, name, None)
        for one in value if isinstance(value, list) else (value,):
            if isinstance(one, ast.AST):
                yield one


def nodes_of(nodes):
    """`nodes` and all below them."""
    waiting = list(nodes)
    while waiting:
        one = waiting.pop()
        yield one
        waiting += parts_of(one)
