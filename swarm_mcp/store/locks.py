"""Locks: taken, released and renewed; their ends; their way from one holder to another.

A lock is a row of ``context``, as the contract has it. Our additions stand in columns that other implementations
ignore. To them a shared lock is several rows on spellings of one path, and a pattern a row on a path of that name.
"""

from __future__ import annotations

import time
from typing import Any

from swarm_hook_core import clock
from swarm_hook_core.lookup import has_ended, plain
from swarm_hook_core.lookup.sqlite import EVIDENCE
from swarm_hook_core.state import has_turn_files
from swarm_hook_core.untrusted_text import as_word, named, quoted, same_circle, token
from swarm_mcp.domain import (
    AUTO,
    DETACHED,
    EXCLUSIVE,
    REMOTE,
    Lock,
    Session,
    Waiter,
    is_mutex,
    keeps_out,
    number_elsewhere,
)
from swarm_mcp.errors import LockRefused, Refused, SwarmError, UnknownInstance
from swarm_mcp.folders import file_of
from swarm_mcp.store import grants, lock_finder, lock_listing, lock_rows, messages, reactions, refusals, session_table
from swarm_mcp.store.database import Database, Transaction
from swarm_mcp.store.grants import Surroundings
from swarm_mcp.store.lock_finder import unfit
from swarm_mcp.store.lock_request import (
    LONGEST_NOTE,
    LockRequest,
    Reach,
    checked,
    checked_note,
    checked_ttl,
    reach_in,
    reach_of,
    request,
)
from swarm_mcp.store.lock_rows import Asking, facts
from swarm_mcp.store.messages import known_as, may_meet
from swarm_mcp.store.refusals import key_of_lock, of_request


def acquire(
    db: Database,
    instance: Session,
    file: str,
    note: str = "",
    exclusive: bool = False,
    task_id: str | None = None,
    tool: str = "lock_file",
) -> Lock:
    """Lock `file`, as the session names it; return the lock's row. As `acquire_all`, of one.

    With `exclusive` one's own lock is refused like any other.
    """
    wanted = request(instance, [file], note=note, once=exclusive, task_id=task_id, tool=tool)
    return acquire_all(db, instance, wanted)[0]


def acquire_all(db: Database, instance: Session, wanted: LockRequest) -> list[Lock]:
    """Take all locks of a request, or not one; return the rows, in the request's order, each with its ``fence``.

    A lock that the holder has already is renewed in place, so that no peer can slip in between. Waiters
    (``lock_listing``) go first. Raises LockRefused; then the session is told when the file is free.
    """
    granted = _acquire(db, instance, wanted, None)
    if granted is None:  # the disk is asked for the keys while other processes can write
        granted = _acquire(db, instance, wanted, lock_rows.foreign_keys(db))
    return granted or []


def _acquire(db: Database, instance: Session, wanted: LockRequest, keys: list[Any] | None) -> list[Lock] | None:
    """Do as `acquire_all`; return None if locks of other implementations need their keys first.

    `keys` are those keys, of ``lock_rows.foreign_keys``; None for not asked yet.
    """
    # Locks that meet a pattern may take long to find, so they are looked for before the transaction.
    look, version = None, (0, 0)
    if any(reach.pattern for reach in wanted.reaches):
        version, look = db.version(), _look(db, instance, wanted)
    with db.writing(before_waiting=lambda: _refuse_known(db, instance, wanted)) as tx:
        if keys:
            lock_rows.give_keys(tx, keys)
        if look is None or keys or has_turn_files() or version != tx.version():
            look = _look(tx, instance, wanted)
        around, found = look
        if reactions.renew(tx, instance.id, around, bool(around.leased)) and any(found):
            found = _look(tx, instance, wanted)[1]  # its own locks were looked at as a silent session's
        if around.keyless and keys is None and _are_keys_due(tx, wanted):
            return None
        if around.waiters and tx.swept_at != tx.now():
            tx.swept_at = tx.now()  # once a second: reading dead waiters takes its time
            lock_listing.sweep(tx)
        met = found
        if any(found):
            met = _reaped_for(tx, instance, wanted, found)
        refusal: Lock | Waiter | None = _first_other(instance, wanted, met)
        if refusal is None and around.waiters:
            refusal = lock_listing.ahead_of(tx, instance, wanted)
        if refusal is None:
            # Where something of others had to be removed first, there is more now than was seen around it.
            granted = grants.grant(tx, instance, wanted, met, around if met == found else None)
        else:
            is_known = _note_refusal(tx, instance, wanted, refusal)
    if refusal is None:
        if has_yielded(db, _new_among(granted, met)):
            return _acquire(db, instance, wanted, keys)
        return granted
    if is_known:
        refusals.count(instance, refusal)
    raise _refusal(db, instance, refusal)


