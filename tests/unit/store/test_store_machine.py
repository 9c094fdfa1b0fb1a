"""Each deed is done whole or not at all: a process that is killed in it leaves the store as before, or as after.

The same deed on a copy of the file shows the state after it. ``support.lock_model`` says how locks behave.
"""

import contextlib
import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from support.crashing import Dead, Dying
from support.fixtures import Ground
from support.listings import rows_of

from swarm_hook_core.process import start_time
from swarm_mcp.domain import Session, onlooker
from swarm_mcp.errors import SwarmError
from swarm_mcp.store import Store, database
from swarm_mcp.store.sessions import Registration

pytestmark = pytest.mark.slow

NAMES = st.sampled_from(("ann", "bob", "ann", "bob", "cid"))
FILES = st.sampled_from(("a", "b"))
KEYS = st.sampled_from(("k", "plan/latest"))
JUMPS = st.sampled_from((1, 1, 50, 50, 125, 125, 400, 400, 700, 4000, 90_000))
BREAKS = st.just(0) | st.integers(1, 40)  # a statement before which the process dies; 0 and unreached ones: it lives
NEEDS = st.just(frozenset()) | st.frozensets(st.integers(0, 3), min_size=1, max_size=2)  # 0 is the newest task
RARELY = st.integers(0, 3).map(lambda number: number == 3)
LEASE = 600
GONE = "?"  # a session that is not registered any more
EXAMPLES = int(os.environ.get("SWARM_MACHINE_EXAMPLES", "40"))


class Side:
    """A store with sessions, tasks and messages by name, title and content."""

    def __init__(self, store: Store, scope: str):
        self.store, self.scope = store, scope

    @property
    def rows(self) -> dict[str, Session]:
        """All that are registered, gone or not, by their labels."""
        known = {row.id: row for row in (*self.store.instances.in_scope(self.scope), *self.store.instances.gone())}
        return {str(row.label): row for row in known.values()}

    def row(self, name: str) -> Session:
        place = dict.fromkeys(("scope", "directory", "root", "file_root"), self.scope)
        return self.rows.get(name) or Session(id=f"{name} is not registered", label=name, **place)

    @property
    def tasks(self) -> dict[str, Any]:
        return {task.title: task for task in rows_of(self.store.tasks.walk(onlooker("", self.scope)))}

    def task_id(self, title: str | None) -> str:
        return self.tasks[title].id if title in self.tasks else ""

    def found(self) -> dict:
        """Return all that the store holds."""
        rows, tasks = self.rows, self.tasks
        names = {row.id: name for name, row in rows.items()}
        titles = {task.id: title for title, task in tasks.items()}
        mail = [one for one in rows_of(self.store.messages.walk(self.scope)) if not one.read and one.content[0] == "n"]
        return {
            "sessions": {name: row.last_seen for name, row in rows.items()},
            "locks": {
                (os.path.basename(lock.file), name, lock.content, titles.get(lock.task_id))
                for name, row in rows.items()
                for lock in self.store.locks.of(row.id)
            },
            "kv": {
                row.key: json.loads(self.store.kv.get(self.scope, row.key).value)
                for row in rows_of(self.store.kv.walk(self.scope))
            },
            "mail": {name: [one.content for one in mail if one.recipient == row.id] for name, row in rows.items()},
            "tasks": {
                title: (task.status, task.assignee and names.get(task.assignee, GONE)) for title, task in tasks.items()
            },
        }


