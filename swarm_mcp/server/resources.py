"""The server's resources, as a session may see them: its mail, sessions, tasks, and a file's lock."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any
from urllib.parse import parse_qs

from swarm_hook_core.paths import LONGEST
from swarm_hook_core.untrusted_text import token
from swarm_mcp.answers.size import page
from swarm_mcp.domain import STATUSES, Session
from swarm_mcp.folders import file_of
from swarm_mcp.server.tool import Answer, Call, bounded, of_page
from swarm_mcp.sessions.summary import sessions_page
from swarm_mcp.store import Store

# The resources of the server, as clients list them.

INBOX, TASKS, INSTANCES, LOCK = "swarm://inbox", "swarm://tasks", "swarm://instances", "swarm://lock"
LISTED = [
    {
        "uri": INBOX,
        "name": "inbox",
        "description": "This session's unread messages. Reading the resource does not mark them as read."
        " `?after=` continues after the messages of an earlier answer; `?limit=` asks for fewer.",
        "mimeType": "application/json",
    },
    {
        "uri": TASKS,
        "name": "tasks",
        "description": "Tasks of this scope by status: the most urgent, and the newest of those that ended;"
        " `not_shown` counts the others; list_tasks has them.",
        "mimeType": "application/json",
    },
    {
        "uri": INSTANCES,
        "name": "instances",
        "description": "The live sessions of this scope; `?after=` and `?limit=` as for the inbox.",
        "mimeType": "application/json",
    },
]
TEMPLATES = [
    {
        "uriTemplate": LOCK + "{?file}",
        "name": "lock-for-file",
        "description": "The holder of a file's lock, since when and why; `active` is null for a free file.",
        "mimeType": "application/json",
    },
]

LONGEST_SHOWN = 200  # characters of an unknown URI
LONGEST_URI = 16 * LONGEST


class UnknownResource(Exception):
    """There is no such resource."""

    def __init__(self, uri: str):
        known = ", ".join([*(item["uri"] for item in LISTED), *(item["uriTemplate"] for item in TEMPLATES)])
        super().__init__(f"there is no resource {uri[:LONGEST_SHOWN]}; there are {known}")


def is_known(uri: str) -> bool:
    """Return True if `uri` can be read and subscribed to."""
    return _place(uri) in (INBOX, INSTANCES) or uri == TASKS or bool(_file_in(uri))


def read(call: Call, uri: str) -> Answer:
    """Return the resource, as the calling session may see it. Raises UnknownResource, and SwarmError for a wrong
    cursor.

    Lists are empty for a connection that is not registered. A list that is too long is cut, and says by how many rows.
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
    after, asked, limit = _query(uri, "after"), _query(uri, "limit"), None
    if asked.isascii() and asked.isdigit() and len(asked) < 10:
        limit = int(asked)
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
        rows: Iterable[Any] = answer.value or ()
        seen = [(other["id"], other["label"], other["directory"]) for other in rows]
        return repr((seen, answer.notes))
    if _file_in(uri):
        active = _lock(call.store, row, _file_in(uri))["active"] or {}
        return repr((active.get("id"), active.get("instance_id"), bool(active)))
    return json.dumps([answer.value, answer.notes])


def _lock(store: Store, me: Session | None, file: str) -> dict[str, Any]:
    path, viewer = file, ""
    if me:
        path, viewer = file_of(me, file), token(me.label or "", "identity")
    return {"file": path, "active": store.locks.active_on(path, viewer)}


def _place(uri: str) -> str:
    return uri.partition("#")[0].partition("?")[0]


def _file_in(uri: str) -> str:
    """Return the file of a lock's URI. Empty for another URI, and for a name that can be no path."""
    file = ""
    if len(uri) <= LONGEST_URI and _place(uri) == LOCK:
        file = _query(uri, "file")
    if len(file) <= LONGEST and "\0" not in file:
        return file
    return ""


def _query(uri: str, name: str) -> str:
    query = uri.partition("#")[0].partition("?")[2]
    try:
        return parse_qs(query, max_num_fields=8).get(name, [""])[0]
    except ValueError:  # more than eight fields: no URI of ours
        return ""