def has_yielded(db: Database, granted: list[Lock]) -> bool:
    """Outside a transaction: take back these new locks, now committed, if a write has taken a file of theirs meanwhile.

    Return True if they were taken back.
    """
    if not granted or not has_turn_files():
        return False

    if not lock_finder.are_taken(db, granted):
        return False
    with db.writing() as tx:
        held = lock_rows.select(tx, "AND c.instance_id = ?", (granted[0].instance_id,))
        reactions.end_locks(tx, [row for row in held if row.id in {lock.id for lock in granted}])
    return True


def _new_among(granted: list[Lock], met: list[list[Lock]]) -> list[Lock]:
    """Return the locks that the session has not held all along. `met`: those that each request met before."""
    return [
        lock
        for lock, rows in zip(granted, met)
        if not any((row.instance_id, row.file) == (lock.instance_id, lock.file) for row in rows)
    ]


def _reaped_for(tx: Transaction, instance: Session, wanted: LockRequest, found: list[list[Lock]]) -> list[list[Lock]]:
    """Inside a transaction: return the locks of `found` that still hold, having removed the others."""

    tx.taker = (instance.id, grants.keys_of(wanted))
    try:
        return [reaped(tx, rows) for rows in found]
    finally:
        tx.taker = ("", [])


def in_the_way(tx: Transaction, instance: Session, wanted: LockRequest) -> Lock | None:
    """Return the first lock that keeps this request from being granted, or None. Only looks."""
    asking = Asking(instance.id, wanted.agent, wanted.mode)
    met = [lock_rows.live(tx, lock_finder.meeting(tx, reach, asking)) for reach in wanted.reaches]
    return _first_other(instance, wanted, met)


def release(db: Database, instance: Session, file: str, agent: str = "", fence: int | None = None) -> int:
    """Release this session's lock on `file`; return the number of rows (0 is no error).

    With `agent` only that subagent's lock. With `fence`, the number of a grant, only that very grant: Refused if it is
    not held any more, since its present holder must not lose it to a latecomer.
    """
    if fence is not None:
        lock_id = db.granted.pop((instance.id, file_of(instance, checked(file)), fence), "")
        released = _release_granted(db, instance, file, agent, lock_id)
        if released:
            return released

    reach = reach_of(instance, file, is_new=False)
    refusal = None
    with db.writing() as tx:
        released = _end(tx, instance, _found(tx, instance, reach, agent, fence))
        if fence is None or released:
            released += end_for_turn(tx, instance, reach, agent, is_told=not released)
        if not released and fence is not None:
            refusal = unfit(
                reach,
                lock_finder.own_among(reaped(tx, lock_finder.same(tx, reach)), instance, agent),
                fence,
            )
    if refusal:  # raised out here, so that messages about lapses stay
        raise refusal
    return released


def _release_granted(db: Database, instance: Session, file: str, agent: str, lock_id: str) -> int:
    """Release a lock that this process was granted, by its id; return 0 without one, or if another process changed it.

    Its path was resolved when it was taken. It is not resolved again.
    """
    if not lock_id:
        return 0

    with db.writing() as tx:
        released = _end(tx, instance, tx.rows(_GRANTED, (instance.id, lock_id, agent, agent), Lock))
        if released and has_turn_files():
            end_for_turn(tx, instance, reach_of(instance, file, is_new=False), agent)
    return released


def end_for_turn(tx: Transaction, instance: Session, reach: Reach, agent: str = "", is_told: bool = False) -> int:
    """Let a session have the file for its turn no longer. Return 1 if it had it, and others shall be told of that."""
    if not has_turn_files():
        return 0

    ended = lock_finder.release(tx, instance.id, reach, agent)
    if not is_told or not ended:
        return 0
    reactions.locks_ended(tx, ended, "")
    return 1


