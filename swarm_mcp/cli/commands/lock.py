"""Taking, giving back and renewing locks, and a lock's way to another holder."""

from __future__ import annotations

import os
from typing import Any

from swarm_hook_core.lookup import plain
from swarm_hook_core.naming import UNNAMED, agent_name, holder_name
from swarm_hook_core.untrusted_text import named, token
from swarm_mcp.cli.arguments import (
    AGENT,
    DOING,
    FENCE,
    INSTANCES,
    MORE_LOCKS,
    START,
    TASKS,
    Arguments,
    Option,
    Usage,
    Word,
    verb,
)
from swarm_mcp.cli.locking import NAME, acquire_shown, files_in, lock_request, repository_of, say_refused
from swarm_mcp.cli.output import answer, complain, refused
from swarm_mcp.cli.words import clause, said_path
from swarm_mcp.domain import Session, granted
from swarm_mcp.errors import LockRefused, UsageError
from swarm_mcp.folders import current_scope
from swarm_mcp.locking.acquisition import granted_answer
from swarm_mcp.locking.acquisition import steal as take_over
from swarm_mcp.sessions.acting import acting_session, is_person, lock_holder, note_attempt, session_named
from swarm_mcp.store import Store
from swarm_mcp.store.lock_request import Reach, hint_of, reach_of
from swarm_mcp.store.messages import name_of

# Options that switch the answer from one lock to the full list.
MORE = ("--ttl", "--expect", "--wait", "--agent", "--shared", "--detach")
LOCKING = (
    Option("--note TEXT", "the reason; shown to denied sessions"),
    Option("--shared", "a lock for reading: other sessions may share it, and no session may write"),
    Option("--wait SECONDS", "wait in the queue for the locks, at most that long: first come, first served"),
    Option("--ttl SECONDS", "a lease: the locks lapse after that long without a sign of life of this session"),
    Option("--expect SECONDS", "when you expect to be done, so that others can plan; nothing happens then"),
    Option("--exclusive", "refuse also if this session holds one of the files already"),
    Option("--task ID", "the task this is for", source=TASKS),
    Option("--agent ID", "lock for one of this session's subagents, against the others too"),
    Option(
        "--detach",
        "with --ttl: hold without any session; only `renew --as` with the id that is printed renews it",
    ),
    *DOING,
)


@verb(
    Usage(
        Word("FILE", "the file to lock", repeated=True),
        Option(
            "--pattern",
            "each FILE is a pattern, as in .gitignore, relative to the scope (without --pattern and --path:"
            " each FILE with * or ? in it that is no file)",
        ),
        Option("--path", "each FILE is a path, even with * or ? in it"),
        NAME,
        Option(
            "--logical",
            "in every participating work tree and clone of the repository: those in which a session holds such a"
            " lock, and those with `git config swarm.logical true`, in which every lock on a path is logical",
        ),
        *LOCKING,
    ),
    Usage(
        Option("--git", "the git repository of this session's folder: index, HEAD, branches, stash", required=True),
        *LOCKING,
    ),
    refuses=True,
    group=START,
)
def lock(args: Arguments) -> int:
    """lock: keep other sessions from writing files, or to the repository

    Several FILEs are locked together or not at all. A folder stands for everything in it, now and later. A lock keeps
    out every other session on this machine until it is released, it lapses, or its session ends. A person's session is
    the shell at a terminal, or the process that leads a script's, and ends with it; `hold` is for one command, --detach
    for a lock that lasts longer. A second lock on the same file renews the first one. It also switches to
    --shared or back, and the file is never unlocked in between.

    With --name each FILE names something else that sessions share: a port, a database, a device. The lock counts in all
    work trees and clones of the repository, and on the machines of its team. Every verb takes such a name as
    name:port:3000.

    With --git the lock is on `.git` at the top of the work tree (`swarm-mcp lock .git` there is the same lock): no
    other session may commit, stash, switch, merge or fetch there until you release it.

    Exit 1 if another session holds one of the files (with --wait: still holds it at the end of the wait), or if waiting
    would never end because each session of a circle waits for the next. With --json a refusal is {"error", "active",
    "queue"} or {"error", "circle"}. An answer is {"ok", "id", "fence"} of the first lock, and "locks" for several FILEs
    or with further options. The fence is a number that grows with each grant.

    example: swarm-mcp lock src/schema.sql src/migrations --wait 60 --note "renumbering migrations"
    """
    files = args.words
    with Store() as store:
        instance = lock_holder(store, args)
        try:
            wanted = lock_request(args, store, instance, files)
            taken = acquire_shown(args, store, instance, wanted)
        except LockRefused as refusal:
            return say_refused(refusal, args, store, wanted, "lock")
        finally:
            if args.given("--detach"):
                store.instances.forget([instance.id])  # only where it got nothing
    value = granted_answer(taken, len(files) > 1 or any(map(args.given, MORE)))
    lines = []
    for row in taken:
        line = f"locked {said_path(row.file)}" + " (shared)" * bool(row.mode)
        if taken.confirmation is not None:
            line += f" {taken.confirmation.said}"
        hint = hint_of(row.file)
        if hint:
            line += f"; {hint}"
        elif not row.pattern and os.path.isabs(row.file) and not os.path.lexists(row.file):
            line += "; there is no such file yet"  # its name may be mistyped
        lines.append(line)
    if args.given("--detach"):
        value = {**value, "instance_id": instance.id}
        lines.append(f"held by {instance.id}, for --as")
    return answer(args, value, *lines)


