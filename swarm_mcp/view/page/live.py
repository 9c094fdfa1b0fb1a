"""Telling open pages that something has changed: one watcher for all of them, however many there are.

A page that is told asks for itself anew. Of many commits at once it is told once: no page asks more than five times a
second.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

from swarm_mcp.server.store_watcher import StoreWatcher

GAP_SECONDS = 0.2  # between two words to the pages
REST_SECONDS = 15.0  # then they are told in any case: times go on, leases lapse, sessions die
LOOK_SECONDS = 0.2  # between two looks at files that are no part of the store
FORGET_SECONDS = 40.0  # after its page was last asked for, a file is looked at no more


class Live:
    """The count of changes (`number`), kept up while a page listens; `files` are watched besides the store."""

    def __init__(self, outside: Callable[[], object] = lambda: None):
        """`outside()`: called before pages are told of a change that was not in the store."""
        self.number = 0
        self.listeners = 0
        self._outside = outside
        self._store = StoreWatcher()
        self._task: asyncio.Task[Any] | None = None
        self._next = asyncio.Event()
        self._wake = asyncio.Event()
        self._files: dict[str, tuple[Callable[[], object], object, float]] = {}
        self._commits = 0  # of the store, that pages have been told of
        self._closed = False

    async def stream(self) -> AsyncIterator[str]:
        """Yield server-sent events for one page: one at once, and one after each change."""
        self.listeners += 1
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._watch())
        try:
            while not self._closed:
                coming = self._next
                yield f"event: changed\ndata: {self.number}\n\n"
                await coming.wait()
        finally:
            self.listeners -= 1
            if not self.listeners and self._task is not None:
                self._task.cancel()
                self._task = None

    def watch_files(self, address: str, state: Callable[[], object] | None) -> None:
        """Watch files that the page at `address` is made of: `state` differs once they change. None for no files."""
        if state is None:
            self._files.pop(address, None)
        else:
            self._files[address] = state, state(), asyncio.get_running_loop().time()

    def changed(self) -> None:
        """Something has changed that is not in the store."""
        self._outside()
        self._wake.set()

    def close(self) -> None:
        """End all streams."""
        self._closed = True
        self._next.set()

    async def _watch(self) -> None:
        with self._store.listening():
            self._commits = self._store.commits
            files = asyncio.create_task(self._watch_files())
            try:
                while True:
                    await self._something()
                    self.number += 1
                    told, self._next = self._next, asyncio.Event()
                    told.set()
                    await asyncio.sleep(GAP_SECONDS)
            finally:
                files.cancel()

    async def _something(self) -> None:
        """Wait for a commit, a change outside of the store, or long enough."""
        commit = asyncio.create_task(self._store.wait_beyond(self._commits, REST_SECONDS))
        wake = asyncio.create_task(self._wake.wait())
        try:
            await asyncio.wait({commit, wake}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            commit.cancel()
            wake.cancel()
        self._wake.clear()
        self._commits = self._store.commits

    async def _watch_files(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            now = asyncio.get_running_loop().time()
            for address, (state, before, at) in list(self._files.items()):
                if now - at > FORGET_SECONDS:
                    del self._files[address]
                elif (found := state()) != before:
                    self._files[address] = state, found, at
                    self.changed()
