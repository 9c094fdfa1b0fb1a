"""The record of refusals, each with its lock and its call. Sessions that wait for the file are in ``denials``."""

from __future__ import annotations

from swarm_hook_core.paths import key_of
from swarm_hook_core.storms import MANY
from swarm_mcp.domain.lock import Denial, Lock, Waiter
from swarm_mcp.domain.session import Session
from swarm_mcp.store import denials, lock_finder, session_table
from swarm_mcp.store.attempts import Attempt
from swarm_mcp.store.lock_request import rule

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from swarm_mcp.store.database import Database, Transaction

WRITE_DENIED = "context.write_denied"  # the event of a refusal for another reason than a lock
WRITE_NOTICED = "context.write_noticed"  # of a write that went ahead, with words for its model


def record(tx: Transaction, instance: Session, lock: Lock | Waiter, attempt: Attempt) -> None:
    """Inside a transaction: write down that `instance` was kept from the file of `lock`."""
    denials.wait(tx, instance, lock, attempt)
    _say(tx, instance, lock, attempt)


def report(db: Database, instance: Session, file: str, holder_id: str, attempt: Attempt) -> bool:
    """Write down a refusal that happened elsewhere: absolute `file`, held by `holder_id`.

    Return True if the file is still held; else the session is told at once that it is free. Of a refusal without a lock
    (``Attempt.why``), `holder_id` is the session with the uncommitted work; it is only an event.
    """
    if attempt.why:
        with db.writing() as tx:
            _note(tx, instance, instance.scope, file, holder_id, attempt)
        return False
    with db.writing() as tx:
        held = lock_finder.on(tx, file)
        held.sort(key=lambda lock: (lock.instance_id != holder_id, lock.fence != attempt.fence))
        theirs = [lock for lock in held if lock.instance_id != instance.id]
        if holder_id == instance.id:
            report_sibling(tx, instance, [lock for lock in held if lock.agent], attempt)
        elif theirs:
            if not denials.is_known(tx, instance, theirs[0], attempt.path, attempt.tool):
                record(tx, instance, theirs[0], attempt)
            elif attempt.times < MANY:  # a hook that tells of a storm has counted the call itself
                denials.count(instance, theirs[0])
            from swarm_mcp.store import storms

            storms.note(tx, instance, theirs[0], denials.key_of_lock(theirs[0]), attempt)
        else:
            # Inside a transaction: record a refusal whose lock has gone by now
            holder, path = session_table.get(tx, holder_id), attempt.path or file
            payload: dict[str, Any] = {
                "holder": holder_id,
                "holder_label": holder and holder.label,
                "key": key_of(file),
            }
            payload.update(tool=attempt.tool, path=path, path_key=key_of(path), cwd=attempt.cwd, fence=attempt.fence)
            payload.update(denied_agent=attempt.agent, rule="file" if path == file else "", **_client_of(tx, instance))
            told = {name: value for name, value in payload.items() if value}
            tx.add_event(instance.scope, "context.lock_denied", instance.id, file, told)
            denial = Denial(file=file, tool=attempt.tool, denied_at=tx.now(), holder_id=holder_id)
            denials.post(tx, instance, [denial], session_table.get(tx, holder_id), "freed")
    return bool(theirs)


def report_sibling(tx: Transaction, instance: Session, held: list[Lock | Waiter], attempt: Attempt) -> None:
    """Inside a transaction: record that one of the session's agents was refused a file of another of its agents.

    It is for the record alone: a message to the session would reach all of its agents.
    """
    others = [lock for lock in held if (lock.instance_id, lock.agent) != (instance.id, attempt.agent)]
    if not others:
        return
    same = tx.row(
        "SELECT 1 FROM events WHERE created_at > ? AND type = 'context.lock_denied' AND actor = ? AND subject = ?",
        (tx.now() - denials.KNOWN_SECONDS, instance.id, others[0].file),
    )
    denials.count(instance, others[0]) if same else _say(tx, instance, others[0], attempt)