@verb(
    Usage(Word("FILE", "the file to unlock", repeated=True), NAME, FENCE, AGENT, *DOING),
    Usage(Option("--all", "all that this session holds itself, or its subagent", required=True), AGENT, *DOING),
    Usage(
        Option("--git", "the git repository of this session's folder, as `lock --git` took it", required=True),
        FENCE,
        AGENT,
        *DOING,
    ),
    refuses=True,
    group=START,
)
def unlock(args: Arguments) -> int:
    """unlock: release locks of this session

    Releases only your own locks. The session that is first in the queue gets each lock at once. A FILE without a lock
    of yours is named, with its holder if it has one, and exit 1; the other FILEs are unlocked all the same. With --json
    that is {"error", "unlocked", "left"}; each of "left" has "file", "error" and, for a locked file, "active".

    --all releases all locks of this session, but not those of its subagents, nor of commands that hold their own. With
    --agent ID it releases those of that subagent instead. With --json: {"ok", "files"}.

    example: swarm-mcp unlock src/schema.sql
    """
    files = files_in(args, args.words)
    agent = args.value("--agent").strip()
    fence = args.number_if_given("--fence")
    if fence is not None and len(files) > 1:
        raise UsageError("--fence is of one lock: give one FILE")
    with Store() as store:
        instance = acting_session(store, args)
        if args.given("--all"):
            return _unlock_all(store, instance, agent, args)
        unlocked: list[str] = []
        left: list[dict[str, Any]] = []
        for file in files or [repository_of(instance)]:
            gone = store.locks.release(instance, file, agent, fence)
            reach = reach_of(instance, file)
            if gone:
                unlocked.append(reach.file)
            else:
                left.append(_left(store, instance, reach, agent))
    answer(args, _answer(unlocked, left), *(f"unlocked {said_path(path)}" for path in unlocked))
    if not args.json:
        for one in left:
            complain(f"unlock failed: {said_path(one['file'])}{one['error'].removeprefix(one['file'])}")
    return int(bool(left))


def _unlock_all(store: Store, instance: Session, agent: str, args: Arguments) -> int:
    gone = store.locks.release_all(instance, agent)
    lines = [f"unlocked {said_path(file)}" for file in gone]
    if not gone and agent:
        lines = [f"nothing was locked by this session's {agent_name(agent)}"]
    elif not gone:
        lines = ["nothing was locked by this session"]
    return answer(args, {"ok": True, "files": gone}, *lines)


def _answer(unlocked: list[str], left: list[dict[str, Any]]) -> dict[str, Any]:
    if left:
        return {"error": "; ".join(one["error"] for one in left), "unlocked": unlocked, "left": left}
    if len(unlocked) == 1:
        return {"ok": True, "file": unlocked[0]}
    return {"ok": True, "file": unlocked[0], "files": unlocked}


def _left(store: Store, instance: Session, reach: Reach, agent: str) -> dict[str, Any]:
    """The entry of JSON for a file without a lock of this session, or of its `agent`: ``{file, error, active?}``."""
    locks = store.locks.exactly(reach)
    if not locks and not reach.pattern:
        locks = store.locks.covering(reach)
    if not locks:
        return {"file": reach.file, "error": f"{reach.file} was not locked"}
    lock = next((row for row in locks if row.instance_id != instance.id), locks[0])
    active = store.locks.describe(lock, token(instance.label or "", "identity"))
    return {"file": reach.file, "error": _words(active, instance, reach.file, agent), "active": active}


def _words(active: dict[str, Any], instance: Session, file: str, agent: str) -> str:
    through = holder = ""
    if active["file"] != file:
        through = f" through {named(active['file'])}"
    if active.get("hidden"):
        return f"{file} is not yours: held by a session of another identity{through}"
    if active.get("agent"):
        holder = f"{agent_name(active['agent'])} of "
    if active["instance_id"] == instance.id:
        by = clause("agent {}", agent) or "itself"
        return f"{file} was not locked by {by}: held by {holder}this session{through}"
    owner = holder_name(active["owner"]["label"], active["instance_id"])
    return f"{file} is not yours: held by {holder}{owner}{through}"


@verb(
    Usage(
        Word("FILE", "the file"), FENCE, Option("--ttl SECONDS", "a lease of that length from now on"), AGENT, *DOING
    ),
    refuses=True,
    group=MORE_LOCKS,
)
def renew(args: Arguments) -> int:
    """renew: renew a lock, or fail if it is lost

    Every action of a session renews its locks. This is for scripts that must be sure before they go on: unlike `lock`,
    renew never takes a lost lock again, and exits 1.

    example: swarm-mcp renew src/schema.sql --fence 41 --ttl 600
    """
    file = args.words[0]
    fence = args.number_if_given("--fence")
    ttl = args.seconds_if_given("--ttl")
    with Store() as store:
        lock = store.leases.renew_lock(acting_session(store, args), file, args.value("--agent").strip(), fence, ttl)
        left = store.locks.left(lock)
    lock = lock.replace(file=plain(lock.file))
    value, line = {"ok": True, **granted(lock)}, f"renewed {said_path(lock.file)}"
    if left is not None:
        value["lapses_in"] = round(left, 1)
        line += f", for {left:.0f} s"
    return answer(args, value, line)


# A lock's way to another holder: handed over, asked for, taken.


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
