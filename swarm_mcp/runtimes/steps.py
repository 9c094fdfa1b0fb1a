"""The steps of what is done for one agent client, said as they happen."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Begun(str):
    """What is being done from now on; what else is told has been done."""

    __slots__ = ()


class Steps:
    """What is done for one client: said when a step begins, and again once it is done. `done` keeps the latter."""

    def __init__(self, tell: Callable[[str], None] = lambda words: None):
        self.done: list[str] = []
        self._tell = tell

    def begin(self, doing: str) -> None:
        """Say what is being done from now on."""
        self._tell(Begun(doing))

    @contextmanager
    def step(self, doing: str, done: str) -> Iterator[None]:
        """Say what is being done in the block, and after it that it is `done`."""
        self.begin(doing)
        yield
        self.add(done)

    def add(self, done: str) -> None:
        """Say that something has been done."""
        self.done.append(done)
        self._tell(done)
