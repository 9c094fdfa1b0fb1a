"""Work for several agent clients at once: most of it is waiting for programs of theirs to start."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from queue import SimpleQueue
from typing import Generic, TypeVar

from swarm_mcp.runtimes.base import Runtime

Told = TypeVar("Told")


class Interrupted(Exception):
    """The rest of the work is not wanted any more."""


class Ended:
    """The last that comes from a client's thread; `error` where it has failed."""

    def __init__(self, error: BaseException | None = None):
        self.error = error


class SideBySide(Generic[Told]):
    """Work for several clients, in a thread each, from entering the ``with`` block to leaving it.

    `work(client, tell)` hands its results to `tell`. That raises Interrupted once the block has been left early: a
    running step is still finished, and the next is not begun.
    """

    def __init__(self, clients: list[Runtime], work: Callable[[Runtime, Callable[[Told], None]], None]):
        self._work = work
        self._told: SimpleQueue[tuple[Runtime, Told | Ended]] = SimpleQueue()
        self._left = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(client,), daemon=True) for client in clients]

    def __enter__(self) -> SideBySide[Told]:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._left.set()
        for thread in self._threads:
            thread.join()

    def told(self) -> Iterator[tuple[Runtime, Told]]:
        """Yield the results of the work, each client's in order, as they come, until all of it has ended.

        Raises the errors of the work.
        """
        working = len(self._threads)
        while working:
            client, told = self._told.get()
            if not isinstance(told, Ended):
                yield client, told
                continue
            working -= 1
            if told.error:
                raise told.error

    def _run(self, client: Runtime) -> None:
        def tell(told: Told) -> None:
            if self._left.is_set():
                raise Interrupted
            self._told.put((client, told))

        try:
            self._work(client, tell)
        except BaseException as error:
            self._told.put((client, Ended(error)))
        else:
            self._told.put((client, Ended()))
