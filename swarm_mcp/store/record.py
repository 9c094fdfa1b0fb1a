"""Named tuples without ``typing``, which takes longer to load than all that a command started by a hook does."""

from __future__ import annotations

from collections import namedtuple


def record(cls: type) -> type:
    """`cls` as a ``NamedTuple`` of its annotated fields, with their defaults; for a class without bases."""
    fields = list(cls.__annotations__)
    defaults = [vars(cls)[name] for name in fields if name in vars(cls)]
    base = namedtuple(cls.__name__, fields, defaults=defaults)
    skipped = {*fields, "__dict__", "__weakref__"}
    rest = {name: value for name, value in vars(cls).items() if name not in skipped}
    return type(cls.__name__, (base,), {**rest, "__slots__": ()})
