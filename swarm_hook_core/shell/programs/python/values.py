"""What expressions of Python code stand for, as far as that is known without running it.

Known values are themselves: texts, numbers, lists, dicts. A text may hold marks (see ``model``): a part that only
a run could tell. All else is one of the classes below.
"""

from swarm_hook_core.shell.model import UNKNOWN, is_known

LONGEST = 64 * 1024  # characters of a text that is worked out

MOST = 300  # elements of a list that is gone through

CHOICES = 12
SCRATCH = "/tmp/swarm-nowhere"  # stands for what ``tempfile`` makes: nothing in it is of interest


class Unknown:
    """A value that nobody knows; `dotted`: the call that made it, where that is known."""

    __slots__ = ("dotted",)

    def __init__(self, dotted=""):
        self.dotted = dotted


ANY = Unknown()


class Place:
    """A ``pathlib`` path."""

    __slots__ = ("text",)

    def __init__(self, text):
        self.text = text


class Choice:
    """One of `values`; which one, a run would tell."""

    __slots__ = ("values",)

    def __init__(self, values):
        self.values = values


class Name:
    """A module, or what a module or ``builtins`` holds: ``os.path.join``, ``open``."""

    __slots__ = ("dotted",)

    def __init__(self, dotted):
        self.dotted = dotted


class Method:
    """Method `name` of `of`, not yet called."""

    __slots__ = ("of", "name")

    def __init__(self, of, name):
        self.of = of
        self.name = name


class Function:
    """A function of the code: its node, the scope that it was made in, and the object it is bound to."""

    __slots__ = ("node", "scope", "bound")

    def __init__(self, node, scope, bound=None):
        self.node = node
        self.scope = scope
        self.bound = bound


class Class:
    """A class of the code: what its body holds, and the names it declares, in order (``dataclass``)."""

    __slots__ = ("name", "members", "fields")

    def __init__(self, name, members, fields):
        self.name = name
        self.members = members
        self.fields = fields


class Instance:
    __slots__ = ("of", "attributes")

    def __init__(self, of):
        self.of = of
        self.attributes: dict = {}


class Handle:
    """An open file: its `path`, and what reading it would give (`text`, None: not known)."""

    __slots__ = ("path", "text")

    def __init__(self, path, text=None):
        self.path = path
        self.text = text


class Archive:
    """A zip or tar file that is open."""

    __slots__ = ()


class Database:
    """A connection to the SQLite file `path`, or a cursor of it."""

    __slots__ = ("path",)

    def __init__(self, path):
        self.path = path


class Result:
    """What a finished command left: its output as a text or `ANY`."""

    __slots__ = ("output",)

    def __init__(self, output):
        self.output = output


class Arguments:
    """Arguments of a call, by position or name."""

    __slots__ = ("given", "named")

    def __init__(self, given, named):
        self.given = given
        self.named = named

    def get(self, place: int, name: str = "", default=None):
        if name and name in self.named:
            return self.named[name]
        return self.given[place] if place < len(self.given) else default

    def has(self, place: int, name: str = "") -> bool:
        return place < len(self.given) or bool(name and name in self.named)


def text_of(value) -> str:
    """`value` as ``str`` would give it, with `UNKNOWN` for what is not known."""
    if isinstance(value, str):
        return value
    if isinstance(value, Place):
        return value.text
    if value is None or isinstance(value, (bool, int, float)):
        return str(value)
    return UNKNOWN


def path_of(value):
    """The path that `value` names for a function that takes one; None for a file descriptor, which names none."""
    if isinstance(value, (str, Place)):
        return text_of(value)
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    if isinstance(value, int) and not isinstance(value, bool):
        return None
    return UNKNOWN


def is_plain(value) -> bool:
    """Whether `value` is known through and through."""
    if isinstance(value, str):
        return is_known(value)
    if isinstance(value, (list, tuple, set, frozenset)):
        return all(map(is_plain, value))
    if isinstance(value, dict):
        return all(map(is_plain, value)) and all(map(is_plain, value.values()))
    return value is None or isinstance(value, (bool, int, float, bytes))


def truth(value):
    """True, False, or None where that is not known."""
    if isinstance(value, Choice):
        answers = {truth(one) for one in value.values}
        return answers.pop() if len(answers) == 1 else None
    if isinstance(value, str):
        return True if value and is_known(value) else None if value else False
    if value is None or isinstance(value, (bool, int, float, bytes, list, tuple, dict, set, frozenset)):
        return bool(value)
    return True if isinstance(value, (Place, Handle, Function, Class, Name)) else None


def alternatives(value) -> list:
    """The values that `value` may be."""
    return value.values if isinstance(value, Choice) else [value]


def choice(values):
    """One value for those in `values`, without repeats."""
    found: list = []
    for value in values:
        for one in alternatives(value):
            if not any(one is other or (same(one, other)) for other in found):
                found.append(one)
    if len(found) > CHOICES:
        return ANY
    return found[0] if len(found) == 1 else Choice(found) if found else ANY


def same(left, right) -> bool:
    """Whether both are known and equal."""
    if isinstance(left, Place) and isinstance(right, Place):
        return left.text == right.text
    return type(left) is type(right) and is_plain(left) and is_plain(right) and left == right


def spread(function, *values):
    """`function` of every combination of what `values` may be."""
    if not any(isinstance(value, Choice) for value in values):
        return function(*values)
    rows: list = [[]]
    for value in values:
        rows = [[*row, one] for row in rows for one in alternatives(value)]
        if len(rows) > CHOICES:
            return ANY
    return choice([function(*row) for row in rows])


def elements(value):
    """What going through `value` gives, as a list, or None where that is not known."""
    if isinstance(value, Choice):
        parts = [elements(one) for one in value.values]
        return None if any(part is None for part in parts) else [one for part in parts for one in part]
    if isinstance(value, str):
        return list(value) if is_known(value) and len(value) <= MOST else None
    if isinstance(value, Handle):
        return value.text.splitlines(True) if isinstance(value.text, str) and is_known(value.text) else None
    if isinstance(value, (list, tuple, dict, set, frozenset, range)):
        return list(value) if len(value) <= MOST else None
    return None


def word_of(value) -> str:
    """`value` as a word of a command, or a path: `UNKNOWN` where it is not one known text."""
    path = path_of(value) if not isinstance(value, Choice) else UNKNOWN
    return UNKNOWN if path is None else path
