"""The store's interface (``swarm_mcp.store.api``) a second time: in dicts, without SQL, for one process.

``tests/unit/store/test_api.py`` holds it and the embedded store to the same behaviour. What both take from the same
place is pure: what a word names and when two reaches meet (``lock_reach``), what is asked for (``lock_request``), the
table of a task's life (``task_life``), and what proves that a session has gone (``liveness``). The hooks' own questions
(``as_hooks_read_it``) are the one thing that it does not answer: they are about the embedded store's file.
"""

from __future__ import annotations

import time

from support.memory_store.activity import Activity, Cleanup, UiCommands
from support.memory_store.automatic_locks import AutomaticLocks
from support.memory_store.lock_endings import Leases, SpawnLocks, Transfers
from support.memory_store.locks import Locks, Queue
from support.memory_store.mail import Messages, Notices
from support.memory_store.refusals import Breaches, Denials, Protection, Storms
from support.memory_store.sessions import Sessions
from support.memory_store.tables import Memory
from support.memory_store.values import Panes, Planner, Tracker, Values
from support.memory_store.work import Runs, Tasks
from swarm_hook_core.process import host_id


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


class MemoryStore:
    """One store. Its parts have the embedded store's names."""

    here = host_id()

    def __init__(self) -> None:
        self.memory = Memory()
        self.instances = Sessions(self)
        self.messages = Messages(self)
        self.locks = Locks(self)
        self.automatic_locks = AutomaticLocks(self)
        self.queue = Queue(self)
        self.leases = Leases(self)
        self.transfers = Transfers(self)
        self.tasks = Tasks(self)
        self.kv = Values(self)
        self.denials = Denials(self)
        self.storms = Storms(self)
        self.breaches = Breaches(self)
        self.notices = Notices(self)
        self.protection = Protection(self)
        self.spawn_locks = SpawnLocks(self)
        self.panes = Panes(self)
        self.planner = Planner(self)
        self.tracker = Tracker(self)
        self.ui_commands = UiCommands(self)
        self.cleanup = Cleanup(self)
        self.runs = Runs(self)
        self.activity = Activity(self)

    def now(self) -> int:
        return int(time.time())

    def changes(self) -> Changes:
        return Changes(self.memory)

    def described(self) -> dict:
        return {"backend": "memory"}

    def version(self) -> object:
        return len(self.memory.events)

    def events_so_far(self) -> int:
        return len(self.memory.events)

    def exists(self) -> bool:
        return True

    def journal(self) -> str:
        return "memory"

    def refresh(self) -> None: ...

    def check_reading(self) -> None: ...

    def check_writing(self) -> None: ...

    def close(self) -> None: ...

    def __enter__(self) -> MemoryStore:
        return self

    def __exit__(self, *_exception: object) -> None: ...
