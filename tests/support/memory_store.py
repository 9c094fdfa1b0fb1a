"""The store's interface (``swarm_mcp.store.api``) a second time: in dicts, without SQL, for one process.

It answers the questions about sessions, locks, the line for them, leases, transfers, messages, tasks, values, runs and
what has happened; ``tests/unit/store/test_api.py`` holds it and the embedded store to the same behaviour. What both
take from the same place is pure: what a word names and when two reaches meet (``lock_reach``), what is asked for
(``lock_request``), the table of a task's life (``task_life``), and what proves that a session has gone (``liveness``).
"""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace
from typing import Any

from swarm_hook_core import clock
from swarm_hook_core.json_text import dumps
from swarm_hook_core.labels import token
from swarm_hook_core.liveness import departed
from swarm_hook_core.process import host_id
from swarm_mcp.domain.lock import EXCLUSIVE, MUTEX_PREFIX, SHARED, Lock, Waiter, keeps_out
from swarm_mcp.domain.message import Event, KeyValue, Message
from swarm_mcp.domain.run import ENDED, STARTING, Run
from swarm_mcp.domain.session import Session
from swarm_mcp.domain.task import (
    APPROVAL_REQUIRED,
    BLOCKED,
    CANCELLED,
    CLAIMED,
    DONE,
    FAILED,
    IN_PROGRESS,
    OPEN,
    STATUSES,
    TERMINAL,
    UNCHANGED,
    Task,
)  # fmt: skip
from swarm_mcp.errors import Deadlock, LockRefused, Refused, SwarmError, UnknownInstance
from swarm_mcp.store.lock_reach import Reach, meet, reach_in, reach_of
from swarm_mcp.store.lock_request import LockRequest, checked_ttl, request
from swarm_mcp.store.registration import Registration, new_id
from swarm_mcp.store.task_life import refusal
from swarm_mcp.store.task_requests import _composed
from swarm_mcp.visibility import may_meet

GONE_EVIDENCE = (
    "host", "client_pid", "client_start", "terminal_pid", "terminal_start", "state", "last_seen", "lease_seconds",
    "adopted", "heartbeat", "lease_until", "other_clients", "runtime",
)  # fmt: skip


class Memory:
    """The tables, and the sequence of everything that happened in them."""

    def __init__(self) -> None:
        self.sessions: dict[str, Session] = {}
        self.locks: dict[str, tuple[Lock, Reach]] = {}
        self.line: list[Waiter] = []
        self.messages: list[Message] = []
        self.taken: set[int] = set()
        self.tasks: dict[str, Task] = {}
        self.values: dict[tuple[str, str], KeyValue] = {}
        self.runs: dict[str, Run] = {}
        self.events: list[Event] = []
        self.denied: dict[tuple[str, str], str] = {}  # who, what file -> by whom
        self.lapsed: list[tuple[str, str]] = []  # who, what file
        self.fence = self.tickets = 0
        self.changed = threading.Condition()

    def add_event(self, scope: str, kind: str, actor: str | None, subject: str | None, **payload: object) -> None:
        number = len(self.events) + 1
        told = {"id": number, "scope": scope, "type": kind, "actor": actor, "subject": subject}
        self.events.append(Event(**told, payload=dumps(payload), created_at=int(time.time())))
        with self.changed:
            self.changed.notify_all()


class MemoryStore:
    """One store. Its parts have the embedded store's names."""

    path, here = ":memory:", host_id()

    def __init__(self) -> None:
        self.memory = Memory()
        self.instances = Sessions(self)
        self.messages = Messages(self)
        self.locks = Locks(self)
        self.queue = Queue(self)
        self.leases = Leases(self)
        self.transfers = Transfers(self)
        self.tasks = Tasks(self)
        self.kv = Values(self)
        self.runs = Runs(self)
        self.activity = Activity(self)

    def now(self) -> int:
        return int(time.time())

    def changes(self) -> Changes:
        return Changes(self.memory)

    def close(self) -> None: ...

    def __enter__(self) -> MemoryStore:
        return self

    def __exit__(self, *_exception: object) -> None: ...


class Part:
    def __init__(self, store: MemoryStore):
        self.store = store
        self.memory = store.memory


