"""Rows of the store as values that cannot be changed.

Built on ``dict``: `typing` and `dataclasses` take longer to load than a command started by a hook takes in all; and a
row goes into JSON as it is.
"""

from __future__ import annotations

import os
from _operator import itemgetter  # as `operator` shows it, without the rest of that module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn, TypeVar

    R = TypeVar("R", bound="Record")
    N = TypeVar("N", bound="NamedValues")


class Record(dict[str, "Any"]):
    """A row: ``row.name`` for each column, None for one that was not asked for. It cannot be changed.

    Subclasses name their columns as annotations and have no other code. Code reads attributes, which type checkers
    know; the dict serves JSON, and code that takes columns by their names.
    """

    __slots__ = ()

    _columns: frozenset[str] = frozenset()

    def __init_subclass__(cls) -> None:
        cls._columns = cls._columns.union(cls.__annotations__)
        # A lock is read some forty times: an attribute that Python has to miss first takes ten times as long.
        for name in cls.__annotations__:
            if name not in vars(dict):  # hasattr() makes an error for each name that is missing, which costs more
                setattr(cls, name, property(itemgetter(name)))

    def __missing__(self, name: str) -> Any:
        if name in self._columns:
            return None
        raise KeyError(name)

    def __getattr__(self, name: str) -> Any:
        if name in self:
            return self[name]
        raise AttributeError(f"a {type(self).__name__} has no {name}")

    def replace(self: R, **changes: object) -> R:
        """Return the same record with other values in these columns."""
        return type(self)({**self, **changes})

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (dict(self),)

    def _refuse(self, *_arguments: object, **_given: object) -> NoReturn:
        raise TypeError(f"a {type(self).__name__} cannot be changed; replace() makes another one")

    __setitem__ = __delitem__ = __setattr__ = __delattr__ = __ior__ = _refuse
    update = setdefault = pop = popitem = clear = _refuse


class NamedValues(tuple["Any", ...]):
    """Stands for ``typing.NamedTuple`` at run time; type checkers are shown that one.

    Subclasses annotate their fields, and may give them defaults. ``collections.namedtuple`` would do as much, but
    loading it and compiling a constructor for each class takes a tenth of the time of a command started by a hook.
    """

    _fields: tuple[str, ...] = ()
    _defaults: dict[str, object] = {}
    _last: tuple[object, ...] = ()  # the defaults, which are those of the last fields

    def __init_subclass__(cls) -> None:
        cls._fields = tuple(cls.__annotations__)
        cls._defaults = {name: vars(cls)[name] for name in cls._fields if name in vars(cls)}
        cls._last = tuple(cls._defaults.values())
        for place, name in enumerate(cls._fields):
            setattr(cls, name, property(itemgetter(place)))

    def __new__(cls: type[N], *values: object, **named: object) -> N:
        """Make one of the values in the order of the fields, and the `named` ones. Raises TypeError where some lack."""
        left = len(cls._fields) - len(values)
        if not named and 0 <= left <= len(cls._last):
            return tuple.__new__(cls, (*values, *cls._last[len(cls._last) - left :]))
        given = {**cls._defaults, **dict(zip(cls._fields, values)), **named}
        if len(given) == len(cls._fields) >= len(values) and all(map(given.__contains__, cls._fields)):
            return tuple.__new__(cls, map(given.__getitem__, cls._fields))
        wrong = given.keys() ^ set(cls._fields)
        raise TypeError(f"a {cls.__name__} has the fields {', '.join(cls._fields)}; wrong: {wrong or values}")

    def __getnewargs__(self) -> tuple[Any, ...]:
        return tuple(self)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map('{}={!r}'.format, self._fields, self))})"

    def _asdict(self) -> dict[str, Any]:
        return dict(zip(self._fields, self))

    def _replace(self: N, **changes: object) -> N:
        return type(self)(**{**self._asdict(), **changes})


def new_id() -> str:
    """Return a random UUID, version 4, without the 3 ms that importing ``uuid`` costs."""
    raw = bytearray(os.urandom(16))
    raw[6] = raw[6] & 0x0F | 0x40
    raw[8] = raw[8] & 0x3F | 0x80
    text = raw.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
