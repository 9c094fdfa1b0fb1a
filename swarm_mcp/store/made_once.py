"""Values that are made when they are first asked for."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from functools import cached_property as made_once
else:

    class made_once:
        """Stands for ``functools.cached_property`` at run time: to load that costs a command more than it saves."""

        def __init__(self, make):
            self.make, self.__doc__ = make, make.__doc__

        def __set_name__(self, owner, name):
            self.name = name

        def __get__(self, instance, owner=None):
            if instance is None:
                return self
            value = instance.__dict__[self.name] = self.make(instance)
            return value


__all__ = ["made_once"]
