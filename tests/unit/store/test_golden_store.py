"""A scripted story through the store's public face leaves the same rows as ever
(``tests/data/golden/store/story.json``).

``WRITE_GOLDEN=1`` writes the file anew, after a change of the stored rows.
"""

import contextlib
import json
import os
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from support.fixtures import Ground, Sleeper

from swarm_hook_core import clock
from swarm_hook_core.process import host_id
from swarm_mcp.domain import Session
from swarm_mcp.errors import SwarmError
from swarm_mcp.store import Store
from swarm_mcp.store.lock_request import request
from swarm_mcp.store.refusals import Attempt
from swarm_mcp.store.sessions import Registration

GOLDEN = Path(__file__).parents[2] / "data/golden/store/story.json"
NAMED = "{0}{0}-0000-4000-8000-000000000000"  # a session's id: messages quote its beginning
ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")
YEAR = 31_536_000
WRITE = bool(os.environ.get("WRITE_GOLDEN"))


class Narrator:
    """Rewrites values that differ from run to run: ids, times, processes, folders."""

    def __init__(self, ground: Ground):
        self.replaced = {str(ground.folder): "$", host_id(): "HOST", clock.boot(host_id()) or "-": "BOOT"}
        self.ids: dict[str, str] = {}
        self.processes = {os.getpid()}

    def text(self, value: str) -> str:
        for found, word in self.replaced.items():
            value = value.replace(found, word)
        for pid in self.processes:
            value = re.sub(rf"\b{pid}\b", "PID", value)
        value = re.sub(r"\d\d:\d\d:\d\d", "CLOCK", value)
        value = re.sub(r"\b\d+(\.\d)? s\b", "SECONDS", value)
        value = re.sub(r'"length": \d+', '"length": "LENGTH"', value)  # folders are in the texts
        value = re.sub(r"\b1[6-9]\d{8}(\d{3})?\b", "TIME", value)
        return ID.sub(lambda found: self.ids.setdefault(found[0], f"id-{len(self.ids) + 1}"), value)

    def value(self, name: str, value: object) -> object:
        if name in ("start", "client_start", "terminal_start", "supervisor_start", "child_start"):
            return value and "START"
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, float) and name != "ttl":
            return "CLOCK"
        if isinstance(value, int) and abs(value - time.time()) < 40 * YEAR and value > YEAR:
            return "TIME"
        if isinstance(value, int) and abs(value / 1000 - time.time()) < 40 * YEAR and value > YEAR:
            return "TIME_MS"
        if value in self.processes:
            return "PID"
        return value