class Changes:
    """Being told of events."""

    def __init__(self, memory: Memory):
        self.memory, self.seen, self.stopped = memory, len(memory.events), False

    def wait(self, seconds: float | None = None) -> bool:
        with self.memory.changed:
            moved = self.memory.changed.wait_for(lambda: self.stopped or len(self.memory.events) > self.seen, seconds)
        self.seen = len(self.memory.events)
        return moved and not self.stopped

    def stop(self) -> None:
        self.stopped = True
        with self.memory.changed:
            self.memory.changed.notify_all()

    def close(self) -> None: ...

    def __enter__(self) -> Changes:
        return self

    def __exit__(self, *_exception: object) -> None: ...


class Sessions(Part):
    def get(self, instance_id: str) -> Session | None:
        return self.memory.sessions.get(instance_id)

    def live(self, instance_id: str) -> Session | None:
        row = self.get(instance_id)
        return row if row and not self._has_gone(row) else None

    def in_scope(self, scope: str) -> list[Session]:
        return [row for row in self.memory.sessions.values() if row.scope == scope and not self._has_gone(row)]

    def of_session(self, runtime: str, session_id: str) -> Session | None:
        rows = self.memory.sessions.values()
        return next((row for row in rows if (row.runtime, row.session_id) == (runtime, session_id)), None)

    def gone(self) -> list[Session]:
        return [row for row in self.memory.sessions.values() if self._has_gone(row)]

    def register(self, request: Registration) -> Session:
        for row in self.gone():
            if not request.session_id or (row.runtime, row.session_id) != (request.runtime, request.session_id):
                self._leave(row, "reclaimed")
        known = self.of_session(request.runtime, request.session_id) if request.session_id else None
        now = self.store.now()
        row = Session(
            id=known.id if known else request.preassigned_id or new_id(),
            scope=request.scope, directory=request.directory, root=request.directory, file_root=request.file_root,
            pid=request.client[0], label=request.label, registered_at=known.registered_at if known else now,
            heartbeat=now, adopted=0 if request.lease_seconds else 1,
            lease_until=now + request.lease_seconds if request.lease_seconds else None,
            runtime=request.runtime or None, session_id=request.session_id or None,
            host=self.store.here if request.session_id else None, client_pid=request.client[0],
            client_start=request.client[1], state=request.state, last_seen=now if request.session_id else None,
            lease_seconds=request.lease_seconds,
        )  # fmt: skip
        self.memory.sessions[row.id] = row
        self.memory.add_event(row.scope, "instance.registered", row.id, row.id, label=row.label)
        return row

    def remove(self, instance_id: str, reason: str = "deregistered", by: Session | None = None) -> bool:
        row = self.get(instance_id)
        if row:
            self._leave(row, reason)
        return row is not None

    def show_life(self, instance_id: str) -> None:
        row = self.get(instance_id)
        if row is None or (self._has_gone(row) and row.client_pid):
            raise SwarmError(f"instance {instance_id} is no longer registered; register again")
        now = self.store.now()
        if row.last_seen is not None:
            until = now + row.lease_seconds if row.lease_seconds else row.lease_until
            self.memory.sessions[row.id] = row.replace(heartbeat=now, last_seen=now, lease_until=until)
        self.store.leases.renew(instance_id)

    def _has_gone(self, row: Session) -> bool:
        return departed({name: row.get(name) for name in GONE_EVIDENCE}, self.store.now(), self.store.here)

    def _leave(self, row: Session, reason: str) -> None:
        self.memory.denied = {key: by for key, by in self.memory.denied.items() if key[0] != row.id}
        self.store.locks.drop(self.store.locks.of(row.id), reason)
        self.store.tasks.release_all(row)
        self.memory.messages = [mail for mail in self.memory.messages if mail.recipient != row.id]
        self.memory.line = [place for place in self.memory.line if place.instance_id != row.id]
        del self.memory.sessions[row.id]
        kind = "instance.stale_reclaimed" if reason == "reclaimed" else "instance.deregistered"
        self.memory.add_event(row.scope, kind, row.id, row.id, label=row.label)


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
                self.memory.denied[instance["id"], wanted.reaches[0].file] = obstacle["instance_id"]
                self.memory.add_event(
                    instance["scope"], "context.lock_denied", instance["id"], wanted.reaches[0].file,
                    holder=obstacle["instance_id"],
                )  # fmt: skip
            raise LockRefused({"instance_id": obstacle["instance_id"], "file": obstacle["file"]})
        for reach in wanted.reaches:
            self.memory.denied.pop((instance["id"], reach.file), None)
        self.store.queue.leave(wanted.ticket)
        return [self._grant(instance, wanted, reach) for reach in wanted.reaches]

    def in_the_way(self, instance: Session, wanted: LockRequest) -> Lock | None:
        for reach in wanted.reaches:
            for lock, there in self._live():
                own = wanted.once and lock.instance_id == instance["id"] and self._is_same(there, reach)
                if meet(reach, there) and (own or keeps_out(lock, instance["id"], wanted.agent, wanted.mode)):
                    return lock
        return None

    def release(self, instance: Session, file: str, agent: str = "", fence: int | None = None) -> int:
        reach = reach_of(instance, file)
        mine = self.own(instance, reach, agent)
        if fence is not None and [lock.fence for lock in mine] != [fence]:
            raise Refused(f"fence {fence} is no longer good for {reach.file}")
        self.drop(mine, "")
        return len(mine)

    def release_of_agent(self, instance: Session, agent: str) -> list[str]:
        theirs = [lock for lock in self.of(instance["id"]) if lock.agent == agent]
        self.drop(theirs, "agent_ended")
        return [lock.file for lock in theirs]

    def on(self, file: str) -> list[Lock]:
        place = Session(directory="/", root="/", file_root="/", scope="/")
        reach = reach_of(place, file, as_pattern=False)
        exact = reach._replace(segments=tuple(part for part in reach.segments if part is not None))
        return [lock for lock, there in self._live() if self._covers(there, exact)]

    def of(self, instance_id: str) -> list[Lock]:
        return [lock for lock, _reach in self.memory.locks.values() if lock.instance_id == instance_id]

    def everywhere(self) -> list[Lock]:
        return [lock for lock, _reach in self._live()]

    def exactly(self, reach: Reach) -> list[Lock]:
        return [lock for lock, there in self._live() if self._is_same(there, reach)]

    def meeting(self, reach: Reach) -> list[Lock]:
        return [lock for lock, there in self._live() if meet(reach, there)]

    def own(self, instance: Session, reach: Reach, agent: str = "") -> list[Lock]:
        mine = [lock for lock in self.exactly(reach) if lock.instance_id == instance["id"]]
        return [lock for lock in mine if agent in ("", lock.agent or "")]

    def held(self, scope: str | None, viewer_identity: str = "") -> list[dict]:
        shown = []
        for lock, _reach in self._live():
            if scope in (None, lock.scope) and not lock.file.startswith(MUTEX_PREFIX):
                label = self._label(lock.instance_id)
                known = may_meet(f"identity:{viewer_identity}" if viewer_identity else None, label)
                more = {name: lock[name] for name in ("mode", "agent", "pattern", "fence") if lock.get(name)}
                row = {"id": lock.id, "instance_id": lock.instance_id, "file": lock.file, "content": lock.content}
                hidden = {} if known else {"content": "", "hidden": True}
                shown.append({**row, "owner_label": label if known else None, **more, **hidden})
        return shown

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
            self.tell_waiting()

    def tell_waiting(self) -> None:
        """Tell those who were refused a file that nobody holds or waits for any more."""
        for who, file in list(self.memory.denied):
            session = self.store.instances.live(who)
            row = {"file": file, "path_key": None, "pattern": None}
            reach = reach_in(row)
            busy = [lock for lock in self.on(file) if lock.instance_id != who] if session else []
            if session and reach and not busy and not self.store.queue.waiting_for(reach):
                del self.memory.denied[who, file]
                self.store.messages.post(session.scope, "system", who, f"[auto] {file} is free.")

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

    def _grant(self, instance: Session, wanted: LockRequest, reach: Reach) -> Lock:
        mode = None if wanted.mode == EXCLUSIVE else wanted.mode
        mine = [lock for lock in self.own(instance, reach) if (lock.agent or "") == wanted.agent]
        kept = mine[0].fence if mine and mine[0].mode == mode else None
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

    def _live(self) -> list[tuple[Lock, Reach]]:
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

    def is_silent(self, _place: Waiter) -> bool:
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
            self.store.locks.tell_waiting()

    def show_life(self, instance: Session, ticket: int) -> bool:
        self.store.instances.show_life(instance["id"])
        return self.is_there(ticket)

    def require_end(self, instance: Session, wanted: LockRequest) -> None:
        circle = self._circle(instance["id"], wanted)
        if circle:
            raise Deadlock(circle)

    def lengths(self, locks: list[dict]) -> dict[str, int]:
        found = {}
        for row in locks:
            _lock, reach = self.memory.locks[row["id"]]
            behind = [place for place in self.waiting_for(reach) if place.instance_id != row["instance_id"]]
            if behind:
                found[row["id"]] = len(behind)
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
            any(lock.mode in (None, wanted.mode) for lock in self.store.locks.own(instance, reach)) for reach in common
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


