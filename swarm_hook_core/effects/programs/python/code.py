"""Python code, followed statement by statement without running it.

A small interpreter over Python's own syntax tree: it knows texts, lists, paths, functions of the code, and goes both
ways where a condition is not known. What it meets that writes (``library``) it tells its `outlet`. Loops over
files of the disk are in ``disk``.

Bounded by `STEPS`, `SECONDS` and `DEPTH`; past them the outlet gets a guess.
"""

import _ast as ast  # the classes alone: ``ast`` itself brings ``enum`` and ``re``
import time

from swarm_hook_core.effects.model import UNKNOWN, is_known
from swarm_hook_core.effects.programs.python.operations import compare, formatted, operate, place_attribute, shortened
from swarm_hook_core.effects.programs.python.values import (
    ANY,
    MOST,
    Choice,
    Class,
    Function,
    Handle,
    Instance,
    Method,
    Name,
    Place,
    Result,
    Unknown,
    alternatives,
    choice,
    elements,
    is_plain,
    path_of,
    same,
    spread,
    text_of,
    truth,
)

STEPS = 20_000
SECONDS = 0.02
DEPTH = 12
LAPS = 64  # of a ``while`` whose condition is known

BREAK, CONTINUE, RETURN, EXIT = "break", "continue", "return", "exit"
_BUILTINS = frozenset(
    "open print range len str int float bool list tuple dict set frozenset sorted reversed enumerate zip map filter min"
    " max sum any all isinstance getattr setattr hasattr exec eval compile input next iter repr abs chr ord format"
    " bytes __import__ exit quit sys type super callable id object Exception".split()
)


class TooLong(Exception):
    """The code takes more steps than are gone."""


class Exit(Exception):
    """The code ends here."""


class Scope:
    """Names and what they stand for; `above` is where a name that is not here is looked up."""

    __slots__ = ("names", "above", "outer")

    def __init__(self, names, above=None, outer=()):
        self.names = names
        self.above = above
        self.outer = outer  # declared ``global`` or ``nonlocal``

    def find(self, name):
        scope = self
        while scope is not None:
            if name in scope.names:
                return scope.names[name]
            scope = scope.above
        return None

    def set(self, name, value):
        scope = self
        if name in self.outer:
            scope = self.above
            while scope.above is not None and name not in scope.names:
                scope = scope.above
        scope.names[name] = value


