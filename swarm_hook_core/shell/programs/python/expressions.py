"""What the expressions of Python code give."""

import _ast as ast  # the classes alone: ``ast`` itself brings ``enum`` and ``re``

from swarm_hook_core.shell.model import UNKNOWN, is_known
from swarm_hook_core.shell.programs.python import disk, library
from swarm_hook_core.shell.programs.python.operations import compare, formatted, operate, place_attribute, shortened
from swarm_hook_core.shell.programs.python.scope import Scope
from swarm_hook_core.shell.programs.python.values import (
    ANY,
    MOST,
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
    spread,
    text_of,
    truth,
)

_BUILTINS = frozenset(
    "open print range len str int float bool list tuple dict set frozenset sorted reversed enumerate zip map filter min"
    " max sum any all isinstance getattr setattr hasattr exec eval compile input next iter repr abs chr ord format"
    " bytes __import__ exit quit sys type super callable id object Exception".split()
)


class Expressions:
    """The part of `Code` that works out values: ``of_<Node>`` for each class of node."""

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
            for module in self.stars:
                if library.is_in(module, name):
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
        found = self.outlet.variable(name)
        return ANY if found is None else found

    def home(self) -> str:
        """The user's folder, or `UNKNOWN`."""
        return self.outlet.variable("HOME") or UNKNOWN

    def of_ListComp(self, node):
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
            return library.known_name(self, f"{owner.dotted}.{name}")
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


_PARTS = ("parent", "parents", "parts", "name", "stem", "suffix")


def _parts(node):
    return node.lower, node.upper, node.step


def _item(owner, key):
    if isinstance(owner, dict):
        return owner.get(key, ANY) if isinstance(key, (str, int, tuple)) and is_plain(key) else ANY
    if isinstance(owner, (list, tuple)) or (isinstance(owner, str) and is_known(owner)):
        return owner[key] if isinstance(key, int) and -len(owner) <= key < len(owner) else ANY
    return ANY
