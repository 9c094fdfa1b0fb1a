"""A lock's way from one holder to another: given, asked for, taken."""

from __future__ import annotations

import time

from swarm_hook_core import clock
from swarm_hook_core.labels import same_circle, token
from swarm_hook_core.lookup import plain
from swarm_hook_core.untrusted_text import named, quoted
from swarm_hook_core.watching.report import quoted as as_word
from swarm_mcp.domain.lock import AUTO, EXCLUSIVE, Lock, keeps_out
from swarm_mcp.domain.session import TEAM, Session
from swarm_mcp.errors import LockRefused, Refused, UnknownInstance
from swarm_mcp.store import events
from swarm_mcp.store.denials import key_of_lock
from swarm_mcp.store.lock_finder import facts, unfit
from swarm_mcp.store.lock_request import LONGEST_NOTE, Reach, checked_note, reach_of, request
from swarm_mcp.store.team_numbers import number_of
from swarm_mcp.views import known_as
from swarm_mcp.visibility import may_meet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_mcp.store.database import Database
    from swarm_mcp.store.denials import Denials
    from swarm_mcp.store.events import Signals
    from swarm_mcp.store.lock_endings import LockEndings
    from swarm_mcp.store.lock_finder import LockFinder
    from swarm_mcp.store.lock_queue import LockQueue
    from swarm_mcp.store.locks import Locks
    from swarm_mcp.store.messages import Messages
    from swarm_mcp.store.notices import Notices
    from swarm_mcp.store.sessions import Sessions


