"""Automatic locks: claims that hooks leave for a turn become locks of the store, and end with the turn.

A hook that lets the first write to a file pass leaves a claim, a file (``swarm_hook_core.traces.claims``), and asks
nothing of the store. Every verb that takes, releases, lists, explains or waits for locks adopts the claims first: each
becomes a lock in mode ``auto``, with a lease that only a further write of its holder renews. A reader cannot miss both,
since the claim goes once the lock has been committed; the end of a turn takes both away in one transaction.

A claim that meets another session's lock stays: its hook is just finding that lock and takes the claim back, or finds
the lock gone and lets the write pass on the strength of its claim.
"""

from __future__ import annotations

import os
import time

from swarm_hook_core import clock
from swarm_hook_core.liveness import departed
from swarm_hook_core.lookup import storable
from swarm_hook_core.lookup.sqlite import EVIDENCE
from swarm_hook_core.traces import claims
from swarm_hook_core.traces.claimed import NOTE
from swarm_mcp.domain.lock import AUTO, EXCLUSIVE, Lock, keeps_out
from swarm_mcp.domain.session import Session
from swarm_mcp.errors import SwarmError
from swarm_mcp.store import grants, lock_finder, lock_rows, reactions
from swarm_mcp.store.database import Database, Transaction
from swarm_mcp.store.lock_request import LockRequest, Reach, reach_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_hook_core.traces.claims import Claim

YIELD_SECONDS, YIELD_PAUSE = 0.3, 0.01  # a hook that meets a lock takes its claim back within that time
ADOPTION_SECONDS = 0.5  # a reader waits no longer for another process to stop writing


def adopt(db: Database) -> bool:
    """Outside a transaction: make locks of the claims that stand; return True if there were any.

    A claim of a session that this store does not know stays where it is: it may be another store's.
    """
    found = claims.standing()
    if found and db.read_only:
        return _adopt_beside(db.path)
    claimants = _Claimants(db)
    if not any(map(claimants.know, found)):
        return False
    with db.writing() as tx:
        adopt_in(tx)
    return True


def adopt_in(tx: Transaction) -> bool:
    """Do as `adopt`, inside a transaction."""
    claimants = _Claimants(tx)
    # Read here, inside: a claim that a turn's end removed in the transaction before this one must not come back.
    found = sorted(filter(claimants.know, claims.standing()), key=lambda claim: claim.at)
    done = [claim for claim in found if _settle(tx, claimants, claim)]
    if done:
        tx.after_commit.append(lambda: _remove(done))
    return bool(found)


def _adopt_beside(path: str) -> bool:
    """Do as `adopt` on a connection that may write, beside one that only reads."""
    try:
        database = Database(path, busy_seconds=ADOPTION_SECONDS)
        try:
            return adopt(database)
        finally:
            database.close()
    except SwarmError:
        return False  # a sandbox does not let a reader write


def forget(tx: Transaction, session: Session, reach: Reach) -> None:
    """Inside a transaction that releases a session's lock: remove its claim on that path too.

    Were it left until the commit, another process could make a lock of it once more.
    """
    claimants, keys = _Claimants(tx), {reach.key, *reach.keys}
    mine = [claim for claim in claims.standing() if claim.key in keys and claimants.id_of(claim) == session.id]
    if mine:
        _remove(mine)


def has_yielded(db: Database, locks: list[Lock]) -> bool:
    """Outside a transaction: take back these committed locks if another session has claimed a file of theirs.

    Return True if they were taken back. A hook claims first, then looks at the store. If it looked before the commit,
    its write goes ahead, and the claim stays. If it looked afterwards, it takes its claim back: this waits for that.
    """
    ends = time.monotonic() + YIELD_SECONDS
    while _are_claimed(db, locks):
        if time.monotonic() >= ends:
            with db.writing() as tx:
                held = lock_rows.select(tx, "AND c.instance_id = ?", (locks[0].instance_id,))
                reactions.end_locks(tx, [row for row in held if row.id in {lock.id for lock in locks}])
            return True
        time.sleep(YIELD_PAUSE)
    return False


