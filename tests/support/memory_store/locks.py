"""Files that are held, and the line for them."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import Any

from support.memory_store.tables import Part
from swarm_hook_core import clock
from swarm_mcp.domain.lock import AUTO, EXCLUSIVE, SHARED, Lock, Waiter, is_mutex, keeps_out
from swarm_mcp.domain.record import new_id
from swarm_mcp.domain.session import Session, anywhere
from swarm_mcp.errors import Deadlock, LockRefused, Refused
from swarm_mcp.store.lock_request import LockRequest, Reach, meet, reach_of, request
from swarm_mcp.visibility import may_meet


class Locks(Part):
    def acquire(self, instance: Session, file: str, note: str = "", exclusive: bool = False,
                task_id: str | None = None, tool: str = "lock_file") -> Lock:  # fmt: skip
        asked = request(instance, [file], note=note, once=exclusive, task_id=task_id, tool=tool)
        return self.acquire_all(instance, asked)[0]

    def acquire_all(self, instance: Session, wanted: LockRequest) -> list[Lock]:
        self.store.instances.show_life(instance["id"])
        obstacle = self.in_the_way(instance, wanted) or self.store.queue.ahead_of(instance, wanted)
        if obstacle:
            if not wanted.ticket and obstacle["instance_id"] != instance["id"]:
                self.store.denials.add(instance, wanted.reaches[0].file, obstacle["instance_id"])
            raise LockRefused({"instance_id": obstacle["instance_id"], "file": obstacle["file"]})
        for reach in wanted.reaches:
            self.memory.denied.pop((instance["id"], reach.file), None)
        self.store.queue.leave(wanted.ticket)
        granted = [self.grant(instance, wanted, reach) for reach in wanted.reaches]
        self.store.leases.note_grant(instance, wanted.reaches, granted)
        return granted

    def in_the_way(self, instance: Session, wanted: LockRequest) -> Lock | None:
        for reach in wanted.reaches:
            for lock, there in self._live():
                own = wanted.once and lock.instance_id == instance["id"] and self._is_same(there, reach)
                own = own and lock.mode != AUTO
                if meet(reach, there) and (own or keeps_out(lock, instance["id"], wanted.agent, wanted.mode)):
                    return lock
        return None

    def release(self, instance: Session, file: str, agent: str = "", fence: int | None = None) -> int:
        reach = reach_of(instance, file)
        mine = [lock for lock in self.own(instance, reach, agent) if fence in (None, lock.fence)]
        if fence is not None and not mine:
            raise Refused(f"fence {fence} is no longer good for {reach.file}")
        self.drop(mine, "")
        return len(mine)

    def release_all(self, instance: Session, agent: str = "") -> list[str]:
        mine = [lock for lock in self.of(instance["id"]) if (lock.agent or "") == agent and not is_mutex(lock.file)]
        self.drop(mine, "")
        return [lock.file for lock in mine]

    def release_of_agent(self, instance: Session, agent: str) -> list[str]:
        theirs = [lock for lock in self.of(instance["id"]) if lock.agent == agent]
        self.drop(theirs, "agent_ended")
        self.store.automatic_locks.end(instance, agent)
        return [lock.file for lock in theirs]

    def on(self, file: str) -> list[Lock]:
        if is_mutex(file):
            return [lock for lock, there in self._live() if there.file == file]
        reach = reach_of(anywhere(), file, as_pattern=False)
        exact = reach._replace(segments=tuple(part for part in reach.segments if part is not None))
        return [lock for lock, there in self._live() if self._covers(there, exact)]

    def of(self, instance_id: str) -> list[Lock]:
        self.store.automatic_locks.adopt()
        return [lock for lock, _reach in self.memory.locks.values() if lock.instance_id == instance_id]

    def by_name(self, names: Iterable[str]) -> list[Lock]:
        asked = set(names)
        return [lock for lock, reach in self._live() if reach.pattern or asked.intersection((lock.file, *reach.keys))]

    def everywhere(self) -> list[Lock]:
        return [lock for lock, _reach in self._live()]

    def exactly(self, reach: Reach) -> list[Lock]:
        return [lock for lock, there in self._live() if self._is_same(there, reach)]

    def meeting(self, reach: Reach) -> list[Lock]:
        return [lock for lock, there in self._live() if meet(reach, there)]

    def own(self, instance: Session, reach: Reach, agent: str = "") -> list[Lock]:
        mine = [lock for lock in self.exactly(reach) if lock.instance_id == instance["id"]]
        return [lock for lock in mine if agent in ("", lock.agent or "")]

    def covering(self, reach: Reach) -> list[Lock]:
        return [lock for lock, there in self._live() if self._covers(there, reach)]

    def seen_in(self, _folder: str) -> dict[str, str]:
        return {}  # there are no other work trees here

    def spread(self, _folder: str) -> int:
        return 0

    def path_of(self, instance: Session, file: str) -> str:
        return reach_of(instance, file).file

    def held(self, scope: str | None, viewer_identity: str = "") -> Iterator[dict]:
        return (self.listed(lock, viewer_identity) for lock in self._on_files(scope, self.everywhere()))

    def walk(self, scope: str | None, viewer_identity: str = "", after: str = "") -> Iterator[tuple[str, dict]]:
        rows = self._on_files(scope, self.everywhere())
        places = self.behind(after, (int,), rows, lambda lock: [lock.fence])
        return ((place, self.listed(lock, viewer_identity)) for place, lock in places)

    def walk_of(self, instance_id: str, after: str = "") -> Iterator[tuple[str, Lock]]:
        return self.behind(after, (int,), self._on_files(None, self.of(instance_id)), lambda lock: [lock.fence])

    def count_of(self, instance_id: str) -> int:
        return len(list(self.walk_of(instance_id)))

    def counts(self, scope: str | None) -> dict[str, int]:
        everyone = self._on_files(scope, [lock for lock, _reach in self.memory.locks.values()])
        live = len(self._on_files(scope, self.everywhere()))
        return {"live": live, "void": len(everyone) - live}

    def foremost(
        self, scope: str, viewer_identity: str, limit: int, own_id: str, waited_for: Iterable[str]
    ) -> tuple[int, list[dict]]:
        rows, waited = self._on_files(scope, self.everywhere())[::-1], set(waited_for)
        rows.sort(key=lambda lock: 0 if lock.instance_id == own_id else 1 if lock.id in waited else 2)
        return len(rows), [self.listed(lock, viewer_identity) for lock in rows[:limit]]

    def recent_of(self, holders: list[str], viewer_identity: str, limit: int, first: Iterable[str] = ()) -> list[dict]:
        rows, asked = self._on_files(None, self.everywhere())[::-1], set(first)
        chosen = [row for row in rows if row.id in asked or row.instance_id in holders]
        chosen.sort(key=lambda lock: lock.id not in asked)
        return [self.listed(lock, viewer_identity) for lock in chosen[:limit]]

    def counts_of(self, holders: list[str], most: int) -> dict[str, int]:
        return {one: min(most, self.count_of(one)) for one in holders}

    def active_on(self, file: str, viewer_identity: str) -> dict | None:
        return next((self.describe(lock, viewer_identity) for lock in self.on(file)), None)

    def describe(self, row: Lock, viewer_identity: str) -> dict:
        label = self._label(row.instance_id)
        if not self._is_known(label, viewer_identity):
            return {"hidden": True, "reason": "cross_identity", "file": row.file}
        return {**self._shown(row), "owner": {"id": row.instance_id, "label": label}}

    def listed(self, row: Lock, viewer_identity: str) -> dict:
        label = self._label(row.instance_id)
        known = self._is_known(label, viewer_identity)
        hidden = {} if known else {"content": "", "hidden": True}
        return {**self._shown(row), "owner_label": label if known else None, **hidden}

    def left(self, lock: Lock) -> float | None:
        return clock.left((lock.ttl, lock.renewed, lock.booted, lock.wall_until), self.store.here, time.time())

    def is_held(self, lock_id: str, instance_id: str) -> bool:
        return any(lock.id == lock_id and lock.instance_id == instance_id for lock, _ in self.memory.locks.values())

    def fences_held(self, instance_id: str, fences: list[int]) -> set[int]:
        return {lock.fence for lock, _ in self._live() if lock.instance_id == instance_id and lock.fence in fences}

    # what the other parts do with locks

    def drop(self, locks: list[Lock], reason: str) -> None:
        for lock in locks:
            del self.memory.locks[lock.id]
            self.memory.add_event(lock.scope, "context.lock_released", lock.instance_id, lock.file, reason=reason)
        if locks:
            self.store.denials.tell()

    def stamp(self, ttl: float | None) -> dict[str, Any]:
        """The columns of a lease that begins now."""
        if ttl is None:
            return {"ttl": None, "renewed": None, "booted": None, "wall_until": None}
        here = self.store.here
        return {"ttl": ttl, "renewed": clock.now(), "booted": clock.boot(here), "wall_until": time.time() + ttl}

    def put(self, lock: Lock, reach: Reach) -> Lock:
        self.memory.locks[lock.id] = (lock, reach)
        return lock

    def next_fence(self) -> int:
        self.memory.fence += 1
        return self.memory.fence

    def grant(self, instance: Session, wanted: LockRequest, reach: Reach) -> Lock:
        mode = None if wanted.mode == EXCLUSIVE else wanted.mode
        mine = [lock for lock in self.own(instance, reach) if (lock.agent or "") == wanted.agent]
        kept = mine[0].fence if mine and (mine[0].mode == mode or (mine[0].mode, mode) == (AUTO, None)) else None
        for lock in mine:
            del self.memory.locks[lock.id]
        lock = Lock(
            id=new_id(), scope=instance["scope"], instance_id=instance["id"], file=reach.file, type="lock",
            content=wanted.note, task_id=wanted.task_id, created_at=self.store.now(), path_key=reach.key, mode=mode,
            agent=wanted.agent or None, pattern=reach.pattern or None, base=reach.base or None,
            expected_end=wanted.expected_end, fence=kept or self.next_fence(), repository=None,
            owner_label=instance.get("label"), **self.stamp(wanted.ttl),
        )  # fmt: skip
        self.memory.add_event(lock.scope, "context.lock_acquired", instance["id"], reach.file, fence=lock.fence)
        return self.put(lock, reach)

    def _on_files(self, scope: str | None, locks: list[Lock]) -> list[Lock]:
        """Those of a scope (None: of all) that are on files, by the numbers of their grants."""
        listed = [lock for lock in locks if scope in (None, lock.scope) and not is_mutex(lock.file)]
        return sorted(listed, key=lambda lock: lock.fence)

    def _live(self) -> list[tuple[Lock, Reach]]:
        self.store.automatic_locks.adopt()
        return [
            (lock, reach)
            for lock, reach in self.memory.locks.values()
            if self.store.instances.live(lock.instance_id) and not self.lapsed(lock)
        ]

    def lapsed(self, lock: Lock) -> bool:
        left = self.left(lock)
        return left is not None and left <= 0

    def _is_same(self, one: Reach, other: Reach) -> bool:
        if one.pattern or other.pattern:
            return (one.pattern, one.base) == (other.pattern, other.base)
        return one.file == other.file or bool(set(one.keys) & set(other.keys))

    def _covers(self, lock: Reach, path: Reach) -> bool:
        """Whether a lock keeps the path still, and is not just on something below it."""
        if lock.pattern or not lock.key or not path.key:
            return meet(lock, path)
        return path.key == lock.key or path.key.startswith(lock.key.rstrip("/") + "/") or self._is_same(lock, path)

    def _shown(self, lock: Lock) -> dict:
        shown = {name: lock[name] for name in ("id", "instance_id", "file", "type", "content", "created_at")}
        more = {name: lock[name] for name in ("mode", "agent", "pattern", "fence") if lock.get(name)}
        return {**shown, **more}

    def _is_known(self, label: str | None, viewer_identity: str) -> bool:
        return may_meet(f"identity:{viewer_identity}" if viewer_identity else None, label)

    def _label(self, instance_id: str) -> str | None:
        row = self.store.instances.get(instance_id)
        return row.label if row else None


class Queue(Part):
    def waiting(self) -> list[Waiter]:
        now = clock.now()
        live = [place for place in self.memory.line if place.until is None or place.until >= now]
        return [place for place in live if self.store.instances.live(place.instance_id)]

    def waiting_for(self, *reaches: Reach) -> list[Waiter]:
        return [place for place in self.waiting() if self._common(reaches, place)]

    def has(self, ticket: int, instance_id: str) -> bool:
        return any((place.ticket, place.instance_id) == (ticket, instance_id) for place in self.memory.line)

    def is_there(self, ticket: int) -> bool:
        return any(place.ticket == ticket for place in self.memory.line)

    def is_silent(self, _row: Waiter) -> bool:
        return False  # all who wait are of this process

    def ahead_of(self, instance: Session, wanted: LockRequest) -> Waiter | None:
        for place in self.waiting():
            if wanted.ticket and place.ticket >= wanted.ticket:
                break
            common = self._common(wanted.reaches, place)
            if (place.instance_id, place.agent) == (instance["id"], wanted.agent) or not common:
                continue
            if place.mode == wanted.mode == SHARED or self._may_pass(instance, wanted, common, place):
                continue
            return place.replace(file=common[0].file)
        return None

    def obstacles(self, row: Waiter, limit: int = 20) -> list[Lock | Waiter]:
        kept = self._keeping(row.instance_id, row.agent, row.mode, row.reaches)
        one_of_each = {(lock.instance_id, lock.agent or ""): lock for lock in kept[::-1]}
        asked = LockRequest(row.reaches, mode=row.mode, agent=row.agent, ticket=row.ticket)
        found = [
            place for place in self.waiting() if place.ticket < row.ticket and self._goes_before(place, asked, row)
        ]
        return [*list(one_of_each.values())[::-1][:limit], *found[:limit]]

    def _goes_before(self, place: Waiter, asked: LockRequest, row: Waiter) -> bool:
        common = self._common(asked.reaches, place)
        if not common or (place.instance_id, place.agent) == (row.instance_id, row.agent):
            return False
        of_row = Session(id=row.instance_id)
        return not (place.mode == asked.mode == SHARED or self._may_pass(of_row, asked, common, place))

    def join(self, instance: Session, wanted: LockRequest, seconds: float | None) -> int:
        self.store.instances.show_life(instance["id"])
        circle = self._circle(instance["id"], wanted)
        if circle:
            raise Deadlock(circle)
        self.memory.tickets += 1
        now = clock.now()
        place = Waiter(
            ticket=self.memory.tickets, instance_id=instance["id"], agent=wanted.agent, scope=instance["scope"],
            mode=wanted.mode, since=now, until=None if seconds is None else now + seconds, fence=self.memory.fence,
            reaches=wanted.reaches, owner_label=instance.get("label"),
        )  # fmt: skip
        self.memory.line.append(place)
        return self.memory.tickets

    def leave(self, ticket: int) -> None:
        before = len(self.memory.line)
        self.memory.line = [place for place in self.memory.line if place.ticket != ticket]
        if len(self.memory.line) < before:
            self.store.denials.tell()

    def show_life(self, instance: Session, ticket: int) -> bool:
        self.store.instances.show_life(instance["id"])
        return self.is_there(ticket)

    def require_end(self, instance: Session, wanted: LockRequest) -> None:
        circle = self._circle(instance["id"], wanted)
        if circle:
            raise Deadlock(circle)

    def lengths(self) -> dict[str, int]:
        found = {}
        for lock, reach in self.memory.locks.values():
            behind = [place for place in self.waiting_for(reach) if place.instance_id != lock.instance_id]
            if behind:
                found[lock.id] = len(behind)
        return found

    def _common(self, reaches: tuple[Reach, ...], place: Waiter) -> list[Reach]:
        return [own for own in reaches if any(meet(own, theirs) for theirs in place.reaches)]

    def _may_pass(self, instance: Session, wanted: LockRequest, common: list[Reach], place: Waiter) -> bool:
        """Whether it holds what that one waits for since before it came, or has all that it asks for already."""
        kept = self._keeping(place.instance_id, place.agent, place.mode, place.reaches)
        mine = [lock for lock in kept if lock.instance_id == instance["id"] and (lock.agent or "") == wanted.agent]
        if any((lock.fence or 0) <= place.fence for lock in mine):
            return True
        return all(
            any(lock.mode in (None, AUTO, wanted.mode) for lock in self.store.locks.own(instance, reach))
            for reach in common
        )

    def _keeping(self, instance_id: str, agent: str, mode: str, reaches: tuple[Reach, ...]) -> list[Lock]:
        met = [lock for reach in reaches for lock in self.store.locks.meeting(reach)]
        return [lock for lock in met if keeps_out(lock, instance_id, agent, mode)]

    def _circle(self, start: str, wanted: LockRequest) -> list[str]:
        """The sessions that would wait for each other, this one first; empty for none."""
        pending = [(lock.instance_id, [start]) for lock in self._keeping(start, "", wanted.mode, wanted.reaches)]
        seen: set[str] = set()
        while pending:
            who, path = pending.pop()
            if who == start:
                return path
            if who not in seen:
                seen.add(who)
                for place in self.waiting():
                    if place.instance_id == who:
                        kept = self._keeping(who, place.agent, place.mode, place.reaches)
                        pending += [(lock.instance_id, [*path, who]) for lock in kept]
        return []