class Leases(Part):
    def renew(self, instance_id: str) -> None:
        self.some()
        for lock, reach in list(self.memory.locks.values()):
            if lock.instance_id == instance_id and lock.ttl is not None:
                self.store.locks.put(lock.replace(**self.store.locks.stamp(lock.ttl)), reach)

    def keep(self, instance_id: str, was_seen: bool = True) -> float | None:
        if was_seen:
            self.store.instances.show_life(instance_id)
        leases = [lock.ttl for lock in self.store.locks.of(instance_id) if lock.ttl is not None]
        return min(leases) / 3 if leases else None

    def renew_lock(self, instance: Session, file: str, agent: str = "", fence: int | None = None,
                   ttl: float | None = None) -> Lock:  # fmt: skip
        reach = reach_of(instance, file)
        checked_ttl(ttl)
        mine = self.store.locks.own(instance, reach, agent)
        if not mine or (fence is not None and mine[0].fence != fence):
            raise Refused(f"this session holds no lock on {reach.file}")
        self.store.instances.show_life(instance["id"])
        if ttl is not None:
            self.store.locks.put(mine[0].replace(**self.store.locks.stamp(ttl)), reach)
        return self.store.locks.own(instance, reach, agent)[0]

    def some(self) -> bool:
        over = [lock for lock, _reach in self.memory.locks.values() if self.store.locks.lapsed(lock)]
        for lock in over:
            self.memory.lapsed.append((lock.instance_id, lock.file))
            self.store.messages.post(lock.scope, "system", lock.instance_id, f"[auto] Your lock on {lock.file} lapsed.")
        self.store.locks.drop(over, "lapsed")
        return bool(over)