class Machine(RuleBasedStateMachine):
    """One store, deed by deed. Each deed may be the last of the process that does it.

    A rule that cannot be played returns, and has no precondition: cleaning depends on the clock, and Hypothesis wants
    its draws to depend on nothing but earlier draws.
    """

    folder: Path
    empty: Path
    made = 0

    def __init__(self):
        super().__init__()
        Machine.made += 1
        self.path = str(self.folder / f"{Machine.made}.db")
        shutil.copy(self.empty, self.path)
        self.now, self.count = int(time.time()), 0
        self.side = self.opened(self.path)

    def opened(self, path: str) -> Side:
        store = Store(path)
        # No power is cut here, and a disk takes its time.
        store.database.connection.execute("PRAGMA synchronous = OFF")
        store.database.now = lambda: self.now  # type: ignore[method-assign]
        store.database.now_ms = lambda: self.now * 1000  # type: ignore[method-assign]
        return Side(store, str(self.folder))

    def teardown(self) -> None:
        self.side.store.close()
        for path in self.folder.glob(f"{Machine.made}.db*"):
            path.unlink()

    def do(self, last: int, deed: Callable[[Side], object]) -> None:
        """Do `deed`, up to the statement with the number `last` (0: all of it)."""
        if not last:
            with contextlib.suppress(SwarmError):
                deed(self.side)
            return
        before, after = self.side.found(), self.found_after(deed)
        sound = self.side.store.database.connection
        self.side.store.database.connection = Dying(sound, last)
        died = False
        try:
            deed(self.side)
        except SwarmError:
            pass  # it is refused on the copy as well
        except Dead:
            died = True
        self.side.store.database.connection = sound
        if died:
            self.reopen()
            with self.side.store.database.writing() as tx:
                tx.change("UPDATE swarm_deliveries SET pid = 4194305")  # no such process can be
            assert self.side.found() in (before, *after)
        else:
            assert self.side.found() == after[-1]

    def found_after(self, deed: Callable[[Side], object]) -> list[dict]:
        """Return the contents of the store after each transaction of `deed`, done to a copy."""
        copy = self.path + "-copy.db"
        for end in ("", "-wal"):
            if os.path.exists(self.path + end):
                shutil.copy(self.path + end, copy + end)
        side = self.opened(copy)
        found: list[dict] = []
        ended = database.Turn.__exit__

        def noted(turn: database.Turn, *error: object) -> None:
            ended(turn, *error)
            found.append(side.found())

        with pytest.MonkeyPatch.context() as patch, contextlib.suppress(SwarmError):
            patch.setattr(database.Turn, "__exit__", noted)
            deed(side)
        found.append(side.found())
        side.store.close()
        return found

    def text(self) -> str:
        self.count += 1
        return f"n{self.count}"

    @initialize()
    def begin(self):
        for name in ("ann", "bob"):
            self.register(name, 0)
        self.request("ann", None, frozenset(), False, 0)
        self.request("ann", "bob", frozenset({0}), False, 0)

    @rule(name=NAMES, last=BREAKS)
    def register(self, name: str, last: int):
        facts = {"runtime": "codex", "session_id": name, "client": (1, start_time(1)), "lease_seconds": LEASE}

        def deed(side: Side) -> None:
            side.store.instances.register(Registration(side.scope, label=name, scope=side.scope, **facts))

        self.do(last, deed)

    @rule(name=NAMES, last=BREAKS, seldom=RARELY)
    def leave(self, name: str, last: int, seldom: bool):
        if seldom:
            self.do(last, lambda side: side.store.instances.remove(side.row(name).id))

    @rule(name=NAMES, file=FILES, last=BREAKS, of_task=st.booleans())
    def lock(self, name: str, file: str, last: int, of_task: bool):
        note, me = self.text(), self.side.row(name).id
        tasks = self.side.tasks.values()
        mine = [task.id for task in tasks if (task.assignee, task.status) == (me, "in_progress")]
        task = mine[0] if of_task and mine else None
        self.do(last, lambda side: side.store.locks.acquire(side.row(name), file, note, task_id=task))

    @rule(name=NAMES, file=FILES, last=BREAKS)
    def unlock(self, name: str, file: str, last: int):
        self.do(last, lambda side: side.store.locks.release(side.row(name), file))

    @rule(name=NAMES, key=KEYS, last=BREAKS)
    def append(self, name: str, key: str, last: int):
        self.count += 1
        self.do(last, lambda side: side.store.kv.append(side.row(name), key, str(self.count)))

    @rule(name=NAMES, key=KEYS, last=BREAKS)
    def forget(self, name: str, key: str, last: int):
        self.do(last, lambda side: side.store.kv.delete(side.row(name), key))

    @rule(name=NAMES, to=NAMES, last=BREAKS)
    def send(self, name: str, to: str, last: int):
        content = self.text()
        self.do(last, lambda side: side.store.messages.send(side.row(name), side.row(to).id, content))

    @rule(name=NAMES, last=BREAKS, answered=st.booleans())
    def take(self, name: str, last: int, answered: bool):
        def deed(side: Side) -> None:
            taken = side.store.messages.take(side.row(name), 1000)
            if answered:
                side.store.messages.acknowledge([message.id for message in taken])

        self.do(last, deed)

    @rule(name=NAMES, to=st.none() | NAMES, needs=NEEDS, approval=RARELY, last=BREAKS)
    def request(self, name: str, to: str | None, needs: frozenset[int], approval: bool, last: int):
        title, known = self.text(), list(self.side.tasks)
        named = [known[-1 - back] for back in needs if back < len(known)]

        def deed(side: Side) -> None:
            spec: dict = {"type": "fix", "title": title, "approval_required": approval}
            spec.update(depends_on=[side.task_id(other) for other in named])
            side.store.tasks.request(side.row(name), {**spec, **({"assignee": side.row(to).id} if to else {})})

        self.do(last, deed)

    def about_a_task(self, name: str | None, back: int, last: int, deed: Callable) -> None:
        """Without a `name` the session that the task concerns most does it."""
        known = list(self.side.tasks.values())
        if not known:
            return
        task = known[-1 - back % len(known)]
        labels = {row.id: label for label, row in self.side.rows.items()}
        name = name or labels.get(task.assignee) or labels.get(task.requester) or "ann"
        self.do(last, lambda side: deed(side.store.tasks, side.row(name), task.id))

    @rule(name=st.none() | NAMES, back=st.integers(0, 3), last=BREAKS)
    def approve(self, name: str | None, back: int, last: int):
        self.about_a_task(name, back, last, lambda tasks, row, task_id: tasks.approve(row, task_id))

    @rule(name=st.none() | NAMES, back=st.integers(0, 3), last=BREAKS)
    def claim(self, name: str | None, back: int, last: int):
        self.about_a_task(name, back, last, lambda tasks, row, task_id: tasks.claim(row, task_id, ignore_unread=True))

    @rule(name=NAMES, last=BREAKS)
    def claim_next(self, name: str, last: int):
        self.do(last, lambda side: side.store.tasks.claim_next(side.row(name), ignore_unread=True))

    @rule(
        name=st.none() | NAMES,
        back=st.integers(0, 3),
        status=st.sampled_from(("done", "failed", "cancelled", "cancelled")),
        last=BREAKS,
    )
    def end(self, name: str | None, back: int, status: str, last: int):
        self.about_a_task(name, back, last, lambda tasks, row, task_id: tasks.end(row, task_id, status))

    @rule(seconds=JUMPS)
    def wait(self, seconds: int):
        self.now += seconds

    @rule(last=BREAKS)
    def clean(self, last: int):
        self.do(last, lambda side: side.store.cleanup.clean())

    @rule(last=BREAKS)
    def pass_by(self, last: int):
        self.do(last, lambda side: side.store.cleanup.some())

    @rule()
    def reopen(self):
        self.side.store.close()
        self.side = self.opened(self.path)

    @invariant()
    def each_lock_has_its_event_and_each_event_its_lock(self):
        held: dict[tuple, str] = {}
        rows = self.side.store.database.rows(
            "SELECT type, actor, subject, json_extract(payload, '$.id') AS lock FROM events"
            " WHERE type IN ('context.lock_acquired', 'context.lock_released') ORDER BY id"
        )
        for row in rows:
            if row["type"] == "context.lock_acquired":
                held[row["actor"], row["subject"]] = row["lock"]
            else:
                held.pop((row["actor"], row["subject"]), None)
        # Events are kept for a day, locks for as long as their holders live.
        locks = self.side.store.database.rows("SELECT * FROM context")
        assert held.items() <= {(row["instance_id"], row["file"]): row["id"] for row in locks}.items()
        assert {row["id"] for row in locks if row["created_at"] >= self.now - 86400} <= set(held.values())


def test_a_deed_is_done_whole_or_not_at_all(ground: Ground):
    ground.store().close()
    Machine.empty, Machine.folder = Path(ground.database), ground.repo
    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=EXAMPLES, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )
