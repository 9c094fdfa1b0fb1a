"""The statements of a shell script: what the parser makes, and the walk goes through.

Words stay as they were written, quotes and expansions included: what they stand for only the walk can tell.
"""


class Script:
    """A script, or the inside of a substitution, that was read.

    statements  in order
    broken      whether some of it is no shell: a quote that is never closed, a `fi` too many
    end         the place behind it in the text that it stands in
    """

    __slots__ = ("statements", "broken", "end")

    def __init__(self, statements, broken, end):
        self.statements = statements
        self.broken = broken
        self.end = end


class Redirect:
    """One redirection. `fd`: what stands before it, mostly empty; `word`: raw; `body`: of a here-document, as it is."""

    __slots__ = ("fd", "operator", "word", "body")

    def __init__(self, fd, operator, word):
        self.fd = fd
        self.operator = operator
        self.word = word
        self.body = None


class Command:
    """A simple command: assignments and words in order, and its redirections."""

    __slots__ = ("words", "redirects")

    def __init__(self, words, redirects):
        self.words = words
        self.redirects = redirects


class Test:
    """``[[ raw ]]``."""

    __slots__ = ("raw",)

    def __init__(self, raw):
        self.raw = raw


class Arithmetic:
    """``(( raw ))``."""

    __slots__ = ("raw",)

    def __init__(self, raw):
        self.raw = raw


class Redirected:
    """A compound command, a test or a calculation with redirections of its own."""

    __slots__ = ("inner", "redirects")

    def __init__(self, inner, redirects):
        self.inner = inner
        self.redirects = redirects


class Background:
    """``inner &``."""

    __slots__ = ("inner",)

    def __init__(self, inner):
        self.inner = inner


class Negated:
    """``! inner``."""

    __slots__ = ("inner",)

    def __init__(self, inner):
        self.inner = inner


class Pipeline:
    """``a | b | c``."""

    __slots__ = ("parts",)

    def __init__(self, parts):
        self.parts = parts


class Chain:
    """``first && a || b``; `rest`: pairs of an operator and what follows it."""

    __slots__ = ("first", "rest")

    def __init__(self, first, rest):
        self.first = first
        self.rest = rest


class Group:
    """``{ body; }``."""

    __slots__ = ("body",)

    def __init__(self, body):
        self.body = body


class Subshell:
    """``( body )``."""

    __slots__ = ("body",)

    def __init__(self, body):
        self.body = body


class If:
    """`clauses`: pairs of a condition and a body, both lists of statements; `otherwise`: what ``else`` has, or None."""

    __slots__ = ("clauses", "otherwise")

    def __init__(self, clauses, otherwise):
        self.clauses = clauses
        self.otherwise = otherwise


class Case:
    """`items`: ``(patterns, body, whether it goes on to the next item)``."""

    __slots__ = ("word", "items")

    def __init__(self, word, items):
        self.word = word
        self.items = items


class For:
    """``for name in words`` (and ``select``)."""

    __slots__ = ("name", "words", "body")

    def __init__(self, name, words, body):
        self.name = name
        self.words = words
        self.body = body


class While:
    """A loop; `until`: it ends where its condition is met; `step`: arithmetic done after each round, raw."""

    __slots__ = ("condition", "body", "until", "step")

    def __init__(self, condition, body, until=False, step=""):
        self.condition = condition
        self.body = body
        self.until = until
        self.step = step


class Function:
    """``name() body``."""

    __slots__ = ("name", "body")

    def __init__(self, name, body):
        self.name = name
        self.body = body
