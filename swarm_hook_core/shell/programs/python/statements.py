"""What the statements of Python code do: names they bind, ways they go."""

import _ast as ast  # the classes alone: ``ast`` itself brings ``enum`` and ``re``

from swarm_hook_core.shell.programs.python import disk, library
from swarm_hook_core.shell.programs.python.expressions import Expressions
from swarm_hook_core.shell.programs.python.operations import operate
from swarm_hook_core.shell.programs.python.scope import Exit, Scope
from swarm_hook_core.shell.programs.python.values import (
    ANY,
    MOST,
    Choice,
    Class,
    Function,
    Instance,
    Name,
    Unknown,
    choice,
    elements,
    same,
    spread,
    truth,
)

LAPS = 64  # of a ``while`` whose condition is known
BREAK, CONTINUE, RETURN, EXIT = "break", "continue", "return", "exit"


class Statements(Expressions):
    """The part of `Code` that goes from statement to statement.

    ``do_<Node>`` gives None, or how it leaves the block that it is in.
    """

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
        library.imported(self, module)

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
        declared = [part.target for part in node.body if isinstance(part, ast.AnnAssign)]
        fields = [target.id for target in declared if isinstance(target, ast.Name)]
        self.scope.set(node.name, Class(node.name, members, fields))

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
