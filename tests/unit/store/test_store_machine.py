"""Whatever happens to a store in whatever order, it holds what a model of a page holds. Crashes included."""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from support.crashing import Dead, Dying
from support.fixtures import Ground
from support.store_model import GONE, LEASE, Model, No

from swarm_hook_core.process import start_time
from swarm_mcp.errors import LockRefused, SwarmError
from swarm_mcp.store import Store
from swarm_mcp.store.sessions import Registration

pytestmark = pytest.mark.slow

NAMES = st.sampled_from(("ann", "bob", "ann", "bob", "cid"))
FILES = st.sampled_from(("a", "b"))
KEYS = st.sampled_from(("k", "plan/latest"))
JUMPS = st.sampled_from((1, 1, 50, 50, 125, 125, 400, 400, 700, 4000, 90_000))
BREAKS = st.just(0) | st.integers(
    1, 40
)  # a statement before which the process dies; 0 and those never reached: it lives
NEEDS = st.just(frozenset()) | st.frozensets(st.integers(0, 3), min_size=1, max_size=2)  # 0 is the newest task
RARELY = st.integers(0, 3).map(lambda number: number == 3)
EXAMPLES = int(os.environ.get("SWARM_MACHINE_EXAMPLES", "70"))


class Machine(RuleBasedStateMachine):
    """The store and its model, deed by deed. Each deed may be the last of the process that does it."""

    folder: Path
    empty: Path
    made = 0

    def __init__(self):
        super().__init__()
        Machine.made += 1
        self.path = str(self.folder / f"{Machine.made}.db")
        shutil.copy(self.empty, self.path)
        self.model = Model(int(time.time()))
        self.count = 0
        self.open()

    def open(self) -> None:
        self.store = Store(self.path)
        self.store.database.connection.execute(
            "PRAGMA synchronous = OFF"
        )  # no power is cut here, and a disk takes its time
        self.store.database.now = lambda: self.model.now  # type: ignore[method-assign]
        self.store.database.now_ms = lambda: self.model.now * 1000  # type: ignore[method-assign]

    def teardown(self) -> None:
        self.store.close()
        for path in self.folder.glob(f"{Machine.made}.db*"):
            path.unlink()

    # ------------------------------------------------------------------ doing

    def do(self, last: int, deed, modelled, *arguments) -> None:
        """`deed()` on the store, and `modelled(*arguments)` on the model: both refuse, or both do."""
        before, sound = self.model.copy(), self.store.database.connection
        refused = died = False
        if last:
            self.store.database.connection = Dying(sound, last)
        try:
            deed()
        except (SwarmError, LockRefused):
            refused = True
        except Dead:
            died = True
        self.store.database.connection = sound
        try:
            modelled(*arguments)
        except No:
            assert died or refused, f"{modelled.__name__}{arguments} should have been refused"
            # A refusal takes back everything but the word that a session that had gone is gone.
            after, self.model = self.model, before
            before = after
        else:
            assert died or not refused, f"{modelled.__name__}{arguments} was refused"
        if died:
            self.crash(before)

    def crash(self, before: Model) -> None:
        """The process is gone in the middle of a deed, which was done or was not."""
        self.store.close()
        self.open()
        with self.store.database.writing():
            self.store.database.change("UPDATE swarm_deliveries SET pid = 4194305")  # no such process can be
        before.lose_poller()
        self.model.lose_poller()
        self.settle(self.model)
        if self.found() != self.told(self.model):
            self.settle(before)
            self.model = before

    def row(self, name: str) -> dict:
        return self.ids.get(name) or {
            "id": f"{name} is not registered",
            "label": name,
            "scope": str(self.folder),
            **self.place,
        }

    @property
    def place(self) -> dict:
        return dict.fromkeys(("directory", "root", "file_root"), str(self.folder))

    @property
    def ids(self) -> dict[str, dict]:
        return {row["label"]: row for row in self.store.database.rows("SELECT * FROM instances")}

    def task_id(self, title: str) -> str:
        row = self.store.database.row("SELECT id FROM tasks WHERE title = ?", (title,))
        return row["id"] if row else ""

    def text(self) -> str:
        self.count += 1
        return f"n{self.count}"

    # --------------------------------------------------------------- sessions

    @initialize()
    def begin(self):
        for name in ("ann", "bob"):
            self.register(name, 0)

    @rule(name=NAMES, last=BREAKS)
    def register(self, name: str, last: int):
        facts = {"runtime": "codex", "session_id": name, "client": (1, start_time(1)), "lease_seconds": LEASE}
        request = Registration(str(self.folder), label=name, scope=str(self.folder), **facts)
        self.do(last, lambda: self.store.instances.register(request), self.model.register, name)

    @precondition(lambda self: self.model.seen)
    @rule(name=NAMES, last=BREAKS)
    def leave(self, name: str, last: int):
        if name in self.model.seen:
            row = self.row(name)
            self.do(last, lambda: self.store.instances.remove(row["id"]), self.model.leave, name)

    # ------------------------------------------------------------------ locks

    @rule(name=NAMES, file=FILES, last=BREAKS, of_task=st.booleans())
    def lock(self, name: str, file: str, last: int, of_task: bool):
        note, row = self.text(), self.row(name)
        mine = [
            title for title, task in self.model.tasks.items() if task.assignee == name and task.status == "in_progress"
        ]
        task = mine[0] if of_task and mine else None
        task_id = self.task_id(task) if task else None
        self.do(
            last,
            lambda: self.store.locks.acquire(row, file, note, task_id=task_id),
            self.model.lock,
            name,
            file,
            note,
            task,
        )
        seen = self.store.database.row("SELECT last_seen FROM swarm_sessions WHERE session_id = ?", (name,))
        if seen and seen["last_seen"] == self.model.now:
            self.model.seen[name] = self.model.now  # to be refused is a sign of life, too

    @rule(name=NAMES, file=FILES, last=BREAKS)
    def unlock(self, name: str, file: str, last: int):
        row = self.row(name)
        self.do(last, lambda: self.store.locks.release(row, file), self.model.unlock, name, file)

    # ----------------------------------------------------------------- values

    @rule(name=NAMES, key=KEYS, last=BREAKS)
    def append(self, name: str, key: str, last: int):
        self.count += 1
        value, row = self.count, self.row(name)
        self.do(last, lambda: self.store.kv.append(row, key, str(value)), self.model.append, name, key, value)

    @rule(name=NAMES, key=KEYS, last=BREAKS)
    def forget(self, name: str, key: str, last: int):
        row = self.row(name)
        self.do(last, lambda: self.store.kv.delete(row, key), self.model.forget, name, key)

    # ------------------------------------------------------------------- mail

    @rule(name=NAMES, to=NAMES, last=BREAKS)
    def send(self, name: str, to: str, last: int):
        content, row, recipient = self.text(), self.row(name), self.row(to)
        self.do(
            last, lambda: self.store.messages.send(row, recipient["id"], content), self.model.send, name, to, content
        )

    @precondition(lambda self: self.model.seen)
    @rule(name=NAMES, last=BREAKS, answered=st.booleans())
    def take(self, name: str, last: int, answered: bool):
        if name not in self.model.seen:
            return
        row, wanted, taken = self.row(name), [mail.content for mail in self.model.waiting(name)], []
        self.do(last, lambda: taken.extend(self.store.messages.take(row, 1000)), self.model.take, name)
        told = [message["content"] for message in taken if message["content"].startswith("n")]
        assert told == wanted or (not taken and last)
        if answered:
            self.acknowledge(name, last)

    @precondition(lambda self: any(mail.taken is not None for mails in self.model.mail.values() for mail in mails))
    @rule(name=NAMES, last=BREAKS)
    def acknowledge(self, name: str, last: int):
        if name in self.model.seen:
            rows = self.store.database.rows(
                "SELECT id FROM messages JOIN swarm_deliveries ON message_id = id WHERE recipient = ? AND pid = ?",
                (self.row(name)["id"], os.getpid()),
            )
            ids = [row["id"] for row in rows]
            self.do(last, lambda: self.store.messages.acknowledge(ids), self.model.acknowledge, name)

    # ------------------------------------------------------------------ tasks

    @rule(name=NAMES, to=st.none() | NAMES, needs=NEEDS, approval=RARELY, last=BREAKS)
    def request(self, name: str, to: str | None, needs: frozenset[int], approval: bool, last: int):
        title, row = self.text(), self.row(name)
        known = list(self.model.tasks)
        named = tuple(known[-1 - back] for back in needs if back < len(known))
        spec: dict = {"type": "fix", "title": title, "approval_required": approval}
        spec.update(depends_on=[self.task_id(other) for other in named])
        if to is not None:
            spec["assignee"] = self.row(to)["id"]
        self.do(last, lambda: self.store.tasks.request(row, spec), self.model.request, name, title, to, named, approval)

    def about_a_task(self, name: str, back: int, last: int, deed, modelled, *arguments) -> None:
        title = list(self.model.tasks)[-1 - back % len(self.model.tasks)]
        row, task_id = self.row(name), self.task_id(title)
        self.do(last, lambda: deed(row, task_id), modelled, name, title, *arguments)

    @precondition(lambda self: self.model.tasks)
    @rule(name=NAMES, back=st.integers(0, 3), last=BREAKS)
    def approve(self, name: str, back: int, last: int):
        self.about_a_task(name, back, last, self.store.tasks.approve, self.model.approve)

    @precondition(lambda self: self.model.tasks)
    @rule(name=NAMES, back=st.integers(0, 3), last=BREAKS)
    def claim(self, name: str, back: int, last: int):
        def deed(row: dict, task_id: str) -> None:
            self.store.tasks.claim(row, task_id, ignore_unread=True)

        self.about_a_task(name, back, last, deed, self.model.claim)

    @precondition(lambda self: any(self.model.alive(name) for name in self.model.seen))
    @rule(name=NAMES)
    def claim_next(self, name: str):
        if not self.model.alive(name):
            return
        tasks = self.model.tasks.items()
        own = [title for title, task in tasks if (task.status, task.assignee) == ("claimed", name)]
        open_ones = [title for title, task in tasks if (task.status, task.assignee) == ("open", None)]
        try:
            claimed = self.store.tasks.claim_next(self.row(name), ignore_unread=True)["task"]["title"]
        except SwarmError:
            assert not own + open_ones
            return
        if own + open_ones:
            assert claimed in (own or open_ones)
        self.settle(self.model)
        self.model.claim(name, claimed)

    @precondition(lambda self: self.model.tasks)
    @rule(
        name=NAMES,
        back=st.integers(0, 3),
        status=st.sampled_from(("done", "failed", "cancelled", "cancelled")),
        last=BREAKS,
    )
    def end(self, name: str, back: int, status: str, last: int):
        def deed(row: dict, task_id: str) -> None:
            self.store.tasks.end(row, task_id, status)

        self.about_a_task(name, back, last, deed, self.model.end, status)

    # ------------------------------------------------------------ time, ends

    @rule(seconds=JUMPS)
    def wait(self, seconds: int):
        self.model.now += seconds

    @rule(last=BREAKS)
    def clean(self, last: int):
        self.do(last, self.store.cleanup.clean, self.model.clean)

    @rule()
    def pass_by(self):
        if self.store.cleanup.some():
            self.model.clean()  # there is never more here than one pass takes

    @rule()
    def reopen(self):
        self.store.close()
        self.open()

    # ---------------------------------------------------------------- looking

    def found(self) -> dict:
        """What the store holds, in the model's words."""
        names = {row["id"]: name for name, row in self.ids.items()}
        titles = {row["id"]: row["title"] for row in self.store.database.rows("SELECT id, title FROM tasks")}
        locks = self.store.database.rows("SELECT * FROM context")
        mail = self.store.database.rows("SELECT * FROM messages WHERE read = 0 AND content LIKE 'n%' ORDER BY id")
        tasks = self.store.database.rows("SELECT title, status, assignee FROM tasks")
        return {
            "sessions": set(names.values()),
            "seen": {
                row["session_id"]: row["last_seen"] for row in self.store.database.rows("SELECT * FROM swarm_sessions")
            },
            "locks": {
                os.path.basename(row["file"]): (
                    names.get(row["instance_id"]),
                    row["content"],
                    titles.get(row["task_id"]),
                )
                for row in locks
            },
            "kv": {
                row["key"]: json.loads(row["value"]) for row in self.store.database.rows("SELECT key, value FROM kv")
            },
            "mail": {
                name: [row["content"] for row in mail if row["recipient"] == one["id"]]
                for name, one in self.ids.items()
            },
            "tasks": {
                row["title"]: (row["status"], row["assignee"] and names.get(row["assignee"], GONE)) for row in tasks
            },
        }

    def told(self, model: Model) -> dict:
        """The same of a model."""
        return {
            "sessions": set(model.seen),
            "seen": dict(model.seen),
            "locks": {
                file: (holder, note, task if task in model.tasks else None)
                for file, (holder, note, task) in model.locks.items()
            },
            "kv": dict(model.kv),
            "mail": {name: [mail.content for mail in mails] for name, mails in model.mail.items()},
            "tasks": {title: (task.status, task.assignee) for title, task in model.tasks.items()},
        }

    def settle(self, model: Model) -> None:
        """What is due may go at any time: sessions without a lease, old mail and tasks. The store says what did."""
        there = set(self.ids)
        for name in [name for name in model.seen if name not in there and model.lapsed(name)]:
            model.leave(name)
        mails = {row["content"] for row in self.store.database.rows("SELECT content FROM messages")}
        model.expire(mails, {row["title"] for row in self.store.database.rows("SELECT title FROM tasks")})

    @invariant()
    def the_store_holds_what_the_model_holds(self):
        self.settle(self.model)
        assert self.found() == self.told(self.model)

    @invariant()
    def each_lock_has_its_event_and_each_event_its_lock(self):
        held: dict[tuple, str] = {}
        rows = self.store.database.rows(
            "SELECT type, actor, subject, json_extract(payload, '$.id') AS lock FROM events"
            " WHERE type IN ('context.lock_acquired', 'context.lock_released') ORDER BY id"
        )
        for row in rows:
            if row["type"] == "context.lock_acquired":
                held[row["actor"], row["subject"]] = row["lock"]
            else:
                held.pop((row["actor"], row["subject"]), None)
        # Events are kept for a day, locks for as long as their holders live.
        there = {
            (row["instance_id"], row["file"]): row["id"] for row in self.store.database.rows("SELECT * FROM context")
        }
        assert held.items() <= there.items()
        fresh = {
            row["id"]
            for row in self.store.database.rows(
                "SELECT id FROM context WHERE created_at >= ?", (self.model.now - 86400,)
            )
        }
        assert fresh <= set(held.values())


def test_the_store_and_its_model_agree(ground: Ground):
    ground.store().close()
    Machine.empty, Machine.folder = Path(ground.database), ground.repo
    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=EXAMPLES, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )
