"""The events of a run as they come, for a ``for`` loop or an ``async for`` loop."""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from swarm_mcp.agents.harness.typed_events import AnyEvent

if TYPE_CHECKING:
    import asyncio


class EventStream:
    """A stream of events in order. It ends once it is told that there are no more.

    A slow reader delays nothing: its events wait in memory.
    """

    def __init__(self) -> None:
        self._events: deque[AnyEvent] = deque()
        self._is_over = False
        self._changed = threading.Condition()
        self._sleepers: list[Callable[[], object]] = []

    def put(self, event: AnyEvent) -> None:
        """Add an event, from any thread."""
        with self._changed:
            self._events.append(event)
        self._wake()

    def end(self) -> None:
        """Say, from any thread, that no more events come."""
        with self._changed:
            self._is_over = True
        self._wake()

    def __iter__(self) -> EventStream:
        return self

    def __next__(self) -> AnyEvent:
        with self._changed:
            while not self._events:
                if self._is_over:
                    raise StopIteration
                self._changed.wait()
            return self._events.popleft()

    def __aiter__(self) -> EventStream:
        return self

    async def __anext__(self) -> AnyEvent:
        import asyncio  # a quarter of a supervisor's start-up time, and a supervisor never needs it

        while True:
            with self._changed:
                if self._events:
                    return self._events.popleft()
                if self._is_over:
                    raise StopAsyncIteration
                woken = asyncio.Event()
                wake = waker(woken)
                self._sleepers.append(wake)
            try:
                await woken.wait()
            finally:
                with self._changed, contextlib.suppress(ValueError):
                    self._sleepers.remove(wake)

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()
            sleepers, self._sleepers = self._sleepers, []
        for wake in sleepers:
            wake()


def waker(woken: asyncio.Event) -> Callable[[], object]:
    """Return a function that sets `woken`, an event of the running loop, from any thread; it does nothing once that
    loop is gone.
    """
    import asyncio

    loop = asyncio.get_running_loop()

    def wake() -> None:
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(woken.set)

    return wake
