"""The changes to post: the difference between this machine's locks and queue places and those on the server.

Verbs change the store only. After any verb, and after any interruption, this difference is all that remains to be done;
once posted, it is empty. Two rows here with the same object (in two work trees of one clone) are one lock there.
"""

from __future__ import annotations

from typing import NamedTuple

from swarm_mcp.domain.lock import EXCLUSIVE, Lock, Waiter
from swarm_mcp.store.lock_request import LONGEST_NOTE, reach_in
from swarm_mcp.team import protocol
from swarm_mcp.team.places import Spot, spot_in, spot_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from swarm_mcp.team.protocol import LockRow, WaitRow, Want

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


def own_spot(row: Lock, tops: Collection[str]) -> Spot | None:
    """Return a lock's object as a path from the top of its work tree, one of these; None for a lock outside of them."""
    reach = reach_in(row)
    if not reach:
        return None
    found = (spot_of(reach, top) for top in sorted(tops, key=len, reverse=True))
    return next((spot for spot in found if spot is not None), None)