class Transfers(Part):
    def transfer(self, instance: Session, file: str, to_id: str, agent: str = "", fence: int | None = None,
                 note: str = "") -> Lock:  # fmt: skip
        reach, locks = reach_of(instance, file), self.store.locks
        if to_id == instance["id"]:
            raise Refused("that is this session itself")
        taker = self.store.instances.live(to_id)
        if taker is None or taker.scope != instance["scope"]:
            raise UnknownInstance(f"Instance {to_id} is not active in this scope")
        if not may_meet(instance["label"], taker.label):
            raise Refused("locks are not handed across identities")
        mine = locks.own(instance, reach, agent)
        if not mine or (fence is not None and mine[0].fence != fence):
            raise Refused(f"this session holds no lock on {reach.file}")
        given = mine[0].replace(
            instance_id=to_id, agent=None, task_id=None, fence=locks.next_fence(), content=note or mine[0].content,
            owner_label=taker.label, **locks.stamp(mine[0].ttl),
        )  # fmt: skip
        self.memory.add_event(given.scope, "context.lock_released", instance["id"], given.file, to=to_id)
        self.memory.add_event(given.scope, "context.lock_acquired", to_id, given.file, fence=given.fence)
        self.store.messages.post(taker.scope, "system", to_id, f"[auto] You have been handed the lock on {given.file}.")
        return locks.put(given, reach)

    def request(self, instance: Session, file: str, reason: str = "") -> list[Lock]:
        reach = reach_of(instance, file)
        locks = self.store.locks.meeting(reach)
        theirs = [lock for lock in locks if keeps_out(lock, instance["id"], "", EXCLUSIVE)]
        if not theirs:
            raise Refused(f"nobody keeps {reach.file} from you: lock it")
        self.memory.denied[instance["id"], reach.file] = theirs[0].instance_id
        for lock in theirs:
            text = f"[auto] {instance['id']} asks for your lock on {lock.file}: {reason}"
            self.store.messages.post(lock.scope, instance["id"], lock.instance_id, text)
        return theirs

    def steal(
        self, instance: Session, file: str, reason: str = "", force: bool = False, ttl: float | None = None
    ) -> dict:
        asked, locks = request(instance, [file], note=reason, ttl=ttl), self.store.locks
        met = [lock for lock, there in self.memory.locks.values() if meet(asked.reaches[0], there)]
        others = [lock for lock in met if lock.instance_id != instance["id"]]
        void = [lock for lock in others if locks.lapsed(lock) or not self.store.instances.live(lock.instance_id)]
        if not force and others != void:
            raise LockRefused({"instance_id": others[0].instance_id, "file": others[0].file})
        for lock in others:
            if self.store.instances.live(lock.instance_id):
                self.store.messages.post(lock.scope, "system", lock.instance_id, f"[auto] {lock.file} was taken.")
        locks.drop([lock for lock in others if lock.id in self.memory.locks], "stolen")
        return {"lock": locks.acquire_all(instance, asked)[0], "taken": others}


