"""This machine as the team's server knows it in one repository, and the posting of the rest.

No verb waits for it: changes that the server cannot take now are posted with the next look. A lock that the team has
granted to another session is removed here, and its holder is told.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, NamedTuple, TypeVar

from swarm_hook_core import clock
from swarm_hook_core.lookup import plain
from swarm_hook_core.untrusted_text import named
from swarm_mcp.domain import EXCLUSIVE, Lock, Waiter
from swarm_mcp.store import Store
from swarm_mcp.store.lock_request import LONGEST_NOTE
from swarm_mcp.team import TeamUnreachable, protocol
from swarm_mcp.team.documents import AT_ONCE
from swarm_mcp.team.parts import TeamDocuments, TeamRows
from swarm_mcp.team.places import Spot, own_spot, spot_in, spot_of
from swarm_mcp.team.protocol import AcquireAnswer, Item, LockRow, MachineRow, News, PutAnswer, WaitRow, Want
from swarm_mcp.team.replica import Replica

TYPE_CHECKING = False

if TYPE_CHECKING:
    from swarm_mcp.team.server import TeamServer

# The changes to post: the difference between this machine's locks and queue places and those on the server.
#
# Verbs change the store only. After any verb, and after any interruption, this difference is all that remains to be
# done; once posted, it is empty. Two rows here with the same object (in two work trees of one clone) are one lock
# there.

Key = tuple[str, str, str, str, str]


class Claim(NamedTuple):
    """One lock of this machine as the server is to have it, with the rows here that are it."""

    session: str
    want: Want
    rows: tuple[Lock, ...]

    @property
    def key(self) -> Key:
        """The server's key of a lock."""
        return self.session, self.want["agent"], self.want["place"], self.want["pattern"], self.want["base"]


class Place(NamedTuple):
    """A queue place of this machine, with its wanted locks inside the repository."""

    row: Waiter
    wants: list[Want]


class _Difference(NamedTuple):
    """The changes to post, and the facts to record here only.

    releases   ``(lock, fence)``: not held here any more
    transfers  ``(lock, fence, session)``: held here by another session now
    acquires   missing on the server, or with another mode or note
    known      ``(claim, fence)``: on the server already, but not confirmed here
    waits      places without a number from the server
    leaves     numbers of abandoned places
    """

    releases: list[tuple[int, int | None]]
    transfers: list[tuple[int, int, str]]
    acquires: list[Claim]
    known: list[tuple[Claim, int]]
    waits: list[Place]
    leaves: list[int]


def claims(rows: Iterable[Lock], tops: Collection[str], again: Collection[str] = ()) -> list[Claim]:
    """Return the locks of this machine in these work trees, of the `rows` that still hold.

    `again`: ids of rows that the team has confirmed before.
    """
    found: dict[Key, Claim] = {}
    for row in rows:
        spot = own_spot(row, tops)
        if spot is None:
            continue
        claim = Claim(row.instance_id, _want_of(row, spot, row.id in again), (row,))
        other = found.get(claim.key)
        if other is not None:
            # Held alone in one work tree, it is held alone.
            first, second = (claim, other) if claim.want["mode"] == EXCLUSIVE else (other, claim)
            claim = first._replace(rows=(*other.rows, row))
            if second.want["is_folder"] and not claim.want["is_folder"]:
                claim = claim._replace(want={**claim.want, "is_folder": True})
        found[claim.key] = claim
    return list(found.values())


def _want_of(row: Lock, spot: Spot, again: bool = False) -> Want:
    """Return the request for the lock in this row."""
    return protocol.want(
        spot.place, spot.is_folder, spot.pattern, spot.base, "shared" if row.mode == "shared" else "exclusive",
        row.agent or "", (row.content or "").encode("utf-8", "replace")[:LONGEST_NOTE].decode("utf-8", "ignore"),
        row.ttl, row.expected_end, row.task_id, again,
    )  # fmt: skip


