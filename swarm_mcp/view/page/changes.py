"""Edited files: no commit to a store announces them. Asking git takes time, so a thread of its own does."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from swarm_mcp.answers.edits import journal_marks
from swarm_mcp.answers.people import People
from swarm_mcp.errors import SwarmError
from swarm_mcp.store import Store
from swarm_mcp.view.overview.work import NOTHING, Work, work
from swarm_mcp.view.page.looking import Looker

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
