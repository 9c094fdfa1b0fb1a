"""Tools about locks that change hands: give, ask for, take over, hold on."""

from __future__ import annotations

from swarm_hook_core.lookup import plain
from swarm_mcp.domain.lock import Lock, granted
from swarm_mcp.server.tool import Answer, Call, Tool, number, text
from swarm_mcp.server.tools.locks import AGENT, FILE
from swarm_mcp.store.lock_request import LONGEST_LEASE, SHORTEST_LEASE

FENCE = number("Only the grant with this number; an error where it is no longer held.")


def _transfer(call: Call, arguments: dict) -> Answer:
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


def _request(call: Call, arguments: dict) -> Answer:
    locks = call.store.transfers.request(call.member(), arguments["file"], arguments.get("reason", ""))
    asked = [{"file": lock.file, "holder": lock.instance_id, "label": lock.owner_label} for lock in locks]
    return Answer({"ok": True, "asked": asked})


def _steal(call: Call, arguments: dict) -> Answer:
    done = call.store.transfers.steal(call.member(), arguments["file"], arguments.get("reason", ""))
    taken = [{"file": row["file"], "holder": row["instance_id"], "fence": row["fence"]} for row in done["taken"]]
    return Answer({"ok": True, **_shown(done["lock"]), "taken": taken})


def _renew(call: Call, arguments: dict) -> Answer:
    lock = call.store.leases.renew_lock(
        call.member(),
        arguments["file"],
        arguments.get("agent_id", ""),
        arguments.get("fence"),
        arguments.get("ttl_seconds"),
    )
    left = call.store.locks.left(lock)
    return Answer({"ok": True, **_shown(lock), **({} if left is None else {"lapses_in": round(left, 1)})})


def _shown(lock: Lock) -> dict:
    return granted(lock.replace(file=plain(lock.file)))


TOOLS = (
    Tool(
        "transfer_lock",
        "Hand this session's lock on a file to another session of this scope, at once and past everybody who waits"
        " for it; nobody else can get it in between. The lock keeps its mode and lease, has a new fence, and the other"
        " session is told. Use it when a peer asked for the file, or is to go on with your work.",
        {
            "file": FILE,
            "to": text("Instance id of the session to get it, from list_instances."),
            "note": text("What to tell it; the note of the lock from then on."),
            "fence": FENCE,
            "agent_id": AGENT,
        },
        _transfer,
        required=("file", "to"),
    ),
    Tool(
        "request_lock",
        "Ask whoever keeps a file from you to hand it over or release it. The holder is shown who asks and why at its"
        " next step. You get a message when the file is free; until then do other work, or wait in line for it"
        " (lock_file with wait_seconds).",
        {"file": FILE, "reason": text("Why you need it, in a few words; shown to the holder.")},
        _request,
        required=("file",),
        idempotent=True,
    ),
    Tool(
        "steal_lock",
        "Take over a lock whose holder is proved dead or whose lease has lapsed; the answer has the new fence and what"
        " was taken from whom. What a live session holds is refused: ask it with request_lock. By force only a person"
        " can take that (swarm-mcp steal --force --reason, at a terminal).",
        {"file": FILE, "reason": text("Why; kept in the history, and the note of the new lock.")},
        _steal,
        required=("file",),
    ),
    Tool(
        "renew_lock",
        "Make sure that this session still holds a lock, and start its lease anew. Anything a session does renews its"
        " leases, so this is for a moment in which you must know: with the fence of lock_file's answer it is refused"
        " where the lock has lapsed or changed hands since, even if you hold the file again.",
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
    ),
)