class Story:
    """Operations one after the other; the answer of each is part of the golden file."""

    def __init__(self, store: Store, ground: Ground):
        self.store = store
        self.ground = ground
        self.narrator = Narrator(ground)
        self.told: list[object] = []

    def tell(self, name: str, step: Callable[[], object]) -> Any:
        """Run `step` and note its answer, or its refusal."""
        try:
            answer = step()
        except SwarmError as error:
            self.told.append([name, f"{type(error).__name__}: {self.narrator.text(str(error))}"])
            return None
        self.told.append([name, self.narrated(answer)])
        return answer

    def dump(self, name: str) -> None:
        """Note all rows of all tables, by table."""
        tables = self.ground.sql("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
        rows = {row["name"]: self.ground.sql(f"SELECT * FROM {row['name']} ORDER BY rowid") for row in tables}
        self.told.append([name, self.narrated(rows)])

    def narrated(self, answer: object, name: str = "") -> object:
        if isinstance(answer, dict):
            return {key: self.narrated(value, key) for key, value in answer.items()}
        if isinstance(answer, (list, tuple)):
            return [self.narrated(one, name) for one in answer]
        return self.narrator.value(name, answer)

    def session(self, name: str, client: Sleeper, **given: Any) -> Session:
        self.narrator.processes.add(client.pid)
        given.setdefault("label", f"name:{name}")
        given.setdefault("preassigned_id", NAMED.format(name))
        facts = {"runtime": "codex", "session_id": name, "lease_seconds": 86400, "client": client.identity}
        return self.tell(
            f"register {name}",
            lambda: self.store.instances.register(Registration(self.ground.scope, **{**facts, **given})),
        )


def chapters(story: Story, clients: list[Sleeper]) -> None:
    store, tell = story.store, story.tell
    ann = story.session("ann", clients[0], label="name:ann role:planner", pane={"pane_id": "%1"})
    bob = story.session("bob", clients[1])
    cyd = story.session("cyd", clients[2], label="name:cyd identity:work")
    file = os.path.join(story.ground.scope, "src", "a.py")

    tell("lock", lambda: store.locks.acquire(ann, "src/a.py", "editing"))
    tell("lock again", lambda: store.locks.acquire(ann, "src/a.py", "still editing"))
    tell("refused", lambda: store.locks.acquire(bob, "src/a.py"))
    tell("refused, another identity", lambda: store.locks.acquire(cyd, "src/a.py"))
    tell("hook refused", lambda: store.denials.report(bob, file, ann.id, Attempt("Edit", file, story.ground.scope)))
    wanted = request(ann, ["src/b/", "docs/c.md"], mode="shared", agent="helper")
    tell("lock shared", lambda: store.locks.acquire_all(ann, wanted))
    tell("share", lambda: store.locks.acquire_all(bob, request(bob, ["docs/c.md"], mode="shared")))
    tell("pattern", lambda: store.locks.acquire_all(bob, request(bob, ["lib/**/*.py"], as_pattern=True)))
    tell("lease", lambda: store.locks.acquire_all(bob, request(bob, ["leased.txt"], ttl=600.0)))
    tell("renew", lambda: store.leases.renew_lock(bob, "leased.txt", ttl=900.0))
    waiting = request(bob, ["src/a.py"])
    ticket = tell("wait", lambda: store.queue.join(bob, waiting, 60.0))
    tell("circle", lambda: store.queue.join(ann, request(ann, ["leased.txt"]), None))
    tell("leave", lambda: store.queue.leave(ticket))
    tell("ask", lambda: store.transfers.request(bob, "src/a.py", "a fix"))
    tell("hand over", lambda: store.transfers.transfer(ann, "src/a.py", bob.id, note="tests are red"))
    tell("notices", lambda: store.notices.take(bob))
    tell("listing", lambda: list(store.locks.held(None)))
    tell("on", lambda: [lock.id for lock in store.locks.on(file)])
    tell("steal refused", lambda: store.transfers.steal(ann, "src/a.py"))
    tell("steal", lambda: store.transfers.steal(ann, "src/a.py", "a person says so", force=True))
    tell("release", lambda: store.locks.release(ann, "src/a.py"))
    tell("release of agent", lambda: store.locks.release_of_agent(ann, "helper"))

    tell("send", lambda: store.messages.send(ann, bob.id, "hello"))
    tell("send across", lambda: store.messages.send(cyd, bob.id, "hello"))
    tell("broadcast", lambda: store.messages.broadcast(bob, "to all"))
    tell("take", lambda: store.messages.take(ann))
    tell("acknowledge", lambda: store.messages.acknowledge([message.id for message in store.messages.peek(ann)]))

    first = tell("task", lambda: store.tasks.request(ann, {"type": "fix", "title": "one", "files": ["src/a.py"]}))
    batch = [{"title": "two", "depends_on": [first["task"].id]}, {"title": "three", "depends_on": ["$1"]}]
    tell("batch", lambda: store.tasks.request_batch(ann, batch))
    tell("batch refused", lambda: store.tasks.request_batch(ann, [{"title": ""}, {"title": "x", "depends_on": ["$9"]}]))
    tell("claim", lambda: store.tasks.claim(bob, first["task"].id, ignore_unread=True))
    tell("progress", lambda: store.tasks.report_progress(bob, first["task"].id, "half"))
    tell("lock for task", lambda: store.locks.acquire(bob, "src/a.py", task_id=first["task"].id))
    tell("complete", lambda: store.tasks.complete(bob, first["task"].id, {"summary": "fixed", "tests": []}))
    tell("claim next", lambda: store.tasks.claim_next(bob, ignore_unread=True))
    tell("tasks", lambda: store.tasks.current(ann))

    tell("put", lambda: store.kv.put(ann, "plan/now", "refactor"))
    tell("append", lambda: store.kv.append(cyd, "list", '{"n": 1.50}'))
    tell("owned", lambda: store.kv.put(bob, "list", "mine"))
    tell("planner", lambda: store.planner.owner(story.ground.scope))
    tell("link", lambda: store.tracker.link(cyd, "linear", "t1", "ABC-1"))
    tell("order", lambda: store.ui_commands.enqueue(story.ground.scope, ann.id, "send_prompt", {"text": "go"}))
    spec = {"id": "run-1", "scope": story.ground.scope, "instance_id": bob.id, "harness": "codex", "cwd": "/"}
    tell("run", lambda: store.runs.begin(spec))
    tell("run ends", lambda: store.runs.update("run-1", state="ended", result={"output": "done"}))
    change = {"file": os.path.join(story.ground.scope, "leased.txt"), "holder_id": bob.id, "kind": "changed"}
    breach = {**change, "kept": "/kept", "at": time.time()}
    tell("breach", lambda: store.breaches.report(ann, "Bash", "sed -i", [breach]))
    tell("attempted", lambda: store.protection.attempted(story.ground.scope, ann.id, "rm the hooks"))
    tell("lowered", lambda: store.protection.lowered(story.ground.scope, None, "hooks", "The hooks are off."))

    story.dump("before the end")

    elsewhere = os.path.join(story.ground.scope, "..", "elsewhere")
    os.makedirs(elsewhere)
    story.session("bob", clients[3], scope=os.path.realpath(elsewhere))
    tell("ann leaves", lambda: store.instances.end_session(ann, clients[0].identity))
    clients[2].end()
    tell("sweep", lambda: store.activity.sweep())
    tell("clean", lambda: {**store.cleanup.clean(), "at": 0})
    tell("bob is removed", lambda: store.instances.remove(bob.id))


def test_a_story_leaves_the_same_rows_as_ever(ground: Ground) -> None:
    with contextlib.ExitStack() as stack, ground.store() as store:
        clients = [stack.enter_context(Sleeper()) for _ in range(4)]
        story = Story(store, ground)
        chapters(story, clients)
        story.dump("after the end")
    text = json.dumps(story.told, indent=1, ensure_ascii=False, sort_keys=True) + "\n"
    if WRITE:
        GOLDEN.write_text(text)
    for now, before in zip(json.loads(text), json.loads(GOLDEN.read_text()), strict=True):
        if now[0] == before[0] and isinstance(now[1], dict) and isinstance(before[1], dict):
            assert now[1].keys() == before[1].keys(), now[0]
            for name, value in now[1].items():
                assert value == before[1][name], f"{now[0]}: {name}"
        assert now == before
