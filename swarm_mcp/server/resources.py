"""Resources: the calling session's view of the scope, to be read at any time."""

from __future__ import annotations

import json
from urllib.parse import parse_qs

from swarm_hook_core.labels import token
from swarm_mcp.domain.session import Session
from swarm_mcp.scope import file_of
from swarm_mcp.server.tool import Call
from swarm_mcp.session_summary import sessions_met_by, shown_peer
from swarm_mcp.store import Store

LONGEST_SHOWN = 200  # characters of a URI that nobody knows
INBOX, TASKS, INSTANCES, LOCK = "swarm://inbox", "swarm://tasks", "swarm://instances", "swarm://lock"
LISTED = (
    {
        "uri": INBOX,
        "name": "inbox",
        "description": "Messages this session has not read yet. Reading the resource does not mark them as read.",
        "mime_type": "application/json",
    },
    {
        "uri": TASKS,
        "name": "tasks",
        "description": "Tasks of this scope by status: the most urgent, and the newest of those that ended.",
        "mime_type": "application/json",
    },
    {
        "uri": INSTANCES,
        "name": "instances",
        "description": "The live sessions of this scope.",
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
    return uri in (INBOX, TASKS, INSTANCES) or bool(_file_in(uri))


def read(call: Call, uri: str) -> str:
    """The resource as JSON text, as the calling session may see it. Raises UnknownResource.

    For a connection that is not registered the lists are empty.
    """
    if not is_known(uri):
        raise UnknownResource(uri)
    row = call.instance()
    if uri == INBOX:
        value: object = call.store.messages.peek(row) if row else []
    elif uri == TASKS:
        value = call.store.tasks.glance(row) if row else {}
    elif uri == INSTANCES:
        value = [shown_peer(call.store, other) for other in sessions_met_by(call.store, row)] if row else []
    else:
        value = _lock(call.store, row, _file_in(uri))
    return json.dumps(value, indent=2, ensure_ascii=False)


def state(call: Call, uri: str) -> str:
    """A text that differs whenever the resource has changed, and not when only ages and heartbeats have."""
    row = call.instance()
    if uri == INSTANCES and row:
        return repr([(other.id, other.label, other.directory) for other in sessions_met_by(call.store, row)])
    if _file_in(uri):
        active = _lock(call.store, row, _file_in(uri))["active"] or {}
        return repr((active.get("id"), active.get("instance_id"), bool(active)))
    return read(call, uri)


def _lock(store: Store, me: Session | None, file: str) -> dict:
    path = file_of(me, file) if me else file
    return {"file": path, "active": store.locks.active_on(path, token(me.label or "", "identity") if me else "")}


def _file_in(uri: str) -> str:
    place, _, query = uri.partition("#")[0].partition("?")
    if place != LOCK:
        return ""
    try:
        return parse_qs(query, max_num_fields=8).get("file", [""])[0]
    except ValueError:
        return ""
