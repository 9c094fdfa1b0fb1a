"""Tools for locks: taking and giving them back, explaining them, and giving them to others."""

from __future__ import annotations

import threading
from typing import Any

from swarm_hook_core.lookup import plain
from swarm_hook_core.untrusted_text import token
from swarm_mcp.answers.people import People
from swarm_mcp.answers.timeline import as_json
from swarm_mcp.domain import MODES, Lock, Session, granted
from swarm_mcp.errors import LockRefused, UnknownInstance
from swarm_mcp.locking.acquisition import (
    LONGEST_WAIT,
    LockWait,
    Taken,
    granted_answer,
    refused_answer,
    requested,
    steal,
    take,
)
from swarm_mcp.locking.explaining import explanation, history, incidents_about
from swarm_mcp.server.tool import AFTER, Answer, Call, Tool, WaitingCall, number, text, texts
from swarm_mcp.store import Store
from swarm_mcp.store.lock_request import LONGEST_LEASE, SHORTEST_LEASE, LockRequest
from swarm_mcp.store.messages import may_meet

FILE = text("The file, absolute or relative to this session's folder. It need not exist yet.")
LOCKED = text(
    "The file, absolute or relative to this session's folder. It need not exist yet. `.git` at the top of a work tree"
    " stands for its repository: no other session may then commit, stash, switch, merge or fetch there."
    " `name:port:3000` is a name that is no file, such as a port or a database: locked in all work trees."
)
DEFAULT_REASON = "actively editing"
# Arguments beyond the contract's. With one of them the answer has all columns of each lock.
MORE = {"files", "mode", "ttl_seconds", "expected_end_seconds", "wait_seconds", "pattern", "agent_id"}
AGENT = text("Id of the subagent that owns the lock (agent_id in hook payloads), to keep siblings out as well.")
FENCE = number("Only the grant with this number; an error where it is no longer held.")


def _lock(call: Call, arguments: dict[str, Any]) -> Answer:
    row = call.member()
    wanted = _wanted(call.store, row, arguments)
    try:
        return _granted(take(call.store, row, wanted), arguments)
    except LockRefused as refusal:
        return _refused(call.store, refusal, wanted)


async def _wait(waiting: WaitingCall, arguments: dict[str, Any]) -> Answer:
    wait = _Wait(arguments)
    waiting.when_cancelled(wait.give_up)
    answer = await waiting.run(wait.begin)
    while answer is None:
        await waiting.changed(wait.left())
        answer = await waiting.run(wait.look)
    return answer


class _Wait:
    """One call that waits. Its methods run in worker threads. After a cancellation its locks are given back."""

    def __init__(self, arguments: dict[str, Any]):
        self._arguments = arguments
        self._turn = threading.Lock()
        self._wait: LockWait | None = None
        self._given_up = False

    def begin(self, call: Call) -> Answer | None:
        """The answer where there is nothing to wait for."""
        self._row = call.member()
        self._wanted = _wanted(call.store, self._row, self._arguments)
        self._wait = LockWait(self._row, self._wanted, self._arguments["wait_seconds"])
        return self.look(call)

    def look(self, call: Call) -> Answer | None:
        """The answer, where there is one by now."""
        with self._turn:
            if self._given_up or self._wait is None:
                return None
            wait = self._wait
            try:
                taken = wait.advance(call.store)
            except LockRefused as refusal:
                return _refused(call.store, refusal, self._wanted)
        if taken is None:
            return None
        answer = _granted(taken, self._arguments)
        return answer._replace(on_lost=lambda store: wait.put_back(store, taken))

    def left(self) -> float:
        """Seconds until the next look, at the latest."""
        if self._wait:
            return self._wait.left()
        return 0.0

    def give_up(self, call: Call) -> None:
        """Leave the line: the call was cancelled."""
        with self._turn:
            self._given_up = True
            if self._wait is not None:
                self._wait.give_up(call.store)