def _are_claimed(tx: Transaction, locks: list[Lock]) -> bool:
    """Return True if a claim of another living session stands on a file of these locks."""
    claimants, ids = _Claimants(tx), {lock.id for lock in locks}
    for claim in claims.standing():
        session, reach = claimants.of(claim), _reach(claim)
        if session is None or reach is None or claim.is_over(time.time_ns()) or os.path.isdir(claim.file):
            continue
        met = [row for row in lock_finder.meeting(tx, reach) if row.id in ids]
        is_kept_out = any(keeps_out(row, session.id, claim.agent, EXCLUSIVE) for row in met)
        if is_kept_out and not departed(session, tx.now(), tx.here):
            return True
    return False


class _Claimants:
    """The sessions behind claims, each looked up once."""

    def __init__(self, tx: Transaction):
        self._tx = tx
        self._sessions: dict[tuple[str, str], Session | None] = {}

    def of(self, claim: Claim) -> Session | None:
        """Return the session behind a claim, with its ``EVIDENCE``; None for a session of another store."""
        key = claim.runtime, claim.session_id
        if key not in self._sessions:
            self._sessions[key] = self._tx.row(
                f"SELECT i.*, {EVIDENCE} FROM swarm_sessions s JOIN instances i ON i.id = s.instance_id"
                " WHERE s.runtime = ? AND s.session_id = ?",
                key,
                Session,
            )
        return self._sessions[key]

    def id_of(self, claim: Claim) -> str | None:
        """Return the id of the session behind a claim; None for a session of another store."""
        session = self.of(claim)
        if session:
            return session.id
        return None

    def know(self, claim: Claim) -> bool:
        """Return True if a claim is over, or is of a session of this store."""
        return claim.is_over(time.time_ns()) or self.of(claim) is not None


def _settle(tx: Transaction, claimants: _Claimants, claim: Claim) -> bool:
    """Make a lock of a claim, unless it has one or needs no lock; return True if the claim can go."""
    session = claimants.of(claim)
    if session is None or claim.is_over(time.time_ns()):
        return True
    if departed(session, tx.now(), tx.here):
        return True
    if os.path.isdir(claim.file):
        return True  # the write has made it: a lock on it would hold all that is in it
    reach = _reach(claim)
    if reach is None:
        return False  # such a file cannot be locked; the hooks still see the claim
    met = lock_rows.live(tx, lock_finder.meeting(tx, reach))
    if any(keeps_out(row, session.id, claim.agent, EXCLUSIVE) for row in met):
        return False
    mine = [row for row in met if row.instance_id == session.id]
    own = next((row for row in mine if row.mode == AUTO and lock_finder.is_same(row, reach)), None)
    if own is None and mine:
        return True  # a lock that the session asked for covers the file already
    if own is None:
        wanted = LockRequest((reach,), NOTE, AUTO, claim.agent, float(claims.HOLD_SECONDS), tool=claim.tool)
        own = grants.grant(tx, session, wanted)[0]
    _renew(tx, own.id, claim)
    return True


def _renew(tx: Transaction, lock_id: str, claim: Claim) -> None:
    """Let a lock's lease count from the last write that its claim tells of."""
    ago = max(0.0, time.time() - claim.written / 10**9)
    tx.change(
        "UPDATE context SET renewed = ?, booted = ?, wall_until = ? WHERE id = ?",
        (clock.now() - ago, clock.boot(tx.here), time.time() - ago + claims.HOLD_SECONDS, lock_id),
    )


def _reach(claim: Claim) -> Reach | None:
    """Return the reach of a claim, or None for a name that the store cannot hold."""
    if not storable(claim.key) or not storable(claim.file):
        return None
    return reach_in({"file": claim.file, "path_key": claim.key, "pattern": None, "base": ""})


def _remove(done: list[Claim]) -> None:
    try:
        claims.drop(done)
        claims.sweep()
    except OSError:
        return  # the next process settles them once more
