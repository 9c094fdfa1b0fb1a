"""What nobody commits to a store: files that sessions have edited. Asked in a thread of its own, since git is asked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import NamedTuple

from swarm_mcp.errors import SwarmError
from swarm_mcp.overview.edits import Edit, edits, journals
from swarm_mcp.overview.people import People
from swarm_mcp.page.looking import Looker
from swarm_mcp.store import Store

PATIENCE_SECONDS = 0.3  # of a page that nobody has asked for yet
GOOD_SECONDS = 10.0  # after these git may say something else, though nobody has edited anything


class _Found(NamedTuple):
    journals: object
    at: float
    edits: list[Edit]


class Edited:
    """The edits of each scope, as far as they have been asked for; `changed` is called where they are others now."""

    def __init__(self, open_store: Callable[[], Store], viewer: str, changed: Callable[[], None]):
        self._looker = Looker(open_store)
        self._viewer = viewer
        self._changed = changed
        self._found: dict[str, _Found] = {}
        self._asked: dict[str, asyncio.Task] = {}

    async def of(self, scopes: list[str]) -> dict[str, list[Edit] | None]:
        """The edits in each of these scopes; None where they are not known in time, and `changed` will tell.

        What is known is answered at once, and asked for anew where it may be another.
        """
        now = asyncio.get_running_loop().time()
        for scope in scopes:
            found = self._found.get(scope)
            is_good = found and found.journals == journals(scope) and (now - found.at < GOOD_SECONDS or not found.edits)
            if not is_good and scope not in self._asked:
                self._asked[scope] = asyncio.create_task(self._ask(scope))
        unknown = [self._asked[scope] for scope in scopes if scope not in self._found]
        if unknown:
            await asyncio.wait(unknown, timeout=PATIENCE_SECONDS)
        return {scope: self._found[scope].edits if scope in self._found else None for scope in scopes}

    async def _ask(self, scope: str) -> None:
        try:
            state = journals(scope)
            try:
                found = await self._looker.ask(lambda store: edits(store, scope, People(store, self._viewer)))
            except SwarmError:
                found = []  # the store cannot be read, which the page itself says
            before = self._found.get(scope)
            self._found[scope] = _Found(state, asyncio.get_running_loop().time(), found)
            if before is None or before.edits != found:
                self._changed()
        finally:
            del self._asked[scope]

    def close(self) -> None:
        """Let go of the store."""
        self._looker.close()
