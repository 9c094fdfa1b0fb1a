"""One repository in the team agent: apply the server's log, post local changes, have locks confirmed.

For one thread: it calls `follow` again and again, and `confirm` on request. Every failure raises TeamUnreachable or
TeamRefused and may be repeated: all state here is also in the store or on the server.
"""

from __future__ import annotations

import time

from swarm_hook_core import clock
from swarm_hook_core.lookup import plain
from swarm_hook_core.untrusted_text import named
from swarm_mcp.domain.lock import Lock
from swarm_mcp.team import agent_client, protocol
from swarm_mcp.team.comparison import Claim, claims, difference, places_in
from swarm_mcp.team.documents import AT_ONCE
from swarm_mcp.team.errors import TeamUnreachable
from swarm_mcp.team.parts import TeamDocuments, TeamRows
from swarm_mcp.team.replica import Replica

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable
    from typing import Any, TypeVar

    from swarm_mcp.store import Store
    from swarm_mcp.team.agent_client import Confirmation
    from swarm_mcp.team.comparison import Difference, Place
    from swarm_mcp.team.protocol import AcquireAnswer, Item, LockRow, MachineRow, News, PutAnswer
    from swarm_mcp.team.server import TeamServer

    T = TypeVar("T")

BEAT_SECONDS = protocol.MIRROR_LEASE / 3
DUE = 0.95  # of that time is enough
COMPARE_SECONDS = 5.0  # seconds between two comparisons without a notification: processes die silently
STALE_PAUSE = 0.005
MOST_DROPPED = 1000  # Conflicting locks, with the lock that won each conflict.
MOST_TRIES = 100  # attempts of one request whose region others keep changing

_RESTORED = (
    "The team's server is another than before, or has lost what was granted last (failover, restore): no grant of"
    " before counts. These locks of yours hold on this machine and are being confirmed anew, which you hear of only"
    " where somebody else has one by then:"
)


