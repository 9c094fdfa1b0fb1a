"""Tools about locks: take, give back, look."""

from __future__ import annotations

from swarm_hook_core.labels import token
from swarm_mcp.errors import LockRefused
from swarm_mcp.scope import file_of
from swarm_mcp.server.tool import Answer, Tool, flag, text

FILE = text("The file, absolute or relative to this session's folder. It need not exist yet.")


def _lock(call, arguments: dict) -> Answer:
    row = call.member()
    try:
        lock = call.store.locks.acquire(
            row,
            arguments["file"],
            arguments.get("reason", "actively editing"),
            arguments.get("exclusive", False),
            arguments.get("task_id"),
        )
    except LockRefused as refusal:
        return Answer({"error": str(refusal), "active": refusal.active})
    return Answer({"ok": True, "id": lock["id"]})


def _unlock(call, arguments: dict) -> Answer:
    row = call.member()
    call.store.locks.release(row, arguments["file"])
    return Answer(text=f"Unlocked {arguments['file']}")


def _look(call, arguments: dict) -> Answer:
    row = call.member()
    path = file_of(row, arguments["file"])
    held = call.store.locks.on(path)
    active = call.store.locks.describe(held[0], token(row["label"] or "", "identity")) if held else None
    return Answer({"file": path, "active": active})


TOOLS = (
    Tool(
        "lock_file",
        "Keep every other session from writing a file until unlock_file or the end of this session. Use it before"
        " edits that must not be disturbed; a quick one-off edit needs none. On conflict the answer has `error` and"
        " `active`, which says who holds the file and why.",
        {
            "file": FILE,
            "reason": text("Why, in a few words; shown to whoever is denied."),
            "task_id": text("The task this is for; its end releases the lock."),
            "exclusive": flag("Refuse also where this session itself holds the file already."),
        },
        _lock,
        required=("file",),
    ),
    Tool(
        "unlock_file",
        "Release this session's lock on a file. Do it as soon as the work is done: others may be waiting.",
        {"file": FILE},
        _unlock,
        required=("file",),
        idempotent=True,
    ),
    Tool(
        "get_file_lock",
        "Who holds a file, since when and why, without taking anything. `active` is null where nobody does.",
        {"file": FILE},
        _look,
        required=("file",),
        reads=True,
    ),
)
