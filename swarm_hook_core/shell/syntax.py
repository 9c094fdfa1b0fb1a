"""The statements of a shell script: what the parser makes, and the walk goes through.

Words stay as they were written, quotes and expansions included: what they stand for only the walk can tell.
"""


class Node:
    """A part of a script; made of the values of its fields, in order."""

    __slots__ = ()

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


class Redirect(Node):
    """One redirection. `fd`: what stands before it, mostly empty; `word`: raw; `body`: of a here-document, as it is."""

    __slots__ = ("fd", "operator", "word", "body")


class Command(Node):
    """A simple command: assignments and words in order, and its redirections."""

    __slots__ = ("words", "redirects")


class Test(Node):
    """``[[ raw ]]``."""

    __slots__ = ("raw",)


class Arithmetic(Node):
    """``(( raw ))``."""

    __slots__ = ("raw",)


class Redirected(Node):
    """A compound command, a test or a calculation with redirections of its own."""

    __slots__ = ("inner", "redirects")


class Background(Node):
    """``inner &``."""

    __slots__ = ("inner",)


class Negated(Node):
    """``! inner``."""

    __slots__ = ("inner",)


class Pipeline(Node):
    """``a | b | c``."""

    __slots__ = ("parts",)


class Chain(Node):
    """``first && a || b``; `rest`: pairs of an operator and what follows it."""

    __slots__ = ("first", "rest")


class Group(Node):
    """``{ body; }``."""

    __slots__ = ("body",)


class Subshell(Node):
    """``( body )``."""

    __slots__ = ("body",)


class If(Node):
    """`clauses`: pairs of a condition and a body, both lists of statements; `otherwise`: what ``else`` has, or None."""

    __slots__ = ("clauses", "otherwise")


class Case(Node):
    """`items`: ``(patterns, body, whether it goes on to the next item)``."""

    __slots__ = ("word", "items")


class For(Node):
    """``for name in words`` (and ``select``)."""

    __slots__ = ("name", "words", "body")


class While(Node):
    """A loop; `until`: it ends where its condition is met; `step`: arithmetic done after each round, raw."""

    __slots__ = ("condition", "body", "until", "step")


class Function(Node):
    """``name() body``."""

    __slots__ = ("name", "body")
