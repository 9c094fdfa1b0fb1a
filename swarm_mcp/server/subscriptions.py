"""Subscriptions to resources: a client is notified of their changes."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from swarm_hook_core.untrusted_text import cut_text
from swarm_mcp.mcp.protocol import RESOURCE_UPDATED, SUBSCRIPTION_KEY
from swarm_mcp.mcp.server import Call as Request
from swarm_mcp.server.calls import Calls
from swarm_mcp.server.resources import is_known, state

LISTENED = ("toolsListChanged", "promptsListChanged", "resourcesListChanged", "resourceSubscriptions")
LONGEST_ERROR = 200  # characters of an error about a resource
PACE_SECONDS = 0.1  # between two looks at the store; a busy store changes a hundred times a second


class Subscriber:
    """One receiver of changes: `uris` are its resources, `call` is the request that asked for them.

    `meta` stands in each notification. No notification is sent before `ready`.
    """

    def __init__(self, call: Request, uris: set[str], meta: dict[str, Any]):
        self.call, self.uris, self._meta = call, uris, meta
        self.ready = asyncio.Event()

    async def notify(self, uri: str) -> None:
        """Tell the client that the resource has changed."""
        await self.ready.wait()
        params: dict[str, Any] = {"uri": uri}
        if self._meta:
            params["_meta"] = self._meta
        await self.call.notify(RESOURCE_UPDATED, params)


class Subscriptions:
    """One connection's subscriptions.

    Until 2025-11-25 a client adds and removes one URI after the other. Since 2026-07-28 one request names several URIs
    and stays open.
    """

    def __init__(self, calls: Calls):
        self._calls = calls
        self._single: Subscriber | None = None
        self._subscribers: list[Subscriber] = []
        self._states: dict[str, str] = {}  # by URI, as last notified
        self._follower: asyncio.Task[None] | None = None

    async def add(self, uri: str, call: Request) -> None:
        """Notify the client of changes from now on."""
        if self._single is None:
            self._single = Subscriber(call, set(), {})
            self._single.ready.set()
            self._subscribers.append(self._single)
        self._single.uris.add(uri)
        await self._follow([uri], call)

    def remove(self, uri: str) -> None:
        """Stop notifying. A URI without subscription is ignored."""
        if self._single is None:
            return
        self._single.uris.discard(uri)
        if not self._single.uris:
            self._subscribers.remove(self._single)
            self._single = None
        self._tidy()

    async def listen(self, call: Request) -> dict[str, Any]:
        """Acknowledge a subscription to several resources, and notify until the request is cancelled."""
        wanted = call.params["notifications"]
        uris = [uri for uri in wanted.get("resourceSubscriptions") or () if is_known(uri)]
        meta = {SUBSCRIPTION_KEY: call.request.number}
        subscriber = Subscriber(call, set(uris), meta)
        self._subscribers.append(subscriber)
        try:
            await self._follow(uris, call)
            honored = {name: value for name, value in wanted.items() if name in LISTENED and value}
            await call.notify("notifications/subscriptions/acknowledged", {"notifications": honored, "_meta": meta})
            subscriber.ready.set()
            await asyncio.get_running_loop().create_future()  # for ever
        finally:
            subscriber.ready.set()
            self._subscribers.remove(subscriber)
            self._tidy()
        return {"_meta": meta}

    async def _follow(self, uris: list[str], call: Request) -> None:
        if uris and self._follower is None:
            self._follower = asyncio.get_running_loop().create_task(self._notify_changes())
            await asyncio.sleep(0)  # until it listens: no change may fall between that and this look
        for uri in uris:
            if uri not in self._states:
                self._states[uri] = await self._state(uri, call)

    def _tidy(self) -> None:
        uris = {uri for one in self._subscribers for uri in one.uris}
        self._states = {uri: state for uri, state in self._states.items() if uri in uris}
        if self._follower is not None and not uris:
            self._follower.cancel()
            self._follower = None

    async def _notify_changes(self) -> None:
        loop, watcher = asyncio.get_running_loop(), self._calls.watcher
        with watcher.listening():
            while True:
                commits, looked = watcher.commits, loop.time()
                for uri, known in list(self._states.items()):
                    subscribers = [one for one in self._subscribers if uri in one.uris]
                    if subscribers:
                        await self._notify_if_changed(uri, known, subscribers)
                await watcher.wait_beyond(commits, None)
                await asyncio.sleep(max(0.0, looked + PACE_SECONDS - loop.time()))

    async def _notify_if_changed(self, uri: str, known: str, subscribers: list[Subscriber]) -> None:
        state = await self._state(uri, subscribers[0].call)
        if state in ("", known) or uri not in self._states:
            return
        self._states[uri] = state
        for subscriber in subscribers:
            try:
                await subscriber.notify(uri)
            except Exception as error:
                _print(uri, error)

    async def _state(self, uri: str, call: Request) -> str:
        try:
            return str(await self._calls.run(lambda made: state(made, uri), call.meta))
        except Exception as error:
            _print(uri, error)
            return ""


def _print(uri: str, error: Exception) -> None:
    print(f"swarm-mcp serve: {cut_text(f'{uri}: {type(error).__name__}: {error}', LONGEST_ERROR)}", file=sys.stderr)