class Following:
    """A `replica` and its `server`, kept equal.

    again     ids of locks here that the team had confirmed before all grants became void
    settled   the greatest version that every other live mirror has, as far as known
    machines  those on the server when last `looked` at (``clock.now``; None: never), within `round_trip` seconds
    shares    the server takes messages, tasks and values; None before the first greeting
    """

    def __init__(self, store: Store, server: TeamServer, replica: Replica):
        self._store = store
        self._server = server
        self.replica = replica
        self.again: set[str] = set()
        self.settled = 0
        self.machines: list[MachineRow] = []
        self.looked: float | None = None
        self.round_trip = 0.0
        self.shares: bool | None = None
        self.sessions = 0  # of this machine, in this repository
        self.beaten = 0.0  # when the last beat that named sessions was sent (``clock.now``)
        self._greeted = False
        self._joined: dict[str, int] = {}
        self._compared: tuple[object, float] = (None, 0.0)
        self._grace_until = 0.0

    @property
    def repository(self) -> str:
        """The team's name for it."""
        return self.replica.repository

    @property
    def is_greeted(self) -> bool:
        """Return True if the server has been greeted since the last failure."""
        return self._greeted

    def lose(self) -> None:
        """The server was not reached: it is greeted anew."""
        self._greeted = False

    def look_at_machines(self) -> None:
        """Read the list of machines, for a viewer. Raises TeamUnreachable and TeamRefused."""
        begun = clock.now()
        self.machines = self._server.machines(self.repository)
        self.looked = clock.now()
        self.round_trip = self.looked - begun

    # --------------------------------------------------------------- follow

    def follow(self, poked: bool = False, beat: bool = True) -> None:
        """Apply the server's changes and post those made here (after a `poked` notification, or now and then).

        Raises TeamUnreachable and TeamRefused.
        """
        if not self._greeted:
            poked = beat = True

        def look() -> None:
            if beat:
                if self._joined.keys() - {one["session"] for one in self._living()}:
                    # departed sessions come after their changes, since their departure releases their tasks
                    self._post()
                self._beat_until_even()
            if poked or self._may_differ():
                self._post()

        self._at_one_server(look)

    def _at_one_server(self, act: Callable[[], T]) -> T:
        """Greet the server if that is due, and return the result of `act`. Both again, once, if it was replaced."""
        for _ in range(2):
            try:
                if not self._greeted:
                    self._greet()
                return act()
            except _EpochOver:  # it may come twice: machines report losses of the server one after the other
                self._greeted = False
        raise TeamUnreachable("the team's server is being replaced")

    def _greet(self) -> None:
        replica = self.replica
        answer = self._server.hello(self.repository, replica.version, replica.mark, replica.epoch)
        if not answer.get("ok", True):
            self.again |= replica.void_grants(why=_RESTORED)
            self._joined.clear()
            answer = self._server.hello(self.repository)
        self.shares = answer["schema"] >= protocol.DOCUMENTS_SCHEMA
        replica.apply(answer["news"], answer["epoch"])
        with TeamRows(self._store).writing():
            TeamDocuments(self._store).forget_old(self.repository)
        replica.documents.look_anew()
        self._beat_until_even(True)
        mine = self._server.mine(self.repository)
        left = {row["session"] for row in mine["sessions"]} - self._joined.keys()
        if left:  # they ended here while no agent ran to say so
            self._server.end(self.repository, sorted(left))
            mine = self._server.mine(self.repository)
        replica.own = {row["lock"]: row for row in mine["locks"]}
        replica.places = {row["number"]: row for row in mine["waits"]}
        self._greeted = True
        self._compared = (None, 0.0)

    def _beat_until_even(self, is_named: bool = False) -> None:
        """Report this replica's version until nothing is new: applied changes count at once.

        With `is_named`, or when due, also name the live sessions.
        """
        is_named = is_named or clock.now() - self.beaten >= BEAT_SECONDS * DUE
        while True:
            if is_named:
                told = self._named()
            else:
                told = []
            sent = clock.now()
            answer = self._server.beat(self.repository, self.replica.version, self.replica.mark, told)
            if not answer["ok"]:
                raise _EpochOver
            self.settled = max(self.settled, answer["settled"])
            if is_named:
                self.beaten, is_named = sent, False
                self._note_joined(answer["joined"])
            silent = [one for one in answer["silent"] if one["kind"] == "session"]
            # during the grace period others may hold locks that are still unknown
            since = sent if not answer["grace"] else None
            if not self.replica.apply(answer["news"], answer["epoch"], since) and not answer["news"]["more"]:
                break
        if since is not None:
            self.replica.drop_missing()
        if silent:
            self._server.reap(self.repository)

    def _named(self) -> list[dict[str, Any]]:
        """Return the sessions that live, for a beat; those that have gone since the last one have ended."""
        told = self._living()
        self.sessions = len(told)
        gone = self._joined.keys() - {one["session"] for one in told}
        if gone:
            self._server.end(self.repository, sorted(gone))
            self._joined = {one: at for one, at in self._joined.items() if one not in gone}
        return told

    def _note_joined(self, joined: dict[str, int]) -> None:
        """Sessions that the server has had to take in anew had lapsed: their grants are void."""
        lapsed = {one for one, at in joined.items() if one in self._joined and self._joined[one] != at}
        if lapsed:
            replica = self.replica
            self.again |= replica.void_grants(lapsed)
            replica.own = {number: row for number, row in replica.own.items() if row["session"] not in lapsed}
            replica.places = {number: row for number, row in replica.places.items() if row["session"] not in lapsed}
            self._compared = (None, 0.0)
        self._joined = dict(joined)

    def _living(self) -> list[dict[str, Any]]:
        """Return the sessions of this machine that work in this repository, or hold or wait for something in it."""
        team = TeamRows(self._store)
        ids = {row.instance_id for row in team.own_locks(self.replica.tops)}
        ids |= {place.row.instance_id for place in places_in(team.own_places(), self.replica.tops)}
        ids |= TeamDocuments(self._store).assignees(self.replica.tops)
        found = team.living_in(self.replica.tops, ids)
        lease = protocol.SESSION_LEASE
        return [{"session": row.id, "label": row.label or "", "lease": lease} for row in found]

    # ----------------------------------------------------------------- post

    def _may_differ(self) -> bool:
        version, at = self._compared
        if self.replica.documents.is_due:
            return True
        return version != self._store.version() or clock.now() - at >= COMPARE_SECONDS

    def _post(self) -> None:
        """Post this machine's locks and queue places to the server."""
        for _ in range(MOST_TRIES):
            self._compared = (self._store.version(), clock.now())
            if self._posted_all():
                return
        self._compared = (None, 0.0)  # the next round goes on with it

    def _posted_all(self) -> bool:
        """Post the difference. Returns True if all of it was posted, without a change in between."""
        are_locks = self._posted_locks()  # locks before the documents about them
        return self._posted_documents() and are_locks

    def _posted_locks(self) -> bool:
        store, replica, server = self._store, self.replica, self._server
        team = TeamRows(store)
        rows = team.own_locks(replica.tops)
        if len(team.live(rows)) < len(rows):
            with TeamRows(store).writing():
                rows = team.reaped(team.own_locks(replica.tops))
        places = places_in(team.own_places(), replica.tops)
        found = difference(claims(rows, replica.tops, self.again), places, replica.own, replica.places)
        if not any(found):
            return True
        if found.known:
            with TeamRows(store).writing():
                for claim, fence in found.known:
                    self._confirm(claim, fence)
        if found.releases:
            server.release(self.repository, found.releases)
            with TeamRows(store).writing():
                replica.released(number for number, _fence in found.releases)
        if (found.transfers or found.acquires or found.waits) and self._unknown(found):
            self._beat_until_even(True)
        for number, fence, session in found.transfers:
            self._transfer(number, fence, session)
        is_whole = True
        for claim in found.acquires:
            is_whole = self._acquire_later(claim) and is_whole
        for place in found.waits:
            is_whole = self._wait_later(place) and is_whole
        if found.leaves:  # last: a granted waiter has its lock before it leaves the queue
            server.leave(self.repository, found.leaves)
            for number in found.leaves:
                replica.places.pop(number, None)
        return is_whole

    def _posted_documents(self) -> bool:
        if not self.shares:
            return True
        wanted = self.replica.documents.differences()
        done = [self._put(wanted[begin : begin + AT_ONCE]) for begin in range(0, len(wanted), AT_ONCE)]
        return all(done)

    def _put(self, items: list[Item]) -> bool:
        """Post changes to documents, and apply the server's versions of rejected ones. Returns True if a repetition is
        useless.
        """
        replica, documents = self.replica, self.replica.documents
        answers = self._server.put(self.repository, items, replica.version, replica.mark)
        with TeamRows(self._store).writing():
            for one, answer in zip(items, answers):
                if answer["ok"]:
                    documents.done(one, answer)
                elif answer.get("why") == protocol.REFUSED:
                    documents.refuse(one, answer.get("error", ""))
        left = [(one, answer) for one, answer in zip(items, answers) if not answer["ok"]]
        reasons = {answer.get("why") for _, answer in left}
        if protocol.EPOCH in reasons:
            raise _EpochOver
        if protocol.GRACE in reasons:
            self._grace_until = clock.now() + max(answer.get("seconds", 1.0) for _, answer in left)
        if reasons & {protocol.STALE, protocol.UNKNOWN_SESSION}:
            self._beat_until_even(protocol.UNKNOWN_SESSION in reasons)
        stale = [(one, answer) for one, answer in left if answer.get("why") == protocol.STALE]
        with TeamRows(self._store).writing():
            for one, answer in stale:
                self._take_instead(one, answer)
        assignees = {one["body"]["assignee"] for one, answer in left if answer.get("why") == protocol.UNKNOWN_SESSION}
        return not stale and assignees.isdisjoint(self._joined)

    def _take_instead(self, one: Item, answer: PutAnswer) -> None:
        """Apply the server's version of an item inside a transaction, if the log has not brought it."""
        documents, ref = self.replica.documents, (one["kind"], one["key"])
        version = answer["version"]
        row: Any = {**one, "version": version, "body": answer.get("body"), "machine": answer.get("machine", "")}
        if version > documents.version(ref):
            documents.take(row, is_all=True)
        elif not version and documents.version(ref) == one["seen"]:
            documents.take_gone({**row, "version": one["seen"]})

    def _unknown(self, found: Difference) -> bool:
        """Return True if a session in the change is still unknown to the server."""
        named = {claim.session for claim in found.acquires} | {place.row.instance_id for place in found.waits}
        return not named <= self._joined.keys()

    def _transfer(self, number: int, fence: int, session: str) -> None:
        answer = self._server.transfer(self.repository, number, fence, session)
        if answer["ok"]:
            row = self.replica.own.get(number)
            if row is not None:
                # Until the log arrives: the present holder may be on another machine.
                self.replica.own[number] = {**row, "session": session, "fence": answer["fence"], "agent": ""}
                with TeamRows(self._store).writing():
                    TeamRows(self._store).renumber(fence, answer["fence"], self.replica.tops)
        elif answer.get("why") == protocol.EPOCH:
            raise _EpochOver
        elif self._is_elsewhere(session):
            rows = TeamRows(self._store).own_locks(self.replica.tops)
            self._let_go([row for row in rows if (row.team_fence, row.instance_id) == (fence, session)])
        else:
            self.replica.own.pop(number, None)

    def _is_elsewhere(self, session: str) -> bool:
        return any(one.id == session for one in TeamRows(self._store).mirrored_sessions())

    def _let_go(self, rows: Iterable[Lock]) -> None:
        """Remove locks that were to be transferred to a session of another machine but may not be."""
        with TeamRows(self._store).writing():
            TeamRows(self._store).drop(list(rows), "team")

    def _acquire_later(self, claim: Claim) -> bool:
        """Have one lock confirmed without a waiting request. Returns True if the outcome is final."""
        if self._is_elsewhere(claim.session):  # all became void while it was being handed over
            self._let_go(claim.rows)
            return True
        other = self.replica.in_the_way(claim.rows)
        if other is not None:
            self._refuse([claim], other)
            return True
        if clock.now() < self._grace_until and not claim.want["again"]:
            return True  # the next look comes back to it
        answer = self._acquire([claim])
        if answer["ok"]:
            return True
        why = answer.get("why")
        if why == protocol.GRACE:
            self._grace_until = clock.now() + answer.get("seconds", 1.0)
            return True
        if why == protocol.HELD:
            self._refuse([claim], answer.get("by"))
            return True
        return False  # stale, and by now seen; or its session had to join: once more

    def _wait_later(self, place: Place) -> bool:
        row = place.row
        mode: Any = row.mode
        if row.until is None:
            left = None
        else:
            left = max(0.0, row.until - clock.now())
        answer = self._server.wait(
            self.repository, row.instance_id, str(row.ticket), place.wants, mode, row.agent, left,
            self.replica.version, self.replica.mark,
        )  # fmt: skip
        if answer["ok"]:
            told: Any = {"session": row.instance_id, "ticket": str(row.ticket), "number": answer["number"]}
            self.replica.places[answer["number"]] = told
            return True
        if answer.get("why") == protocol.STALE:
            self._take(answer["news"])
            with TeamRows(self._store).writing():
                if row.ticket in {one.ticket for one in TeamRows(self._store).own_places()}:
                    TeamRows(self._store).drop_places([row])  # it joins again by itself, behind later ones
        elif answer.get("why") == protocol.EPOCH:
            raise _EpochOver
        else:
            self._beat_until_even(True)
        return False

    def _take(self, news: News) -> None:
        self.replica.apply(news, self.replica.epoch)
        if news["more"]:
            self._beat_until_even()

    # -------------------------------------------------------------- confirm

    def confirm(self, lock_ids: Collection[str], until: float) -> tuple[Confirmation, int]:
        """Have the team grant these locks of one session, all or none, before `until` (``clock.now``).

        Returns the answer for ``agent_client.confirm``, and the version that must settle; 0 for none. Raises
        TeamUnreachable and TeamRefused.
        """
        self.replica.spared |= set(lock_ids)
        for row in TeamRows(self._store).of_ids(lock_ids):
            self.replica.dropped.pop(row.id, None)  # of an earlier request; the lock has outlived it
        try:
            if not self._greeted:
                self.follow(poked=True)
            return self._at_one_server(lambda: self._confirmed(list(lock_ids), until))
        finally:
            self.replica.spared -= set(lock_ids)
            if len(self.replica.dropped) > MOST_DROPPED:
                self.replica.dropped.clear()

    def confirm_documents(self, refs: Collection[tuple[str, str]], until: float) -> Confirmation:
        """Post the changes made here to these tasks (kind and key), before `until` (``clock.now``).

        Returns the answer for ``agent_client.confirm_documents``. Raises TeamUnreachable and TeamRefused.
        """
        documents = self.replica.documents
        documents.spared |= set(refs)
        try:
            if not self._greeted:
                self.follow()
            return self._at_one_server(lambda: self._documents_confirmed(list(refs), until))
        finally:
            documents.spared -= set(refs)

    def _documents_confirmed(self, refs: list[tuple[str, str]], until: float) -> Confirmation:
        documents = self.replica.documents
        refs = [ref for ref in refs if self.shares and documents.is_here(ref)]
        if not refs:
            return {"answer": agent_client.LOCAL}
        for ref in refs:
            if documents.difference(ref) is not None:
                documents.gave_way.pop(ref, None)
        for _ in range(MOST_TRIES):
            wanted = [one for ref in refs if (one := documents.difference(ref)) is not None]
            if any(ref in documents.gave_way for ref in refs):
                with TeamRows(self._store).writing():
                    for ref in refs:
                        documents.unsay(ref)
                return {"answer": agent_client.HELD}
            if not wanted:
                return {"answer": agent_client.GRANTED}
            if clock.now() >= until:
                break
            self._put(wanted)
            if all((one["kind"], one["key"]) in documents.refused for one in wanted):
                return {"answer": agent_client.LOCAL}  # too large to be posted: it stays on this machine
            if clock.now() < self._grace_until:
                if self._grace_until >= until:
                    return {"answer": agent_client.UNREACHABLE, "error": "the team's server has just started"}
                time.sleep(0.1)
        raise TeamUnreachable("others change the same task all the time")

    def withdraw(self, lock_ids: Collection[str]) -> None:
        """Remove those of these locks that are in this repository: others of the same request were refused."""
        rows = [row for row in TeamRows(self._store).of_ids(lock_ids) if row.machine is None]
        mine = [row for claim in claims(rows, self.replica.tops) for row in claim.rows]
        if mine:
            with TeamRows(self._store).writing():
                TeamRows(self._store).drop(mine, "team")
            self._compared = (None, 0.0)

    def _confirmed(self, lock_ids: list[str], until: float) -> tuple[Confirmation, int]:
        team, replica = TeamRows(self._store), self.replica
        for _ in range(MOST_TRIES):
            rows = [row for row in team.of_ids(lock_ids) if row.machine is None]
            held = claims(rows, replica.tops, self.again)
            ours = {row.id for claim in held for row in claim.rows}
            lost = [replica.dropped[one] for one in lock_ids if one in replica.dropped]
            if lost or len(rows) < len(set(lock_ids)):  # gone before it was asked for, to whomever
                self._refuse(held, lost[0] if lost else None)
                return {"answer": agent_client.HELD, "by": dict(lost[0]) if lost else {}}, 0
            if not held:
                return {"answer": agent_client.LOCAL}, 0
            if all(row.team_fence for claim in held for row in claim.rows) and self._is_posted(held):
                # A grant's version is its fence; this replica may not have come to it yet.
                return self._granted(rows, ours, max(row.team_fence or 0 for claim in held for row in claim.rows))
            other = replica.in_the_way(row for claim in held for row in claim.rows)
            if other is not None:
                self._refuse(held, other)
                return {"answer": agent_client.HELD, "by": dict(other)}, 0
            unknown = {claim.session for claim in held} - self._joined.keys()
            if unknown:
                self._beat_until_even(True)
            answer = self._acquire(held)
            why = answer.get("why")
            if answer["ok"]:
                rows = [row for row in team.of_ids(ours) if row.machine is None]
                is_settled = bool(answer.get("settled"))
                return self._granted(rows, ours, 0 if is_settled else answer["version"])
            if why == protocol.HELD:
                by = answer.get("by")
                self._beat_until_even()  # so that the store knows it as well, and says so in its words
                self._refuse(held, by)
                return {"answer": agent_client.HELD, "by": dict(by or {})}, 0
            if why == protocol.GRACE and clock.now() + answer.get("seconds", 1.0) >= until:
                return {"answer": agent_client.UNREACHABLE, "error": "the team's server has just started"}, 0
            if clock.now() >= until:
                raise TeamUnreachable("others change the same files all the time")
            if why == protocol.GRACE:
                time.sleep(min(answer.get("seconds", 0.0), 0.5))
                self._beat_until_even()  # grants wait for what this machine hears of the others, too
            else:
                time.sleep(STALE_PAUSE)
        raise TeamUnreachable("others change the same files all the time")

    def _granted(self, rows: list[Lock], ours: set[str], version: int) -> tuple[Confirmation, int]:
        fences = {row.id: row.team_fence or 0 for row in rows if row.id in ours}
        is_settled = version <= self.settled
        return {"answer": agent_client.GRANTED, "fences": fences, "settled": is_settled}, 0 if is_settled else version

    def _is_posted(self, held: list[Claim]) -> bool:
        found = difference(held, [], self.replica.own, {})
        return not found.acquires and not found.transfers and not found.known

    def _acquire(self, held: list[Claim]) -> AcquireAnswer:
        """Ask for these locks of one session, record the grants, and apply the news."""
        replica = self.replica
        for claim in held:
            self._take_by_force(claim)
        answer = self._server.acquire(
            self.repository, held[0].session, [claim.want for claim in held], replica.version, replica.mark
        )
        why = answer.get("why")
        if answer["ok"]:
            with TeamRows(self._store).writing():
                for claim, fence, number in zip(held, answer["fences"], answer["locks"]):
                    told: Any = {**claim.want, "lock": number, "fence": fence, "session": claim.session}
                    told.update(machine=replica.machine, label="")
                    replica.granted(told)
            self.again -= {row.id for claim in held for row in claim.rows}
        elif why == protocol.HELD:
            by = answer.get("by")
            if by is not None and by["machine"] != replica.machine:
                with TeamRows(self._store).writing():
                    replica.granted(by)  # it may have been removed here; now, since the log may soon take it back
        elif why == protocol.STALE:
            self._take(answer["news"])
        elif why == protocol.UNKNOWN_SESSION:
            self._joined.pop(held[0].session, None)
            self._beat_until_even(True)
        elif why == protocol.EPOCH:
            raise _EpochOver
        return answer

    def _take_by_force(self, claim: Claim) -> None:
        """Take on the server what was stolen here for this lock. The robbed machines are told."""
        grants = {tuple(map(int, one.split(":"))) for row in claim.rows for one in (row.takes or "").split()}
        for number, fence in sorted(grants):
            reason = claim.want["note"] or "no reason given"
            answer = self._server.steal(self.repository, number, fence, claim.session, reason, True)
            if answer["ok"] or answer.get("why") == protocol.NOT_HELD:
                continue
            if answer.get("why") == protocol.EPOCH:
                raise _EpochOver
            break  # the missing ones are asked for once more, or refused

    def _confirm(self, claim: Claim, fence: int) -> None:
        for row in claim.rows:
            TeamRows(self._store).confirm(row, fence)

    def _refuse(self, held: list[Claim], by: LockRow | None) -> None:
        """Remove locks here that the team has not granted, although their holder is unknown here."""
        with TeamRows(self._store).writing():
            there = {row.id: row for row in TeamRows(self._store).of_ids([row.id for one in held for row in one.rows])}
            for row in there.values():
                if row.machine is not None:
                    continue
                if by is not None:
                    self.replica.give_way(row, by)
                else:
                    TeamRows(self._store).drop([row], "team")
                    text = f"[auto] The team has not granted your lock on {named(plain(row.file))}. Do not write it."
                    TeamRows(self._store).tell(row.instance_id, text)


class _EpochOver(Exception):
    """The server is another than the one that was greeted."""