class Messages(Part):
    def post(self, scope: str, sender: str, recipient: str, content: str) -> int:
        number = 1 + max((mail.id for mail in self.memory.messages), default=0)
        told = {"sender": sender, "recipient": recipient, "content": content, "created_at": self.store.now(), "read": 0}
        self.memory.messages.append(Message(id=number, **told))
        self.memory.add_event(scope, "message.sent", sender, recipient)
        return number

    def send(self, sender: Session, recipient_id: str, content: str) -> int:
        if not content.strip():
            raise Refused("an empty message cannot be sent")
        self.store.instances.show_life(sender["id"])
        recipient = self.store.instances.live(recipient_id)
        if recipient is None or recipient.scope != sender["scope"]:
            raise UnknownInstance(f"Instance {recipient_id} is not active in this scope")
        if not may_meet(sender["label"], recipient.label):
            raise Refused("works under another identity")
        return self.post(sender["scope"], sender["id"], recipient_id, content)

    def broadcast(self, sender: Session, content: str) -> list[str]:
        peers = [row for row in self.store.instances.in_scope(sender["scope"]) if row.id != sender["id"]]
        ids = [row.id for row in peers if may_meet(sender["label"], row.label)]
        for one in ids:
            self.post(sender["scope"], sender["id"], one, content)
        return ids

    def peek(self, instance: Session, limit: int = 50) -> list[Message]:
        mine = [mail for mail in self.memory.messages if mail.recipient == instance["id"] and not mail.read]
        return mine[:limit]

    def take(self, instance: Session, limit: int = 50, about: str = "") -> list[Message]:
        mark = f"[task:{about}]" if about else ""
        taken = [mail for mail in self.peek(instance, 10**9) if mail.content.startswith(mark)][:limit]
        self.memory.taken |= {mail.id for mail in taken}
        return taken

    def acknowledge(self, ids: list[int]) -> None:
        mails = self.memory.messages
        self.memory.messages = [mail.replace(read=1) if mail.id in ids else mail for mail in mails]

    def put_back(self, ids: list[int]) -> None:
        self.memory.taken -= set(ids)

    def recent(self, _scope: str, limit: int = 50, to: str = "", sender: str = "", viewer: str = "") -> list[Message]:
        found = [mail for mail in self.memory.messages if to in ("", mail.recipient) and sender in ("", mail.sender)]
        return found[-limit:] if limit >= 0 else found


