"""Where names of Python code are looked up, and how following it ends early."""


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