def note(
    db: Database, instance: Session | None, scope: str, file: str, holder_id: str, attempt: Attempt
) -> None:  # fmt: skip
    """Write down a refusal or notice that leaves no session waiting. Arguments as of `report`.

    Without an `instance` it was a person.
    """
    with db.writing() as tx:
        _note(tx, instance, scope, file, holder_id, attempt)


def _note(
    tx: Transaction, instance: Session | None, scope: str, file: str, holder_id: str, attempt: Attempt
) -> None:  # fmt: skip
    """Inside a transaction: record a refused write, or one with a notice, that met something of `holder_id`.

    An empty `holder_id` stands for a person, or for no owner (``Attempt.why``). The same is recorded once in
    ``denials.KNOWN_SECONDS``.
    """
    kind, actor = WRITE_DENIED, None
    if attempt.is_notice:
        kind = WRITE_NOTICED
    if instance is not None:
        actor = instance.id
    same = tx.row(
        "SELECT 1 FROM events WHERE created_at > ? AND type = ? AND actor IS ? AND subject = ?"
        " AND coalesce(json_extract(payload, '$.holder'), '') = ? AND json_extract(payload, '$.reason') = ?",
        (tx.now() - denials.KNOWN_SECONDS, kind, actor, file, holder_id, attempt.why),
    )
    if same:
        return  # the hook that denied it has counted it
    owner, key = None, key_of(file)
    if holder_id:
        owner = session_table.get(tx, holder_id)
    payload: dict[str, Any] = {
        "holder": holder_id,
        "holder_label": owner and owner.label,
        "key": key,
        "tool": attempt.tool,
    }
    payload.update(path=file, path_key=key, cwd=attempt.cwd, denied_agent=attempt.agent, reason=attempt.why)
    payload.update(deed=attempt.deed, command=attempt.command, changed_at=attempt.changed_at)
    payload.update(also=list(attempt.also), said=attempt.said)
    if instance is not None:
        payload.update(_client_of(tx, instance))
    told = {name: value for name, value in payload.items() if value}
    tx.add_event(scope, kind, actor, file, told)


def _say(tx: Transaction, instance: Session, lock: Lock | Waiter, attempt: Attempt) -> None:
    payload: dict[str, Any] = {"holder": lock.instance_id, "holder_label": lock.owner_label}
    payload.update(key=denials.key_of_lock(lock), tool=attempt.tool, lock=lock.id)
    payload.update(note=lock.content, locked_at=lock.created_at)
    payload.update(_facts(tx, instance, lock, attempt))
    tx.add_event(instance.scope, "context.lock_denied", instance.id, lock.file, payload)


def _facts(tx: Transaction, instance: Session, lock: Lock | Waiter, attempt: Attempt) -> dict[str, Any]:
    """Return the words of the event beyond its holder: ``{path, rule, session, cwd, ...}``; nothing that is not known.

    `lock` may also be a waiter that goes first.
    """
    path = attempt.path or lock.file
    told: dict[str, Any] = {"path": path, "path_key": key_of(path), "rule": rule(lock, path), "cwd": attempt.cwd}
    told.update(fence=lock.get("fence"), mode=lock.get("mode"), agent=lock.get("agent"), ttl=lock.get("ttl"))
    told.update(pattern=lock.get("pattern"), base=lock.get("base"), repository=lock.get("repository"))
    told.update(ticket=lock.get("ticket"), seen_fence=attempt.fence)
    told.update(denied_agent=attempt.agent, wanted_mode=attempt.mode, wanted=list(attempt.wanted))
    told.update(_client_of(tx, instance))
    if attempt.fence == lock.get("fence"):
        told["seen_fence"] = None
    return {name: value for name, value in told.items() if value}


def _client_of(tx: Transaction, instance: Session) -> dict[str, Any]:
    """Return ``{session: [runtime, id]}``: what the session's client calls it. Nothing where no client has it."""
    found = tx.row("SELECT runtime, session_id FROM swarm_sessions WHERE instance_id = ?", (instance.id,))
    if found:
        return {"session": [found.runtime, found.session_id]}
    return {}
