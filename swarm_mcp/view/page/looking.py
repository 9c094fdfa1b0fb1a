"""The one thread that reads the store for all open pages, and its renderings since the last commit.

Every question is one statement of its own, and no transaction spans two, so no writer ever waits for a page, and
nothing is lost when this process is killed. The store is opened read-only.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, TypeVar

from swarm_mcp.store import Store

T = TypeVar("T")
KEPT_SECONDS = 5.0  # seconds; a rendering tells the age of things
MOST_KEPT = 100  # addresses


class Looker:
    """Reads in a thread of its own, one thing after the other. `store` is opened there, when first needed."""

    def __init__(self, open_store: Callable[[], Store]):
        self._thread = ThreadPoolExecutor(1, "page")
        self._open_store = open_store
        self._store: Store | None = None

    async def ask(self, question: Callable[[Store], T]) -> T:
        """Return the result of `question` on the store, or raise its exception."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, lambda: question(self._opened()))

    def _opened(self) -> Store:
        if self._store is None:
            self._store = self._open_store()
        return self._store

    def close(self) -> None:
        """Close the store, after the question in progress."""
        self._thread.submit(self._close)
        self._thread.shutdown()

    def _close(self) -> None:
        if self._store is not None:
            self._store.close()


class _Kept(NamedTuple):
    version: object
    at: float
    text: str


class Rendered:
    """The renderings by address: each is valid until the next commit or other `news`, and for 5 s at most.

    Fifty pages with the same address cost as much as one.
    """

    def __init__(self, looker: Looker):
        self._looker = looker
        self._kept: dict[str, _Kept] = {}
        self.news = 0  # counts changes outside of the store

    def tell(self) -> None:
        """Invalidate all renderings: something has changed outside of the store."""
        self.news += 1

    async def get(self, address: str, render: Callable[[Store], str]) -> str:
        """The text for `address`, by `render` where it is not there yet."""

        def look(store: Store) -> str:
            version, now = (self.news, store.version()), time.monotonic()
            kept = self._kept.get(address)
            if kept is None or kept.version != version or now - kept.at > KEPT_SECONDS:
                if len(self._kept) >= MOST_KEPT:
                    self._kept.clear()
                kept = self._kept[address] = _Kept(version, now, render(store))
            return kept.text

        return await self._looker.ask(look)
