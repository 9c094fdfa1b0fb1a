"""The resources of the server, as clients list them."""

from __future__ import annotations

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