class Transfers:
    """The ways a lock goes to another holder. Each is one transaction: at no moment is the file anybody else's."""

    def __init__(
        self,
        db: Database,
        finder: LockFinder,
        endings: LockEndings,
        locks: Locks,
        queue: LockQueue,
        sessions: Sessions,
        messages: Messages,
        notices: Notices,
        denials: Denials,
        signals: Signals,
    ):
        self._db = db
        self._finder = finder
        self._endings = endings
        self._locks = locks
        self._queue = queue
        self._sessions = sessions
        self._messages = messages
        self._notices = notices
        self._denials = denials
        self._signals = signals

    # --------------------------------------------------------------- transfer

    def transfer(
        self, instance: Session, file: str, to_id: str, agent: str = "", fence: int | None = None, note: str = ""
    ) -> Lock:
        reach = reach_of(instance, file)
        checked_note(note)
        if to_id == instance.id:
            raise Refused("that is this session itself")
        refusal: Refused | None = None
        with self._db.writing():
            self._finder.adopt()
            self._sessions.require(instance.id)
            taker = self._partner(instance, to_id)
            mine = self._finder.own(instance, reach, agent, self._endings.reaped)
            refusal = unfit(reach, mine, fence)
            if refusal is None and len(mine) > 1:
                refusal = Refused(f"this session holds {reach.file} more than once; say which with agent or fence")
            if refusal is None and taker.runtime == TEAM and mine[0].team_fence is None:
                refusal = Refused(
                    f"the team has not granted {reach.file} to this session, so that it cannot be handed to another"
                    " machine: release it, and let that session lock it"
                )
            if refusal is None:
                return self._give(instance, mine[0], reach, taker, note)
        raise refusal

    def _give(self, giver: Session, lock: Lock, reach: Reach, taker: Session, note: str) -> Lock:
        file, mode = plain(lock.file), lock.mode or EXCLUSIVE
        self._clear_the_way(lock, reach, taker, mode)
        fence = self._locks.next_fence()
        leased = lock.ttl is not None
        said = "" if taker.runtime == TEAM else note  # there it keeps its note
        self._db.change(
            "UPDATE context SET instance_id = ?, agent = NULL, task_id = NULL, fence = ?, content = ?, created_at = ?,"
            " mode = nullif(mode, ?), renewed = ?, booted = ?, wall_until = ?, warned = NULL WHERE id = ?",
            (
                taker.id, fence, said or ("" if lock.mode == AUTO else lock.content), self._db.now(), AUTO,
                clock.now() if leased else None,
                clock.boot(self._db.here) if leased else None, time.time() + lock.ttl if lock.ttl is not None else None,
                lock.id,
            ),
        )  # fmt: skip
        row = self._finder.select("AND c.id = ?", (lock.id,))[0]
        told = {"released": 1, "reason": "transferred", "to": taker.id, **facts(lock)}
        events.add(self._db, lock.scope, "context.lock_released", giver.id, file, told)
        told = {"id": row.id, "content": row.content, "from": giver.id, **facts(row)}
        events.add(self._db, lock.scope, "context.lock_acquired", taker.id, file, told)
        self._settle(row, taker)
        words = f" It says: {quoted(note, LONGEST_NOTE)}." if note else ""
        if taker.runtime != TEAM:
            self._notices.post(
                taker,
                f"[auto] {_name(giver, taker)} has handed you the lock on {named(file)} (fence {fence}).{words} Read it"
                " before you write, and release it when you are done.",
            )
        elif words:  # that it has the lock, its own machine says to it
            self._notices.post(taker, f"[auto] {_name(giver, taker)} hands you its lock on {named(file)}.{words}")
        self._tell_waiting(reach, {giver.id, taker.id}, giver, taker, file)
        self._sessions.dismiss({giver.id})
        return row

    def _clear_the_way(self, lock: Lock, reach: Reach, taker: Session, mode: str) -> None:
        """See that nothing but `lock` itself would keep `taker` from it. What the taker has there becomes this one."""
        rows = self._finder
        for other in self._endings.reaped(rows.meeting(reach)):
            if other.id == lock.id:
                continue
            if keeps_out(other, taker.id, "", mode):
                owner = "you also hold" if other.instance_id == lock.instance_id else "there is also a lock on"
                raise Refused(f"{owner} {plain(other.file)}, which meets it: hand that over, or release it, first")
            same = self._finder.is_same(other, reach)
            if other.instance_id == taker.id and not other.agent and same:
                if other.machine is not None:
                    raise Refused(f"it holds {plain(other.file)} as well, on its machine: release yours")
                self._endings.drop([other], "merged")

    # ---------------------------------------------------------------- request

    def request(self, instance: Session, file: str, reason: str = "") -> list[Lock]:
        wanted = request(instance, [file], note=reason)
        reach = wanted.reaches[0]
        with self._db.writing():
            self._finder.adopt()
            self._sessions.require(instance.id)
            rows = self._finder
            theirs = [r for r in self._endings.reaped(rows.meeting(reach)) if keeps_out(r, instance.id, "", EXCLUSIVE)]
            refusal = None if theirs else Refused(f"nobody keeps {reach.file} from you: lock it")
            known = [row for row in theirs if may_meet(instance.label, row.owner_label)]
            if theirs and not known:
                refusal = Refused(f"{reach.file} is held by a session of another identity; ask the person running it")
            if refusal is None:
                self._denials.await_lock(instance, theirs[0])
            for row in known:
                self._ask(instance, row, reach.file, reason)
        if refusal:
            raise refusal
        return [row.replace(file=plain(row.file)) for row in known]

    def _ask(self, instance: Session, lock: Lock, file: str, reason: str) -> None:
        holder, held = self._sessions.get(lock.instance_id), plain(lock.file)
        if holder is None or holder.id == instance.id:
            return
        payload = {"holder": holder.id, "why": reason, "lock": lock.id, "wanted": file, **facts(lock)}
        events.add(self._db, lock.scope, "context.lock_requested", instance.id, held, payload)
        if self._notices.unread(holder, instance.id, held):
            return
        wants = "" if held == file else f" (it wants {named(file)})"
        why = f": {quoted(reason, LONGEST_NOTE)}" if reason else ""
        self._notices.post(
            holder,
            f"[auto] {_name(instance, holder)} asks for your lock on {named(held)}{wants}{why}. When you can spare it,"
            f" hand it over (`swarm-mcp transfer {as_word(held)} --to {instance.id}`, or transfer_lock) or"
            " release it; if not, tell it until when you need it.",
            held,
            sender=instance.id,
        )

    # ------------------------------------------------------------------ steal

    def steal(
        self, instance: Session, file: str, reason: str = "", force: bool = False, ttl: float | None = None
    ) -> dict:
        wanted = request(instance, [file], note=reason, ttl=ttl, tool="steal_lock")
        reach = wanted.reaches[0]
        self._finder.adopt()
        before = [row for row in self._finder.meeting(reach) if row.instance_id != instance.id]
        if not force:
            taken = [row for row in before if self._finder.is_void(row)]
            (lock,) = self._locks.acquire_all(instance, wanted)
            with self._db.writing():
                for row in taken:
                    self._note_theft(instance, row, reason, forced=False)
            return {"lock": lock, "taken": [row.replace(file=plain(row.file)) for row in taken]}
        with self._db.writing():
            self._finder.adopt()
            self._sessions.require(instance.id)
            rows = self._finder
            taken = [
                row
                for row in self._endings.reaped(rows.covering(reach))
                if keeps_out(row, instance.id, "", EXCLUSIVE) and row.instance_id != instance.id
            ]
            left = [
                row
                for row in rows.meeting(reach)
                if keeps_out(row, instance.id, "", EXCLUSIVE) and row.id not in {row.id for row in taken}
            ]
            if not left:
                keys = list(reach.keys)
                self._denials.forget(instance.id, keys)
                self._denials.taker = (instance.id, keys)
                try:
                    self._endings.drop(taken, "stolen", by=instance.id, why=reason)
                finally:
                    self._denials.taker = ("", [])
                for row in taken:
                    self._note_theft(instance, row, reason, forced=True)
                lock = self._locks.grant(instance, wanted)[0]
                grants = " ".join(f"{number_of(row.id)}:{row.team_fence}" for row in taken if row.machine)
                if grants:
                    self._db.change("UPDATE context SET takes = ? WHERE id = ?", (grants, lock.id))
                self._settle(lock, instance)
                for row in taken:
                    self._denials.follow(key_of_lock(row), instance.id)
                self._tell_waiting(
                    reach, {instance.id, *(row.instance_id for row in taken)}, None, instance, reach.file
                )
                return {"lock": lock, "taken": [row.replace(file=plain(row.file)) for row in taken]}
        raise LockRefused(self._locks.describe(left[0], token(instance.label or "", "identity")))

    def _note_theft(self, thief: Session, lock: Lock, reason: str, forced: bool) -> None:
        file = plain(lock.file)
        payload = {"holder": lock.instance_id, "why": reason, "forced": forced, **facts(lock)}
        events.add(self._db, lock.scope, "context.lock_stolen", thief.id, file, payload)
        holder = self._sessions.live(lock.instance_id)
        if holder is None or holder.runtime == TEAM:  # on its own machine the replica says it, with the path there
            return
        why = f": {quoted(reason, LONGEST_NOTE)}" if reason else ""
        self._notices.post(
            holder,
            f"[auto] Your lock on {named(file)} was taken by {_name(thief, holder)}{why}. Do not write it.",
            file,
        )

    # ---------------------------------------------------------------- innards

    def _partner(self, instance: Session, to_id: str) -> Session:
        taker = self._sessions.live(to_id)
        if taker is None or taker.scope != instance.scope:
            raise UnknownInstance(f"Instance {to_id} is not active in this scope")
        if not may_meet(instance.label, taker.label):
            raise Refused(f"session {to_id} works under another identity; locks are not handed across")
        return taker

    def _settle(self, lock: Lock, taker: Session) -> None:
        """Who was denied by the old holder now waits for the new one. A circle of waiters is found by their waits."""
        key = key_of_lock(lock)
        self._denials.forget(taker.id, [key])
        self._denials.follow(key, taker.id)
        self._signals.locks_granted(taker, [lock])

    def _tell_waiting(self, reach: Reach, spared: set, giver: Session | None, taker: Session, file: str) -> None:
        """One message to each session that waits for it: it has changed hands, and their place is kept."""
        told = set(spared)
        for waiter in self._queue.waiting_for(reach):
            session = self._sessions.live(waiter.instance_id)
            if session is None or session.id in told or session.runtime == TEAM:
                continue
            told.add(session.id)
            how = f"{_name(giver, session)} has handed" if giver else f"{_name(taker, session)} has taken"
            to = f" to {_name(taker, session)}" if giver else " from its holder"
            self._messages.post(
                session.scope, "system", session.id,
                f"[auto] {how} the lock on {named(file)}{to}. You are still in line for it.",
            )  # fmt: skip


def _name(whose: Session, viewer: Session) -> str:
    """Return what a session is called to another one, with the id to write to."""
    if not same_circle(token(viewer.label or "", "identity"), token(whose.label or "", "identity")):
        return "a session of another identity"
    return known_as(whose)
