"""What writes have claimed, as locks until the turn ends."""

from __future__ import annotations

import os
import time

from support.memory_store.tables import Part
from swarm_hook_core import clock
from swarm_hook_core.traces import claims
from swarm_mcp.domain.lock import AUTO, EXCLUSIVE, keeps_out
from swarm_mcp.domain.session import Session
from swarm_mcp.store.lock_request import LockRequest, reach_in


class AutomaticLocks(Part):
    _adopting = False

    def adopt(self) -> None:
        """Make a lock of each claim of a session that is here."""
        if self._adopting:
            return
        self._adopting = True
        try:
            done = [claim for claim in claims.standing() if self._is_done(claim)]
        finally:
            self._adopting = False
        if done:
            claims.drop(done)

    def end(self, session: Session, agent: str, over_ns: int | None = None) -> None:
        """A turn is over."""
        claims.end(session.runtime, session.session_id, agent, over_ns)
        mine = [lock for lock in self.store.locks.of(session.id) if (lock.mode, lock.agent or "") == (AUTO, agent)]
        over = [lock for lock in mine if over_ns is None or lock.wall_until - lock.ttl <= over_ns / 10**9]
        self.store.locks.drop(over, "turn_ended")

    def _is_done(self, claim: claims.Claim) -> bool:
        session = self.store.instances.of_session(claim.runtime, claim.session_id)
        if session is None or claim.is_over(time.time_ns()) or not self.store.instances.live(session.id):
            return session is not None or claim.is_over(time.time_ns())
        if os.path.isdir(claim.file):
            return True
        reach = reach_in({"file": claim.file, "path_key": claim.key, "pattern": None})
        if reach is None or any(
            keeps_out(lock, session.id, claim.agent, EXCLUSIVE) for lock in self.store.locks.meeting(reach)
        ):
            return False
        mine = [lock for lock in self.store.locks.covering(reach) if lock.instance_id == session.id]
        own = next((lock for lock in mine if lock.mode == AUTO and lock.file == claim.file), None)
        if own is None and not mine:
            wanted = LockRequest((reach,), "editing it in this turn", AUTO, claim.agent, float(claims.HOLD_SECONDS))
            own = self.store.locks.grant(session, wanted, reach)
        if own is not None:
            ago = time.time() - claim.written / 10**9
            lease = {"renewed": clock.now() - ago, "wall_until": time.time() - ago + claims.HOLD_SECONDS}
            self.store.locks.put(own.replace(**lease), reach)
        return True