def _wanted(store: Store, row: Session, arguments: dict[str, Any]) -> LockRequest:
    """Return the request that the arguments of ``lock_file`` make. Raises SwarmError."""
    given = {name: arguments[name] for name in ("mode", "task_id") if name in arguments}
    return requested(
        store,
        row,
        [arguments["file"], *arguments.get("files", ())],
        arguments.get("pattern"),
        arguments.get("expected_end_seconds"),
        note=arguments.get("reason", DEFAULT_REASON),
        once=arguments.get("exclusive", False),
        agent=arguments.get("agent_id", ""),
        logical=arguments.get("logical", False),
        ttl=arguments.get("ttl_seconds"),
        **given,
    )


def _granted(taken: Taken, arguments: dict[str, Any]) -> Answer:
    in_full = bool(MORE & set(arguments))
    answer = granted_answer(taken, in_full)
    if not in_full:
        del answer["fence"]  # the contract's own call has the contract's answer
    return Answer(answer)


def _refused(store: Store, refusal: LockRefused, wanted: LockRequest) -> Answer:
    return Answer(refused_answer(store, refusal, wanted, "lock_file with wait_seconds"))


def _unlock(call: Call, arguments: dict[str, Any]) -> Answer:
    row = call.member()
    gone = call.store.locks.release(row, arguments["file"], arguments.get("agent_id", ""), arguments.get("fence"))
    return Answer(text=f"Unlocked {arguments['file']}" + ("" if gone else "; this session held no lock on it"))


def _look(call: Call, arguments: dict[str, Any]) -> Answer:
    row = call.member()
    path = call.store.locks.path_of(row, arguments["file"])
    active = call.store.locks.active_on(path, token(row.label or "", "identity")) or {}
    active.pop("fence", None)  # explain_lock tells it
    return Answer({"file": path, "active": active or None})


def _seconds(description: str, minimum: float = 0, **more: object) -> dict[str, Any]:
    return {"type": "number", "minimum": minimum, "description": description, **more}


LOCK_TOOLS = (
    Tool(
        "lock_file",
        "Keep every other session from writing a file, until unlock_file, the end of its task, or the end of this"
        " session. Use it for a file that must stay as it is over several turns, or while you only read it, for"
        " folders, patterns, and files that a command generates; ordinary edits need no lock. Locking a file again"
        " replaces reason and task. On conflict the answer has `error`, and `active` names the holder, since when and"
        " why. Do other work then: a message comes when the file is free. Or wait in line for it with wait_seconds"
        " (first come, first served). A folder stands for everything in it, now and later. With more options than file,"
        " reason, task and exclusive the answer has `fence`, the number of this grant.",
        {
            "file": LOCKED,
            "reason": text("Why, in a few words; denied sessions see it."),
            "task_id": text("The task this is for; when that ends, the lock is released, listed in its files or not."),
            "exclusive": {
                "type": "boolean",
                "description": "Refuse also where this session itself holds the file already, as for a one-time step.",
            },
            "files": texts("More files to lock together with `file`: all of them, or no file.", maxLength=4096),
            "mode": text(
                "`shared`: keep the file still for reading. Others may share it; only a sole sharer may write it,"
                " after locking it again as `exclusive` (the default).",
                enum=list(MODES),
            ),
            "wait_seconds": _seconds(
                "If another session has it, wait so long for it. Keep it below your client's limit for a tool call.",
                maximum=LONGEST_WAIT,
            ),
            "ttl_seconds": _seconds(
                "A lease: the lock expires when this session shows no sign of life for so long. Default: the lock"
                " lasts as long as the session.",
                minimum=SHORTEST_LEASE,
                maximum=LONGEST_LEASE,
            ),
            "expected_end_seconds": _seconds(
                "When you expect to be done, for others to plan with.", maximum=LONGEST_LEASE
            ),
            "pattern": {
                "type": "boolean",
                "description": "True if file and files are git patterns, relative to the scope (src/**/*.sql)."
                " Default: a name with * or ? that is no file is a pattern.",
            },
            "agent_id": AGENT,
            "logical": {
                "type": "boolean",
                "description": "Hold it in every work tree and clone of the repository that takes part: those where a"
                " session holds such a lock, or that are set to it. Default: this work tree.",
            },
        },
        _lock,
        required=("file",),
        wait=_wait,
    ),
    Tool(
        "unlock_file",
        "Release this session's lock on a file as soon as that part of the work is done: others may be waiting. Locks"
        " of peers stay. The end of a task releases its files by itself.",
        {
            "file": FILE,
            "fence": FENCE,
            "agent_id": AGENT,
        },
        _unlock,
        required=("file",),
        idempotent=True,
    ),
    Tool(
        "get_file_lock",
        "The holder of a file's lock, since when and why, and the holder's tasks. Takes no lock; for reading,"
        " reviewing and planning. `active` is null for a free file.",
        {"file": FILE},
        _look,
        required=("file",),
        reads=True,
        is_listed=False,
    ),
)