def release_all(db: Database, instance: Session, agent: str = "") -> list[str]:
    """Give up all locks on files that this session, or with `agent` that subagent of it, holds; the files."""

    with db.writing() as tx:
        rows = lock_rows.select(tx, "AND c.instance_id = ? AND coalesce(c.agent, '') = ?", (instance.id, agent))
        mine = [row for row in reaped(tx, rows) if not is_mutex(row.file)]
        mine += [row for row in lock_finder.of_turns(tx, holder=instance.id) if (row.agent or "") == agent]
        reactions.end_locks(tx, mine)
        for reach in filter(None, map(reach_in, mine)):
            end_for_turn(tx, instance, reach, agent)
    return [plain(row.file) for row in mine]


def release_of_agent(db: Database, instance: Session, agent: str) -> list[str]:
    """Release all locks of one of this session's agents, because it has ended; return the files."""
    with db.writing() as tx:
        theirs = lock_rows.select(tx, "AND c.instance_id = ? AND c.agent = ?", (instance.id, agent))
        theirs += [row for row in lock_finder.of_turns(tx, holder=instance.id) if row.agent == agent]
        reactions.end_locks(tx, theirs, "agent_ended", agent=agent)
        reactions.turn_ended(tx, instance, agent=agent)
    return [plain(row.file) for row in theirs]


def _look(tx: Transaction, instance: Session, wanted: LockRequest) -> tuple[Surroundings, list[list[Lock]]]:
    """Return the surroundings of a request, and for each reach the locks that it meets."""
    asking = Asking(instance.id, wanted.agent, wanted.mode)
    around = grants.surroundings(tx, wanted.reaches, asking)
    if around.logical or any(reach.names for reach in wanted.reaches) or has_turn_files():
        return around, [lock_finder.meeting(tx, reach, asking) for reach in wanted.reaches]
    return around, [lock_rows.in_place(tx, reach, asking) if around.met else [] for reach in wanted.reaches]


def _are_keys_due(tx: Transaction, wanted: LockRequest) -> bool:
    """Return True if locks without a key get theirs now: without one only its very name finds a lock."""
    now, deep = tx.now(), any(reach.base for reach in wanted.reaches)
    due = deep or tx.keys_sought_at != now  # once a second is enough for a request for one file
    tx.keys_sought_at = now
    return due


def _first_other(instance: Session, wanted: LockRequest, met: list[list[Lock]]) -> Lock | None:
    """Return the first of the locks `met` for each that is wanted that keeps this request waiting."""
    for reach, rows in zip(wanted.reaches, met):
        for row in rows:
            own = (
                wanted.once and row.instance_id == instance.id and row.mode != AUTO and lock_finder.is_same(row, reach)
            )
            if own or keeps_out(row, instance.id, wanted.agent, wanted.mode):
                return row
    return None


def _refuse_known(tx: Transaction, instance: Session, wanted: LockRequest) -> None:
    """Refuse a repeated request at once, without waiting for the store, if it is still refused."""
    if wanted.ticket or not refusals.are_recent(tx, instance.id):
        return
    refusal = in_the_way(tx, instance, wanted) or lock_listing.ahead_of(tx, instance, wanted)
    if refusal and refusals.is_known(tx, instance, refusal, wanted.reaches[0].file, wanted.tool):
        refusals.count(instance, refusal)
        raise _refusal(tx, instance, refusal)


def _note_refusal(tx: Transaction, instance: Session, wanted: LockRequest, refusal: Lock | Waiter) -> bool:
    """Inside a transaction: write the refusal down; return True if it `is_known`, and only counts."""

    if refusal.instance_id == instance.id:
        if (refusal.agent or "") not in ("", wanted.agent):
            refusals.report_sibling(tx, instance, [refusal], of_request(instance, wanted))
    elif not wanted.ticket:
        if refusals.is_known(tx, instance, refusal, wanted.reaches[0].file, wanted.tool):
            return True
        refusals.record(tx, instance, refusal, of_request(instance, wanted))
    return False


