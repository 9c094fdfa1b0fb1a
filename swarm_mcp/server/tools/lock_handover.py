"""Tools for locks that change hands: transfer, request, steal; and renewal, to be sure that one still has a lock."""

from __future__ import annotations

from swarm_hook_core.lookup import plain
from swarm_mcp.domain.lock import Lock, granted
from swarm_mcp.locking.acquisition import steal
from swarm_mcp.server.tool import Answer, Call, Tool, text
from swarm_mcp.server.tools.locks import AGENT, FENCE, FILE
from swarm_mcp.store.lock_request import LONGEST_LEASE, SHORTEST_LEASE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def _transfer(call: Call, arguments: dict[str, Any]) -> Answer:
    row = call.member()
    lock = call.store.transfers.transfer(
        row,
        arguments["file"],
        arguments["to"],
        arguments.get("agent_id", ""),
        arguments.get("fence"),
        arguments.get("note", ""),
    )
    return Answer({"ok": True, **_shown(lock), "from": row.id, "to": arguments["to"]})


def _request(call: Call, arguments: dict[str, Any]) -> Answer:
    locks = call.store.transfers.request(call.member(), arguments["file"], arguments.get("reason", ""))
    asked = [{"file": lock.file, "holder": lock.instance_id, "label": lock.owner_label} for lock in locks]
    return Answer({"ok": True, "asked": asked})


def _steal(call: Call, arguments: dict[str, Any]) -> Answer:
    done = steal(call.store, call.member(), arguments["file"], arguments.get("reason", ""))
    taken = [{"file": row["file"], "holder": row["instance_id"], "fence": row["fence"]} for row in done["taken"]]
    told = {"ok": True, **_shown(done["lock"])}
    if done["confirmation"] is not None:
        told.update(done["confirmation"].shown(done["lock"]))
    return Answer({**told, "taken": taken})


def _renew(call: Call, arguments: dict[str, Any]) -> Answer:
    lock = call.store.leases.renew_lock(
        call.member(),
        arguments["file"],
        arguments.get("agent_id", ""),
        arguments.get("fence"),
        arguments.get("ttl_seconds"),
    )
    left = call.store.locks.left(lock)
    return Answer({"ok": True, **_shown(lock), **({} if left is None else {"lapses_in": round(left, 1)})})


def _shown(lock: Lock) -> dict[str, Any]:
    return granted(lock.replace(file=plain(lock.file)))


TOOLS = (
    Tool(
        "transfer_lock",
        "Hand this session's lock on a file to another session of this scope, at once and ahead of the line; no other"
        " session can get it in between. The lock keeps its mode and lease, gets a new fence, and the other session is"
        " told. Use it when a peer asked for the file, or continues your work.",
        {
            "file": FILE,
            "to": text("Instance id of the session to get it, from bootstrap."),
            "note": text("A note for it; it becomes the note of the lock."),
            "fence": FENCE,
            "agent_id": AGENT,
        },
        _transfer,
        required=("file", "to"),
    ),
    Tool(
        "request_lock",
        "Ask the holder of a file to hand it over or release it. The holder sees your name and reason at its next"
        " step. You get a message when the file is free; until then do other work, or wait in line for it (lock_file"
        " with wait_seconds).",
        {"file": FILE, "reason": text("Why you need it, in a few words; shown to the holder.")},
        _request,
        required=("file",),
        idempotent=True,
    ),
    Tool(
        "steal_lock",
        "Take over a lock if its holder is proved dead or its lease has expired; the answer has the new fence and the"
        " lock's earlier holder. A live session's lock is refused: ask with request_lock. Only a person can take that"
        " by force (swarm-mcp steal --force --reason, at a terminal).",
        {"file": FILE, "reason": text("Why; kept in the history, and the note of the new lock.")},
        _steal,
        required=("file",),
        is_listed=False,
    ),
    Tool(
        "renew_lock",
        "Make sure that this session still holds a lock, and start its lease anew. Every action of a session renews"
        " its leases, so this is for a moment in which you must be sure: with the fence of lock_file's answer it is"
        " refused if the lock has expired or changed hands since, even if you hold the file again.",
        {
            "file": FILE,
            "fence": FENCE,
            "ttl_seconds": {
                "type": "number",
                "minimum": SHORTEST_LEASE,
                "maximum": LONGEST_LEASE,
                "description": "A lease of that length from now on. Default: the one it has.",
            },
            "agent_id": AGENT,
        },
        _renew,
        required=("file",),
        idempotent=True,
        is_listed=False,
    ),
)