class Code:
    """One run through code.

    outlet    gets the effects: ``write tree guess run script``, and whether they are in doubt
    folder    where relative paths are seen from, absolute, or None; ``os.chdir`` moves it
    argv      ``sys.argv``
    file      the script's path, or None for code that is no file
    stdin     the text that it reads, or None
    reads     whether files of the disk may be read, as for a replay (``disk``)
    doubt     how many conditions that nobody knows stand between here and the start
    printed   what it has printed, or None where that is not known
    """

    def __init__(self, outlet, folder, argv, file=None, stdin=None, reads=False, seconds=SECONDS):
        self.outlet = outlet
        self.folder = folder
        self.argv = argv
        self.file = file
        self.stdin = stdin
        self.reads = reads
        self.scope = Scope({"__name__": "__main__"})
        if file is not None:
            self.scope.names["__file__"] = file
        self.stars: list = []  # modules that gave all their names
        self.search: list = []  # folders that the code adds to ``sys.path``
        self.doubt = 0
        self.printed: list | None = []
        self.marks: dict = {}  # marks of the code's own text: placeholder -> mark
        self.scouts: list = []  # loops over files of the disk that are being looked into
        self.depth = 0
        self.steps = 0
        self.until = time.thread_time() + seconds
        self.returned: list = []
        self.yielded: list = []

    def run(self, tree) -> None:
        """Follow a module to its end."""
        try:
            self.block(tree.body)
        except Exit:
            pass
        except (TooLong, RecursionError):
            self.printed = None
            self.outlet.guess("Python code that is too long to follow")

    def tick(self) -> None:
        self.steps += 1
        if self.steps > STEPS or (not self.steps & 63 and time.thread_time() > self.until):
            raise TooLong

    # -- statements: each gives None, or how it leaves the block

    def block(self, statements):
        for statement in statements:
            self.tick()
            act = getattr(self, "do_" + type(statement).__name__, None)
            if act is not None:
                left = act(statement)
                if left is not None:
                    return left
        return None

    def do_Expr(self, node):
        if isinstance(node.value, ast.Name) and node.value.id in self.marks:
            self.outlet.guess("computed Python code")
        self.value(node.value)

    def do_Assign(self, node):
        value = self.value(node.value)
        for target in node.targets:
            self.assign(target, value)

    def do_AnnAssign(self, node):
        if node.value is not None:
            self.assign(node.target, self.value(node.value))

    def do_AugAssign(self, node):
        target = node.target
        if isinstance(target, ast.Name):
            old = self.lookup(target.id)
            new = self.value(node.value)
            if isinstance(old, list) and isinstance(node.op, ast.Add):
                parts = elements(new)
                old.extend(parts if parts is not None else [ANY])
            else:
                self.scope.set(target.id, spread(lambda a, b: operate(type(node.op).__name__, a, b), old, new))
        else:
            self.value(node.value)
            self.assign(target, ANY)

    def do_Delete(self, node):
        for target in node.targets:
            if isinstance(target, ast.Name):
                self.scope.names.pop(target.id, None)

    def do_Import(self, node):
        for alias in node.names:
            self.imports(alias.name)
            if alias.asname:
                self.scope.set(alias.asname, Name(alias.name))
            else:
                first = alias.name.partition(".")[0]
                self.scope.set(first, Name(first))

    def do_ImportFrom(self, node):
        module = node.module or ""
        if node.level:
            self.outlet.guess("Python code that runs other code")
        else:
            self.imports(module)
        for alias in node.names:
            if alias.name == "*":
                self.stars.append(module)
            else:
                self.scope.set(alias.asname or alias.name, Name(f"{module}.{alias.name}"))

    def imports(self, module: str) -> None:
        from swarm_hook_core.effects.programs.python.library import is_local

        if is_local(self, module):
            self.outlet.guess("Python code that runs other code")

    def do_FunctionDef(self, node):
        self.scope.set(node.name, Function(node, self.scope))

    do_AsyncFunctionDef = do_FunctionDef

    def do_ClassDef(self, node):
        outside, self.scope = self.scope, Scope({}, self.scope)
        try:
            self.block(node.body)
            members = self.scope.names
        finally:
            self.scope = outside
        for base in node.bases:
            above = self.value(base)
            if isinstance(above, Class):
                members = {**above.members, **members}
        self.scope.set(node.name, Class(node.name, members))

    def do_Global(self, node):
        self.scope.outer = (*self.scope.outer, *node.names)

    do_Nonlocal = do_Global

    def do_Return(self, node):
        self.returned.append(None if node.value is None else self.value(node.value))
        return RETURN

    def do_Raise(self, node):
        if node.exc is not None:
            self.value(node.exc)
        return RETURN if self.depth else EXIT

    def do_Assert(self, node):
        self.value(node.test)

    def do_Break(self, node):
        return BREAK

    def do_Continue(self, node):
        return CONTINUE

    def do_If(self, node):
        known = truth(self.value(node.test))
        if known is not None:
            return self.block(node.body if known else node.orelse)
        return self.fork([node.body, node.orelse])

    def do_Match(self, node):
        self.value(node.subject)
        for case in node.cases:
            for part in nodes(case.pattern):
                for name in (getattr(part, "name", None), getattr(part, "rest", None)):
                    if name:
                        self.scope.set(name, ANY)
        return self.fork([*(case.body for case in node.cases), []])

    def do_Try(self, node):
        left = self.block(node.body)
        if node.handlers:
            outcomes = [[]]
            for handler in node.handlers:
                if handler.name:
                    self.scope.set(handler.name, ANY)
                outcomes.append(handler.body)
            self.fork(outcomes)
        if left is None and node.orelse:
            left = self.block(node.orelse)
        return self.block(node.finalbody) or (None if left == EXIT and node.handlers else left)

    do_TryStar = do_Try

    def do_With(self, node):
        folder, moved = self.folder, False
        for item in node.items:
            value = self.value(item.context_expr)
            if isinstance(value, Unknown) and value.dotted == "contextlib.chdir":
                moved = True
            if item.optional_vars is not None:
                self.assign(item.optional_vars, value)
        left = self.block(node.body)
        if moved:
            self.folder = folder
        return left

    do_AsyncWith = do_With

    def fork(self, blocks):
        """Go through each of `blocks`, one of which a run would; names may then be what either made them."""
        names = self.scope.names
        outcomes, ways = [], []
        for block in blocks:
            self.scope.names = dict(names)
            self.doubt += 1
            try:
                left = self.block(block)
            except Exit:
                left = EXIT
            finally:
                self.doubt -= 1
            if left is None:
                outcomes.append(self.scope.names)
            ways.append(left)
        if not outcomes:
            self.scope.names = names
            if all(way == EXIT for way in ways):
                raise Exit
            return next(way for way in ways if way != EXIT)
        self.scope.names = _merged(outcomes)
        if self.reads and any(way not in (None, EXIT) for way in ways):
            self.doubt += 1  # what follows is only reached where the other way was taken
        return None

    def do_While(self, node):
        laps = 0
        if not isinstance(node.test, ast.Constant):
            while laps < LAPS:
                known = truth(self.value(node.test))
                if known is None:
                    break
                if not known:
                    return self.block(node.orelse)
                laps += 1
                left = self.block(node.body)
                if left == BREAK:
                    return None
                if left in (RETURN, EXIT):
                    return left
        self.forget(node.body)
        if laps or isinstance(node.test, ast.Constant):
            return self.lap(node.body)
        return self.fork([node.body, []])

    def lap(self, body):
        """`body` once; ways out that end with the loop are forgotten."""
        doubt = self.doubt
        left = self.block(body)
        self.doubt = doubt
        return left if left in (RETURN, EXIT) else None

    def forget(self, body) -> None:
        """Names that `body` binds are not known on a later lap."""
        for statement in body:
            for part in nodes(statement):
                if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
                    old = self.scope.names.get(part.id)
                    if not isinstance(old, (list, dict, set)):
                        self.scope.names[part.id] = ANY

    def do_For(self, node):
        return self.loop(node.target, self.value(node.iter), node.body) or self.block(node.orelse)

    do_AsyncFor = do_For

    def loop(self, target, iterable, body):
        """`body` for each element of `iterable`."""
        from swarm_hook_core.effects.programs.python import disk

        files = disk.files_in(iterable)
        if files is not None:
            return disk.go_through(self, files, target, body)
        items = elements(iterable)
        if items is None:
            self.forget(body)
            items = [ANY]
        for item in items:
            self.assign(target, item)
            doubt = self.doubt
            left = self.block(body)
            self.doubt = doubt
            if left in (RETURN, EXIT):
                return left
            if left == BREAK:
                break
        return None

    def assign(self, target, value) -> None:
        if isinstance(target, ast.Name):
            self.scope.set(target.id, value)
        elif isinstance(target, (ast.Tuple, ast.List)):
            self.unpack(target.elts, value)
        elif isinstance(target, ast.Starred):
            self.assign(target.value, value)
        elif isinstance(target, ast.Attribute):
            owner = self.value(target.value)
            if isinstance(owner, Instance):
                owner.attributes[target.attr] = value
            elif isinstance(owner, Name) and owner.dotted == "sys" and target.attr == "argv":
                self.argv = value
        elif isinstance(target, ast.Subscript):
            owner, key = self.value(target.value), self.value(target.slice)
            if isinstance(owner, dict) and isinstance(key, (str, int)):
                if len(owner) < MOST:
                    owner[key] = value
            elif isinstance(owner, list) and isinstance(key, int) and -len(owner) <= key < len(owner):
                owner[key] = value

    def unpack(self, targets, value) -> None:
        if isinstance(value, Choice):
            rows = [self.spared(targets, one) for one in value.values]
            for place, target in enumerate(targets):
                self.assign(target, choice([row[place] for row in rows]))
            return
        for target, one in zip(targets, self.spared(targets, value)):
            self.assign(target, one)

    def spared(self, targets, value) -> list:
        """What each of `targets` gets of `value`."""
        items = elements(value)
        star = next((place for place, target in enumerate(targets) if isinstance(target, ast.Starred)), None)
        if items is None or (star is None and len(items) != len(targets)) or len(items) < len(targets) - 1:
            return [ANY] * len(targets)
        if star is None:
            return items
        after = len(targets) - star - 1
        return [*items[:star], items[star : len(items) - after], *items[len(items) - after :]]

    # -- expressions

    def value(self, node):
        """What expression `node` stands for; its effects happen."""
        self.tick()
        act = getattr(self, "of_" + type(node).__name__, None)
        return ANY if act is None else act(node)

    def of_Constant(self, node):
        value = node.value
        if isinstance(value, str):
            for placeholder, mark in self.marks.items():
                if placeholder in value:
                    value = value.replace(placeholder, mark)
        return value

    def of_Name(self, node):
        return self.lookup(node.id)

    def lookup(self, name: str):
        if name in self.marks:
            return ANY
        found = self.scope.find(name)
        if found is not None or (self.scope.above is None and name in self.scope.names):
            return found
        if self.stars:
            from swarm_hook_core.effects.programs.python.library import is_in

            for module in self.stars:
                if is_in(module, name):
                    return Name(f"{module}.{name}")
        return Name(name) if name in _BUILTINS and name != "sys" else ANY

    def of_JoinedStr(self, node):
        values: list = [""]
        for part in node.values:
            more = alternatives(self.value(part))
            values = [one + text_of(other) for one in values for other in more][:64]
        return shortened(choice(values))

    def of_FormattedValue(self, node):
        spec = "" if node.format_spec is None else text_of(self.value(node.format_spec))
        value = self.value(node.value)
        if node.conversion in (114, 97):  # !r, !a
            return spread(lambda one: repr(one) if is_plain(one) else UNKNOWN, value)
        return spread(lambda one: formatted(one, spec), value)

    def of_BinOp(self, node):
        kind = type(node.op).__name__
        return spread(lambda left, right: operate(kind, left, right), self.value(node.left), self.value(node.right))

    def of_BoolOp(self, node):
        is_and = isinstance(node.op, ast.And)
        found = []
        for part in node.values:
            value = self.value(part)
            known = truth(value)
            if known is None:
                found.append(value)
            elif known != is_and:
                return choice([*found, value])
            elif part is node.values[-1]:
                found.append(value)
        if is_and and any(isinstance(one, Unknown) for one in found):
            return ANY
        return choice(found)

    def of_UnaryOp(self, node):
        value = self.value(node.operand)
        if isinstance(node.op, ast.Not):
            known = truth(value)
            return ANY if known is None else not known
        if isinstance(node.op, ast.USub) and isinstance(value, (int, float)):
            return -value
        return ANY

    def of_Compare(self, node):
        left = self.value(node.left)
        answer = True
        for op, part in zip(node.ops, node.comparators):
            right = self.value(part)
            one = spread(lambda a, b, kind=type(op).__name__: compare(kind, a, b), left, right)
            if truth(one) is None:
                answer = ANY
            elif not truth(one):
                return False
            left = right
        return answer

    def of_IfExp(self, node):
        known = truth(self.value(node.test))
        if known is None:
            self.doubt += 1
            try:
                return choice([self.value(node.body), self.value(node.orelse)])
            finally:
                self.doubt -= 1
        return self.value(node.body if known else node.orelse)

    def of_List(self, node):
        return self.several(node.elts)

    def of_Tuple(self, node):
        return tuple(self.several(node.elts))

    def of_Set(self, node):
        return self.several(node.elts)

    def several(self, nodes) -> list:
        """The values of `nodes`, starred ones spread out."""
        from swarm_hook_core.effects.programs.python import disk

        found: list = []
        for node in nodes:
            if not isinstance(node, ast.Starred):
                found.append(self.value(node))
                continue
            value = self.value(node.value)
            files = disk.files_in(value)
            more = [files.word(self)] if files is not None else elements(value)
            found += [ANY] if more is None else more
        return found

    def of_Dict(self, node):
        found: dict = {}
        for key, value in zip(node.keys, node.values):
            worth = self.value(value)
            if key is None:
                found.update(worth if isinstance(worth, dict) else {})
                continue
            name = self.value(key)
            name = name if isinstance(name, (str, int, tuple, bool)) and is_plain(name) else text_of(name)
            found[name] = worth
        return found

    def of_Lambda(self, node):
        return Function(node, self.scope)

    def of_NamedExpr(self, node):
        value = self.value(node.value)
        self.assign(node.target, value)
        return value

    def of_Await(self, node):
        return self.value(node.value)

    def of_Starred(self, node):
        return self.value(node.value)

    def of_Yield(self, node):
        self.yielded.append(None if node.value is None else self.value(node.value))
        return ANY

    def of_YieldFrom(self, node):
        self.yielded += elements(self.value(node.value)) or [ANY]
        return ANY

    def of_Subscript(self, node):
        from swarm_hook_core.effects.programs.python import disk

        owner = self.value(node.value)
        if isinstance(node.slice, ast.Slice):
            bounds = [None if part is None else self.value(part) for part in _parts(node.slice)]
            if not isinstance(owner, (str, list, tuple)) or not all(b is None or isinstance(b, int) for b in bounds):
                return owner if disk.files_in(owner) is not None else ANY
            if isinstance(owner, str) and not is_known(owner):
                return ANY
            return owner[slice(*bounds)] if bounds[2] != 0 else ANY
        key = self.value(node.slice)
        if isinstance(owner, Name) and owner.dotted == "os.environ":
            return self.variable(text_of(key))
        files = disk.files_in(owner)
        if files is not None:
            return files.some(self)
        return spread(_item, owner, key)

    def variable(self, name: str):
        """The environment variable `name`, where that is known."""
        if name == "HOME":
            from swarm_hook_core.effects.programs.python.values import expanded

            return expanded("~")
        return ANY

    def home(self) -> str:
        """The user's folder, or `UNKNOWN`."""
        return self.outlet.variable("HOME") or UNKNOWN

    def of_ListComp(self, node):
        from swarm_hook_core.effects.programs.python import disk

        first = node.generators[0]
        iterable = self.value(first.iter)
        files = disk.files_in(iterable)
        if files is not None and len(node.generators) == 1 and not isinstance(node, ast.DictComp):
            return disk.made_of(self, files, node)
        made: list = []
        outside, self.scope = self.scope, Scope({}, self.scope)
        try:
            self.comprehend(node, 0, made, iterable)
        finally:
            self.scope = outside
        return made

    of_SetComp = of_GeneratorExp = of_ListComp

    def of_DictComp(self, node):
        made = self.of_ListComp(node)
        return {key: value for key, value in made if isinstance(key, (str, int))} if isinstance(made, list) else ANY

    def comprehend(self, node, level: int, made: list, iterable) -> None:
        generators = node.generators
        if level == len(generators):
            if isinstance(node, ast.DictComp):
                made.append((text_of(self.value(node.key)), self.value(node.value)))
            else:
                made.append(self.value(node.elt))
            return
        items = elements(iterable)
        for item in [ANY] if items is None else items:
            self.assign(generators[level].target, item)
            if all(truth(self.value(test)) is not False for test in generators[level].ifs) and len(made) < MOST:
                following = self.value(generators[level + 1].iter) if level + 1 < len(generators) else None
                self.comprehend(node, level + 1, made, following)

    def of_Attribute(self, node):
        return spread(lambda owner: self.attribute(owner, node.attr), self.value(node.value))

    def attribute(self, owner, name: str):
        """Attribute `name` of a value."""
        if isinstance(owner, Name):
            from swarm_hook_core.effects.programs.python.library import known_name

            return known_name(self, f"{owner.dotted}.{name}")
        if isinstance(owner, Instance):
            if name in owner.attributes:
                return owner.attributes[name]
            member = owner.of.members.get(name)
            if isinstance(member, Function):
                return Function(member.node, member.scope, owner)
            return ANY if member is None else member
        if isinstance(owner, Class):
            return owner.members.get(name, ANY)
        if isinstance(owner, Place):
            found = place_attribute(owner, name)
            return Method(owner, name) if found is ANY and name not in _PARTS else found
        if isinstance(owner, Handle) and name == "name":
            return owner.path
        if isinstance(owner, Result):
            return owner.output if name == "stdout" else ANY
        return Method(owner, name)

    # -- calls

    def of_Call(self, node):
        callee = self.value(node.func)
        args = self.several(node.args)
        named: dict = {}
        for keyword in node.keywords:
            value = self.value(keyword.value)
            if keyword.arg is not None:
                named[keyword.arg] = value
            elif isinstance(value, dict):
                named.update(value)
        return spread(lambda one: self.call(one, args, named), callee)

    def call(self, callee, args: list, named: dict):
        """Call a value."""
        from swarm_hook_core.effects.programs.python import library, methods

        self.tick()
        if isinstance(callee, Name):
            return library.call(self, callee.dotted, args, named)
        if isinstance(callee, Method):
            return methods.call_method(self, callee.of, callee.name, args, named)
        if isinstance(callee, Function):
            return self.enter(callee, args, named)
        if isinstance(callee, Class):
            made = Instance(callee)
            start = callee.members.get("__init__")
            if isinstance(start, Function):
                self.enter(Function(start.node, start.scope, made), args, named)
            else:
                made.attributes.update(named)
            return made
        if isinstance(callee, Instance):
            member = callee.of.members.get("__call__")
            if isinstance(member, Function):
                return self.enter(Function(member.node, member.scope, callee), args, named)
        self.let_go(args, named)
        return ANY

    def let_go(self, args: list, named: dict) -> None:
        """Functions that are handed to code nobody knows are called there, with what nobody knows."""
        for value in (*args, *named.values()):
            if isinstance(value, Function):
                self.enter(value, None, {})

    def enter(self, function: Function, args, named: dict):
        """Call a function of the code; `args` None: with arguments nobody knows."""
        if self.depth >= DEPTH:
            return ANY
        node = function.node
        scope = Scope({}, function.scope)
        self.bind(node.args, scope, function, args, named)
        outside, returned, yielded, doubt = self.scope, self.returned, self.yielded, self.doubt
        self.scope, self.returned, self.yielded = scope, [], []
        self.depth += 1
        try:
            if isinstance(node, ast.Lambda):
                return self.value(node.body)
            self.block(node.body)
            if self.yielded:
                return self.yielded
            return choice(self.returned) if self.returned else None
        finally:
            self.depth -= 1
            self.scope, self.returned, self.yielded, self.doubt = outside, returned, yielded, doubt

    def bind(self, wanted, scope, function, args, named: dict) -> None:
        names = [one.arg for one in (*wanted.posonlyargs, *wanted.args)]
        every = [*names, *(one.arg for one in wanted.kwonlyargs)]
        if args is None:
            scope.names.update(dict.fromkeys(every, ANY))
        else:
            if function.bound is not None:
                args = [function.bound, *args]
            for name, default in zip(reversed(names), reversed(wanted.defaults)):
                scope.names[name] = self.value(default)
            for one, default in zip(wanted.kwonlyargs, wanted.kw_defaults):
                scope.names[one.arg] = ANY if default is None else self.value(default)
            scope.names.update(zip(names, args))
            scope.names.update({name: value for name, value in named.items() if name in every})
        for name in every:
            scope.names.setdefault(name, ANY)
        if wanted.vararg is not None:
            scope.names[wanted.vararg.arg] = ANY if args is None else list(args[len(names) :])
        if wanted.kwarg is not None:
            scope.names[wanted.kwarg.arg] = {name: value for name, value in named.items() if name not in every}

    def leave(self) -> None:
        """``sys.exit()``."""
        raise Exit

    # -- effects

    def is_doubtful(self) -> bool:
        return self.doubt > 0

    def writes(self, value) -> None:
        """The file that `value` names is written."""
        for one in alternatives(value):
            path = path_of(one)
            if path is None:
                continue
            if self.scouts and not is_known(path):
                self.scouts[-1].met(path)
            else:
                self.outlet.write(path, self)

    def guess_computed(self) -> None:
        """A file is written whose name is not known."""
        self.writes(ANY)

    def writes_tree(self, value, admits=None) -> None:
        """Anything at and under the folder that `value` names is written, or what `admits`."""
        for one in alternatives(value):
            path = path_of(one)
            if path is not None:
                self.outlet.tree(path, self, admits)


_PARTS = ("parent", "parents", "parts", "name", "stem", "suffix")


def _merged(outcomes: list) -> dict:
    merged: dict = {}
    for name in {name: None for outcome in outcomes for name in outcome}:
        values = [outcome[name] for outcome in outcomes if name in outcome]
        first = values[0]
        merged[name] = first if all(one is first or same(one, first) for one in values[1:]) else choice(values)
    return merged


def nodes(node):
    """`node` and all below it."""
    waiting = [node]
    while waiting:
        one = waiting.pop()
        yield one
        for name in one._fields:
            value = getattr(one, name, None)
            if isinstance(value, ast.AST):
                waiting.append(value)
            elif isinstance(value, list):
                waiting += [item for item in value if isinstance(item, ast.AST)]


def _parts(node):
    return node.lower, node.upper, node.step


def _item(owner, key):
    if isinstance(owner, dict):
        return owner.get(key, ANY) if isinstance(key, (str, int, tuple)) and is_plain(key) else ANY
    if isinstance(owner, (list, tuple)) or (isinstance(owner, str) and is_known(owner)):
        return owner[key] if isinstance(key, int) and -len(owner) <= key < len(owner) else ANY
    return ANY

