"""The resources of the server, as clients list them."""

from __future__ import annotations

INBOX, TASKS, INSTANCES, LOCK = "swarm://inbox", "swarm://tasks", "swarm://instances", "swarm://lock"
LISTED = [
    {
        "uri": INBOX,
        "name": "inbox",
        "description": "Messages this session has not read yet. Reading the resource does not mark them as read."
        " Where there are many, `?after=` goes on behind those of an earlier answer; `?limit=` asks for fewer.",
        "mimeType": "application/json",
    },
    {
        "uri": TASKS,
        "name": "tasks",
        "description": "Tasks of this scope by status: the most urgent, and the newest of those that ended;"
        " `not_shown` counts the others, which list_tasks has.",
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
        "description": "Who holds a file, since when and why; `active` is null where nobody does.",
        "mimeType": "application/json",
    },
]
