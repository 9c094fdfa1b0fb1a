"""What stands in a skeleton's table beside words."""


class Redirect:
    """One redirection. `fd`: what stands before it, mostly empty; `word`: raw; `body`: of a here-document, as it is."""

    __slots__ = ("fd", "operator", "word", "body", "of_compound")

    def __init__(self, fd, operator, word):
        self.of_compound = False  # stands first in braces that were put around what it is of
        self.fd = fd
        self.operator = operator
        self.word = word
        self.body = None


class Test:
    """The inside of ``[[ ]]``, raw."""

    __slots__ = ("raw",)

    def __init__(self, raw):
        self.raw = raw


class Arithmetic:
    """The inside of ``(( ))``, raw; `step` is done after each round of the loop whose condition it is."""

    __slots__ = ("raw", "step")

    def __init__(self, raw, step=""):
        self.raw = raw
        self.step = step
