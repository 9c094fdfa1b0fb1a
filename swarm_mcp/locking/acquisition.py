"""Asking for locks and claiming tasks, for commands and tools alike, on all machines of a team.

Waiters stand in a queue across processes, and each commit to the store wakes them. `LockWait` is asked again after each
change (`advance`): a command blocks in between, a server must not. Most of the time a waiter only reads; only the first
in the queue writes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from swarm_hook_core import clock, repository
from swarm_hook_core.repository import Tree
from swarm_mcp import contributions
from swarm_mcp.contributions import LOCKS_GRANTED, TASK_CLAIMED
from swarm_mcp.domain import OPEN, Lock, Session, Task, Waiter, granted, keeps_out
from swarm_mcp.errors import LockRefused, Refused, SwarmError
from swarm_mcp.store import Store
from swarm_mcp.store.lock_request import LockRequest, hint_of, request

TYPE_CHECKING = False


# Confirmation of grants that must also hold on other machines, by the package that knows these machines.
#
# A grant is written here first. Then the package has its server confirm it, so that of any number of machines one has
# the lock or the task. Without such a package, or outside of the work trees that it knows, a grant needs no
# confirmation.

if TYPE_CHECKING:

    class Confirmation(Protocol):
        """The answer of other machines about locks that were granted here."""

        @property
        def is_lost(self) -> bool:
            """Return True if another machine was faster. The locks are not held here any more."""
            ...

        @property
        def is_everywhere(self) -> bool:
            """Return True if the locks hold on all machines."""
            ...

        @property
        def said(self) -> str:
            """Return the text beside the lock about the machines that it holds on."""
            ...

        def shown(self, lock: Lock) -> dict[str, Any]:
            """Return the fields that it adds to the answer about the first `lock`."""
            ...

        def facts(self, lock: Lock) -> dict[str, Any]:
            """Return the fields that it adds to the facts about one `lock` among others."""
            ...


def confirm_locks(store: Store, rows: list[Lock]) -> Confirmation | None:
    """Return the Confirmation of locks that were just granted, or None if they need none."""
    found: Confirmation | None = contributions.react(LOCKS_GRANTED, store, rows)
    return found


def is_task_confirmed(store: Store, task: Task, prior_status: str) -> bool:
    """Return True if the claim on `task` counts; False if another machine was faster and has changed the task.

    `prior_status`: the status before the claim. Raises NotConfirmed, with the claim taken back, if the other machines
    cannot be asked.
    """
    return contributions.react(TASK_CLAIMED, store, task, prior_status) is not False


LONGEST_NAP = 0.5  # Seconds between two looks: leases lapse and processes die without a commit.
LONGEST_WAIT = 30 * 86400.0
SIGN_SECONDS = 9.0  # between two signs of life of a session that waits: a circle of waiters is told within 10 s
# attempts of a request that does not wait, while other machines take and release the same locks
MOST_TRIES = 10


def requested(
    store: Store, instance: Session, files: list[str], as_pattern: bool | None, expected_in: float | None, **facts: Any
) -> LockRequest:
    """Return the request of `instance` for `files`, spelled as the session spells them. Raises SwarmError.

    `as_pattern`: the files are patterns; None: each word that looks like one and is no file. `expected_in`: seconds
    until the holder expects to be done, or None. `facts` as in ``LockRequest``.
    """
    if expected_in is None:
        expected_end = None
    else:
        expected_end = store.now() + int(expected_in)
    return request(instance, files, as_pattern, expected_end=expected_end, **facts)


class Taken(list[Lock]):
    """Locks that were granted, with the Confirmation of other machines; None if they need none."""

    def __init__(self, rows: list[Lock], confirmation: Confirmation | None = None):
        super().__init__(rows)
        self.confirmation = confirmation


def granted_answer(taken: Taken, in_full: bool) -> dict[str, Any]:
    """Return ``{ok, id, fence}`` of the first lock that was `taken`, and all of them where wanted `in_full`.

    A Confirmation adds fields of its own.
    """
    first, confirmation = taken[0], taken.confirmation
    answer: dict[str, Any] = {"ok": True, "id": first.id, "fence": first.fence}
    if confirmation is not None:
        answer.update(confirmation.shown(first))
    hint = next(filter(None, (hint_of(row.file) for row in taken)), "")
    if hint:
        answer["hint"] = hint
    if in_full:
        answer["locks"] = [granted(row) for row in taken]
        if confirmation is not None:
            answer["locks"] = [{**granted(row), **confirmation.facts(row)} for row in taken]
    return answer


def refused_answer(store: Store, refusal: LockRefused, wanted: LockRequest, how_to_wait: str) -> dict[str, Any]:
    """Return ``{error, active, queue}``: the holders, the length of the queue, and the way to join it."""
    waiting = len(store.queue.waiting_for(*wanted.reaches))
    return {**refusal.answer, "queue": {"waiting": waiting, "join": how_to_wait}}


class LockWait:
    """A wait of `instance` (its row) for the locks `wanted`, for at most `seconds` from now; None: without end."""

    def __init__(self, instance: Session, wanted: LockRequest, seconds: float | None):
        self.instance = instance
        self.wanted = wanted._replace(ticket=0)
        if seconds is None:
            self._until = None
        else:
            self._until = clock.now() + min(seconds, LONGEST_WAIT)
        self._next_sign = 0.0
        self._lapse: float | None = None
        self.obstacle: Lock | Waiter | None = None  # the lock or waiter in the way at the last look, and its end
        self._next_look = 0.0  # before this moment, asking about the obstacle alone is enough
        self._had: set[int | None] | None = None  # fences of the locks held before

    def advance(self, store: Store) -> Taken | None:
        """Return the locks once they are held, or None while the wait goes on.

        Raises LockRefused when the time is over, Deadlock for a wait that would never end, and the errors of
        ``locks.acquire_all``. The place in the queue is given up then.
        """
        rows: list[Lock] | None = None
        if self._had is None:
            self._had = {lock.fence for lock in store.locks.of(self.instance.id)}
        try:
            if self.wanted.ticket:
                rows = self._attempt(store)
            else:
                rows = self._begin(store)
            if rows is None:
                return None
            self.wanted = self.wanted._replace(ticket=0)  # the place went with the grant
            return _confirmed(store, rows)
        except BaseException:
            self.give_up(store)
            self.put_back(store, rows or [])
            raise

    def left(self) -> float:
        """Return the seconds after which `advance` is due even without a commit."""
        ends = [end - clock.now() for end in (self._until, self._lapse) if end is not None]
        if ends:
            return max(0.0, min(LONGEST_NAP, *ends))
        return LONGEST_NAP

    def give_up(self, store: Store) -> None:
        """Leave the queue."""
        ticket, self.wanted = self.wanted.ticket, self.wanted._replace(ticket=0)
        store.queue.leave(ticket)

    def put_back(self, store: Store, rows: Iterable[Lock]) -> None:
        """Release the locks that the wait has taken. Locks that the instance held before stay."""
        for lock in rows:
            if lock.fence not in (self._had or ()):
                try:
                    store.locks.release(self.instance, lock.file, lock.agent or "", lock.fence)
                except Refused:
                    pass  # it has gone on already

    # -------------------------------------------------------------- innards

    def _begin(self, store: Store) -> list[Lock] | None:
        try:
            if self._is_free(store):
                return store.locks.acquire_all(self.instance, self.wanted)
        except LockRefused:
            pass  # another session was faster
        if self._is_over():
            return self._try_once(store)
        if self._until is None:
            left = None
        else:
            left = self._until - clock.now()
        self.wanted = self.wanted._replace(ticket=store.queue.join(self.instance, self.wanted, left))
        self._set_next_sign(store)
        return self._attempt(store)  # the obstacle may have gone before this wait was in the queue

    def _attempt(self, store: Store) -> list[Lock] | None:
        """Look once, from a place in the queue; if nothing is in the way, try once to take the locks."""
        if self._is_over():
            return self._try_once(store)
        if clock.now() >= self._next_sign and not self._show_life(store):
            return self._join_again(store)
        if self.obstacle and clock.now() < self._next_look and self._is_there(store, self.obstacle):
            return None
        self._lapse = None
        if not self._is_free(store):
            return None
        if not store.queue.has(self.wanted.ticket, self.instance.id):
            return self._join_again(store)
        try:
            return store.locks.acquire_all(self.instance, self.wanted)
        except LockRefused:  # the wait goes on
            return None

    def _join_again(self, store: Store) -> list[Lock] | None:
        """Join the queue again: the store is another one, or this wait was silent and others have passed it."""
        self.wanted, self.obstacle = self.wanted._replace(ticket=0), None
        return self._begin(store)

    def _is_free(self, store: Store) -> bool:
        """Return True if nothing seems to be in the way. Reads only."""
        self.obstacle, self._next_look = None, clock.now() + 0.9 * LONGEST_NAP
        waiter = store.queue.ahead_of(self.instance, self.wanted)
        if waiter:
            self.obstacle = waiter
            return False
        lock = store.locks.in_the_way(self.instance, self.wanted)
        if lock is None:
            return True
        # Another grant, another mode: another id. Handed over: another holder.
        self.obstacle = lock
        if not keeps_out(lock, self.instance.id, self.wanted.agent, self.wanted.mode):
            self._until = clock.now()  # an own lock, refused by `once`: no other session will release it
        left = store.locks.left(lock)
        if left is not None:
            self._lapse = clock.now() + left + 0.01
            self._next_look = min(self._next_look, self._lapse)
        return False

    @staticmethod
    def _is_there(store: Store, obstacle: Lock | Waiter) -> bool:
        if isinstance(obstacle, Waiter):
            return store.queue.is_there(obstacle.ticket)
        return store.locks.is_held(obstacle.id, obstacle.instance_id)

    def _try_once(self, store: Store) -> list[Lock]:
        """End the wait with one attempt, as a request that does not wait and is notified when the file is free."""
        self.give_up(store)
        return store.locks.acquire_all(self.instance, self.wanted)

    def _show_life(self, store: Store) -> bool:
        """Send the waiter's heartbeat. Returns True if its place is still in the queue.

        Raises SwarmError if its session is gone, and Deadlock for a wait that would never end.
        """
        is_there = store.queue.show_life(self.instance, self.wanted.ticket)
        if is_there:
            store.queue.require_end(self.instance, self.wanted)
            self._set_next_sign(store)
        return is_there

    def _set_next_sign(self, store: Store) -> None:
        leased = store.leases.keep(self.instance.id)
        self._next_sign = clock.now() + min(SIGN_SECONDS, SIGN_SECONDS if leased is None else max(0.0, leased))

    def _is_over(self) -> bool:
        return self._until is not None and clock.now() >= self._until


def acquire(
    store: Store,
    instance: Session,
    wanted: LockRequest,
    seconds: float | None,
    tell: Callable[[Lock | Waiter], object] | None = None,
) -> Taken:
    """Wait for the locks, blocking, for at most `seconds` (None: without end), and return them.

    `tell` is called with each new obstacle, a lock or a waiter ahead. Raises the errors of `LockWait.advance`.
    """
    if seconds == 0:
        return take(store, instance, wanted)
    wait = LockWait(instance, wanted, seconds)
    taken: Taken | None = None
    try:
        with store.changes() as changes:
            told = None
            while (taken := wait.advance(store)) is None:
                if tell and wait.obstacle and _mark(wait.obstacle) != told:
                    told = _mark(wait.obstacle)
                    tell(wait.obstacle)
                changes.wait(wait.left())
        return taken
    except BaseException:  # interrupted: no caller learns of locks granted meanwhile
        wait.give_up(store)
        wait.put_back(store, taken or [])
        raise


def take(store: Store, instance: Session, wanted: LockRequest) -> Taken:
    """Return the locks without waiting. Raises the errors of ``locks.acquire_all``."""
    for _ in range(MOST_TRIES):
        taken = _confirmed(store, store.locks.acquire_all(instance, wanted))
        if taken is not None:
            return taken
    raise Refused("other machines take and give back the same all the time; wait in line for it")


def steal(
    store: Store, instance: Session, file: str, reason: str, force: bool = False, ttl: float | None = None
) -> dict[str, Any]:
    """Call ``transfers.steal``, and have the lock confirmed. Its Confirmation, or None, is ``confirmation``."""
    done = store.transfers.steal(instance, file, reason, force, ttl)
    taken = _confirmed(store, [done["lock"]])
    if taken is None:
        raise Refused("another machine was faster")
    return {**done, "confirmation": taken.confirmation}


def _confirmed(store: Store, rows: list[Lock]) -> Taken | None:
    """Return the locks once they are confirmed as far as they need it; None if another machine was faster."""
    confirmation = confirm_locks(store, rows)
    if confirmation is not None and confirmation.is_lost:
        return None
    return Taken(rows, confirmation)


def _mark(obstacle: Lock | Waiter) -> object:
    """Return a key by which two obstacles can be told apart."""
    if isinstance(obstacle, Waiter):
        return obstacle.ticket
    return obstacle.id


# Claiming and reserving of tasks: first here, then on all machines that share them.

MOST_CLAIMS = 20  # while other machines are faster, or change the task


def claim(store: Store, instance: Session, task_id: str, ignore_unread: bool = False) -> dict[str, Any]:
    """Call ``tasks.claim``. Raises NotConfirmed, with the task unchanged, if other machines cannot be asked."""
    for _ in range(MOST_CLAIMS):
        begun = store.tasks.claim(instance, task_id, ignore_unread)  # raises if another machine has it by now
        if is_task_confirmed(store, begun["task"], begun["prior_status"]):
            return begun
    raise Refused("Task is changed by other machines all the time; look at it again")


def claim_next(
    store: Store,
    instance: Session,
    types: list[str] | None = None,
    files: list[str] | None = None,
    ignore_unread: bool = False,
) -> dict[str, Any]:
    """Call ``tasks.claim_next``. Raises NotConfirmed, with the task unchanged, if other machines cannot be asked."""
    for _ in range(MOST_CLAIMS):
        begun = store.tasks.claim_next(instance, types, files, ignore_unread)
        if is_task_confirmed(store, begun["task"], begun["prior_status"]):
            return begun
    raise Refused("other machines claim the same tasks all the time; try again")


def reserve(store: Store, task_id: str, worker: Session) -> Task:
    """Call ``tasks.reserve``. Raises NotConfirmed, with the task unchanged, if other machines cannot be asked."""
    for _ in range(MOST_CLAIMS):
        task = store.tasks.reserve(task_id, worker)
        if is_task_confirmed(store, task, OPEN):
            return task
    raise Refused("Task is changed by other machines all the time; look at it again")


# The git setting by which every lock on a path holds in all work trees of a clone.

LOGICAL = "swarm.logical"
GIT_SECONDS = 5.0


def logical_of(tree: Tree, name: str = LOGICAL) -> str | None:
    """Return ``swarm.logical``, or the setting `name`, from the clone's own configuration; None if it is not set."""
    words = ["config", "--file", _config(tree.common), "--no-includes", "--get", name]
    done = repository.ask(words, tree.common, GIT_SECONDS)
    if done.code == 0:
        return str(done.stdout).removesuffix("\n")
    return None


def set_logical(common: str, value: str | None, name: str = LOGICAL) -> None:
    """Set `name` in the clone with this common git folder; None removes it. Raises SwarmError."""
    if value is not None:
        words = [name, value]
    else:
        words = ["--unset", name]
    done = repository.ask(["config", "--file", _config(common), *words], common, GIT_SECONDS)
    if done.code != 0:
        raise SwarmError(f"git config {name}: {done.stderr.strip() or 'failed'}")


def _config(common: str) -> str:
    return os.path.join(common, "config")
