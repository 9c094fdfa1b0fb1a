"""One repository in the team agent: apply the server's log, post local changes, have locks confirmed.

For one thread: it calls `follow` again and again, and `confirm` on request. Every failure raises TeamUnreachable or
TeamRefused and may be repeated: all state here is also in the store or on the server.
"""

from __future__ import annotations

import time

from swarm_hook_core import clock
from swarm_mcp.team import agent_client, protocol
from swarm_mcp.team.comparison import claims, difference
from swarm_mcp.team.errors import TeamUnreachable
from swarm_mcp.team.mirror import Mirror
from swarm_mcp.team.parts import TeamRows
from swarm_mcp.team.posting import MOST_TRIES, Posting

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

    from swarm_mcp.domain.lock import Lock
    from swarm_mcp.store import Store
    from swarm_mcp.team.agent_client import Confirmation
    from swarm_mcp.team.comparison import Claim
    from swarm_mcp.team.protocol import LockRow
    from swarm_mcp.team.replica import Replica
    from swarm_mcp.team.server import TeamServer

STALE_PAUSE = 0.005
MOST_DROPPED = 1000  # Conflicting locks, with the lock that won each conflict.


class Following:
    """A `replica` and its `server`, kept equal; `mirror` is their link."""

    def __init__(self, store: Store, server: TeamServer, replica: Replica):
        self._rows = TeamRows(store)
        self.replica = replica
        self.mirror = Mirror(store, server, replica)
        self._posting = Posting(store, self.mirror)

    def follow(self, poked: bool = False, beat: bool = True) -> None:
        """Apply the server's changes and post those made here (after a `poked` notification, or now and then)."""
        mirror, posting = self.mirror, self._posting
        if not mirror.is_greeted:
            poked = beat = True

        def look() -> None:
            if beat:
                if mirror.has_lost_sessions():
                    # departed sessions come after their changes, since their departure releases their tasks
                    posting.post()
                mirror.beat_until_even()
            if poked or posting.is_due():
                posting.post()

        mirror.at_one_server(look)

    # ---------------------------------------------------------------- locks

    def confirm(self, lock_ids: Collection[str], until: float) -> tuple[Confirmation, int]:
        """Have the team grant these locks of one session, all or none, before `until` (``clock.now``).

        Returns the answer for ``agent_client.confirm``, and the version that must settle; 0 for none.
        """
        self.replica.spared |= set(lock_ids)
        for row in self._rows.of_ids(lock_ids):
            self.replica.dropped.pop(row.id, None)  # of an earlier request; the lock has outlived it
        try:
            if not self.mirror.is_greeted:
                self.follow(poked=True)
            return self.mirror.at_one_server(lambda: self._confirmed(list(lock_ids), until))
        finally:
            self.replica.spared -= set(lock_ids)
            if len(self.replica.dropped) > MOST_DROPPED:
                self.replica.dropped.clear()

    def withdraw(self, lock_ids: Collection[str]) -> None:
        """Remove those of these locks that are in this repository: others of the same request were refused."""
        rows = [row for row in self._rows.of_ids(lock_ids) if row.machine is None]
        mine = [row for claim in claims(rows, self.replica.tops) for row in claim.rows]
        if mine:
            with self._rows.writing():
                self._rows.drop(mine, "team")
            self._posting.compare_anew()

    def _confirmed(self, lock_ids: list[str], until: float) -> tuple[Confirmation, int]:
        mirror, replica = self.mirror, self.replica
        for _ in range(MOST_TRIES):
            rows = [row for row in self._rows.of_ids(lock_ids) if row.machine is None]
            held = claims(rows, replica.tops, mirror.again)
            ours = {row.id for claim in held for row in claim.rows}
            lost = [replica.dropped[one] for one in lock_ids if one in replica.dropped]
            if lost or len(rows) < len(set(lock_ids)):  # gone before it was asked for, to whomever
                return self._refused(held, next(iter(lost), None))
            if not held:
                return {"answer": agent_client.LOCAL}, 0
            if all(row.team_fence for claim in held for row in claim.rows) and self._is_posted(held):
                # A grant's version is its fence; this replica may not have come to it yet.
                return self._granted(rows, ours, max(row.team_fence or 0 for claim in held for row in claim.rows))
            other = replica.in_the_way(row for claim in held for row in claim.rows)
            if other is not None:
                return self._refused(held, other)
            mirror.introduce({claim.session for claim in held})
            answer = self._posting.acquire(held)
            why = answer.get("why")
            if answer["ok"]:
                rows = [row for row in self._rows.of_ids(ours) if row.machine is None]
                return self._granted(rows, ours, 0 if answer.get("settled") else answer["version"])
            if why == protocol.HELD:
                mirror.beat_until_even()  # so that the store knows it as well, and says so in its words
                return self._refused(held, answer.get("by"))
            if why == protocol.GRACE and clock.now() + answer.get("seconds", 1.0) >= until:
                return {"answer": agent_client.UNREACHABLE, "error": "the team's server has just started"}, 0
            if clock.now() >= until:
                break
            if why == protocol.GRACE:
                time.sleep(min(answer.get("seconds", 0.0), 0.5))
                mirror.beat_until_even()  # grants wait for what this machine hears of the others, too
            else:
                time.sleep(STALE_PAUSE)
        raise TeamUnreachable("others change the same files all the time")

    def _refused(self, held: list[Claim], by: LockRow | None) -> tuple[Confirmation, int]:
        self._posting.refuse(held, by)
        return {"answer": agent_client.HELD, "by": dict(by or {})}, 0

    def _granted(self, rows: list[Lock], ours: set[str], version: int) -> tuple[Confirmation, int]:
        fences = {row.id: row.team_fence or 0 for row in rows if row.id in ours}
        is_settled = version <= self.mirror.settled
        return {"answer": agent_client.GRANTED, "fences": fences, "settled": is_settled}, 0 if is_settled else version

    def _is_posted(self, held: list[Claim]) -> bool:
        found = difference(held, [], self.replica.own, {})
        return not found.acquires and not found.transfers and not found.known

    # ------------------------------------------------------------ documents

    def confirm_documents(self, refs: Collection[tuple[str, str]], until: float) -> Confirmation:
        """Post the changes made here to these tasks (kind and key), before `until` (``clock.now``).

        Returns the answer for ``agent_client.confirm_documents``.
        """
        documents = self.replica.documents
        documents.spared |= set(refs)
        try:
            if not self.mirror.is_greeted:
                self.follow()
            return self.mirror.at_one_server(lambda: self._documents_confirmed(list(refs), until))
        finally:
            documents.spared -= set(refs)

    def _documents_confirmed(self, refs: list[tuple[str, str]], until: float) -> Confirmation:
        documents, posting = self.replica.documents, self._posting
        refs = [ref for ref in refs if self.mirror.shares and documents.is_here(ref)]
        if not refs:
            return {"answer": agent_client.LOCAL}
        for ref in refs:
            if documents.difference(ref) is not None:
                documents.gave_way.pop(ref, None)
        for _ in range(MOST_TRIES):
            wanted = [one for ref in refs if (one := documents.difference(ref)) is not None]
            if any(ref in documents.gave_way for ref in refs):
                with self._rows.writing():
                    for ref in refs:
                        documents.unsay(ref)
                return {"answer": agent_client.HELD}
            if not wanted:
                return {"answer": agent_client.GRANTED}
            if clock.now() >= until:
                break
            posting.put(wanted)
            if all((one["kind"], one["key"]) in documents.refused for one in wanted):
                return {"answer": agent_client.LOCAL}  # too large to be posted: it stays on this machine
            if clock.now() < posting.grace_until:
                if posting.grace_until >= until:
                    return {"answer": agent_client.UNREACHABLE, "error": "the team's server has just started"}
                time.sleep(0.1)
        raise TeamUnreachable("others change the same task all the time")