def difference(
    held: list[Claim], places: list[Place], own: Mapping[int, LockRow], own_places: Mapping[int, WaitRow]
) -> _Difference:
    """Return the difference between this machine and the server's record of it (`own`, `own_places`)."""
    by_fence = {row["fence"]: row for row in own.values()}
    by_key = {(row["session"], row["agent"], row["place"], row["pattern"], row["base"]): row for row in own.values()}
    used: set[int] = set()
    transfers, acquires, known = [], [], []
    for claim in held:
        fences = {row.team_fence for row in claim.rows}
        there = by_key.get(claim.key)
        if there is None:
            handed = next((by_fence[one] for one in fences if one in by_fence), None)
            if handed is not None and spot_in(dict(handed)) == spot_in(dict(claim.want)) and handed["lock"] not in used:
                used.add(handed["lock"])
                transfers.append((handed["lock"], handed["fence"], claim.session))
            else:
                acquires.append(claim)
            continue
        used.add(there["lock"])
        if any(claim.want[name] != there[name] for name in ("mode", "is_folder", "note")):
            acquires.append(claim)
        elif fences != {there["fence"]}:
            known.append((claim, there["fence"]))
    releases: list[tuple[int, int | None]] = [
        (row["lock"], row["fence"]) for row in own.values() if row["lock"] not in used
    ]
    tickets = {(row["session"], row["ticket"]): number for number, row in own_places.items()}
    waited = {(place.row.instance_id, str(place.row.ticket)) for place in places}
    waits = [place for place in places if (place.row.instance_id, str(place.row.ticket)) not in tickets]
    leaves = [number for one, number in tickets.items() if one not in waited]
    return _Difference(releases, transfers, acquires, known, waits, leaves)


def _places_in(rows: Iterable[Waiter], tops: Collection[str]) -> list[Place]:
    """Return the places that wait for a lock in one of these work trees."""
    found = []
    for row in rows:
        spots = [spot for reach in row.reaches for top in tops if (spot := spot_of(reach, top)) is not None]
        if spots:
            wants = [protocol.want(one.place, one.is_folder, one.pattern, one.base) for one in dict.fromkeys(spots)]
            found.append(Place(row, wants))
    return found


T = TypeVar("T")

BEAT_SECONDS = protocol.MIRROR_LEASE / 3
DUE = 0.95  # of that time is enough

_RESTORED = (
    "The team's server is another than before, or has lost what was granted last (failover, restore): no grant of"
    " before counts. These locks of yours hold on this machine and are being confirmed anew, which you hear of only"
    " where somebody else has one by then:"
)


class _EpochOver(Exception):
    """The server is another than the one that was greeted."""


