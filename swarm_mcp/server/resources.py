"""What clients can read, and have themselves told of: a session's mail, sessions, tasks, and a file's lock."""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qs

from mcp.shared.subscriptions import ResourceUpdated

from swarm_hook_core.labels import token
from swarm_hook_core.paths import LONGEST
from swarm_hook_core.untrusted_text import cut_text
from swarm_mcp.domain.session import Session
from swarm_mcp.domain.task import STATUSES
from swarm_mcp.folders import file_of
from swarm_mcp.paging import page
from swarm_mcp.server.calls import Calls
from swarm_mcp.server.tool import Answer, Call, bounded, of_page
from swarm_mcp.session_summary import sessions_page
from swarm_mcp.store import Store

LONGEST_SHOWN = 200  # characters of a URI that nobody knows, and of what is said of one
LONGEST_URI = 16 * LONGEST
INBOX, TASKS, INSTANCES, LOCK = "swarm://inbox", "swarm://tasks", "swarm://instances", "swarm://lock"
LISTED = (
    {
        "uri": INBOX,
        "name": "inbox",
        "description": "Messages this session has not read yet. Reading the resource does not mark them as read."
        " Where there are many, `?after=` goes on behind those of an earlier answer; `?limit=` asks for fewer.",
        "mime_type": "application/json",
    },
    {
        "uri": TASKS,
        "name": "tasks",
        "description": "Tasks of this scope by status: the most urgent, and the newest of those that ended;"
        " `not_shown` counts the others, which list_tasks has.",
        "mime_type": "application/json",
    },
    {
        "uri": INSTANCES,
        "name": "instances",
        "description": "The live sessions of this scope; `?after=` and `?limit=` as for the inbox.",
        "mime_type": "application/json",
    },
)
TEMPLATES = (
    {
        "uri_template": LOCK + "{?file}",
        "name": "lock-for-file",
        "description": "Who holds a file, since when and why; `active` is null where nobody does.",
        "mime_type": "application/json",
    },
)


class UnknownResource(Exception):
    """There is no such resource."""

    def __init__(self, uri: str):
        known = ", ".join([*(item["uri"] for item in LISTED), *(item["uri_template"] for item in TEMPLATES)])
        super().__init__(f"there is no resource {uri[:LONGEST_SHOWN]}; there are {known}")


def is_known(uri: str) -> bool:
    """Whether `uri` can be read and subscribed to."""
    return _place(uri) in (INBOX, INSTANCES) or uri == TASKS or bool(_file_in(uri))


def read(call: Call, uri: str) -> Answer:
    """The resource, as the calling session may see it. Raises UnknownResource, and SwarmError for no such page.

    For a connection that is not registered the lists are empty. What there is no room for is said in numbers.
    """
    if not is_known(uri):
        raise UnknownResource(uri)
    row = call.instance()
    if _file_in(uri):
        return bounded(Answer(_lock(call.store, row, _file_in(uri))))
    if row is None:
        return Answer({status: [] for status in STATUSES} if uri == TASKS else [])
    if uri == TASKS:
        return bounded(Answer(call.store.tasks.glance(row)))
    after, asked = _query(uri, "after"), _query(uri, "limit")
    limit = int(asked) if asked.isascii() and asked.isdigit() and len(asked) < 10 else None
    if _place(uri) == INSTANCES:
        found = sessions_page(call.store, row, after=after, limit=limit)
    else:
        mail = call.store.messages
        unread = mail.walk_unread(row, after)
        found = page(unread, lambda one: one, lambda: mail.unread_count(row), after=after, limit=limit)
    return of_page(found, f"read {_place(uri)}?after={{next}}")


def state(call: Call, uri: str) -> str:
    """A text that differs whenever the resource has changed, and not when only ages and heartbeats have."""
    row = call.instance()
    answer = read(call, uri)
    if _place(uri) == INSTANCES and row:
        seen = [(other["id"], other["label"], other["directory"]) for other in answer.value or ()]
        return repr((seen, answer.notes))
    if _file_in(uri):
        active = _lock(call.store, row, _file_in(uri))["active"] or {}
        return repr((active.get("id"), active.get("instance_id"), bool(active)))
    return json.dumps([answer.value, answer.notes])


def _lock(store: Store, me: Session | None, file: str) -> dict:
    path = file_of(me, file) if me else file
    return {"file": path, "active": store.locks.active_on(path, token(me.label or "", "identity") if me else "")}


def _place(uri: str) -> str:
    return uri.partition("#")[0].partition("?")[0]


def _file_in(uri: str) -> str:
    """Return the file that a URI asks for the lock of; empty for no such URI, and for what can be no path."""
    file = _query(uri, "file") if len(uri) <= LONGEST_URI and _place(uri) == LOCK else ""
    return file if len(file) <= LONGEST and "\0" not in file else ""


def _query(uri: str, name: str) -> str:
    query = uri.partition("#")[0].partition("?")[2]
    try:
        return parse_qs(query, max_num_fields=8).get(name, [""])[0]
    except ValueError:
        return ""


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
        known = [uri for uri in uris if is_known(uri)]
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
            return await self._calls.run(lambda call: state(call, uri), self._meta)
        except Exception as error:
            _say(uri, error)
            return ""

    async def _tell(self, uri: str) -> None:
        session = self._sessions.get(uri)
        try:
            if session is not None:
                await session.send_resource_updated(uri)
            if uri in self._published:
                await self._bus.publish(ResourceUpdated(uri=uri))
        except Exception as error:
            _say(uri, error)


def _say(uri: str, error: Exception) -> None:
    print(f"swarm-mcp serve: {cut_text(f'{uri}: {type(error).__name__}: {error}', LONGEST_SHOWN)}", file=sys.stderr)
