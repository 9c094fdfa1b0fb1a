"""A lock's way from one holder to another: given, asked for, taken."""

from __future__ import annotations

import time

from swarm_hook_core import clock
from swarm_hook_core.labels import same_circle, token
from swarm_hook_core.lookup import plain
from swarm_hook_core.untrusted_text import named, quoted
from swarm_hook_core.watching.report import quoted as as_word
from swarm_mcp.domain.lock import AUTO, EXCLUSIVE, Lock, keeps_out, number_elsewhere
from swarm_mcp.domain.session import REMOTE, Session
from swarm_mcp.errors import LockRefused, Refused, UnknownInstance
from swarm_mcp.store import (
    denials,
    grants,
    lock_endings,
    lock_finder,
    lock_listing,
    lock_queue,
    lock_rows,
    locks,
    messages,
    notices,
    reactions,
    session_life,
    session_table,
)
from swarm_mcp.store.denials import key_of_lock
from swarm_mcp.store.lock_finder import unfit
from swarm_mcp.store.lock_request import LONGEST_NOTE, LockRequest, Reach, checked_note, reach_of, request
from swarm_mcp.store.lock_rows import facts
from swarm_mcp.store.naming import known_as, may_meet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from swarm_mcp.store.database import Database, Transaction


def transfer(
    db: Database, instance: Session, file: str, to_id: str, agent: str = "", fence: int | None = None, note: str = ""
) -> Lock:
    """Give this session's lock on `file` to session `to_id`, past all waiters; return its row.

    It keeps mode, lease and expected end, and has a new fence; a task no longer ends it. `agent` and `fence` name one
    grant of several. Raises Refused, UnknownInstance.
    """
    reach = reach_of(instance, file)
    checked_note(note)
    if to_id == instance.id:
        raise Refused("that is this session itself")
    refusal: Refused | None = None
    with db.writing() as tx:
        session_life.require(tx, instance.id)
        taker = session_table.live(tx, to_id)
        if taker is None or taker.scope != instance.scope:
            raise UnknownInstance(f"Instance {to_id} is not active in this scope")
        if not may_meet(instance.label, taker.label):
            raise Refused(f"session {to_id} works under another identity; locks are not handed across")
        mine = lock_finder.own_among(lock_endings.reaped(tx, lock_finder.same(tx, reach)), instance, agent)
        refusal = unfit(reach, mine, fence)
        if refusal is None and len(mine) > 1:
            refusal = Refused(f"this session holds {reach.file} more than once; say which with agent or fence")
        if refusal is None and taker.runtime == REMOTE and mine[0].team_fence is None:
            refusal = Refused(
                f"the team has not granted {reach.file} to this session, so that it cannot be handed to another"
                " machine: release it, and let that session lock it"
            )
        if refusal is None:
            given = mine[0]
            if given.mode == AUTO:
                (given,) = grants.grant(tx, instance, LockRequest((reach,), agent=given.agent or ""))
            locks.end_for_turn(tx, instance, reach)
            return _give(tx, instance, given, reach, taker, note)
    raise refusal


def _give(tx: Transaction, giver: Session, lock: Lock, reach: Reach, taker: Session, note: str) -> Lock:
    file, mode = plain(lock.file), lock.mode or EXCLUSIVE
    _clear_the_way(tx, lock, reach, taker, mode)
    fence = lock_rows.next_fence(tx)
    leased = lock.ttl is not None
    said = "" if taker.runtime == REMOTE else note  # there it keeps its note
    tx.change(
        "UPDATE context SET instance_id = ?, agent = NULL, task_id = NULL, fence = ?, content = ?, created_at = ?,"
        " renewed = ?, booted = ?, wall_until = ?, warned = NULL WHERE id = ?",
        (
            taker.id, fence, said or lock.content, tx.now(),
            clock.now() if leased else None,
            clock.boot(tx.here) if leased else None, time.time() + lock.ttl if lock.ttl is not None else None,
            lock.id,
        ),
    )  # fmt: skip
    row = lock_rows.select(tx, "AND c.id = ?", (lock.id,))[0]
    told = {"released": 1, "reason": "transferred", "to": taker.id, **facts(lock)}
    tx.add_event(lock.scope, "context.lock_released", giver.id, file, told)
    told = {"id": row.id, "content": row.content, "from": giver.id, **facts(row)}
    tx.add_event(lock.scope, "context.lock_acquired", taker.id, file, told)
    _settle(tx, row, taker)
    if note:
        words = f" It says: {quoted(note, LONGEST_NOTE)}."
    else:
        words = ""
    if taker.runtime != REMOTE:
        notices.post(
            tx,
            taker,
            f"[auto] {_name(giver, taker)} has handed you the lock on {named(file)} (fence {fence}).{words} Read it"
            " before you write, and release it when you are done.",
        )
    elif words:  # that it has the lock, its own machine says to it
        notices.post(tx, taker, f"[auto] {_name(giver, taker)} hands you its lock on {named(file)}.{words}")
    _tell_waiting(tx, reach, {giver.id, taker.id}, giver, taker, file)
    reactions.dismiss(tx, {giver.id})
    return row


