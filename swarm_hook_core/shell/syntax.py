"""The statements of a shell script: what the parser makes, and the walk goes through.

Words stay as they were written, quotes and expansions included: what they stand for only the walk can tell.
"""


class Node:
    """A part of a script; made of the values of its fields, in order."""

    __slots__: tuple = ()

    def __init__(self, *values):
        for name, value in zip(self.__slots__, values):
            setattr(self, name, value)


class Script(Node):
    """A script, or the inside of a substitution, that was read.

    statements  in order
    broken      whether some of it is no shell: a quote that is never closed, a `fi` too many
    end         the place behind it in the text that it stands in
    """

    __slots__ = ("statements", "broken", "end")
    statements: list
    broken: bool
    end: int


class Redirect(Node):
    """One redirection. `fd`: what stands before it, mostly empty; `word`: raw; `body`: of a here-document, as it is."""

    __slots__ = ("fd", "operator", "word", "body")
    fd: str
    operator: str
    word: str
    body: "str | None"


class Command(Node):
    """A simple command: assignments and words in order, and its redirections."""

    __slots__ = ("words", "redirects")
    words: list
    redirects: list


class Test(Node):
    """``[[ raw ]]``."""

    __slots__ = ("raw",)
    raw: str


class Arithmetic(Node):
    """``(( raw ))``."""

    __slots__ = ("raw",)
    raw: str


class Redirected(Node):
    """A compound command, a test or a calculation with redirections of its own."""

    __slots__ = ("inner", "redirects")
    inner: "Node"
    redirects: list


class Background(Node):
    """``inner &``."""

    __slots__ = ("inner",)
    inner: "Node"


class Negated(Node):
    """``! inner``."""

    __slots__ = ("inner",)
    inner: "Node"


class Pipeline(Node):
    """``a | b | c``."""

    __slots__ = ("parts",)
    parts: list


class Chain(Node):
    """``first && a || b``; `rest`: pairs of an operator and what follows it."""

    __slots__ = ("first", "rest")
    first: "Node"
    rest: list


class Group(Node):
    """``{ body; }``."""

    __slots__ = ("body",)
    body: list


class Subshell(Node):
    """``( body )``."""

    __slots__ = ("body",)
    body: list


class If(Node):
    """`clauses`: pairs of a condition and a body, both lists of statements; `otherwise`: what ``else`` has, or None."""

    __slots__ = ("clauses", "otherwise")
    clauses: list
    otherwise: "list | None"


class Case(Node):
    """`items`: ``(patterns, body, whether it goes on to the next item)``."""

    __slots__ = ("word", "items")
    word: str
    items: list


class For(Node):
    """``for name in words`` (and ``select``)."""

    __slots__ = ("name", "words", "body")
    name: str
    words: list
    body: list


class While(Node):
    """A loop; `until`: it ends where its condition is met; `step`: arithmetic done after each round, raw."""

    __slots__ = ("condition", "body", "until", "step")
    condition: list
    body: list
    until: bool
    step: str


class Function(Node):
    """``name() body``."""

    __slots__ = ("name", "body")
    name: str
    body: "Node"
