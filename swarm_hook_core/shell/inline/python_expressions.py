"""Values of Python expressions, and calls of the code's own functions."""

from __future__ import annotations

import _ast as ast  # the classes alone: ``ast`` itself brings ``enum`` and ``re``
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from swarm_hook_core.shell.inline import python_library as library
from swarm_hook_core.shell.inline.effects import CodeEffects, TooLong
from swarm_hook_core.shell.inline.python_library import call_method
from swarm_hook_core.shell.inline.python_values import (
    ANY,
    ANYTHING,
    MOST,
    Function,
    LibraryName,
    Method,
    Names,
    OpenFile,
    Path,
    Unknown,
    bounded,
    elements,
    formatted,
    is_found,
    is_plain,
    item_of,
    operate,
    path_attribute,
    put,
    same,
    spread,
    text_of,
    truth,
)
from swarm_hook_core.shell.model import Found, at_most_possible
from swarm_hook_core.shell.walk import Walk

STEPS = 20_000
DEEPEST, MOST_ENTERED = 8, 40  # calls of a function of the code within itself, and of such functions in one another


class Expressions:
    """The part of `python.Code` that evaluates expressions: ``of_<Node>`` for each class of node.

    `python.Code` walks statements (`block`).

    effects, marks   as for `python.Code`; `names`: those that the current expression sees
    returned         values that the current function has returned so far; `entered`: the functions being walked
    """

    def __init__(self, effects: CodeEffects, names: Names, marks: dict[str, Any], seconds: float) -> None:
        self.effects = effects
        self.names = names
        self.marks = marks
        self.entered: list[Any] = []
        self.steps = 0
        self.until = time.thread_time() + seconds
        self.returned: list[Any] = []

    def block(self, statements: Sequence[ast.stmt]) -> str | None:
        """Walk `statements`. Return the way they are left early, or None."""
        raise NotImplementedError

    def variable(self, name: str) -> None:
        """The environment variable `name`, or `ANY`."""
        raise NotImplementedError

    def tick(self) -> None:
        self.steps += 1
        if self.steps > STEPS or (not self.steps & 63 and time.thread_time() > self.until):
            raise TooLong

    def merged(self, outcomes: Any) -> dict[str, Any]:
        """Return the values of names after an unknown one of `outcomes`."""
        merged: dict[str, Any] = {}
        for name in dict.fromkeys(name for outcome in outcomes for name in outcome):
            merged[name] = self.either([outcome[name] for outcome in outcomes if name in outcome])
        return merged

    def either(self, values: Any) -> Any:
        """Return the value for an unknown one of `values`: texts stay possible, all else becomes unknown."""
        first = values[0]
        if all(one is first or same(one, first) for one in values[1:]):
            return first
        if all(isinstance(one, (str, Path)) for one in values):
            text = self.effects.call.walk.one_of(list(map(text_of, values)))
            if any(isinstance(one, Path) for one in values):
                return Path(text)
            return text
        self.hand_over(values)
        return ANY

    def assign(self, target: Any, value: Any) -> None:
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
            if not put(owner, key, value):
                self.hand_over([value])

    def value(self, node: Any) -> Any:
        """Return the value of expression `node`; its effects happen."""
        self.tick()
        act = getattr(self, "of_" + type(node).__name__, None)
        if act is not None:
            return act(node)
        for part in parts_of(node):
            self.value(part)
        return ANY

    def of_Constant(self, node: ast.Constant) -> Any:
        value = node.value
        if isinstance(value, str) and self.marks:
            for placeholder, mark in self.marks.items():
                value = value.replace(placeholder, mark)
        return value

    def of_Name(self, node: ast.Name) -> Any:
        found, is_there = self.names.find(node.id)
        if is_there or node.id in self.marks:
            if is_there:
                return found
            return ANY
        return library.builtin(node.id)

    def of_JoinedStr(self, node: ast.JoinedStr) -> Any:
        return bounded("".join([text_of(self.value(part)) for part in node.values]))

    def of_FormattedValue(self, node: ast.FormattedValue) -> Any:
        spec = ""
        if node.format_spec is not None:
            spec = text_of(self.value(node.format_spec))
        value = self.value(node.value)
        if node.conversion in (114, 97):  # !r, !a
            if is_plain(value):
                value = repr(value)
            else:
                value = ANY
        return formatted(value, spec)

    def of_BinOp(self, node: ast.BinOp) -> Any:
        return operate(type(node.op).__name__, self.value(node.left), self.value(node.right))

    def of_BoolOp(self, node: ast.BoolOp) -> Any:
        is_and, found = isinstance(node.op, ast.And), []
        for part in node.values:
            value = self.value(part)
            known = truth(value)
            if known is None or known != is_and or part is node.values[-1]:
                found.append(value)
            if known is not None and known != is_and:
                break
        if is_and and len(found) > 1:
            return ANY
        return self.either(found)

    def of_UnaryOp(self, node: ast.UnaryOp) -> Any:
        value = self.value(node.operand)
        if isinstance(node.op, ast.Not):
            known = truth(value)
            if known is None:
                return ANY
            return not known
        if isinstance(node.op, ast.USub) and isinstance(value, (int, float)):
            return -value
        return ANY

    def of_Compare(self, node: ast.Compare) -> Any:
        left = self.value(node.left)
        answer: object = True
        for op, part in zip(node.ops, node.comparators):
            right = self.value(part)
            known = truth(operate(type(op).__name__, left, right))
            if known is False:
                return False
            answer, left = ANY if known is None else answer, right
        return answer

    def of_IfExp(self, node: ast.IfExp) -> Any:
        known = truth(self.value(node.test))
        if known is not None:
            return self.value(node.body if known else node.orelse)
        self.effects.doubt += 1
        found = [self.value(node.body), self.value(node.orelse)]
        self.effects.doubt -= 1
        return self.either(found)

    def of_List(self, node: ast.List) -> Any:
        return self.several(node.elts)

    of_Set = of_List

    def of_Tuple(self, node: ast.Tuple) -> Any:
        return tuple(self.several(node.elts))

    def several(self, nodes: Any) -> list[Any]:
        """The values of `nodes`, starred ones spread out."""
        found: list[Any] = []
        for node in nodes:
            value = self.value(node)
            if not isinstance(node, ast.Starred):
                found.append(value)
            else:
                found += spread(value)
        return found

    def of_Starred(self, node: ast.Starred) -> Any:
        return self.value(node.value)

    of_Await = of_Starred

    def of_Dict(self, node: ast.Dict) -> Any:
        found: dict[Any, Any] = {}
        for key, part in zip(node.keys, node.values):
            value = self.value(part)
            if key is None:
                found.update(value if isinstance(value, dict) else {})
                continue
            name = self.value(key)
            if not isinstance(name, (str, int, tuple)) or not is_plain(name):
                name = text_of(name)
            found[name] = value
        return found

    def of_Lambda(self, node: ast.Lambda) -> Any:
        return Function(node, self.names)

    def of_NamedExpr(self, node: ast.NamedExpr) -> Any:
        value = self.value(node.value)
        self.assign(node.target, value)
        return value

    def of_Slice(self, node: ast.Slice) -> Any:
        bounds = [None if part is None else self.value(part) for part in (node.lower, node.upper, node.step)]
        known = all(one is None or isinstance(one, int) for one in bounds) and bounds[2] != 0
        if known:
            return slice(*bounds)
        return ANY

    def of_Subscript(self, node: ast.Subscript) -> Any:
        owner, key = self.value(node.value), self.value(node.slice)
        if isinstance(owner, list) and is_found(owner) and len(owner) == 1:
            if isinstance(key, slice):
                return owner
            return owner[0]
        if isinstance(owner, LibraryName):
            if owner.dotted == "os.environ":
                return self.variable(text_of(key))
            return LibraryName(ANYTHING)
        if isinstance(owner, Unknown) and owner.made_by in library.HOLDERS:
            return LibraryName(ANYTHING)
        found = item_of(owner, key)
        if found is ANY and isinstance(owner, (list, tuple, dict)):
            self.hand_over(owner.values() if isinstance(owner, dict) else owner)
        return found

    def of_ListComp(self, node: ast.ListComp) -> Any:
        made: list[Any] = []
        outside, self.names = self.names, Names({}, self.names)
        self.comprehend(node, 0, made)
        self.names = outside
        return made

    of_SetComp = of_GeneratorExp = of_ListComp

    def of_DictComp(self, node: ast.DictComp) -> Any:
        self.of_ListComp(node)  # type: ignore[arg-type]  # for the effects in it
        return ANY

    def comprehend(self, node: Any, level: int, made: list[Any]) -> None:
        """Add the elements that the comprehension makes with its generators from `level` on."""
        generator = node.generators[level]
        items = elements(self.value(generator.iter))
        for item in [ANY] if items is None else items:
            self.assign(generator.target, item)
            answers = [truth(self.value(test)) for test in generator.ifs]
            if False in answers or len(made) >= MOST:
                continue
            self.effects.doubt += None in answers
            if level + 1 < len(node.generators):
                self.comprehend(node, level + 1, made)
            else:
                value = self.value(getattr(node, "elt", None) or node.key)
                if isinstance(node, ast.DictComp):
                    self.value(node.value)
                if None in answers:
                    value = self.doubted(value)
                made.append(value)
            self.effects.doubt -= None in answers

    def doubted(self, value: Any) -> Any:
        """Return `value`; where it stands for files that only the disk knows, they are possible at most."""
        walk = self.effects.call.walk
        found = None
        if is_found(value) and not isinstance(value, (list, tuple)):
            found = walk.found(text_of(value))
        if not found:
            return value
        mark = walk.mark([Found(one.root, at_most_possible(one.admits)) for one in found])
        return type(value)(mark)

    def of_Attribute(self, node: ast.Attribute) -> Any:
        return self.attribute(self.value(node.value), node.attr)

    def attribute(self, owner: Any, name: str) -> Any:
        """The attribute `name` of a value."""
        if isinstance(owner, LibraryName):
            return library.named(self, f"{owner.dotted}.{name}")
        if isinstance(owner, Path):
            found = path_attribute(owner, name)
            if found is None:
                return Method(owner, name)
            return found
        if isinstance(owner, OpenFile) and name == "name":
            return owner.path
        return Method(owner, name)

    def of_Call(self, node: ast.Call) -> Any:
        callee, args = self.value(node.func), self.several(node.args)
        named: dict[str, Any] = {}
        for keyword in node.keywords:
            value = self.value(keyword.value)
            if keyword.arg is not None:
                named[keyword.arg] = value
            elif isinstance(value, dict):
                named.update(value)
        return self.call(callee, args, named)

    def call(self, callee: Any, args: list[Any], named: dict[str, Any]) -> Any:
        """Call a value."""
        self.tick()
        if isinstance(callee, LibraryName):
            return library.call(self, callee.dotted, args, named)
        if isinstance(callee, Function):
            return self.enter(callee, args, named)
        if isinstance(callee, Method):
            return call_method(self, callee.of, callee.name, args, named)
        self.hand_over([*args, *named.values()])
        return ANY

    def hand_over(self, values: Any) -> None:
        """Walk the functions among `values`: they are given to unknown code, which may call them with anything.

        They are walked with unknown arguments, so their writes are only possible.
        """
        for function in values:
            if isinstance(function, (list, tuple)):
                self.hand_over(function if len(function) < 20 else ())
            elif isinstance(function, LibraryName) and library.is_writer(function.dotted):
                self.effects.guess_path()
            elif isinstance(function, (Function, Method)):
                self.effects.call.walk.in_doubt(self._enter_with_anything, function)

    def _enter_with_anything(self, _walk: Walk, function: Any) -> None:
        self.effects.doubt += 1
        try:
            if isinstance(function, Function):
                self.enter(function, None, {})
            elif isinstance(function.of, Path):
                self.call(function, [ANY], {})
        finally:
            self.effects.doubt -= 1

    def enter(self, function: Function, args: list[Any] | None, named: dict[str, Any]) -> Any:
        """Call a function of the code; `args` None: with unknown arguments."""
        node = function.node
        times = self.entered.count(node)
        if times > DEEPEST or (times == DEEPEST and args is not None):
            if times == DEEPEST:  # once more, with unknown arguments: a deeper call may write the same
                self.hand_over([function])
            return ANY
        if len(self.entered) > MOST_ENTERED:
            raise TooLong
        outside = self.names, self.returned, self.effects.doubt
        self.names, self.returned = Names(self.parameters(node.args, args, named), function.names), []
        self.entered.append(node)
        try:
            if isinstance(node, ast.Lambda):
                return self.value(node.body)
            self.block(node.body)
            if self.returned:
                return self.either(self.returned)
            return ANY
        finally:
            self.entered.pop()
            self.names, self.returned, self.effects.doubt = outside

    def parameters(self, wanted: ast.arguments, args: list[Any] | None, named: dict[str, Any]) -> dict[str, Any]:
        """Return the values of the parameters `wanted` of a function."""
        places = [one.arg for one in (*wanted.posonlyargs, *wanted.args)]
        every = [*places, *(one.arg for one in wanted.kwonlyargs)]
        held: dict[str, Any] = dict.fromkeys(every, ANY)
        if wanted.vararg is not None:
            held[wanted.vararg.arg] = ANY if args is None else list(args[len(places) :])
        if args is not None:
            defaults = [ANY if one is None else self.value(one) for one in (*wanted.defaults, *wanted.kw_defaults)]
            held.update(zip(reversed(every), reversed(defaults)))
            held.update(zip(places, args))
            held.update({name: value for name, value in named.items() if name in every})
        return held


def _shared(targets: Sequence[ast.AST], value: Any) -> Any:
    """Return the part of `value` for each of `targets`."""
    items = elements(value)
    if items is None or len(items) != len(targets) or any(isinstance(one, ast.Starred) for one in targets):
        return [ANY] * len(targets)
    return items


def parts_of(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes right below `node`."""
    for name in node._fields:
        value = getattr(node, name, None)
        for one in value if isinstance(value, list) else (value,):
            if isinstance(one, ast.AST):
                yield one


def nodes_of(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """`nodes` and all below them."""
    waiting = list(nodes)
    while waiting:
        one = waiting.pop()
        yield one
        waiting += parts_of(one)
