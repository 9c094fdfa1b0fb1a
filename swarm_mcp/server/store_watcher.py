"""The watcher of the store for everything that waits in this server: tool calls and subscriptions."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from swarm_mcp.store.changes import Changes


class StoreWatcher:
    """A counter of commits to the store, by this process and others. It watches only while there are listeners."""

    def __init__(self) -> None:
        self.commits = 0
        self._listeners = 0
        self._next_commit = asyncio.Event()
        self._changes: Any = None  # a Changes, while there are listeners

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Count `commits` meanwhile. A commit before the entry does not count."""
        self._listeners += 1
        if self._changes is None:
            self._start()
        try:
            yield
        finally:
            self._listeners -= 1
            if not self._listeners and self._changes is not None:
                self._changes.stop()
                self._changes = None

    async def wait_beyond(self, commits: int, seconds: float | None) -> bool:
        """Wait until there are more than `commits`. Return False after `seconds`; `None` waits for ever."""
        if self.commits > commits:
            return True
        passing = asyncio.ensure_future(self._pass(commits))
        try:  # before Python 3.12, `wait_for` returns where a commit and a cancellation come at one moment
            done, _ = await asyncio.wait({passing}, timeout=seconds)
        finally:
            passing.cancel()
        return bool(done)

    async def _pass(self, commits: int) -> None:
        while self.commits <= commits:
            await self._next_commit.wait()

    def _start(self) -> None:
        changes = self._changes = Changes()
        loop = asyncio.get_running_loop()

        def watch() -> None:
            try:
                while self._changes is changes:
                    if changes.wait(None) and self._changes is changes:
                        loop.call_soon_threadsafe(self._count)
            finally:
                changes.close()

        threading.Thread(target=watch, daemon=True).start()

    def _count(self) -> None:
        self.commits += 1
        news, self._next_commit = self._next_commit, asyncio.Event()
        news.set()