class Tasks(Part):
    def get(self, scope: str, task_id: str) -> Task | None:
        task = self.memory.tasks.get(task_id)
        return task if task and task.scope == scope else None

    def seen(self, viewer: Session, task_id: str) -> Task | None:
        task = self.memory.tasks.get(task_id)
        return task if task and self._sees(viewer, task) else None

    def listed(self, viewer: Session, status: str = "", assignee: str = "", requester: str = "") -> list[Task]:
        def fits(task: Task) -> bool:
            pairs = ((status, task.status), (assignee, task.assignee), (requester, task.requester))
            return all(wanted in ("", there) for wanted, there in pairs)

        found = [task for task in self.in_order(viewer) if fits(task)]
        return sorted(found, key=lambda task: -task.priority)

    def in_order(self, viewer: Session, status: str = "") -> list[Task]:
        own = [task for task in self.memory.tasks.values() if task.scope == viewer["scope"]]
        return [task for task in own if self._sees(viewer, task) and status in ("", task.status)]

    def counts(self, viewer: Session) -> dict[str, int]:
        return {status: len(self.listed(viewer, status)) for status in STATUSES}

    def claimable(self, instance: Session, limit: int = 10) -> list[Task]:
        mine = self.listed(instance, CLAIMED, instance["id"])
        return (mine + [task for task in self.listed(instance, OPEN) if not task.assignee])[:limit]

    def request(self, requester: Session, spec: dict, notify: bool = True) -> dict:
        self.store.instances.show_life(requester["id"])
        key = (spec.get("idempotency_key") or "").strip()
        known = [task for task in self.memory.tasks.values() if key and task.idempotency_key == key]
        if known:
            return {"task": known[0], "existing": True, "notices": []}
        task = _composed(requester, spec)
        for needed in task["depends_on"] or ():
            if needed not in self.memory.tasks:
                raise Refused(f"Dependency task {needed} not found in scope")
        if task["assignee"] and not self.store.instances.live(task["assignee"]):
            raise Refused(f"Instance {task['assignee']} is not active in this scope")
        if task["status"] == OPEN or self._failed(task):
            task["status"] = self._standing(task)
        now = self.store.now()
        task.update(created_at=now, updated_at=now, changed_at=now * 1000)
        self.memory.tasks[task["id"]] = made = Task(task)
        self.memory.add_event(made.scope, "task.created", requester["id"], made.id)
        told = []
        if notify and made.assignee and made.assignee != requester["id"] and made.status not in TERMINAL:
            told = self._post(requester, made.assignee, made)
        return {"task": made, "existing": False, "notices": told}

    def claim(self, instance: Session, task_id: str, ignore_unread: bool = False) -> dict:
        self.store.instances.show_life(instance["id"])
        task = self._seen(instance, task_id)
        holder = self.store.instances.get(task.assignee) if task.assignee else None
        if holder and not self.store.instances.live(holder.id):
            self.store.instances.remove(holder.id, "reclaimed")
            task = self._seen(instance, task_id)
        mail = [one for one in self.store.messages.peek(instance) if f"task_id: {task_id})" not in one.content]
        if mail and not ignore_unread:
            raise Refused("Read your mail first")
        prior = task.status
        return {
            "task": self._move(task, IN_PROGRESS, "claim", instance, assignee=instance["id"]),
            "prior_status": prior,
        }

    def claim_next(self, instance: Session, types: list[str] | None = None, files: list[str] | None = None,
                   ignore_unread: bool = False) -> dict:  # fmt: skip
        found = [task for task in self.claimable(instance, 10**9) if not types or task.type in types]
        if not found:
            raise Refused("No claimable task found")
        return self.claim(instance, found[0].id, ignore_unread)

    def reserve(self, task_id: str, worker: Session) -> Task:
        return self._move(self.memory.tasks[task_id], CLAIMED, "reserve", worker, assignee=worker["id"])

    def approve(self, actor: Session, task_id: str) -> dict:
        task = self._seen(actor, task_id)
        moved = self._move(task, self._standing(task), "approve", actor)
        return {"task": moved, "notices": []}

    def report_progress(self, actor: Session, task_id: str, summary: str, blocked_reason: object = UNCHANGED,
                        expected_next_update_at: object = UNCHANGED, begun: bool = True) -> dict:  # fmt: skip
        task = self._seen(actor, task_id)
        if task.assignee != actor["id"] or task.status != IN_PROGRESS:
            raise Refused("Only the assignee can report progress on this task")
        given = {"blocked_reason": blocked_reason, "expected_next_update_at": expected_next_update_at}
        changed = {name: value for name, value in given.items() if value is not UNCHANGED}
        self.memory.tasks[task.id] = task.replace(progress_summary=summary, **changed)
        return {"progress_summary": summary, **changed}

    def end(self, actor: Session, task_id: str, status: str, result: str | None = None) -> dict:
        if status not in TERMINAL:
            raise Refused(f"A task ends as done, failed or cancelled, not as {status}")
        self.store.instances.show_life(actor["id"])
        task = self._move(self._seen(actor, task_id), status, "end", actor, result=result)
        held = self.store.locks.of(task.assignee) if task.assignee else []
        theirs = [
            lock for lock in held if lock.task_id == task.id or (not lock.task_id and lock.file in (task.files or ()))
        ]
        self.store.locks.drop(theirs, "task_terminal")
        told = []
        if status != CANCELLED and task.requester != actor["id"]:
            told = self._post(actor, task.requester, task)
        return {"task": task, "notices": told, "unblocked": self._spread(task)}

    def release_all(self, session: Session) -> None:
        for task in list(self.memory.tasks.values()):
            if task.assignee == session.id and task.status in (CLAIMED, IN_PROGRESS):
                self._move(task, OPEN, "release", None, assignee=None)
            elif task.assignee == session.id and task.status not in TERMINAL:
                self.memory.tasks[task.id] = task.replace(assignee=None)

    def _spread(self, ended: Task) -> list[tuple[str, str]]:
        """What the end of a task means for those that wait for it."""
        told: list[tuple[str, str]] = []
        for task in list(self.memory.tasks.values()):
            if ended.id in (task.depends_on or ()) and task.status in (BLOCKED, APPROVAL_REQUIRED):
                if self._failed(task):
                    told += self._spread(self._move(task, CANCELLED, "cascade", None))
                elif task.status == BLOCKED and self._standing(task) != BLOCKED:
                    moved = self._move(task, self._standing(task), "unblock", None)
                    told += self._post(Session(id="system"), moved.assignee, moved) if moved.assignee else []
        return told

    def _failed(self, task: dict) -> bool:
        needed = [self.memory.tasks[one].status for one in task["depends_on"] or () if one in self.memory.tasks]
        return any(status in (FAILED, CANCELLED) for status in needed)

    def _standing(self, task: dict) -> str:
        if self._failed(task):
            return CANCELLED
        needed = [self.memory.tasks[one].status for one in task["depends_on"] or () if one in self.memory.tasks]
        if any(status != DONE for status in needed):
            return BLOCKED
        return CLAIMED if task["assignee"] else OPEN

    def _move(self, task: Task, status: str, how: str, actor: Session | None, **columns: object) -> Task:
        why = refusal(task, status, how, actor["id"] if actor else None)
        if why:
            raise Refused(why)
        self.memory.tasks[task.id] = moved = task.replace(status=status, **columns)
        self.memory.add_event(task.scope, f"task.{how}", actor["id"] if actor else "system", task.id)
        return moved

    def _post(self, sender: Session, recipient: str, task: Task) -> list[tuple[str, str]]:
        row = self.store.instances.get(recipient)
        if row is None:
            return []
        content = f"[task:{task.id}] [auto] {task.title} is {task.status} (task_id: {task.id})"
        self.store.messages.post(row.scope, sender["id"], recipient, content)
        return [(recipient, content)]

    def _seen(self, actor: Session, task_id: str) -> Task:
        task = self.seen(actor, task_id)
        if task is None:
            raise Refused("Task not found")
        return task

    def _sees(self, viewer: Session, task: Task) -> bool:
        owner = self.store.instances.get(task.requester)
        return viewer["id"] in (task.requester, task.assignee) or not owner or may_meet(viewer["label"], owner.label)


