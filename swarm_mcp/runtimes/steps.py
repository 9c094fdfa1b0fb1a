"""The steps of the work for one agent client, reported as they happen."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Begun(str):
    """A step that is beginning. Any other text reports a finished one."""

    __slots__ = ()


class Steps:
    """The work for one client: reported when a step begins, and again when it is done. `done` keeps the latter."""

    def __init__(self, tell: Callable[[str], None] = lambda words: None):
        self.done: list[str] = []
        self._tell = tell

    def begin(self, doing: str) -> None:
        """Report that a step begins."""
        self._tell(Begun(doing))

    @contextmanager
    def step(self, doing: str, done: str) -> Iterator[None]:
        """Report that a step begins, and after the block that it is `done`."""
        self.begin(doing)
        yield
        self.add(done)

    def add(self, done: str) -> None:
        """Say that something has been done."""
        self.done.append(done)
        self._tell(done)