def _clear_the_way(tx: Transaction, lock: Lock, reach: Reach, taker: Session, mode: str) -> None:
    """Make sure that only `lock` itself keeps `taker` from it. The taker's own lock there becomes this one."""
    for other in lock_endings.reaped(tx, lock_finder.meeting(tx, reach)):
        if other.id == lock.id:
            continue
        if keeps_out(other, taker.id, "", mode):
            if other.instance_id == lock.instance_id:
                owner = "you also hold"
            else:
                owner = "there is also a lock on"
            raise Refused(f"{owner} {plain(other.file)}, which meets it: hand that over, or release it, first")
        same = lock_finder.is_same(other, reach)
        if other.instance_id == taker.id and not other.agent and same:
            if other.machine is not None:
                raise Refused(f"it holds {plain(other.file)} as well, on its machine: release yours")
            reactions.end_locks(tx, [other], "merged")


def ask_for(db: Database, instance: Session, file: str, reason: str = "") -> list[Lock]:
    """Ask the holders that keep `file` from this session to hand it over or let it go; return the locks in the way.

    Each holder gets one message, told by its next hook; asking again before it has been read says nothing more. This
    session is told when the file is free. Refused for a free file, and if only strangers hold it.
    """
    wanted = request(instance, [file], note=reason)
    reach = wanted.reaches[0]
    with db.writing() as tx:
        session_life.require(tx, instance.id)
        theirs = [
            r
            for r in lock_endings.reaped(tx, lock_finder.meeting(tx, reach))
            if keeps_out(r, instance.id, "", EXCLUSIVE)
        ]
        if theirs:
            refusal = None
        else:
            refusal = Refused(f"nobody keeps {reach.file} from you: lock it")
        known = [row for row in theirs if may_meet(instance.label, row.owner_label)]
        if theirs and not known:
            refusal = Refused(f"{reach.file} is held by a session of another identity; ask the person running it")
        if refusal is None:
            denials.await_lock(tx, instance, theirs[0])
        for row in known:
            _ask(tx, instance, row, reach.file, reason)
    if refusal:
        raise refusal
    return [row.replace(file=plain(row.file)) for row in known]


def _ask(tx: Transaction, instance: Session, lock: Lock, file: str, reason: str) -> None:
    holder, held = session_table.get(tx, lock.instance_id), plain(lock.file)
    if holder is None or holder.id == instance.id:
        return
    payload = {"holder": holder.id, "why": reason, "lock": lock.id, "wanted": file, **facts(lock)}
    tx.add_event(lock.scope, "context.lock_requested", instance.id, held, payload)
    if notices.unread(tx, holder, instance.id, held):
        return
    if held == file:
        wants = ""
    else:
        wants = f" (it wants {named(file)})"
    notices.post(
        tx,
        holder,
        f"[auto] {_name(instance, holder)} asks for your lock on {named(held)}{wants}{_because(reason)}. When you can"
        f" spare it, hand it over (`swarm-mcp transfer {as_word(held)} --to {instance.id}`, or transfer_lock) or"
        " release it; if not, tell it until when you need it.",
        held,
        sender=instance.id,
    )


def steal(
    db: Database, instance: Session, file: str, reason: str = "", force: bool = False, ttl: float | None = None
) -> dict[str, Any]:
    """Take the lock on `file` from holders that are gone or whose lease has lapsed: ``{lock, taken}``.

    `taken`: the rows that had to go. With `force`, which is for people to say, also from live ones: every lock on the
    file, on a folder over it, or on a pattern that covers it goes, without regard to waiters. Raises LockRefused if
    another session holds it, or a file below it, for good.
    """
    wanted = request(instance, [file], note=reason, ttl=ttl, tool="steal_lock")
    reach = wanted.reaches[0]
    before = [row for row in lock_finder.meeting(db, reach) if row.instance_id != instance.id]
    if not force:
        void = [row for row in before if lock_rows.is_void(db, row)]
        (lock,) = locks.acquire_all(db, instance, wanted)
        with db.writing() as tx:
            for row in void:
                _note_theft(tx, instance, row, reason, forced=False)
        return {"lock": lock, "taken": [row.replace(file=plain(row.file)) for row in void]}
    taken: list[Lock] = []
    while True:
        lock = _take_by_force(db, instance, wanted, reason, taken)
        # A hook that was checking a write meanwhile may have let it pass: then that turn's file is taken as well.
        if not locks.has_yielded(db, [lock]):
            return {"lock": lock, "taken": [row.replace(file=plain(row.file)) for row in taken]}


