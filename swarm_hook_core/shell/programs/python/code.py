"""Python code, followed statement by statement without running it.

A small interpreter over Python's own syntax tree: it knows texts, lists, paths, functions of the code, and goes both
ways where a condition is not known. What it meets that writes (``library``) it tells its `outlet`. Loops over
files of the disk are in ``disk``.

Bounded by `STEPS`, `SECONDS` and `DEPTH`; past them the outlet gets a guess.
"""

import _ast as ast  # the classes alone: ``ast`` itself brings ``enum`` and ``re``
import time

from swarm_hook_core.shell.model import is_known
from swarm_hook_core.shell.programs.python import library, methods
from swarm_hook_core.shell.programs.python.scope import Exit, Scope, TooLong
from swarm_hook_core.shell.programs.python.statements import Statements
from swarm_hook_core.shell.programs.python.values import (
    ANY,
    SCRATCH,
    Class,
    Function,
    Instance,
    Method,
    Name,
    alternatives,
    choice,
    elements,
    path_of,
    spread,
)

STEPS = 20_000
SECONDS = 0.025  # of this thread's processor time, parsing included
DEPTH = 12


class Code(Statements):
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
        self.printed: "list | None" = []
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
                made.attributes.update(zip(callee.fields, args))
                made.attributes.update(named)
            return made
        if isinstance(callee, Instance):
            member = callee.of.members.get("__call__")
            if isinstance(member, Function):
                return self.enter(Function(member.node, member.scope, callee), args, named)
        self.let_go(args, named)
        return ANY

    def let_go(self, args: list, named: dict) -> None:
        """Functions that are handed to code nobody knows may be called there, with what nobody knows."""
        target, given = named.get("target"), elements(named.get("args", []))
        if isinstance(target, Function) and given is not None:  # a thread's, a process's
            self.enter(target, given, {})
            return
        self.doubt += 1
        for value in (*args, *named.values()):
            if isinstance(value, Function):
                self.enter(value, None, {})
        self.doubt -= 1

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
            if path is None or path.startswith(SCRATCH):
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
            if path is not None and not path.startswith(SCRATCH):
                self.outlet.tree(path, self, admits)