class Mirror:
    """A `replica` whose `server` is kept in touch with it. Every call raises TeamUnreachable and TeamRefused.

    again         ids of locks here with grants that have become void
    settled       the greatest version that every other live mirror has, as far as known
    joined        the sessions of this machine that the server knows, with the version at which each joined
    is_greeted    the server has been greeted since the last failure
    is_voided     grants have become void: all rows here are to be compared with the server's
    machines      those on the server when last `looked` at (``clock.now``; None: never), within `round_trip` seconds
    shares        the server takes messages, tasks and values; None before the first greeting
    is_awaited    the server waits for machines from before its start or its loss, and this one has not told it since
                  its greeting that all rows are there
    sessions      the number of live sessions of this machine in the repository
    beaten        when the last beat that named sessions was sent (``clock.now``)
    """

    def __init__(self, store: Store, server: TeamServer, replica: Replica):
        self._rows, self._documents = TeamRows(store), TeamDocuments(store)
        self.server = server
        self.replica = replica
        self.repository = replica.repository
        self.again: set[str] = set()
        self.settled = 0
        self.joined: dict[str, int] = {}
        self.is_greeted = False
        self.is_voided = False
        self.machines: list[MachineRow] = []
        self.looked: float | None = None
        self.round_trip = 0.0
        self.shares: bool | None = None
        self.is_awaited = False
        self._is_complete = True
        self.sessions = 0
        self.beaten = -BEAT_SECONDS

    def lose(self) -> None:
        """The server was not reached: it is greeted anew."""
        self.is_greeted = False

    def look_at_machines(self) -> None:
        """Read the list of machines, for a viewer."""
        begun = clock.now()
        self.machines = self.server.machines(self.repository)
        self.looked = clock.now()
        self.round_trip = self.looked - begun

    def at_one_server(self, act: Callable[[], T]) -> T:
        """Greet the server if that is due, and return the result of `act`. Both again, once, if it was replaced."""
        for _ in range(2):
            try:
                if not self.is_greeted:
                    self._greet()
                return act()
            except _EpochOver:  # it may come twice: machines report losses of the server one after the other
                self.is_greeted = False
        raise TeamUnreachable("the team's server is being replaced")

    def _greet(self) -> None:
        replica = self.replica
        answer = self.server.hello(self.repository, replica.version, replica.mark, replica.epoch)
        if not answer.get("ok", True):
            self.again |= replica.void_grants(why=_RESTORED)
            self.joined.clear()
            answer = self.server.hello(self.repository)
        self.shares = answer["schema"] >= protocol.DOCUMENTS_SCHEMA
        self._is_complete = answer["schema"] < protocol.COMPLETE_SCHEMA
        replica.apply(answer["news"], answer["epoch"])
        with self._documents.writing():
            self._documents.forget_old(self.repository)
        replica.documents.look_anew()
        self.beat_until_even(True)
        mine = self.server.mine(self.repository)
        left = {row["session"] for row in mine["sessions"]} - self.joined.keys()
        if left:  # they ended here while no agent ran to say so
            self.server.end(self.repository, sorted(left))
            mine = self.server.mine(self.repository)
        replica.own = {row["lock"]: row for row in mine["locks"]}
        replica.places = {row["number"]: row for row in mine["waits"]}
        self.is_greeted = self.is_voided = True

    def beat_until_even(self, is_named: bool = False) -> None:
        """Report this replica's version until nothing is new: applied changes count at once.

        With `is_named`, or when due, also name the live sessions. Raises _EpochOver.
        """
        is_named = is_named or clock.now() - self.beaten >= BEAT_SECONDS * DUE
        while True:
            told = []
            if is_named:
                # The sessions that live, for a beat; those that have gone since the last one have ended
                told = self._living()
                self.sessions = len(told)
                gone = self.joined.keys() - {one["session"] for one in told}
                if gone:
                    self.server.end(self.repository, sorted(gone))
                    self.joined = {one: at for one, at in self.joined.items() if one not in gone}
            sent = clock.now()
            answer = self.server.beat(self.repository, self.replica.version, self.replica.mark, told)
            if not answer["ok"]:
                raise _EpochOver
            self.settled = max(self.settled, answer["settled"])
            if is_named:
                self.beaten, is_named = sent, False
                self._note_joined(answer["joined"])
            silent = [one for one in answer["silent"] if one["kind"] == "session"]
            since: float | None = sent
            self.is_awaited = bool(answer["grace"]) and not self._is_complete
            if answer["grace"]:  # others may hold locks that are still unknown
                since = None
            if not self.replica.apply(answer["news"], answer["epoch"], since) and not answer["news"]["more"]:
                break
        if since is not None:
            self.replica.drop_missing()
        if silent:
            self.server.reap(self.repository)

    def complete(self) -> None:
        """Tell the server that all rows of this machine were posted."""
        self.server.complete(self.repository)
        self._is_complete, self.is_awaited = True, False

    def take(self, news: News) -> None:
        """Apply the news of an answer, and all later ones if it says that there are more. Raises _EpochOver."""
        self.replica.apply(news, self.replica.epoch)
        if news["more"]:
            self.beat_until_even()

    # ------------------------------------------------------------- sessions

    def has_lost_sessions(self) -> bool:
        """Return True if a session that the server knows has ended here."""
        return bool(self.joined.keys() - {one["session"] for one in self._living()})

    def introduce(self, sessions: set[str]) -> bool:
        """Name the live sessions to the server if one of these is unknown to it. Raises _EpochOver.

        Returns True if it was asked: its news may have taken locks away here.
        """
        if sessions <= self.joined.keys():
            return False
        self.beat_until_even(True)
        return True

    def is_elsewhere(self, session: str) -> bool:
        """Return True if a session works on another machine."""
        return any(one.id == session for one in self._rows.mirrored_sessions())

    def _note_joined(self, joined: dict[str, int]) -> None:
        """Sessions that the server has had to take in anew had lapsed: their grants are void."""
        lapsed = {one for one, at in joined.items() if one in self.joined and self.joined[one] != at}
        if lapsed:
            replica = self.replica
            self.again |= replica.void_grants(lapsed)
            replica.own = {number: row for number, row in replica.own.items() if row["session"] not in lapsed}
            replica.places = {number: row for number, row in replica.places.items() if row["session"] not in lapsed}
            self.is_voided = True
        self.joined = dict(joined)

    def _living(self) -> list[dict[str, Any]]:
        """Return the sessions of this machine that work in this repository, or hold or wait for something in it."""
        tops = self.replica.tops
        ids = {row.instance_id for row in self._rows.own_locks(tops)}
        ids |= {place.row.instance_id for place in _places_in(self._rows.own_places(), tops)}
        ids |= self._documents.assignees(tops)
        lease = protocol.SESSION_LEASE
        return [
            {"session": row.id, "label": row.label or "", "lease": lease} for row in self._rows.living_in(tops, ids)
        ]


# Posting this machine's locks, queue places and documents to the team's server.


COMPARE_SECONDS = 5.0  # seconds between two comparisons without a notification: processes die silently
MOST_TRIES = 100  # attempts of one request whose region others keep changing


class Posting:
    """Posts the changes of this machine that the server of a `mirror` lacks. Raises TeamUnreachable, TeamRefused and
    _EpochOver.

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
        places = _places_in(self._rows.own_places(), replica.tops)
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
            raise _EpochOver
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
            raise _EpochOver
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
                raise _EpochOver
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
            raise _EpochOver
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
            raise _EpochOver
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