# Tools that explain a file's locks, and tell their history.

PATH = text("A file, folder or pattern, absolute or relative to this session's folder. It need not exist.")


def _why(call: Call, arguments: dict[str, Any]) -> Answer:
    row = call.member()
    session: Session | None = row
    if arguments.get("instance_id"):
        session = call.store.instances.live(arguments["instance_id"])
        if session is None or not may_meet(row.label, session.label):
            raise UnknownInstance(f"Instance {arguments['instance_id']} is not active")
    viewer = token(row.label or "", "identity")
    found = explanation(
        call.store,
        row,
        arguments["file"],
        session,
        arguments.get("agent_id", ""),
        viewer,
        reader_folder=row.directory,
    )
    lately = incidents_about(call.store, row, arguments["file"], People(call.store, viewer, row.id))
    return Answer({**found, "incidents": [as_json(one) for one in lately]})


def _log(call: Call, arguments: dict[str, Any]) -> Answer:
    row = call.member()
    viewer = token(row.label or "", "identity")
    after = arguments.get("after", "")
    return Answer(history(call.store, row, arguments["file"], viewer, arguments["limit"], after))


EXPLAINING_TOOLS = (
    Tool(
        "explain_lock",
        "Why a file can or cannot be written: every lock over it (`held`, each with its `rule`: file, folder, pattern,"
        " or repository for the same file of another work tree; mode, fence, since, lease), the line for it (`waiting`,"
        " first come first), and the verdict on a write now (`write.allowed`, `write.reason`, and in `write.kinds` for"
        " edit, overwrite and remove). The verdict is that of the hook's own check, and includes uncommitted changes of"
        " others. Takes and changes nothing.",
        {
            "file": PATH,
            "instance_id": text("The session of the write. Default: this one."),
            "agent_id": text("The subagent that writes."),
        },
        _why,
        required=("file",),
        reads=True,
    ),
    Tool(
        "lock_history",
        "The history of a file's locks in the last day, oldest first: acquired, released, lapsed, transferred, stolen,"
        " denied (with path, tool, rule and fence), deadlocks, alterations; through folders, patterns and other work"
        " trees as well. `next` is the cursor for earlier rows (`after`).",
        {
            "file": PATH,
            "after": AFTER,
            "limit": {
                "type": "integer", "minimum": 1, "maximum": 200, "default": 20, "description": "The newest so many.",
            },
        },
        _log,
        required=("file",),
        reads=True,
        is_listed=False,
    ),
)  # fmt: skip

# Tools for locks that change hands: transfer, request, steal; and renewal, to be sure that one still has a lock.


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


HANDOVER_TOOLS = (
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

TOOLS = (*LOCK_TOOLS, *HANDOVER_TOOLS, *EXPLAINING_TOOLS)