def _refusal(tx: Transaction, instance: Session, refusal: Lock | Waiter) -> LockRefused:
    viewer = token(instance.label or "", "identity")
    if isinstance(refusal, Lock):
        return LockRefused(lock_listing.describe(tx, refusal, viewer))
    return LockRefused(lock_listing.described(refusal, viewer))


def renew_lock(
    db: Database, instance: Session, file: str, agent: str = "", fence: int | None = None, ttl: float | None = None
) -> Lock:
    """Renew this session's lock on `file`, from now on with a lease of `ttl` seconds where that is given; its row.

    Refused where it is not held any more, or not by that grant (`fence`): it is for the holder to notice.
    """
    reach, ttl = reach_of(instance, file), checked_ttl(ttl)
    refusal: Refused | None = None
    with db.writing() as tx:
        reactions.require(tx, instance.id)
        mine = [row for row in lock_finder.own(tx, instance, reach, agent) if row.mode != AUTO]
        refusal = unfit(reach, mine, fence)
        if refusal is None and ttl is not None:
            tx.change(
                "UPDATE context SET ttl = ?, renewed = ?, booted = ?, wall_until = ? WHERE id = ?",
                (ttl, clock.now(), clock.boot(tx.here), time.time() + ttl, mine[0].id),
            )
            told = {"id": mine[0].id, "fence": mine[0].fence, "ttl": ttl}
            tx.add_event(mine[0].scope, "context.lock_renewed", instance.id, reach.file, told)
    if refusal:  # raised out here, so that messages about lapses stay
        raise refusal
    return lock_finder.own(db, instance, reach, agent)[0]


# How locks end: released, reaped after their holders have gone or ended, and lapsed in time.

# One join finds the evidence about the holder. A DELETE with RETURNING would ask for each of its columns, and keep the
# answer in a table of its own: that takes three times as long as these two statements.
# Each column takes a microsecond, so only those that the end of a lock needs are read.
_HELD = (
    "SELECT c.id, c.scope, c.instance_id, c.file, c.path_key, c.mode, c.agent, c.pattern, c.base, c.ttl, c.renewed,"
    f" c.booted, c.wall_until, c.fence, c.repository, i.id AS owner_id, {EVIDENCE},"
    " EXISTS (SELECT 1 FROM swarm_denials) AS some_were_denied"
    " FROM context c LEFT JOIN instances i ON i.id = c.instance_id"
    " LEFT JOIN swarm_sessions s ON s.instance_id = c.instance_id WHERE c.type = 'lock' AND +c.instance_id = ?"
)
_GRANTED = f"{_HELD} AND c.id = ? AND (? = '' OR c.agent = ?)"

AT_ONCE = 200  # leases that are looked at together


def _end(tx: Transaction, instance: Session, locks: list[Lock]) -> int:
    """Delete `locks` of this session, as `_HELD` has them, and note their ends; return the number that still held."""
    ends: dict[str, list[Lock]] = {"": [], "reclaimed": [], "ended": [], "lapsed": []}
    for lock in locks:
        tx.change("DELETE FROM context WHERE id = ?", (lock.id,))
        ends[_reason(tx, lock)].append(lock)
    for reason, some in ends.items():
        if some:
            lock_rows.note_ends(tx, some, reason)
            if any(lock["some_were_denied"] or lock["runtime"] == DETACHED for lock in some):
                reactions.locks_ended(tx, some, reason)
    if ends["lapsed"]:
        reactions.locks_lapsed(tx, ends["lapsed"])
    if ends["reclaimed"] and (holder := session_table.get(tx, instance.id)):
        reactions.session_gone(tx, holder, "reclaimed")
    return len(ends[""])


def _reason(tx: Transaction, lock: Lock) -> str:
    """Return the reason for which a lock did not hold any more; empty if it did."""
    if lock_rows.has_gone(tx, lock):
        return "reclaimed"
    if has_ended(lock.agent, tx.here):
        return "ended"
    if lock_rows.has_lapsed(tx, lock):
        return "lapsed"
    return ""


