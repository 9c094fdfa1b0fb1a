"""Automatic locks: what hooks have claimed for a turn becomes locks of the store, and ends with the turn.

A hook that lets the first write to a file pass leaves a claim, a file (``swarm_hook_core.traces.claims``), and asks
nobody. Whatever takes, releases, lists, explains or waits for locks here adopts those first: each becomes a lock in
mode ``auto``, with a lease that nothing renews but a further write of its holder. Nobody can miss both, since the claim
goes once the lock has been committed; and a turn's end takes both away in one transaction.

A claim that meets somebody else's lock stays as it is: its hook is just finding that lock and takes the claim back, or
finds it gone and lets the write pass on the strength of its claim.
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
from swarm_mcp.store.lock_request import LockRequest, Reach, reach_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from swarm_hook_core.traces.claims import Claim
    from swarm_mcp.store.database import Database
    from swarm_mcp.store.lock_endings import LockEndings
    from swarm_mcp.store.lock_finder import LockFinder


class AutomaticLocks:
    """The embedded store's automatic locks."""

    def __init__(
        self,
        db: Database,
        finder: LockFinder,
        endings: Callable[[], LockEndings],
        grant: Callable[[Session, LockRequest], list[Lock]],
        adopt_beside: Callable[[], bool],
    ):
        """`grant`: as ``Locks.grant``; `adopt_beside`: `adopt` of the same store opened to be written."""
        self._db = db
        self._finder = finder
        self._endings = endings
        self._grant = grant
        self._adopt_beside = adopt_beside
        self._sessions: dict[tuple[str, str], Session | None] = {}  # while one call adopts

    def adopt(self) -> bool:
        """Make locks of the claims that stand; whether there were any. In the present transaction, where there is one.

        A claim of a session that this store does not know stays where it is: it may be another store's.
        """
        found, self._sessions = claims.standing(), {}
        if found and self._db.read_only:
            try:
                return self._adopt_beside()
            except SwarmError:
                return False  # a sandbox does not let who only lists locks write
        if not any(map(self._is_ours, found)):
            return False
        if self._db.connection.in_transaction:
            self._adopt()
        else:
            with self._db.writing():
                self._adopt()
        return True

    def end(self, instance: Session, agent: str, over_ns: int | None = None) -> None:
        """Inside a transaction: a turn of this session, or of one of its agents, is over, and so are its locks.

        `over_ns`: when that was; what has been written since is of the next turn.
        """
        names = "SELECT runtime, session_id FROM swarm_sessions WHERE instance_id = ?"
        for row in self._db.rows(names, (instance.id,)):
            try:
                claims.end(row.runtime, row.session_id, agent, over_ns)
            except OSError:
                continue  # its lease is soon over
        held = self._finder.select(
            "AND c.ttl IS NOT NULL AND c.mode = ? AND c.instance_id = ? AND coalesce(c.agent, '') = ?",
            (AUTO, instance.id, agent),
        )
        ended = [row for row in held if over_ns is None or _written(row) <= over_ns / 10**9]
        self._endings().drop(ended, "turn_ended")

    def forget(self, instance: Session, reach: Reach) -> None:
        """Inside a transaction that lets go of this session's lock: its claim on that path goes too.

        Were it left until the commit, somebody could make a lock of it once more.
        """
        keys = {reach.key, *reach.keys}
        mine = [one for one in claims.standing() if one.key in keys and self._is_of(one, instance)]
        if mine:
            _remove(mine)

    # -------------------------------------------------------------- innards

    def _is_of(self, claim: Claim, instance: Session) -> bool:
        session = self._session(claim)
        return session is not None and session.id == instance.id

    def _is_ours(self, claim: Claim) -> bool:
        return claim.is_over(time.time_ns()) or self._session(claim) is not None

    def _session(self, claim: Claim) -> Session | None:
        """Return the session that claims, with what tells whether it has gone; None where it is none of this store."""
        key = claim.runtime, claim.session_id
        if key not in self._sessions:
            self._sessions[key] = self._db.row(
                f"SELECT i.*, {EVIDENCE} FROM swarm_sessions s JOIN instances i ON i.id = s.instance_id"
                " WHERE s.runtime = ? AND s.session_id = ?",
                key,
                Session,
            )
        return self._sessions[key]

    def _adopt(self) -> None:
        self._sessions = {}
        # Read anew: what a turn's end has removed in the transaction before this one must not come back.
        found = sorted(filter(self._is_ours, claims.standing()), key=lambda claim: claim.at)
        done = [claim for claim in found if self._settle(claim)]
        if done:
            self._db.after_commit.append(lambda: _remove(done))

    def _settle(self, claim: Claim) -> bool:
        """See that the store has what this claim says; whether that is so, and the claim can go."""
        session = self._session(claim)
        if session is None or claim.is_over(time.time_ns()):
            return True
        if departed(session, self._db.now(), self._db.here):
            return True
        if os.path.isdir(claim.file):
            return True  # the write has made it: a lock on it would hold all that is in it
        reach = _reach(claim)
        if reach is None:
            return False  # nobody can lock such a file; the hooks still see the claim
        met = self._finder.live(self._finder.meeting(reach))
        if any(keeps_out(row, session.id, claim.agent, EXCLUSIVE) for row in met):
            return False
        mine = [row for row in met if row.instance_id == session.id]
        own = next((row for row in mine if row.mode == AUTO and self._finder.is_same(row, reach)), None)
        if own is None and mine:
            return True  # what it has asked for covers the file already
        if own is None:
            wanted = LockRequest((reach,), NOTE, AUTO, claim.agent, float(claims.HOLD_SECONDS), tool=claim.tool)
            own = self._grant(session, wanted)[0]
        self._renew(own.id, claim)
        return True

    def _renew(self, lock_id: str, claim: Claim) -> None:
        """Let a lock's lease count from the last write that its claim tells of."""
        ago = max(0.0, time.time() - claim.written / 10**9)
        self._db.change(
            "UPDATE context SET renewed = ?, booted = ?, wall_until = ? WHERE id = ?",
            (clock.now() - ago, clock.boot(self._db.here), time.time() - ago + claims.HOLD_SECONDS, lock_id),
        )


def _reach(claim: Claim) -> Reach | None:
    """Return what a claim is on; None where the store can hold no such name."""
    if not storable(claim.key) or not storable(claim.file):
        return None
    return reach_in({"file": claim.file, "path_key": claim.key, "pattern": None, "base": ""})


def _written(row) -> float:
    """When the holder of an automatic lock last wrote the file, as the store knows (Unix seconds)."""
    return float(row.wall_until or 0) - float(row.ttl or 0)


def _remove(done: list[Claim]) -> None:
    try:
        claims.drop(done)
        claims.sweep()
    except OSError:
        return  # they are settled once more by whoever comes next
