"""A folder that makes room for a symbolic link right before a certain system call of this process."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

CALLS = ("open", "lstat", "stat", "mkdir", "readlink", "replace", "symlink", "unlink", "remove", "chmod", "utime")


class Swap:
    """The folder `inside` becomes a link to `outside`, a folder that nothing may read or change."""

    def __init__(self, inside: Path, outside: Path):
        self.inside = inside
        self.outside = outside
        self.aside = inside.with_name(f"{inside.name}.aside")
        self.before = self.seen()

    def seen(self) -> dict[str, bytes | None]:
        """Return the contents of all files outside, None for folders."""
        return {
            str(path.relative_to(self.outside)): None if path.is_dir() else path.read_bytes()
            for path in sorted(self.outside.rglob("*"))
        }

    def make(self) -> None:
        self.inside.rename(self.aside)
        self.inside.symlink_to(self.outside)

    def take_back(self) -> None:
        if self.aside.exists():
            self.inside.unlink()
            self.aside.rename(self.inside)

    def before_each_call(self, deed: Callable[[], Any]) -> Iterator[int]:
        """Do `deed` again and again, each time with the swap before a later call to the system; yield its number."""
        number, is_made = 0, True
        while is_made:
            is_made = self._before(number, deed)
            yield number
            self.take_back()
            number += 1

    def _before(self, number: int, deed: Callable[[], Any]) -> bool:
        """Do `deed` with the swap before its call with this number. Return False if it makes fewer calls."""
        left, is_made = number, False

        def counted(real: Callable[..., Any]) -> Callable[..., Any]:
            def call(*given: Any, **named: Any) -> Any:
                nonlocal left, is_made
                if not left and not is_made:
                    is_made = True
                    self.make()
                left -= 1
                return real(*given, **named)

            return call

        with mock.patch.multiple(os, **{name: counted(getattr(os, name)) for name in CALLS}):
            deed()
        return is_made