def _found(tx: Transaction, instance: Session, reach: Reach, agent: str, fence: int | None) -> list[Lock]:
    names = (reach.key,) if reach.pattern else reach.keys
    marks, some = ",".join("?" * len(names)), "SELECT rowid FROM context WHERE type = 'lock' AND"
    # By how it was spelled: a mutex, and where links on the way have changed since.
    named = f"{some} path_key IN ({marks}) UNION ALL {some} path_key IS NOT file AND file IN ({marks})"
    return tx.rows(
        f"{_HELD} AND c.rowid IN ({named}) AND coalesce(c.pattern, '') = ? AND (? = '' OR coalesce(c.base, '') = ?)"
        " AND (? = '' OR c.agent = ?) AND (? IS NULL OR c.fence = ?) ORDER BY c.rowid",
        (
            instance.id, *names, *names, reach.pattern, reach.pattern, reach.base, agent, agent, fence, fence,
        ),
        Lock,
    )  # fmt: skip


def reaped(tx: Transaction, rows: list[Lock]) -> list[Lock]:
    """Inside a transaction: return the locks of `rows` that still hold; remove the rest, with all of gone sessions."""
    void = [row for row in rows if lock_rows.is_void(tx, row)]
    for holder_id in {row.instance_id for row in void if lock_rows.has_gone(tx, row)}:
        holder = session_table.get(tx, holder_id)
        if holder:
            reactions.session_gone(tx, holder, "reclaimed")
        else:
            reactions.end_locks(tx, [row for row in void if row.instance_id == holder_id], "reclaimed")
    left = [row for row in void if not lock_rows.has_gone(tx, row)]
    ended = [row for row in left if has_ended(row.agent, tx.here)]
    reactions.end_locks(tx, ended, "ended")
    reactions.lapse_locks(tx, [row for row in left if row not in ended])
    ids = {row.id for row in void}
    return [row for row in rows if row.id not in ids]


def let_lapse(db: Database) -> bool:
    """Outside a transaction: warn of leases that are nearly over, end lapsed locks; return True if there were any.

    Costs one read while nothing is due. A busy store is left alone until the next time.
    """
    if not reactions.due(db, 1):
        return False
    try:
        with db.hurried(), db.writing() as tx:
            settle_leases(tx)
    except SwarmError:  # busy: the next process does it
        return False
    return True


def settle_leases(tx: Transaction) -> None:
    """Do as `let_lapse`, inside a transaction."""
    for lock_id in reactions.due(tx, AT_ONCE):
        for row in reaped(tx, lock_rows.select(tx, "AND c.id = ?", (lock_id,))):
            _warn(tx, row)


def _warn(tx: Transaction, row: Lock) -> None:
    tx.change("UPDATE context SET warned = 1 WHERE id = ?", (row.id,))
    holder, left = session_table.get(tx, row.instance_id), lock_rows.time_left(tx, row) or 0.0
    if holder:
        text = (
            f"[auto] Your lock on {named(plain(row.file))} lapses in {left:.0f} s. Anything this session does"
            " renews it; if you need it no longer, release it: others may be waiting."
        )

        messages.post(tx, holder.scope, "system", holder.id, text)


# A lock's way from one holder to another: given, asked for, taken.


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
        reactions.require(tx, instance.id)
        taker = session_table.live(tx, to_id)
        if taker is None or taker.scope != instance.scope:
            raise UnknownInstance(f"Instance {to_id} is not active in this scope")
        if not may_meet(instance.label, taker.label):
            raise Refused(f"session {to_id} works under another identity; locks are not handed across")
        mine = lock_finder.own_among(reaped(tx, lock_finder.same(tx, reach)), instance, agent)
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
            end_for_turn(tx, instance, reach)
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
    told = {"released": 1, "reason": "transferred", "to": taker.id}
    tx.add_event(lock.scope, "context.lock_released", giver.id, file, told, facts(lock))
    told = {"id": row.id, "content": row.content, "from": giver.id}
    tx.add_event(lock.scope, "context.lock_acquired", taker.id, file, told, facts(row))
    _settle(tx, row, taker)
    if note:
        words = f" It says: {quoted(note, LONGEST_NOTE)}."
    else:
        words = ""
    if taker.runtime != REMOTE:
        messages.post_notice(
            tx,
            taker,
            f"[auto] {_name(giver, taker)} has handed you the lock on {named(file)} (fence {fence}).{words} Read it"
            " before you write, and release it when you are done.",
        )
    elif words:  # that it has the lock, its own machine says to it
        messages.post_notice(tx, taker, f"[auto] {_name(giver, taker)} hands you its lock on {named(file)}.{words}")
    _tell_waiting(tx, reach, {giver.id, taker.id}, giver, taker, file)
    reactions.dismiss(tx, {giver.id})
    return row