class Values(Part):
    def items(self, scope: str, prefix: str = "", viewer: str | None = None) -> list[KeyValue]:
        rows = [value for (place, key), value in sorted(self.memory.values.items()) if place == scope]
        return [
            KeyValue(key=row.key, updated_at=row.updated_at)
            for row in rows
            if row.key.startswith(prefix) and self._open(row, viewer)
        ]

    def count(self, scope: str, viewer: str | None = None) -> int:
        return len(self.items(scope, "", viewer))

    def get(self, scope: str, key: str, viewer: str | None = None) -> KeyValue | None:
        row = self.memory.values.get((scope, key))
        return row if row and self._open(row, viewer) else None

    def put(self, instance: Session, key: str, value: str) -> None:
        self._write(instance, key, value)

    def append(self, instance: Session, key: str, value: str) -> int:
        from swarm_mcp.store.json_lists import appended, compact

        known = self.get(instance["scope"], key)
        text, length = appended(known and known.value, compact(value))
        self._write(instance, key, text)
        return length

    def delete(self, instance: Session, key: str) -> bool:
        self._owned(instance, key)
        self.memory.add_event(instance["scope"], "kv.deleted", instance["id"], key)
        return self.memory.values.pop((instance["scope"], key), None) is not None

    def _write(self, instance: Session, key: str, value: str) -> None:
        if not key.strip():
            raise SwarmError("a key needs a name")
        known = self._owned(instance, key)
        owner = known.owner_identity if known and known.owner_identity else self._identity(instance)
        row = KeyValue(key=key, value=value, updated_at=self.store.now(), owner_identity=owner)
        self.memory.values[instance["scope"], key] = row
        self.memory.add_event(instance["scope"], "kv.set", instance["id"], key)

    def _owned(self, instance: Session, key: str) -> KeyValue | None:
        row = self.memory.values.get((instance["scope"], key))
        if row and not self._open(row, self._identity(instance) or ""):
            raise Refused("KV key is owned by another identity")
        return row

    def _identity(self, instance: Session) -> str | None:
        name = token(instance["label"] or "", "identity")
        return f"identity:{name}" if name else None

    def _open(self, row: KeyValue, viewer: str | None) -> bool:
        return viewer is None or row.owner_identity in (None, viewer)


