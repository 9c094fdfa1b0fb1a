"""Tools about locks: take, give back, look."""

from __future__ import annotations

from swarm_hook_core.labels import token
from swarm_mcp.server.tool import Answer, Tool, text

FILE = text("The file, absolute or relative to this session's folder. It need not exist yet.")
LOCKED = text(
    "The file, absolute or relative to this session's folder. It need not exist yet. `.git` at the top of a work tree"
    " stands for its repository: no other session may then commit, stash, switch, merge or fetch there."
)
DEFAULT_REASON = "actively editing"


def _lock(call, arguments: dict) -> Answer:
    row = call.member()
    lock = call.store.locks.acquire(
        row,
        arguments["file"],
        arguments.get("reason", DEFAULT_REASON),
        arguments.get("exclusive", False),
        arguments.get("task_id"),
    )
    return Answer({"ok": True, "id": lock["id"]})


def _unlock(call, arguments: dict) -> Answer:
    row = call.member()
    gone = call.store.locks.release(row, arguments["file"])
    return Answer(text=f"Unlocked {arguments['file']}" + ("" if gone else "; this session held no lock on it"))


def _look(call, arguments: dict) -> Answer:
    row = call.member()
    path = call.store.locks.path_of(row, arguments["file"])
    return Answer({"file": path, "active": call.store.locks.active_on(path, token(row["label"] or "", "identity"))})


TOOLS = (
    Tool(
        "lock_file",
        "Keep every other session from writing a file, until unlock_file, the end of the task it is for, or the end of"
        " this session. Use it before several edits that must land together, or when what you read now decides what"
        " you write later; a quick one-off edit needs none. Locking again what this session holds is fine and"
        " replaces reason and task. On conflict the answer has `error`, and `active` says who holds the file, since"
        " when and why; do other work meanwhile, a message comes when the file is free.",
        {
            "file": LOCKED,
            "reason": text("Why, in a few words; shown to whoever is denied."),
            "task_id": text("The task this is for; when that ends, the lock is released, listed in its files or not."),
            "exclusive": {
                "type": "boolean",
                "description": "Refuse also where this session itself holds the file already, as for a one-time step.",
            },
        },
        _lock,
        required=("file",),
    ),
    Tool(
        "unlock_file",
        "Release this session's lock on a file as soon as that part of the work is done: others may be waiting. What"
        " a peer holds stays locked. The end of a task releases its files by itself.",
        {"file": FILE},
        _unlock,
        required=("file",),
        idempotent=True,
    ),
    Tool(
        "get_file_lock",
        "Who holds a file, since when, why, and which tasks that session works on, without taking anything; for"
        " reading, reviewing and planning. `active` is null where nobody holds it.",
        {"file": FILE},
        _look,
        required=("file",),
        reads=True,
    ),
)
