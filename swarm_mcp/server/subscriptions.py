"""Telling clients that a resource they subscribed to has changed."""

from __future__ import annotations

import asyncio
import sys
from contextlib import asynccontextmanager
from typing import Any

from mcp.shared.subscriptions import ResourceUpdated

from swarm_mcp.server import resources
from swarm_mcp.server.calls import Calls

PACE_SECONDS = 0.1  # between two looks: a busy store is news now and then, not a hundred times a second


class Subscriptions:
    """One connection's subscriptions, of either protocol era.

    Until 2025-11-25 a client subscribes to one URI after the other (`add`); since 2026-07-28 it listens to
    several at once, and the SDK forwards what is `published` on its bus.
    """

    def __init__(self, calls: Calls, bus):
        self._calls = calls
        self._bus = bus
        self._sessions: dict[str, Any] = {}
        self._published: dict[str, int] = {}
        self._seen: dict[str, str] = {}
        self._meta: dict = {}
        self._watching: asyncio.Task | None = None

    async def add(self, uri: str, session, meta: dict) -> None:
        """Notify `session` whenever the resource reads differently from now on."""
        self._sessions[uri] = session
        await self._watch([uri], meta)

    def remove(self, uri: str) -> None:
        """Notify no more; of a URI that was never subscribed to, nothing happens."""
        self._sessions.pop(uri, None)
        self._forget([uri])

    @asynccontextmanager
    async def published(self, uris: list[str], meta: dict):
        """Publish changes of these resources on the bus meanwhile."""
        known = [uri for uri in uris if resources.is_known(uri)]
        for uri in known:
            self._published[uri] = self._published.get(uri, 0) + 1
        try:
            if known:
                await self._watch(known, meta)
            yield
        finally:
            for uri in known:
                self._published[uri] -= 1
                if not self._published[uri]:
                    del self._published[uri]
            self._forget(known)

    async def _watch(self, uris: list[str], meta: dict) -> None:
        self._meta = meta
        if self._watching is None:
            self._watching = asyncio.get_running_loop().create_task(self._follow())
            await asyncio.sleep(0)  # until it listens: no change may fall between that and this look
        for uri in uris:
            if uri not in self._seen:
                self._seen[uri] = await self._state(uri)

    def _forget(self, uris: list[str]) -> None:
        for uri in uris:
            if uri not in self._sessions and uri not in self._published:
                self._seen.pop(uri, None)
        if self._watching is not None and not self._sessions and not self._published:
            self._watching.cancel()
            self._watching = None
            self._seen.clear()

    async def _follow(self) -> None:
        loop = asyncio.get_running_loop()
        with self._calls.watcher.listening():
            while True:
                commits, looked = self._calls.watcher.commits, loop.time()
                for uri in {*self._sessions, *self._published} & self._seen.keys():
                    state = await self._state(uri)
                    if state not in ("", self._seen.get(uri, state)):
                        self._seen[uri] = state
                        await self._tell(uri)
                await self._calls.watcher.wait_beyond(commits, None)
                await asyncio.sleep(max(0.0, looked + PACE_SECONDS - loop.time()))

    async def _state(self, uri: str) -> str:
        try:
            return await self._calls.run(lambda call: resources.state(call, uri), self._meta)
        except Exception as error:
            print(f"swarm-mcp serve: {uri}: {type(error).__name__}: {error}", file=sys.stderr)
            return ""

    async def _tell(self, uri: str) -> None:
        session = self._sessions.get(uri)
        try:
            if session is not None:
                await session.send_resource_updated(uri)
            if uri in self._published:
                await self._bus.publish(ResourceUpdated(uri=uri))
        except Exception as error:
            print(f"swarm-mcp serve: {uri}: {type(error).__name__}: {error}", file=sys.stderr)