class Runs(Part):
    def begin(self, spec: dict) -> Run:
        now = self.store.now()
        self.memory.runs[spec["id"]] = Run({"state": STARTING, "started_at": now, "updated_at": now, **spec})
        return self.memory.runs[spec["id"]]

    def update(self, run_id: str, **columns: object) -> Run | None:
        run = self.get(run_id)
        if run is None:
            return None
        ended = {"ended_at": self.store.now()} if columns.get("state") == ENDED else {}
        self.memory.runs[run_id] = run.replace(**columns, **ended)
        return self.memory.runs[run_id]

    def ask(self, run_id: str, control: str) -> Run:
        run = self.get(run_id)
        if run is None or run.state == ENDED:
            raise Refused(f"run {run_id} has ended" if run else f"there is no run {run_id}")
        return self.update(run_id, control=control or None) or run

    def get(self, run_id: str) -> Run | None:
        return self.memory.runs.get(run_id)

    def find(self, scope: str, reference: str) -> Run:
        def begins(run: Run) -> bool:
            return run.id.startswith(reference) or (run.task_id or "").startswith(reference)

        exact = [run for run in self.recent() if reference in (run.id, run.task_id)]
        found = exact[:1] or [run for run in self.recent(scope) if reference and begins(run)]
        if not found or len({run.task_id or run.id for run in found}) > 1:
            raise Refused(f"{reference!r} is no run, or several")
        return found[0]

    def of_task(self, scope: str, task_id: str) -> list[Run]:
        return [run for run in self.recent(scope) if run.task_id == task_id]

    def recent(self, scope: str = "", limit: int = 50) -> list[Run]:
        found = [run for run in self.memory.runs.values() if scope in ("", run.scope)]
        return found[::-1][: limit if limit >= 0 else None]

    def live(self, scope: str = "") -> list[Run]:
        return [run for run in self.recent(scope, -1) if run.state != ENDED]

    def of_instance(self, instance_id: str) -> Run | None:
        return next((run for run in self.live() if run.instance_id == instance_id), None)


class Activity(Part):
    def moment(self, _instance: Session) -> int:
        return len(self.memory.events)

    def since(self, instance: Session, before: int) -> SimpleNamespace:
        """What others have done since: ``changes`` by the contract's names."""
        names = {
            "task": "task_updates", "instance": "instance_changes", "kv": "kv_updates", "context": "lock_updates",
        }  # fmt: skip
        new = [event for event in self.memory.events[before:] if event.scope == instance["scope"]]
        groups = {event.type.partition(".")[0] for event in new if instance["id"] != event.actor}
        mail = any(event.type == "message.sent" and event.subject == instance["id"] for event in new)
        changes = [*(["new_messages"] if mail else []), *(name for group, name in names.items() if group in groups)]
        return SimpleNamespace(moment=len(self.memory.events), changes=changes)

    def sweep(self) -> None:
        self.store.leases.some()
        for row in self.store.instances.gone():
            self.store.instances.remove(row.id, "reclaimed")

    def of_locks(self, before: int | None, limit: int) -> list[Event]:
        found = [event for event in self.memory.events if event.type.startswith("context.")]
        return [event for event in found[::-1] if before is None or event.id < before][:limit]
