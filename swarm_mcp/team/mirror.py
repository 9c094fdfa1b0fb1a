"""This machine as the team's server knows it in one repository, and what it has yet to post."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, NamedTuple, TypeVar

from swarm_hook_core import clock
from swarm_mcp.domain import EXCLUSIVE, Lock, Waiter
from swarm_mcp.store import Store
from swarm_mcp.store.lock_request import LONGEST_NOTE
from swarm_mcp.team import TeamUnreachable, protocol
from swarm_mcp.team.parts import TeamDocuments, TeamRows
from swarm_mcp.team.places import Spot, own_spot, spot_in, spot_of
from swarm_mcp.team.protocol import LockRow, MachineRow, News, WaitRow, Want
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


class Difference(NamedTuple):
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
        claim = Claim(row.instance_id, want_of(row, spot, row.id in again), (row,))
        other = found.get(claim.key)
        if other is not None:
            # Held alone in one work tree, it is held alone.
            first, second = (claim, other) if claim.want["mode"] == EXCLUSIVE else (other, claim)
            claim = first._replace(rows=(*other.rows, row))
            if second.want["is_folder"] and not claim.want["is_folder"]:
                claim = claim._replace(want={**claim.want, "is_folder": True})
        found[claim.key] = claim
    return list(found.values())


def want_of(row: Lock, spot: Spot, again: bool = False) -> Want:
    """Return the request for the lock in this row."""
    return protocol.want(
        spot.place, spot.is_folder, spot.pattern, spot.base, "shared" if row.mode == "shared" else "exclusive",
        row.agent or "", (row.content or "").encode("utf-8", "replace")[:LONGEST_NOTE].decode("utf-8", "ignore"),
        row.ttl, row.expected_end, row.task_id, again,
    )  # fmt: skip


def difference(
    held: list[Claim], places: list[Place], own: Mapping[int, LockRow], own_places: Mapping[int, WaitRow]
) -> Difference:
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
    return Difference(releases, transfers, acquires, known, waits, leaves)


def places_in(rows: Iterable[Waiter], tops: Collection[str]) -> list[Place]:
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


class EpochOver(Exception):
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
            except EpochOver:  # it may come twice: machines report losses of the server one after the other
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

        With `is_named`, or when due, also name the live sessions. Raises EpochOver.
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
                raise EpochOver
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
        """Apply the news of an answer, and all later ones if it says that there are more. Raises EpochOver."""
        self.replica.apply(news, self.replica.epoch)
        if news["more"]:
            self.beat_until_even()

    # ------------------------------------------------------------- sessions

    def has_lost_sessions(self) -> bool:
        """Return True if a session that the server knows has ended here."""
        return bool(self.joined.keys() - {one["session"] for one in self._living()})

    def introduce(self, sessions: set[str]) -> None:
        """Name the live sessions to the server if one of these is unknown to it. Raises EpochOver."""
        if not sessions <= self.joined.keys():
            self.beat_until_even(True)

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
        ids |= {place.row.instance_id for place in places_in(self._rows.own_places(), tops)}
        ids |= self._documents.assignees(tops)
        lease = protocol.SESSION_LEASE
        return [
            {"session": row.id, "label": row.label or "", "lease": lease} for row in self._rows.living_in(tops, ids)
        ]
