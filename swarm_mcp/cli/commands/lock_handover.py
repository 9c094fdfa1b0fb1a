"""A lock's way to another holder: handed over, asked for, taken."""

from __future__ import annotations

from swarm_hook_core.lookup import plain
from swarm_hook_core.naming import UNNAMED, holder_name
from swarm_mcp.answers.views import name_of
from swarm_mcp.cli.arguments import AGENT, DOING, FENCE, INSTANCES, MORE_LOCKS, Arguments, Option, Usage, Word, verb
from swarm_mcp.cli.output import answer, refused
from swarm_mcp.cli.words import said_path
from swarm_mcp.domain.lock import granted
from swarm_mcp.errors import LockRefused, UsageError
from swarm_mcp.folders import current_scope
from swarm_mcp.locking.acquisition import steal as take_over
from swarm_mcp.sessions.acting import acting_session, is_person, session_named
from swarm_mcp.sessions.agents_shell import note_attempt
from swarm_mcp.store import Store


@verb(
    Usage(
        Word("FILE", "the file"),
        Option(
            "--to WHO",
            "the new holder: the number in its name, the beginning of its id, or part of its label, if only"
            " one session has that",
            required=True,
            source=INSTANCES,
        ),
        Option("--note TEXT", "the reason; the new holder is told, and it becomes the lock's note"),
        FENCE,
        AGENT,
        *DOING,
    ),
    refuses=True,
    group=MORE_LOCKS,
)
def transfer(args: Arguments) -> int:
    """transfer: hand a lock to another session

    The file is never unlocked in between. The queue keeps its order, and its sessions are told. The lock keeps its mode
    and its lease and gets a new fence; the new holder is told by its next hook. Exit 1 if you no longer hold the lock,
    or if another lock of this session would keep the new holder out.

    example: swarm-mcp transfer src/schema.sql --to role:reviewer --note "your turn, migrations are in"
    """
    file = args.words[0]
    fence = args.number_if_given("--fence")
    with Store() as store:
        giver = acting_session(store, args)
        taker = session_named(store, giver.scope, args.value("--to"))
        lock = store.transfers.transfer(
            giver, file, taker.id, args.value("--agent").strip(), fence, args.value("--note")
        )
    lock = lock.replace(file=plain(lock.file))
    value = {"ok": True, **granted(lock), "from": giver.id, "to": taker.id}
    return answer(args, value, f"transferred {said_path(lock.file)} to {name_of(taker)}")


@verb(
    Usage(Word("FILE", "the file"), Option("--reason TEXT", "the reason; the holder is told"), *DOING),
    refuses=True,
    group=MORE_LOCKS,
)
def request_lock(args: Arguments) -> int:
    """request-lock: ask the holder of a file to release it

    The holder gets a message with your name and reason; its next hook shows it to the model. A second request before it
    has been read adds nothing. You are told when the file is free. Exit 1 if the file is not locked, or only by
    sessions of another identity.

    example: swarm-mcp request-lock src/schema.sql --reason "one index is missing, two minutes"
    """
    file = args.words[0]
    with Store() as store:
        locks = store.transfers.request(acting_session(store, args), file, args.value("--reason"))
    rows = [{"file": lock.file, "holder": lock.instance_id, "label": lock.owner_label} for lock in locks]
    lines = [f"asked {holder_name(lock.owner_label, lock.instance_id)} for {said_path(lock.file)}" for lock in locks]
    return answer(args, {"ok": True, "asked": rows}, *lines)


@verb(
    Usage(
        Word("FILE", "the file"),
        Option("--force", "also from a live holder; only for a person at a terminal, with --reason"),
        Option("--reason TEXT", "the reason; the holder is told, and it becomes the note of the new lock"),
        Option("--ttl SECONDS", "a lease for the new lock"),
        *DOING,
    ),
    refuses=True,
    group=MORE_LOCKS,
)
def steal(args: Arguments) -> int:
    """steal: take a lock from a holder that is gone, or by force

    Without --force it takes only a lapsed lock, or the lock of a dead holder; sessions in the queue come first. With
    --force every lock on the file goes, whole: also a lock on a folder above it, and a pattern that covers it. Locks on
    files below a folder stay. The holder is told by its next hook. Exit 1 if another session keeps the file.

    example: swarm-mcp steal src/schema.sql --force --reason "session hangs in a dialog, release is today"
    """
    file = args.words[0]
    force, reason = args.given("--force"), args.value("--reason").strip()
    if force and not reason:
        raise UsageError("--force wants --reason TEXT: the holder of the lock is told the reason")
    ttl = args.seconds_if_given("--ttl")
    with Store() as store:
        if force and not is_person(store):
            note_attempt(store, current_scope(), f"swarm-mcp steal {said_path(file)} --force")
            error = "only a person may take a lock from a live session: at a terminal, outside of any agent's shell"
            return refused(args, "steal", {"error": f"{error}. request-lock asks its holder"})
        try:
            done = take_over(store, acting_session(store, args), file, reason, force, ttl)
        except LockRefused as refusal:
            active = refusal.active
            owner, who = active.get("owner") or {}, UNNAMED
            if owner.get("label") or owner.get("id"):
                who = holder_name(owner.get("label"), owner.get("id") or "")
            said = f"{said_path(active['file'])} is held by {who}, a live session"
            return refused(args, "steal", refusal.answer, said)
    value, line = {"ok": True, **granted(done["lock"])}, f"locked {said_path(done['lock']['file'])}"
    if done["confirmation"] is not None:
        value.update(done["confirmation"].shown(done["lock"]))
        line += f" {done['confirmation'].said}"
    value["taken"] = [
        {"file": row["file"], "holder": row["instance_id"], "fence": row["fence"]} for row in done["taken"]
    ]
    lines = [
        f"taken from {holder_name(row['owner_label'], row['instance_id'])}: {said_path(row['file'])}"
        for row in done["taken"]
    ]
    return answer(args, value, *lines, line)
