"""Tools about sessions: join, look around, who am I."""

from __future__ import annotations

import os

from swarm_hook_core.labels import same_circle, token
from swarm_mcp.server.tool import Answer, Tool, flag, text
from swarm_mcp.shapes import public_instance, registration

GUIDANCE = (
    "You take part in the swarm. Other sessions may edit this checkout too: lock a file with lock_file before"
    " work on it that must not be disturbed, and unlock_file as soon as that work is done."
)


def _register(call, arguments: dict) -> Answer:
    row = call.session.register(call.store, call.meta, arguments)
    return Answer(registration(row), notes=(GUIDANCE,))


def _whoami(call, _arguments: dict) -> Answer:
    return Answer(registration(call.member()))


def _bootstrap(call, arguments: dict) -> Answer:
    row = call.member()
    store, mine = call.store, token(row["label"] or "", "identity")
    peers = [
        {**public_instance(peer), "adopted": peer["adopted"], "lease_until": peer["lease_until"]}
        for peer in store.instances.in_scope(row["scope"])
        if peer["id"] != row["id"] and same_circle(mine, token(peer["label"] or "", "identity"))
    ]
    counts = store.records.task_counts(row["scope"])
    ended = ("done", "failed", "cancelled")
    tasks = [task for task in store.records.tasks(row["scope"]) if task["status"] not in ended]
    grouped: dict = {}
    for task in tasks:
        grouped.setdefault(task["status"], []).append(task)
    grouped["terminal_counts"] = {status: counts.get(status, 0) for status in ended}
    source = "SWARM_DB_PATH" if os.environ.get("SWARM_DB_PATH", "").strip() else "home_default"
    return Answer(
        {
            "instance": registration(row),
            "peers": peers,
            "unread_messages": store.messages.unread(row, 50, arguments.get("mark_read", True)),
            "locks": store.locks.held(row["scope"], mine),
            "tasks": grouped,
            "state_backend": {
                "backend": "sqlite",
                "db_path": store.path,
                "db_path_source": source,
                "scope": row["scope"],
            },
        }
    )


TOOLS = (
    Tool(
        "register",
        "Join the swarm, so that other sessions can see this one and its locks can be enforced. Sessions whose"
        " client has the swarm plugin are registered already; then this returns that registration.",
        {
            "directory": text("Absolute path of the folder this session works in."),
            "label": text("Words that name this session, such as `identity:work role:reviewer`."),
            "scope": text("Folder whose sessions coordinate with each other. Default: the git root."),
            "file_root": text("Where this session's files really are, for a worktree that stands for another folder."),
            "adopt_instance_id": text("An instance id that was reserved for this session."),
        },
        _register,
        required=("directory",),
        idempotent=True,
    ),
    Tool(
        "bootstrap",
        "Everything to know at the start of work or after losing context, in one call: this session, its peers,"
        " unread messages, current locks, open tasks.",
        {
            "mark_read": flag("Mark the returned messages as read.", True),
        },
        _bootstrap,
    ),
    Tool("whoami", "This session's instance id, label and scope.", {}, _whoami, reads=True),
)