def _take_by_force(db: Database, instance: Session, wanted: LockRequest, reason: str, taken: list[Lock]) -> Lock:
    """Take the lock in one transaction, and add to `taken` the rows that have to go."""
    reach = wanted.reaches[0]
    with db.writing() as tx:
        session_life.require(tx, instance.id)
        gone = [
            row
            for row in lock_endings.reaped(tx, lock_finder.covering(tx, reach))
            if keeps_out(row, instance.id, "", EXCLUSIVE) and row.instance_id != instance.id
        ]
        left = [
            row
            for row in lock_finder.meeting(tx, reach)
            if keeps_out(row, instance.id, "", EXCLUSIVE) and row.id not in {row.id for row in gone}
        ]
        if not left:
            keys = list(reach.keys)
            denials.forget(tx, instance.id, keys)
            tx.taker = (instance.id, keys)
            try:
                reactions.end_locks(tx, gone, "stolen", by=instance.id, why=reason)
            finally:
                tx.taker = ("", [])
            for row in gone:
                _note_theft(tx, instance, row, reason, forced=True)
            taken += gone
            lock = grants.grant(tx, instance, wanted)[0]
            takes = " ".join(f"{number_elsewhere(row.id)}:{row.team_fence}" for row in taken if row.machine)
            if takes:
                tx.change("UPDATE context SET takes = ? WHERE id = ?", (takes, lock.id))
            _settle(tx, lock, instance)
            for row in gone:
                denials.follow(tx, key_of_lock(row), instance.id)
            _tell_waiting(tx, reach, {instance.id, *(row.instance_id for row in gone)}, None, instance, reach.file)
            return lock
    raise LockRefused(lock_listing.describe(db, left[0], token(instance.label or "", "identity")))


def _note_theft(tx: Transaction, thief: Session, lock: Lock, reason: str, forced: bool) -> None:
    file = plain(lock.file)
    payload = {"holder": lock.instance_id, "why": reason, "forced": forced, **facts(lock)}
    tx.add_event(lock.scope, "context.lock_stolen", thief.id, file, payload)
    holder = session_table.live(tx, lock.instance_id)
    if holder is None or holder.runtime == REMOTE:  # on its own machine the replica says it, with the path there
        return
    notices.post(
        tx,
        holder,
        f"[auto] Your lock on {named(file)} was taken by {_name(thief, holder)}{_because(reason)}. Do not write it.",
        file,
    )


def _because(reason: str) -> str:
    """Return the end of a sentence that gives the reason; empty without one."""
    if reason:
        return f": {quoted(reason, LONGEST_NOTE)}"
    return ""


def _settle(tx: Transaction, lock: Lock, taker: Session) -> None:
    """Sessions that were denied by the old holder now wait for the new one. A circle of waiters is found by their
    waits.
    """
    key = key_of_lock(lock)
    denials.forget(tx, taker.id, [key])
    denials.follow(tx, key, taker.id)
    reactions.locks_granted(tx, taker, [lock])


def _tell_waiting(
    tx: Transaction, reach: Reach, spared: set[Any], giver: Session | None, taker: Session, file: str
) -> None:
    """One message to each session that waits for it: it has changed hands, and their place is kept."""
    told = set(spared)
    for waiter in lock_queue.waiting_for(tx, reach):
        session = session_table.live(tx, waiter.instance_id)
        if session is None or session.id in told or session.runtime == REMOTE:
            continue
        told.add(session.id)
        lock, taker_name = f"the lock on {named(file)}", _name(taker, session)
        said = f"{taker_name} has taken {lock} from its holder"
        if giver:
            said = f"{_name(giver, session)} has handed {lock} to {taker_name}"
        messages.post(tx, session.scope, "system", session.id, f"[auto] {said}. You are still in line for it.")


def _name(whose: Session, viewer: Session) -> str:
    """Return the name of a session for another one, with the id to write to."""
    if not same_circle(token(viewer.label or "", "identity"), token(whose.label or "", "identity")):
        return "a session of another identity"
    return known_as(whose)
