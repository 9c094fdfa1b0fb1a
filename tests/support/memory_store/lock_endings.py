"""How locks end or go to another holder: leases, transfers; and the locks under which workers are started."""

from __future__ import annotations

from support.memory_store.tables import Part
from swarm_hook_core.json_text import dumps, loads
from swarm_mcp.domain.lock import AUTO, EXCLUSIVE, Lapse, Lock, keeps_out
from swarm_mcp.domain.record import new_id
from swarm_mcp.domain.session import Session, anywhere
from swarm_mcp.domain.task import TERMINAL
from swarm_mcp.errors import LockRefused, Refused, UnknownInstance
from swarm_mcp.store.lock_request import Reach, checked_ttl, meet, reach_in, reach_of, request
from swarm_mcp.visibility import may_meet


class Leases(Part):
    def renew(self, instance_id: str) -> None:
        self.some()
        for lock, reach in list(self.memory.locks.values()):
            if lock.instance_id == instance_id and lock.ttl is not None and lock.mode != AUTO:
                self.store.locks.put(lock.replace(**self.store.locks.stamp(lock.ttl)), reach)

    def keep(self, instance_id: str, was_seen: bool = True) -> float | None:
        if was_seen:
            self.store.instances.show_life(instance_id)
        leases = [lock.ttl for lock in self._leased(instance_id)]
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
        for lock in (one for one in over if one.mode != AUTO):
            text = f"[auto] Your lock on {lock.file} lapsed."
            number = self.store.notices.post(lock.scope, "system", lock.instance_id, text, lock.file)
            names = ("instance_id", "file", "agent", "path_key", "pattern", "base", "fence")
            lapse = Lapse(**{name: lock[name] for name in names}, lapsed_at=self.store.now(), message_id=number)
            self.memory.lapsed.append(lapse.replace(taken_fence=None, taken_by=None, taken_label=None))
        self.store.locks.drop(over, "lapsed")
        return bool(over)

    def is_due(self, instance_id: str) -> bool:
        leased = self._leased(instance_id)
        return any((self.store.locks.left(lock) or 0) <= lock.ttl * 2 / 3 for lock in leased)

    def _leased(self, instance_id: str) -> list[Lock]:
        """Those that signs of life renew."""
        return [lock for lock in self.store.locks.of(instance_id) if lock.ttl is not None and lock.mode != AUTO]

    def next_due(self) -> float | None:
        left = [self.store.locks.left(lock) for lock, _reach in self.memory.locks.values()]
        return min((seconds for seconds in left if seconds is not None), default=None)

    def overtaken(self, instance_id: str) -> list[Lapse]:
        mine = [lapse for lapse in self.memory.lapsed if lapse.instance_id == instance_id]
        return [lapse for lapse in mine if lapse.taken_fence is not None]

    def note_grant(self, instance: Session, reaches: tuple[Reach, ...], granted: list[Lock]) -> None:
        """Write down whose these locks were before, if they lapsed."""
        for at, lapse in enumerate(list(self.memory.lapsed)):
            there = reach_in(lapse)
            taken = [lock for lock, reach in zip(granted, reaches) if there and meet(reach, there)]
            if taken and lapse.instance_id != instance["id"] and lapse.taken_fence is None:
                by = {"taken_by": instance["id"], "taken_label": instance["label"]}
                self.memory.lapsed[at] = lapse.replace(taken_fence=taken[0].fence, **by)


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
            instance_id=to_id, agent=None, task_id=None, fence=locks.next_fence(),
            content=note or ("" if mine[0].mode == AUTO else mine[0].content),
            mode=None if mine[0].mode == AUTO else mine[0].mode, owner_label=taker.label, **locks.stamp(mine[0].ttl),
        )  # fmt: skip
        self.memory.add_event(given.scope, "context.lock_released", instance["id"], given.file, to=to_id)
        self.memory.add_event(given.scope, "context.lock_acquired", to_id, given.file, fence=given.fence)
        text = f"[auto] You have been handed the lock on {given.file}."
        self.store.notices.post(taker.scope, "system", to_id, text)
        return locks.put(given, reach)

    def request(self, instance: Session, file: str, reason: str = "") -> list[Lock]:
        reach = reach_of(instance, file)
        locks = self.store.locks.meeting(reach)
        theirs = [lock for lock in locks if keeps_out(lock, instance["id"], "", EXCLUSIVE)]
        if not theirs:
            raise Refused(f"nobody keeps {reach.file} from you: lock it")
        self.store.denials.add(instance, reach.file, theirs[0].instance_id)
        for lock in theirs:
            text = f"[auto] {instance['id']} asks for your lock on {lock.file}: {reason}"
            self.store.notices.post(lock.scope, instance["id"], lock.instance_id, text, lock.file)
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


class SpawnLocks(Part):
    def take(self, instance: Session, name: str, task_id: str, worker_id: str) -> Lock | None:
        self.store.instances.show_life(instance["id"])
        held = self.holder(instance["scope"], name)
        task = self.memory.tasks.get(held.task_id or "") if held else None
        if held and task and task.status not in TERMINAL:
            return None
        if held:
            self.release(held, "spawn_void")
        lock = Lock(
            id=new_id(), scope=instance["scope"], instance_id=instance["id"], file=name, type="lock",
            content=dumps({"stage": "starting", "instance_id": worker_id}), task_id=task_id,
            created_at=self.store.now(), mode=None, agent=None, pattern=None, fence=None,
            **self.store.locks.stamp(None),
        )  # fmt: skip
        return self.store.locks.put(lock, reach_of(anywhere(), name, as_pattern=False))

    def started(self, row: Lock, facts: dict) -> None:
        lock, reach = self.memory.locks[row.id]
        self.store.locks.put(lock.replace(content=dumps({"stage": "started", **facts})), reach)

    def release(self, row: Lock, reason: str) -> None:
        self.store.locks.drop([lock for lock, _reach in self.memory.locks.values() if lock.id == row.id], reason)

    def holder(self, scope: str, name: str) -> Lock | None:
        return next((lock for lock in self.store.locks.on(name) if lock.scope == scope), None)

    def worker_of(self, row: Lock) -> Session | None:
        return self.store.instances.live(loads(row.content).get("instance_id", ""))
