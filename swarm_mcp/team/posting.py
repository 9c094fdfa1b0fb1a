"""Posting this machine's locks, queue places and documents to the team's server.

No verb waits for it: changes that the server cannot take now are posted with the next look. A lock that the team has
granted to another session is removed here, and its holder is told.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from swarm_hook_core import clock
from swarm_hook_core.lookup import plain
from swarm_hook_core.untrusted_text import named
from swarm_mcp.domain import Lock
from swarm_mcp.store import Store
from swarm_mcp.team import protocol
from swarm_mcp.team.documents import AT_ONCE
from swarm_mcp.team.mirror import Claim, EpochOver, Mirror, Place, claims, difference, places_in
from swarm_mcp.team.parts import TeamRows
from swarm_mcp.team.protocol import AcquireAnswer, Item, LockRow, PutAnswer

COMPARE_SECONDS = 5.0  # seconds between two comparisons without a notification: processes die silently
MOST_TRIES = 100  # attempts of one request whose region others keep changing


class Posting:
    """Posts the changes of this machine that the server of a `mirror` lacks. Raises TeamUnreachable, TeamRefused and
    EpochOver.

    grace_until  before it (``clock.now``) the server confirms nothing but earlier grants
    """

    def __init__(self, store: Store, mirror: Mirror):
        self._store = store
        self._rows = TeamRows(store)
        self._mirror = mirror
        self._replica = mirror.replica
        self._server = mirror.server
        self._repository = mirror.repository
        self.grace_until = 0.0
        self._compared: tuple[object, float] = (None, 0.0)  # the store's version at the last comparison, and the time

    def is_due(self) -> bool:
        """Return True if rows here may differ from the server's."""
        if self._mirror.is_voided or self._replica.documents.is_due:
            return True
        version, at = self._compared
        return version != self._store.version() or clock.now() - at >= COMPARE_SECONDS

    def compare_anew(self) -> None:
        """Have `is_due` return True until the next comparison."""
        self._compared = (None, 0.0)

    def post(self) -> None:
        """Post all changes, locks before the documents about them. Say so where other machines wait for it."""
        for _ in range(MOST_TRIES):
            self._mirror.is_voided = False
            self._compared = (self._store.version(), clock.now())
            are_locks = self._posted_locks()
            # Post documents. Returns True if a repetition is useless.
            if not self._mirror.shares:
                posted_documents = True
            else:
                wanted = self._replica.documents.differences()
                done = [self.put(wanted[begin : begin + AT_ONCE]) for begin in range(0, len(wanted), AT_ONCE)]
                posted_documents = all(done)
            if posted_documents and are_locks:
                if self._mirror.is_awaited:
                    self._mirror.complete()
                return
        self.compare_anew()  # the next round goes on with it

    # ---------------------------------------------------------------- locks

    def _posted_locks(self) -> bool:
        """Post locks and queue places. Returns True if all were posted, without a change in between."""
        replica, server, rows = self._replica, self._server, self._rows.own_locks(self._replica.tops)
        if len(self._rows.live(rows)) < len(rows):
            with self._rows.writing():
                rows = self._rows.reaped(self._rows.own_locks(replica.tops))
        places = places_in(self._rows.own_places(), replica.tops)
        found = difference(claims(rows, replica.tops, self._mirror.again), places, replica.own, replica.places)
        if not any(found):
            return True
        if found.known:
            with self._rows.writing():
                for claim, fence in found.known:
                    for row in claim.rows:
                        self._rows.confirm(row, fence)
        if found.releases:
            server.release(self._repository, found.releases)
            with self._rows.writing():
                replica.released(number for number, _fence in found.releases)
        if found.transfers or found.acquires or found.waits:
            sessions = {claim.session for claim in found.acquires}
            self._mirror.introduce(sessions | {place.row.instance_id for place in found.waits})
        for number, fence, session in found.transfers:
            self._transfer(number, fence, session)
        is_whole = True
        for claim in found.acquires:
            is_whole = self._acquired(claim) and is_whole
        for place in found.waits:
            is_whole = self._in_line(place) and is_whole
        if found.leaves:  # last: a granted waiter has its lock before it leaves the queue
            server.leave(self._repository, found.leaves)
            for number in found.leaves:
                replica.places.pop(number, None)
        return is_whole

    def _transfer(self, number: int, fence: int, session: str) -> None:
        answer = self._server.transfer(self._repository, number, fence, session)
        if answer["ok"]:
            row = self._replica.own.get(number)
            if row is not None:
                # Until the log arrives: the present holder may be on another machine.
                self._replica.own[number] = {**row, "session": session, "fence": answer["fence"], "agent": ""}
                with self._rows.writing():
                    self._rows.renumber(fence, answer["fence"], self._replica.tops)
        elif answer.get("why") == protocol.EPOCH:
            raise EpochOver
        elif self._mirror.is_elsewhere(session):
            rows = self._rows.own_locks(self._replica.tops)
            self._let_go(row for row in rows if (row.team_fence, row.instance_id) == (fence, session))
        else:
            self._replica.own.pop(number, None)

    def _let_go(self, rows: Iterable[Lock]) -> None:
        """Remove locks that were to be transferred to a session of another machine but may not be."""
        with self._rows.writing():
            self._rows.drop(list(rows), "team")

    def _acquired(self, claim: Claim) -> bool:
        """Have one lock confirmed. Returns True if the outcome is final, or comes with a later look."""
        if self._mirror.is_elsewhere(claim.session):  # all became void while it was being handed over
            self._let_go(claim.rows)
            return True
        other = self._replica.in_the_way(claim.rows)
        if other is not None:
            self.refuse([claim], other)
            return True
        if clock.now() < self.grace_until and not claim.want["again"]:
            return True
        answer = self.acquire([claim])
        why = answer.get("why")
        if why == protocol.GRACE:
            self.grace_until = clock.now() + answer.get("seconds", 1.0)
        elif why == protocol.HELD:
            self.refuse([claim], answer.get("by"))
        return answer["ok"] or why in (protocol.GRACE, protocol.HELD)  # else it is stale, or its session had to join

    def acquire(self, held: list[Claim]) -> AcquireAnswer:
        """Ask for these locks of one session, all or none; record the grants, and apply the news."""
        replica = self._replica
        for claim in held:
            self._take_by_force(claim)
        wants = [claim.want for claim in held]
        answer = self._server.acquire(self._repository, held[0].session, wants, replica.version, replica.mark)
        why = answer.get("why")
        if answer["ok"]:
            with self._rows.writing():
                for claim, fence, number in zip(held, answer["fences"], answer["locks"]):
                    told: Any = {**claim.want, "lock": number, "fence": fence, "session": claim.session}
                    told.update(machine=replica.machine, label="")
                    replica.granted(told)
            self._mirror.again -= {row.id for claim in held for row in claim.rows}
        elif why == protocol.HELD:
            by = answer.get("by")
            if by is not None and by["machine"] != replica.machine:
                with self._rows.writing():
                    replica.granted(by)  # it may have been removed here; now, since the log may soon take it back
        elif why == protocol.STALE:
            self._mirror.take(answer["news"])
        elif why == protocol.UNKNOWN_SESSION:
            self._mirror.joined.pop(held[0].session, None)
            self._mirror.beat_until_even(True)
        elif why == protocol.EPOCH:
            raise EpochOver
        return answer

    def _take_by_force(self, claim: Claim) -> None:
        """Take on the server what was stolen here for this lock. The robbed machines are told."""
        grants = {tuple(map(int, one.split(":"))) for row in claim.rows for one in (row.takes or "").split()}
        for number, fence in sorted(grants):
            reason = claim.want["note"] or "no reason given"
            answer = self._server.steal(self._repository, number, fence, claim.session, reason, True)
            if answer["ok"] or answer.get("why") == protocol.NOT_HELD:
                continue
            if answer.get("why") == protocol.EPOCH:
                raise EpochOver
            break  # the missing ones are asked for once more, or refused

    def refuse(self, held: list[Claim], by: LockRow | None) -> None:
        """Remove locks here that the team has not granted, although their holder is unknown here."""
        with self._rows.writing():
            for row in self._rows.of_ids({row.id for one in held for row in one.rows}):
                if row.machine is not None:
                    continue
                if by is not None:
                    self._replica.give_way(row, by)
                else:
                    self._rows.drop([row], "team")
                    text = f"[auto] The team has not granted your lock on {named(plain(row.file))}. Do not write it."
                    self._replica.tell_holder(row, text)

    def _in_line(self, place: Place) -> bool:
        """Post a queue place. Returns True if the server has it."""
        row, replica = place.row, self._replica
        mode: Any = row.mode
        left = None
        if row.until is not None:
            left = max(0.0, row.until - clock.now())
        answer = self._server.wait(
            self._repository, row.instance_id, str(row.ticket), place.wants, mode, row.agent, left,
            replica.version, replica.mark,
        )  # fmt: skip
        if answer["ok"]:
            told: Any = {"session": row.instance_id, "ticket": str(row.ticket), "number": answer["number"]}
            replica.places[answer["number"]] = told
            return True
        if answer.get("why") == protocol.STALE:
            self._mirror.take(answer["news"])
            with self._rows.writing():
                if row.ticket in {one.ticket for one in self._rows.own_places()}:
                    self._rows.drop_places([row])  # it joins again by itself, behind later ones
        elif answer.get("why") == protocol.EPOCH:
            raise EpochOver
        else:
            self._mirror.beat_until_even(True)
        return False

    # ------------------------------------------------------------ documents

    def put(self, items: list[Item]) -> bool:
        """Post changes to documents, and apply the server's versions of rejected ones. Returns True if a repetition is
        useless.
        """
        replica, documents = self._replica, self._replica.documents
        answers = self._server.put(self._repository, items, replica.version, replica.mark)
        with self._rows.writing():
            for one, answer in zip(items, answers):
                if answer["ok"]:
                    documents.done(one, answer)
                elif answer.get("why") == protocol.REFUSED:
                    documents.refuse(one, answer.get("error", ""))
        left = [(one, answer) for one, answer in zip(items, answers) if not answer["ok"]]
        reasons = {answer.get("why") for _, answer in left}
        if protocol.EPOCH in reasons:
            raise EpochOver
        if protocol.GRACE in reasons:
            self.grace_until = clock.now() + max(answer.get("seconds", 1.0) for _, answer in left)
        if reasons & {protocol.STALE, protocol.UNKNOWN_SESSION}:
            self._mirror.beat_until_even(protocol.UNKNOWN_SESSION in reasons)
        stale = [(one, answer) for one, answer in left if answer.get("why") == protocol.STALE]
        with self._rows.writing():
            for one, answer in stale:
                self._take_instead(one, answer)
        assignees = {one["body"]["assignee"] for one, answer in left if answer.get("why") == protocol.UNKNOWN_SESSION}
        return not stale and assignees.isdisjoint(self._mirror.joined)

    def _take_instead(self, one: Item, answer: PutAnswer) -> None:
        """Apply the server's version of an item inside a transaction, if the log has not brought it."""
        documents, ref = self._replica.documents, (one["kind"], one["key"])
        version = answer["version"]
        row: Any = {**one, "version": version, "body": answer.get("body"), "machine": answer.get("machine", "")}
        if version > documents.version(ref):
            documents.take(row, is_all=True)
        elif not version and documents.version(ref) == one["seen"]:
            documents.take_gone({**row, "version": one["seen"]})