def _clear_the_way(tx: Transaction, lock: Lock, reach: Reach, taker: Session, mode: str) -> None:
    """Make sure that only `lock` itself keeps `taker` from it. The taker's own lock there becomes this one."""
    for other in reaped(tx, lock_finder.meeting(tx, reach)):
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
        reactions.require(tx, instance.id)
        theirs = [r for r in reaped(tx, lock_finder.meeting(tx, reach)) if keeps_out(r, instance.id, "", EXCLUSIVE)]
        if theirs:
            refusal = None
        else:
            refusal = Refused(f"nobody keeps {reach.file} from you: lock it")
        known = [row for row in theirs if may_meet(instance.label, row.owner_label)]
        if theirs and not known:
            refusal = Refused(f"{reach.file} is held by a session of another identity; ask the person running it")
        if refusal is None:
            refusals.await_lock(tx, instance, theirs[0])
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
    if messages.unread(tx, holder, instance.id, held):
        return
    if held == file:
        wants = ""
    else:
        wants = f" (it wants {named(file)})"
    messages.post_notice(
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
        (lock,) = acquire_all(db, instance, wanted)
        with db.writing() as tx:
            for row in void:
                _note_theft(tx, instance, row, reason, forced=False)
        return {"lock": lock, "taken": [row.replace(file=plain(row.file)) for row in void]}
    taken: list[Lock] = []
    while True:
        lock = _take_by_force(db, instance, wanted, reason, taken)
        # A hook that was checking a write meanwhile may have let it pass: then that turn's file is taken as well.
        if not has_yielded(db, [lock]):
            return {"lock": lock, "taken": [row.replace(file=plain(row.file)) for row in taken]}


def _take_by_force(db: Database, instance: Session, wanted: LockRequest, reason: str, taken: list[Lock]) -> Lock:
    """Take the lock in one transaction, and add to `taken` the rows that have to go."""
    reach = wanted.reaches[0]
    with db.writing() as tx:
        reactions.require(tx, instance.id)
        gone = [
            row
            for row in reaped(tx, lock_finder.covering(tx, reach))
            if keeps_out(row, instance.id, "", EXCLUSIVE) and row.instance_id != instance.id
        ]
        left = [
            row
            for row in lock_finder.meeting(tx, reach)
            if keeps_out(row, instance.id, "", EXCLUSIVE) and row.id not in {row.id for row in gone}
        ]
        if not left:
            keys = list(reach.keys)
            refusals.forget(tx, instance.id, keys)
            tx.taker = (instance.id, keys)
            try:
                reactions.end_locks(tx, gone, "stolen", by=instance.id, why=reason)
            finally:
                tx.taker = ("", [])
            for row in gone:
                _note_theft(tx, instance, row, reason, forced=True)
            taken += gone
            lock = grants.grant(tx, instance, wanted)[0]
            elsewhere = [row for row in taken if row.machine and row.team_fence]
            takes = " ".join(f"{number_elsewhere(row.id)}:{row.team_fence}" for row in elsewhere)
            if takes:
                tx.change("UPDATE context SET takes = ? WHERE id = ?", (takes, lock.id))
            _settle(tx, lock, instance)
            for row in gone:
                refusals.follow(tx, key_of_lock(row), instance.id)
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
    messages.post_notice(
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
    refusals.forget(tx, taker.id, [key])
    refusals.follow(tx, key, taker.id)
    reactions.locks_granted(tx, taker, [lock])


def _tell_waiting(
    tx: Transaction, reach: Reach, spared: set[Any], giver: Session | None, taker: Session, file: str
) -> None:
    """One message to each session that waits for it: it has changed hands, and their place is kept."""
    told = set(spared)
    for waiter in lock_listing.waiting_for(tx, reach):
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
