"""The tables, and the sequence of everything that happened in them."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from swarm_hook_core.json_text import dumps
from swarm_mcp.domain.lock import Breach, Lapse, Lock, Waiter
from swarm_mcp.domain.message import Event, KeyValue, Message, UiCommand
from swarm_mcp.domain.run import Run
from swarm_mcp.domain.session import Session
from swarm_mcp.domain.task import Task
from swarm_mcp.paging import cursor, place_of
from swarm_mcp.store.lock_request import Reach

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from support.memory_store import MemoryStore


class Memory:
    """The tables, and the sequence of everything that happened in them."""

    def __init__(self) -> None:
        self.sessions: dict[str, Session] = {}
        self.locks: dict[str, tuple[Lock, Reach]] = {}
        self.line: list[Waiter] = []
        self.messages: list[Message] = []
        self.taken: dict[int, int] = {}  # a message that is on its way to somebody -> since when
        self.tasks: dict[str, Task] = {}
        self.values: dict[tuple[str, str], KeyValue] = {}
        self.runs: dict[str, Run] = {}
        self.events: list[Event] = []
        self.denied: dict[tuple[str, str], str] = {}  # who, what file -> by whom
        self.storms: dict[tuple[str, str], int] = {}  # of those, how often as far as somebody was told
        self.lapsed: list[Lapse] = []
        self.noticed: dict[int, str] = {}  # a message that a hook is to tell -> the file that it is about
        self.breaches: list[Breach] = []
        self.ui_commands: list[UiCommand] = []
        self.fence = self.tickets = self.mails = 0
        self.changed = threading.Condition()

    def copy(self) -> Memory:
        """The same, of its own. Rows cannot be changed, and need no copy."""
        other = Memory()
        for name, value in vars(self).items():
            setattr(other, name, value.copy() if isinstance(value, (dict, list)) else value)
        return other

    def add_event(self, scope: str, kind: str, actor: str | None, subject: str | None, **payload: object) -> None:
        number = len(self.events) + 1
        told = {"id": number, "scope": scope, "type": kind, "actor": actor, "subject": subject}
        self.events.append(Event(**told, payload=dumps(payload), created_at=int(time.time())))
        with self.changed:
            self.changed.notify_all()


class Part:
    def __init__(self, store: MemoryStore):
        self.store = store
        self._numbers: dict[str, int] = {}

    def number_of(self, name: str) -> int:
        """A number for a row, the same for as long as this part is there; who is asked for later has a higher one."""
        return self._numbers.setdefault(name, len(self._numbers) + 1)

    def behind(self, after: str, kinds: tuple, rows: list, place: Callable, falling: bool = False) -> Iterator[tuple]:
        """Those of `rows` whose place comes behind the cursor `after`, each with its own: what a ``walk`` yields."""
        at = place_of(after, kinds)
        for row in rows:
            if at is None or (place(row) < at if falling else place(row) > at):
                yield cursor(*place(row)), row

    @property
    def memory(self) -> Memory:
        return self.store.memory
