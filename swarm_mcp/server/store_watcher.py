"""One watcher of the store for all that waits in this server: tool calls and subscriptions."""

from __future__ import annotations

import asyncio
import threading
from contextlib import contextmanager


class StoreWatcher:
    """A counter of commits to the store, by this process and others. It watches only while there are listeners."""

    def __init__(self):
        self.commits = 0
        self._listeners = 0
        self._next_commit = asyncio.Event()
        self._changes = None

    @contextmanager
    def listening(self):
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
        """Wait until there are more than `commits`; False when `seconds` have passed first."""
        if seconds is None:
            deadline = None
        else:
            deadline = asyncio.get_running_loop().time() + seconds
        while self.commits <= commits:
            if deadline is None:
                left = None
            else:
                left = deadline - asyncio.get_running_loop().time()
            if left is not None and left <= 0:
                return False
            try:
                await asyncio.wait_for(self._next_commit.wait(), left)
            except asyncio.TimeoutError:
                return False
        return True

    def _start(self) -> None:
        from swarm_mcp.store.changes import Changes

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
