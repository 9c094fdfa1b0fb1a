"""This machine's copy of a repository's team rows: the server's log, applied in order to the local store.

Each answer is applied in one local transaction, with its version: after a crash the same is asked for once more. Locks
of other machines become ordinary rows, one in each work tree of the repository here. Their ids follow from the lock's
number on the server, so applying one twice changes nothing.

An unconfirmed lock of this machine gives way to a lock in the log; so does a queue place without a number from the
server.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any
from zlib import crc32

from swarm_hook_core import clock, repository
from swarm_hook_core.lookup import plain
from swarm_hook_core.naming import holder_name
from swarm_hook_core.untrusted_text import named, quoted
from swarm_mcp.domain import AUTO, EXCLUSIVE, SHARED, Lock, Waiter, keeps_out
from swarm_mcp.store import Store
from swarm_mcp.store.lock_request import Reach, meet, reach_in
from swarm_mcp.team import protocol
from swarm_mcp.team.documents import Documents
from swarm_mcp.team.parts import TeamDocuments, TeamRows
from swarm_mcp.team.places import Spot, own_spot, reach_at, spot_in
from swarm_mcp.team.protocol import LockRow, News, SessionRow, Snapshot, WaitRow
from swarm_mcp.team.store_rows import HOST

FOLLOWING, UNREACHABLE, REFUSED = "following", "unreachable", "refused"  # states of a repository here

# The server's reason -> as events have it.
_REASONS = {"released": "", "ended": "deregistered", "left": "deregistered"}


class Replica:
    """The replica of one repository, called `name` in the team, in the work trees `tops` of this `machine`.

    own      the server's rows of this machine's locks, by their numbers there, as far as the log was applied; each post
             corrects it at once
    places   the same of its queue places
    spared   ids of local locks with a waiting request that reports their refusal: their holders get no message
    untold   that message, by the lock's id: holder, text, file
    scope    the work tree that shows sessions of other machines, and their shared documents: the first of
             `tops`, for as long as that takes part
    """

    def __init__(self, store: Store, name: str, machine: str, tops: Iterable[str]):
        self._store = store
        self._rows = TeamRows(store)
        self.repository = name
        self.machine = machine
        given = list(tops)
        self.tops = sorted(given)
        self.scope = next(iter(given), "")
        self.own: dict[int, LockRow] = {}
        self.places: dict[int, WaitRow] = {}
        self.spared: set[str] = set()
        self.untold: dict[str, tuple[str, str, str]] = {}
        self.dropped: dict[str, LockRow] = {}  # ids of local locks that lost a conflict -> the winner
        self._ended: list[tuple[list[str], str, dict[str, Any]]] = []  # ids of locks, the reason and more of their ends
        self.version = self.mark = 0
        self.epoch = ""
        self.may_miss = True  # True if there may be sessions that the server has not named again
        self.read()
        self.documents = Documents(store, name, machine, self.tops, self.scope)

    def read(self) -> None:
        """Take up where this machine's store says that the replica is."""
        known = self._rows.repositories().get(self.repository)
        if known is None:
            return
        self.version, self.mark, self.epoch = known.version, known.mark, known.epoch or ""
        if known.scope in self.tops:
            self.scope = known.scope or ""
            return
        with self._rows.writing():  # another work tree shows the shared rows from now on
            TeamDocuments(self._store).begin_anew(self.repository)
            self._rows.gather_sessions(self.tops, self.scope)
            self.forget()
            self.epoch = ""
            self._rows.note(self.repository, epoch=None, scope=self.scope)

    # ------------------------------------------------------------------ the log

    def apply(self, news: News, epoch: str, sent: float | None = None, lease: float = protocol.MIRROR_LEASE) -> bool:
        """Apply an answer. Returns True if it had news.

        With `sent`, the boot clock at the request, this replica is fresh for `lease` seconds from then, unless there is
        more to come.
        """
        moved = news["version"] != self.version or epoch != self.epoch
        known: dict[str, object] = {}
        if moved or "all" in news:
            known = {"epoch": epoch, "version": news["version"], "mark": news["mark"]}
        if sent is not None and not news["more"]:
            known["fresh_until"] = sent + lease * (1 - protocol.MARGIN)
            known["booted"] = clock.boot(self._store.here)
        if not known:
            return False
        if "all" in news:
            # Apply all documents, possibly very many, in transactions of their own, so that others can
            # write in between. Each is applied once; after an interruption the rest is asked for again.
            found = news["all"]
            with self._rows.writing():
                for session in found["sessions"]:
                    self._joined(session)
            if "documents" in found:
                self.documents.take_all(found["documents"], self.epoch not in ("", epoch), is_first=not self.epoch)
        self._ended.clear()  # of an answer that could not be applied
        with self._rows.writing():
            if "all" in news:
                self._take_all(news["all"], has_lost=self.epoch not in ("", epoch))
            else:
                for change in news["changes"]:
                    if change["version"] > self.version or epoch != self.epoch:
                        self._take_in(change["kind"], change["body"])
                self._drop_ended()
            if sent is not None:
                known["said_at"] = self._store.now()
            self._rows.note(self.repository, state=FOLLOWING, scope=self.scope, **known)
        if moved:
            self.version, self.mark, self.epoch = news["version"], news["mark"], epoch
        self.documents.traces.mirror()
        return moved

    def drop_missing(self) -> None:
        """Remove what was not named again after the server's loss: all survivors have been heard of."""
        if not self.may_miss:
            return
        with self._rows.writing():
            self._drop_missing()
        self.may_miss = False

    def not_fresh(self, state: str, at_once: bool = False) -> None:
        """Note that the server is unreachable (`UNREACHABLE`), or denies access (`REFUSED`).

        The copy stays fresh for the rest of its time, unless others stop to wait for this replica `at_once`.
        """
        columns: dict[str, object] = {"state": state}
        if at_once:
            columns["fresh_until"] = None
        with self._rows.writing():
            self._rows.note(self.repository, **columns)

    def void_grants(self, sessions: Collection[str] | None = None, why: str = "") -> set[str]:
        """Mark own locks (of these `sessions`; None: all) as unconfirmed, and begin anew. Returns their ids.

        With `why` their holders are told.
        """
        with self._rows.writing():
            rows = [row for row in self._rows.own_locks(self.tops) if row.team_fence is not None]
            if sessions is not None:
                rows = [row for row in rows if row.instance_id in sessions]
            self._rows.void_grants([row.id for row in rows])
            for holder in {row.instance_id for row in rows} if why else ():
                files = ", ".join(named(plain(row.file)) for row in rows if row.instance_id == holder)
                self._rows.tell(holder, f"[auto] {why} {files}")
            if sessions is None:
                self.forget()
        return {row.id for row in rows}

    def forget(self) -> None:
        """Begin anew inside a transaction: the next request is for everything, and nothing is fresh before."""
        self._rows.note(self.repository, version=0, mark=0, fresh_until=None)
        self.version = self.mark = 0
        self.own.clear()
        self.places.clear()

    def released(self, numbers: Iterable[int]) -> None:
        """Record inside a transaction that the server has taken back this machine's grants with these numbers."""
        for number in numbers:
            row = self.own.get(number)
            if row is not None:
                self._released({**row, "machine": self.machine})
        self._drop_ended()

    # ------------------------------------------------------------ inside `apply`

    def _take_in(self, kind: str, body: dict[str, Any]) -> None:
        if kind == protocol.LOCK:
            self.granted(body)
        elif kind == protocol.UNLOCK:
            self._released(body)
        elif kind == protocol.WAIT:
            self._joined_line(body)
        elif kind == protocol.LEAVE:
            self._left_line(body)
        elif kind == protocol.SESSION:
            self._joined(body)
        elif kind == protocol.GONE:
            self._gone(body)
        elif kind == protocol.COMPLETE:
            self._drop_missing(body["machine"])
        elif kind == protocol.DOCUMENT:
            row: Any = body
            self.documents.take(row)
        elif kind == protocol.DOCUMENT_GONE:
            self.documents.take_gone(body)

    def _take_all(self, found: Snapshot, has_lost: bool) -> None:
        """Make this machine's rows equal to the server's; equal rows are left alone.

        If the server `has_lost` rows, the known ones of other machines stay, without a number, until `_drop_missing`.
        """
        self.own = {row["lock"]: row for row in found["locks"] if row["machine"] == self.machine}
        self.places = {row["number"]: row for row in found["waits"] if row["machine"] == self.machine}
        fences = {row["fence"] for row in self.own.values()}
        mine = self._rows.own_locks(self.tops)
        self._rows.void_grants([row.id for row in mine if row.team_fence is not None and row.team_fence not in fences])
        wanted = {self._id(row, top) for row in found["locks"] for top in self.tops}
        mirrored = [row for row in self._rows.mirrored(self.tops) if row.team_fence is not None]
        stale = [row for row in mirrored if row.id not in wanted]
        if has_lost:
            self._rows.void_grants([row.id for row in stale])
        for session in found["sessions"]:
            self._joined(session)
        for lock in sorted(found["locks"], key=lambda row: row["fence"]):
            self.granted(lock)
        if not has_lost:  # after the new ones, so that no session is told of a free file that is taken
            self._rows.drop(stale, "gone")
        numbers = {row["number"] for row in found["waits"] if row["machine"] != self.machine}
        here = [one for one in self._rows.mirrored_places() if one.scope in self.tops and one.team_ticket is not None]
        gone = [one for one in here if one.team_ticket not in numbers]
        for place in gone if has_lost else ():
            self._rows.place_posted(place.ticket, None)
        for wait in sorted(found["waits"], key=lambda row: row["number"]):
            self._joined_line(wait)
        if not has_lost:
            self._rows.drop_places(gone)
        self.may_miss = self.may_miss or has_lost
        alive = {session["session"] for session in found["sessions"]}
        for known in self._rows.mirrored_sessions():
            if known.id not in alive and known.scope in self.tops:
                if has_lost:  # a task stays assigned until the worker's machine has had time to report
                    self._rows.miss_session(known)
                else:
                    self._rows.remove_session(known)

    # locks

    def granted(self, body: Any) -> None:
        """Apply a grant of the server, a ``LockRow``, inside a transaction."""
        row: LockRow = body
        spot = spot_in(body)
        own: list[Lock] = []
        if row["machine"] == self.machine:
            self.own[row["lock"]] = row
            self._own_granted(row, spot)
            own = self._own_on(row, spot)
            if not own:
                return  # released since, or handed on: the log has that as well
        else:
            self.own.pop(row["lock"], None)
            self._joined({**row, "lease": 0.0})  # its session's own change may be older than the kept log
        known = {lock.id: lock for lock in self._mirrored_as(row)}
        # First the new locks, then the ended ones, so that no session is told of a free file that is taken.
        reaches = {top: reach for top in self.tops if (reach := reach_at(spot, top)) is not None}
        for top, reach in reaches.items():
            lock_id = self._id(row, top)
            lock = known.get(lock_id) or self._lost_as(row, reach)
            if lock is None and not any(self._holds_in(mine, reach, top) for mine in own):
                self._rows.add_lock(lock_id, top, reach, row)
            elif lock is not None and (lock.id, lock.team_fence) != (lock_id, row["fence"]):
                self._rows.grant_anew(lock, lock_id, row)
        self._give_up_former(body)
        for reach in reaches.values():
            self._make_room(row, reach)

    def _own_granted(self, row: LockRow, spot: Spot) -> None:
        """Apply a grant to a session of this machine: its row here is confirmed, or made from another's."""
        own = self._own_on(row, spot)
        for lock in own:
            if lock.team_fence != row["fence"] and (lock.mode or EXCLUSIVE) == row["mode"]:
                self._rows.confirm(lock, row["fence"])
        theirs = [lock for lock in self._mirrored_as(row) if lock.machine != self.machine]
        if own or not theirs:
            return
        session = self._store.instances.live(row["session"])
        if session is None:
            return  # where it has gone meanwhile, the comparison gives the lock back
        inside = [lock for lock in theirs if (session.directory + "/").startswith(lock.scope + "/")]
        lock = (inside or theirs)[0]
        self._rows.take_over(lock, row)
        file = plain(lock.file)
        self._rows.tell(
            session.id,
            f"[auto] You have been handed the lock on {named(file)} by a session of another machine (fence"
            f" {row['fence']} of the team). Read it before you write, and release it when you are done.",
            file,
        )

    def _give_up_former(self, body: Any) -> None:
        """Give up a lock that this machine handed to another one, or lost to it."""
        row: LockRow = body
        holders = {body.get("was")} - {None}
        if row["machine"] != self.machine:
            holders.add(row["session"])
        if not holders:
            return
        held = [lock for lock in self._rows.own_locks(self.tops) if lock.instance_id in holders]
        former = [lock for lock in held if lock.team_fence is not None and self._spot(lock) == spot_in(body)]
        if body.get("reason") == "transferred":
            self._rows.drop(former, "transferred", to=row["session"])
            return
        self._rows.drop(former, "stolen", by=row["session"])
        for lock in former:
            file, why = plain(lock.file), f": {quoted(body['said'], 200)}" if body.get("said") else ""
            text = f"[auto] Your lock on {named(file)} was taken by {_who(row)}{why}. Do not write it."
            self._rows.tell(lock.instance_id, text, file)

    def _make_room(self, row: LockRow, reach: Reach) -> None:
        """Remove unconfirmed locks that conflict with a granted one: of this machine, or lost with an earlier server.

        The winner may be in another clone on this machine.
        """
        for lock in self._rows.met(reach):
            if lock.team_fence is not None or lock.mode == AUTO:
                continue
            agent, mode = row["agent"], SHARED if row["mode"] == SHARED else EXCLUSIVE
            if not keeps_out(lock, row["session"], agent, mode):
                continue
            if lock.machine is not None:
                self._rows.drop([lock], "lapsed")
            else:
                self.give_way(lock, row)

    def _lost_as(self, row: LockRow, reach: Reach) -> Lock | None:
        """Return the row of a lock that an earlier server had granted, and that its holder has again."""
        agent = row["agent"] or None
        for lock in self._rows.same(reach):
            if lock.machine and lock.team_fence is None and (lock.instance_id, lock.agent) == (row["session"], agent):
                return lock
        return None

    def _drop_missing(self, machine: str = "") -> None:
        """Remove what was not named again after the server's loss, inside a transaction.

        `machine` has named all that it has; empty: all machines have, or their leases are over.
        """
        lost = [row for row in self._rows.mirrored(self.tops) if row.team_fence is None]
        self._rows.drop([row for row in lost if machine in ("", row.machine)], "gone" if machine else "lapsed")
        places = [one for one in self._rows.mirrored_places() if one.scope in self.tops and one.team_ticket is None]
        self._rows.drop_places([one for one in places if machine in ("", one.machine)])
        for session in self._rows.missing_sessions():
            if session.scope in self.tops and (not machine or session.host == HOST + machine):
                self._rows.remove_session(session)
                self.documents.is_due = True

    def in_the_way(self, rows: Iterable[Lock]) -> LockRow | None:
        """Return a granted lock of another session that conflicts with these locks of this machine, or None.

        The server compares only with news after this replica's version, so this is asked before each request to it.
        """
        for row in rows:
            reach = reach_in(row)
            for lock in self._rows.met(reach) if reach else ():
                if lock.machine is None or lock.team_fence is None:  # lost: the server knows if it was confirmed anew
                    continue
                if keeps_out(lock, row.instance_id, row.agent or "", row.mode or EXCLUSIVE):
                    told: Any = {
                        "session": lock.instance_id,
                        "agent": lock.agent or "",
                        "mode": lock.mode or EXCLUSIVE,
                    }
                    told.update(machine=lock.machine, label=lock.owner_label or "", fence=lock.team_fence)
                    winner: LockRow = told
                    return winner
        return None

    def give_way(self, lock: Lock, row: LockRow) -> None:
        """Remove a lock of this machine inside a transaction, since the team has granted that file to another session.

        A lock that the team knows in another mode goes back to that mode.
        """
        spot = self._spot(lock)
        for own in self.own.values():
            if own["session"] == lock.instance_id and own["agent"] == (lock.agent or "") and spot_in(dict(own)) == spot:
                self._rows.restore(lock, own)
                self.dropped[lock.id] = row
                if lock.team_fence == own["fence"]:
                    return
                file, now = plain(lock.file), "shared" if own["mode"] == SHARED else "exclusive"
                self._rows.tell(
                    lock.instance_id, f"[auto] Your lock on {named(file)} is {now}, as it was in the team before you"
                    f" asked for more: {_who(row)} has a lock there. Release it where you do not want it.", file,
                )  # fmt: skip
                return
        self.dropped[lock.id] = row
        self._rows.drop([lock], "team", by=row["session"], machine=row["machine"], team_fence=row["fence"])
        self.tell_holder(
            lock, f"[auto] Your lock on {named(plain(lock.file))} held on this machine only, and holds no longer:"
            f" {_who(row)} has had it in the team (fence {row['fence']}), which could not be asked when you took it."
            " Do not write it; what you have written since may conflict with theirs.",
        )  # fmt: skip

    def tell_holder(self, lock: Lock, text: str) -> None:
        """Tell the holder of a lost lock, inside a transaction; later, where a request may report it."""
        told = lock.instance_id, text, plain(lock.file)
        if lock.id in self.spared:
            self.untold[lock.id] = told
        else:
            self._rows.tell(*told)

    def _released(self, body: dict[str, Any]) -> None:
        reason = body.get("reason") or "released"
        if body["machine"] != self.machine:
            more = {}
            if body.get("by"):
                more["by"] = body["by"]
            self._end_later(body, reason, **more)
            return
        self.own.pop(body["lock"], None)
        self._end_later(body, reason)
        gone = [lock for lock in self._rows.own_locks(self.tops) if lock.team_fence == body["fence"]]
        if reason != "stolen":
            self._rows.void_grants([lock.id for lock in gone])  # locks still held here are requested anew
            return
        self._rows.drop(gone, "stolen", by=body.get("by"))
        for lock in gone:
            self._rows.tell(
                lock.instance_id,
                f"[auto] Your lock on {named(plain(lock.file))} was taken by a session of another machine. Do not"
                " write it.",
                plain(lock.file),
            )

    def _end_later(self, body: dict[str, Any], reason: str, **more: object) -> None:
        """Have a lock's rows removed by `_drop_ended`, after the grants of the same answer.

        So no session is told of a free file that is taken again.
        """
        self._ended.append(([lock.id for lock in self._mirrored_as(body)], _REASONS.get(reason, reason), more))

    def _drop_ended(self) -> None:
        for ids, reason, more in self._ended:
            self._rows.drop(self._rows.of_ids(ids), reason, **more)
        self._ended.clear()

    # places in line

    def _joined_line(self, body: Any) -> None:
        row: WaitRow = body
        if row["machine"] == self.machine:
            self.places[row["number"]] = row
            for place in self._rows.own_places():
                if str(place.ticket) == row["ticket"] and place.instance_id == row["session"]:
                    self._rows.place_posted(place.ticket, row["number"])
            return
        if any(one.team_ticket == row["number"] and one.machine for one in self._rows.mirrored_places()):
            return
        self._joined({**row, "lease": 0.0})
        for top in self.tops:
            reaches = [reach for want in row["wants"] if (reach := reach_at(spot_in(want), top)) is not None]
            if not reaches:
                continue
            self._rows.drop_places(self._behind(reaches))
            self._rows.add_place(top, row["machine"], reaches, row["session"], row["number"], row["agent"], row["mode"])
        wait = row["session"], row["agent"], row["mode"]
        lost = [one for one in self._rows.mirrored_places() if one.scope in self.tops and one.team_ticket is None]
        self._rows.drop_places([one for one in lost if (one.instance_id, one.agent or "", one.mode) == wait])

    def _behind(self, reaches: list[Reach]) -> list[Waiter]:
        """Return places of this machine that the server has not numbered, and that are to be behind one for these."""
        return [
            place
            for place in self._rows.own_places()
            if place.team_ticket is None and any(meet(one, other) for one in reaches for other in place.reaches)
        ]

    def _left_line(self, body: Any) -> None:
        row: WaitRow = body
        if row["machine"] != self.machine:
            here = self._rows.mirrored_places()
            gone = [one for one in here if one.team_ticket == row["number"] and one.scope in self.tops]
            self._rows.drop_places(gone)
            return
        # A waiter that is still here, after its session was silent for long, joins again by itself, at the end of the
        # queue.
        self.places.pop(row["number"], None)
        self._rows.drop_own_place(row["number"])

    # sessions

    def _joined(self, body: Any) -> None:
        row: SessionRow = body
        if row["machine"] != self.machine and self.tops:
            self._rows.add_session(row["session"], row["machine"], row["label"], self.scope)

    def _gone(self, body: Any) -> None:
        row: SessionRow = body
        if row["machine"] == self.machine:
            mine = [one for one in self._rows.own_locks(self.tops) if one.instance_id == row["session"]]
            self._rows.void_grants([one.id for one in mine])
            self.own = {number: one for number, one in self.own.items() if one["session"] != row["session"]}
            self.places = {number: one for number, one in self.places.items() if one["session"] != row["session"]}
            return
        here = [one for one in self._rows.mirrored_places() if one.instance_id == row["session"]]
        self._rows.drop_places(here)
        self.documents.is_due = True  # its tasks are released
        for session in self._rows.mirrored_sessions():
            if session.id == row["session"]:
                self._rows.remove_session(session, "reclaimed" if body.get("reason") == "lapsed" else "deregistered")

    # ------------------------------------------------------------------ innards

    def _id(self, row: Any, top: str) -> str:
        """Return the id of this machine's row of a lock in a work tree."""
        tree = crc32(f"{self.repository} {top}".encode("utf-8", "surrogateescape"))
        return f"team-{tree:08x}-{row['lock']}"

    def _mirrored_as(self, row: Any) -> list[Lock]:
        return self._rows.of_ids(self._id(row, top) for top in self.tops)

    def _spot(self, lock: Lock) -> Spot | None:
        return own_spot(lock, self.tops)

    def _own_on(self, row: LockRow, spot: Spot) -> list[Lock]:
        """Return this machine's rows of a lock that the server has, taken here."""
        found: dict[str, Lock] = {}
        for top in self.tops:
            reach = reach_at(spot, top)
            if reach is not None:
                found.update((lock.id, lock) for lock in self._rows.same(reach))
        return [
            lock
            for lock in found.values()
            if lock.machine is None and lock.instance_id == row["session"] and (lock.agent or "") == row["agent"]
        ]

    @staticmethod
    def _holds_in(mine: Lock, reach: Reach, top: str) -> bool:
        """Return True if a lock that was taken here also holds at `reach` in the work tree with this `top`.

        It holds if it is the same lock, or has a name in the repository (``lock_rows``).
        """
        if mine.path_key == reach.key and (mine.pattern or "") == reach.pattern:
            return True
        tree = repository.tree_at(top, is_real=True)
        if tree is None or not mine.repository:
            return False
        return mine.repository in repository.names_of(reach.key or "", tree)


def _who(row: LockRow) -> str:
    return f"{holder_name(row['label'], row['session'])} on {row['machine']}"
