"""What a store should hold, in plain dicts: the small model that ``test_store_machine`` holds the real one against.

Sessions and tasks go by name and title. A deed (`lock`, `end`, ...) raises `No` where the store must refuse.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field

ENDED = ("done", "failed", "cancelled")
GONE = "?"  # a session that is not registered any more
LEASE = 600
CLAIM = 120
MESSAGE, TASK = 3600, 86400


class No(Exception):
    """The store has to refuse this."""


@dataclass
class Task:
    """`status`, who has it and asked for it, the titles it waits for, and when it last changed."""

    requester: str
    assignee: str | None
    needs: tuple[str, ...]
    status: str
    changed: int


@dataclass
class Mail:
    """One message: `taken` is when it was handed out without being acknowledged, else None."""

    content: str
    sent: int
    taken: int | None = None


@dataclass
class Model:
    """Everything, at the time `now`. `seen`: session -> its last sign of life."""

    now: int
    seen: dict[str, int] = field(default_factory=dict)
    locks: dict[str, tuple[str, str, str | None]] = field(default_factory=dict)  # file -> holder, note, task
    tasks: dict[str, Task] = field(default_factory=dict)
    kv: dict[str, list[int]] = field(default_factory=dict)
    mail: dict[str, list[Mail]] = field(default_factory=dict)

    def copy(self) -> Model:
        """The same, of its own."""
        return copy.deepcopy(self)

    def lapsed(self, name: str) -> bool:
        """Whether a session may be taken for gone."""
        return self.seen[name] + LEASE < self.now

    def alive(self, name: str) -> bool:
        """Whether a session is registered, and would be found."""
        return name in self.seen and not self.lapsed(name)

    def _renew(self, name: str) -> None:
        if name not in self.seen:
            raise No
        self.seen[name] = self.now

    # --------------------------------------------------------------- sessions

    def register(self, name: str) -> None:
        for other in [other for other in self.seen if other != name and self.lapsed(other)]:
            self.leave(other)
        self.seen[name] = self.now
        self.mail.setdefault(name, [])

    def leave(self, name: str) -> None:
        """It leaves, or is found to have gone."""
        del self.seen[name]
        del self.mail[name]
        self.locks = {file: lock for file, lock in self.locks.items() if lock[0] != name}
        for task in self.tasks.values():
            if task.assignee == name and task.status not in ENDED:
                task.assignee, task.changed = None, self.now
                task.status = "open" if task.status in ("claimed", "in_progress") else task.status
            # Should it come back, it is another session, to which these mean nothing.
            task.assignee = GONE if task.assignee == name else task.assignee
            task.requester = GONE if task.requester == name else task.requester

    # ------------------------------------------------------------------ locks

    def lock(self, name: str, file: str, note: str, task: str | None) -> None:
        holder = self.locks[file][0] if file in self.locks else name
        if holder != name and not self.lapsed(holder):
            raise No
        self._renew(name)
        if holder != name:
            self.leave(holder)
        self.locks[file] = (name, note, task)

    def unlock(self, name: str, file: str) -> None:
        if file in self.locks:
            holder = self.locks[file][0]
            if holder == name and not self.lapsed(name):
                del self.locks[file]
            elif self.lapsed(holder):
                self.leave(holder)

    # ----------------------------------------------------------------- values

    def append(self, _name: str, key: str, value: int) -> None:
        self.kv.setdefault(key, []).append(value)

    def forget(self, _name: str, key: str) -> None:
        self.kv.pop(key, None)

    # ------------------------------------------------------------------- mail

    def send(self, name: str, to: str, content: str) -> None:
        self._renew(name)
        if not self.alive(to):
            raise No
        self.mail[to].append(Mail(content, self.now))

    def waiting(self, name: str) -> list[Mail]:
        """What a poll would hand out."""
        return [mail for mail in self.mail[name] if mail.taken is None or self.now - mail.taken > CLAIM]

    def take(self, name: str) -> None:
        for mail in self.waiting(name):
            mail.taken = self.now

    def acknowledge(self, name: str) -> None:
        self.mail[name] = [mail for mail in self.mail[name] if mail.taken is None]

    def lose_poller(self) -> None:
        """The process that had taken messages is dead."""
        for mails in self.mail.values():
            for mail in mails:
                mail.taken = None

    # ------------------------------------------------------------------ tasks

    def request(self, name: str, title: str, assignee: str | None, needs: tuple[str, ...], approval: bool) -> None:
        self._renew(name)
        if assignee is not None and not self.alive(assignee):
            raise No
        task = Task(name, assignee, needs, "approval_required" if approval else "blocked", self.now)
        self.tasks[title] = task
        self._stand(task)

    def approve(self, name: str, title: str) -> None:
        self._renew(name)
        task = self.tasks[title]
        if task.status != "approval_required":
            raise No
        task.status, task.changed = "blocked", self.now
        self._stand(task)
        if task.status == "cancelled":
            self._spread(title)

    def claim(self, name: str, title: str) -> None:
        self._renew(name)
        task = self.tasks[title]
        holder = task.assignee
        if task.status in ("claimed", "in_progress") and holder and holder != name and not self.alive(holder):
            self.leave(holder)
        if (task.status, task.assignee) not in (("open", None), ("claimed", name)):
            raise No
        task.status, task.assignee, task.changed = "in_progress", name, self.now

    def end(self, name: str, title: str, status: str) -> None:
        self._renew(name)
        task = self.tasks[title]
        may = task.status in ("claimed", "in_progress") and task.assignee == name
        if status == "cancelled":
            may = task.status not in ENDED and name in (task.requester, task.assignee)
        if not may:
            raise No
        self.locks = {file: lock for file, lock in self.locks.items() if (lock[0], lock[2]) != (task.assignee, title)}
        task.status, task.changed = status, self.now
        self._spread(title)

    def _stand(self, task: Task) -> None:
        """A new or approved task, by what it waits for."""
        needed = [self.tasks[title].status for title in task.needs if title in self.tasks]
        if any(status in ("failed", "cancelled") for status in needed):
            task.status = "cancelled"
        elif task.status != "approval_required" and all(status == "done" for status in needed):
            task.status = "claimed" if task.assignee else "open"

    def _spread(self, title: str) -> None:
        """What the end of a task means for those that wait for it."""
        for other, task in self.tasks.items():
            if title in task.needs and task.status in ("blocked", "approval_required"):
                before = task.status
                self._stand(task)
                if task.status != before:
                    task.changed = self.now
                if task.status == "cancelled":
                    self._spread(other)

    # ------------------------------------------------------------------- time

    def clean(self) -> None:
        """Everything that is due goes."""
        for name in [name for name in self.seen if self.lapsed(name)]:
            self.leave(name)
        self.expire(set(), set())

    def expire(self, mails: set[str], tasks: set[str]) -> None:
        """What is due goes, but for mail and tasks with these contents and titles."""
        for name in self.mail:
            self.mail[name] = [
                mail for mail in self.mail[name] if mail.sent >= self.now - MESSAGE or mail.content in mails
            ]
        self.tasks = {
            title: task
            for title, task in self.tasks.items()
            if task.status not in ENDED or task.changed >= self.now - TASK or title in tasks
        }
