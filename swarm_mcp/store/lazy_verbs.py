"""Parts of an open store: verbs that are functions of modules, loaded when a verb is first called.

A hook starts commands that need few of the modules and few of the parts: a module is loaded, and the class of a part
made, when it is first asked for. To type checkers a module is itself, and a verb its function without the first
argument.

- `verb(f)`: calls ``f(database, ...)``. The function reads, or opens transactions itself, or is one of those that
  callers put into a transaction of their own.
- `in_write(f)`: calls ``f(tx, ...)`` inside one transaction.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, overload

    from swarm_mcp.store.database import Database

    P = ParamSpec("P")
    R = TypeVar("R")

    class verb(Generic[P, R]):
        """A verb of a part: the function without its first argument."""

        def __init__(self, function: Callable[Concatenate[Database, P], R]): ...

        @overload
        def __get__(self, part: None, owner: object) -> verb[P, R]: ...

        @overload
        def __get__(self, part: Part, owner: object) -> Callable[P, R]: ...

        def __get__(self, part: Part | None, owner: object) -> Any: ...

    in_write = verb
    later = type
else:

    class LazyModule:
        """A module that is not loaded yet: an attribute is the pair of it and of a function's name.

        Its own name is in `_names`: a ``__getattr__`` would only be asked after Python has failed to find each of 200
        attributes, which takes longer than the rest of this module.
        """

        def __init__(self, name):
            _names[self] = name

        def __getattribute__(self, name):
            return self, name

    _names = {}  # LazyModule -> its name

    class verb:
        """A verb of a part: loads the module when it is first asked for, and binds the function to the database."""

        _loaded = None

        def __init__(self, function):
            self._module_and_name = function

        def __get__(self, part, owner=None):
            function = self._function()
            if part is None:
                return function
            return function.__get__(part._database)

        def _function(self):
            module, name = self._module_and_name
            if self._loaded is None:
                self._loaded = __import__(_names[module], fromlist=[name])
            return getattr(self._loaded, name)

    class in_write(verb):
        """A verb whose function runs inside one transaction."""

        def __get__(self, part, owner=None):
            function = self._function()
            if part is None:
                return function

            def in_transaction(*values, **named):
                with part._database.writing() as tx:
                    return function(tx, *values, **named)

            return in_transaction

    def later(name: str, bases: tuple[type], verbs: dict[str, object]) -> object:
        """Return the arguments of `type` for a part's class. `Store` makes the class when a verb of it is called."""
        return name, bases, verbs


class Part:
    """Verbs about one subject, over one open store."""

    def __init__(self, database: Database):
        self._database = database
