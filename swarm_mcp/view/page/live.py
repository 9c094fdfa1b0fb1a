"""Telling open pages that something has changed: one watcher for all of them, however many there are.

A page that is told asks for itself anew. Of many commits at once it is told once: no page asks more than five times a
second.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar

from swarm_mcp.answers.people import People
from swarm_mcp.answers.work import journal_marks
from swarm_mcp.errors import SwarmError
from swarm_mcp.server.calls import StoreWatcher
from swarm_mcp.store import Store
from swarm_mcp.view.overview.now import NOTHING, Work, work

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


# The one thread that reads the store for all open pages, and its renderings since the last commit.
#
# Every question is one statement of its own, and no transaction spans two, so no writer ever waits for a page, and
# nothing is lost when this process is killed. The store is opened read-only.

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


# Edited files: no commit to a store announces them. Asking git takes time, so a thread of its own does.

PATIENCE_SECONDS = 0.3  # seconds that a page's first request waits
GOOD_SECONDS = 10.0  # seconds after which git may have another answer, though no file was edited
# A hook notes a write before the client makes it, and the moment of the write itself is unknown: for so many seconds
# after a journal has grown, the files are looked at again and again, as long as pages ask for them.
COMING_SECONDS, AGAIN_SECONDS, WANTED_SECONDS = 30.0, 0.5, 40.0


class _Found(NamedTuple):
    journals: object
    at: float
    work: Work


class Edited:
    """The uncommitted work of each scope that was asked for. `changed` is called once it is another."""

    def __init__(self, open_store: Callable[[], Store], viewer: str, changed: Callable[[], None]):
        self._looker = Looker(open_store)
        self._viewer = viewer
        self._changed = changed
        self._found: dict[str, _Found] = {}
        self._asked: dict[str, asyncio.Task[Any]] = {}
        self._wanted: dict[str, float] = {}  # scope -> when a page last asked for it
        self._again: dict[str, asyncio.TimerHandle] = {}

    async def of(self, scopes: list[str]) -> dict[str, Work | None]:
        """Return the work in each of these scopes; None for one that is not known in time: `changed` tells later.

        Known work is returned at once, and read anew if they may be out of date.
        """
        now = asyncio.get_running_loop().time()
        for scope in scopes:
            found = self._found.get(scope)
            self._wanted[scope] = now
            is_good = found and found.journals == journal_marks(scope) and now - found.at < GOOD_SECONDS
            if not is_good:
                self._begin(scope)
        unknown = [self._asked[scope] for scope in scopes if scope not in self._found]
        if unknown:
            await asyncio.wait(unknown, timeout=PATIENCE_SECONDS)
        return {scope: self._found[scope].work if scope in self._found else None for scope in scopes}

    def _begin(self, scope: str) -> None:
        if scope in self._again:
            self._again.pop(scope).cancel()
        if scope not in self._asked:
            self._asked[scope] = asyncio.create_task(self._ask(scope))

    async def _ask(self, scope: str) -> None:
        try:
            state = journal_marks(scope)
            try:
                found = await self._looker.ask(lambda store: work(store, scope, People(store, self._viewer)))
            except SwarmError:
                found = NOTHING  # the store cannot be read; the page itself says so
            before = self._found.get(scope)
            self._found[scope] = _Found(state, asyncio.get_running_loop().time(), found)
            if before is None or before.work != found:
                self._changed()
        finally:
            del self._asked[scope]
        loop = asyncio.get_running_loop()
        is_wanted = loop.time() - self._wanted[scope] < WANTED_SECONDS
        if is_wanted and any(time.time() - written / 1e9 < COMING_SECONDS for _size, written in state.values()):
            self._again[scope] = loop.call_later(AGAIN_SECONDS, self._begin, scope)

    def close(self) -> None:
        """Let go of the store."""
        for later in self._again.values():
            later.cancel()
        self._looker.close()
