"""Rows of the store as values that nobody changes.

Built on ``dict`` because `typing` and `dataclasses` take longer to load than all that a command started by a hook
does; and a row goes into JSON as it is.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn, TypeVar

    R = TypeVar("R", bound="Record")


class Record(dict):
    """A row: ``row.name`` for each column, None for one that was not asked for. It cannot be changed.

    Subclasses name their columns as annotations and have no other code. ``row["name"]`` serves code that takes a row
    for one of several kinds by its column names.
    """

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            if name in type(self).__annotations__:
                return None
            raise AttributeError(f"a {type(self).__name__} has no {name}") from None

    def replace(self: R, **changes: object) -> R:
        """Return the same record with other values in these columns."""
        return type(self)({**self, **changes})

    def __reduce__(self) -> tuple:
        return type(self), (dict(self),)

    def _refuse(self, *_arguments: object, **_given: object) -> NoReturn:
        raise TypeError(f"a {type(self).__name__} cannot be changed; replace() makes another one")

    __setitem__ = __delitem__ = __setattr__ = __delattr__ = __ior__ = _refuse
    update = setdefault = pop = popitem = clear = _refuse


class _NamedValues(type):
    """Makes each class below ``NamedValues`` a named tuple of its annotated fields, with their defaults."""

    def __new__(mcs, name: str, bases: tuple, space: dict) -> type:
        if not bases:
            return super().__new__(mcs, name, bases, space)
        from collections import namedtuple

        fields = list(space.get("__annotations__", ()))
        base = namedtuple(name, fields, defaults=[space[field] for field in fields if field in space])  # type: ignore[misc]
        rest = {key: value for key, value in space.items() if key not in fields}
        return type(name, (base,), {**rest, "__slots__": ()})


class NamedValues(metaclass=_NamedValues):
    """Stands for ``typing.NamedTuple`` at run time; type checkers are shown that one."""
