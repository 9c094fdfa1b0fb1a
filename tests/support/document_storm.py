"""Three machines share messages, tasks and values while links break, agents are killed and the server is restored.

Each storm is a seed. Every sent message arrives once, every appended item is there once, one session has each task, and
in the end all machines have the same. Run against the server in memory (tests/unit/team) and against PostgreSQL
(tests/team).
"""

import json
import random
from pathlib import Path

from support.fake_team import FakeTeam
from support.team_machines import REPOSITORY, Machine
from swarm_hook_core import clock
from swarm_mcp.store.values import compact_json
from swarm_mcp.team import TeamUnreachable

CALLS = ("put", "beat", "hello")


class Storm:
    """`team`: has ``server(machine)``; only that in memory is restored, or keeps fewer changes."""

    def __init__(self, folder: Path, seed: int, team, repository: str = REPOSITORY) -> None:
        self.random = random.Random(seed)
        self.team = team
        self.machines = [Machine(folder / name, name, team, repository) for name in ("laptop", "sandbox", "tower")]
        self.sessions = [(machine, machine.session(name)) for machine in self.machines for name in ("one", "two")]
        self.number = 0
        # Every change, to each that was there before.
        self.is_told = seed % 2 == 1 or not isinstance(team, FakeTeam)
        self.sent: list[tuple[str, str]] = []  # recipient and text
        self.heard: dict[str, list[str]] = {session["id"]: [] for _, session in self.sessions}
        self.appended: list[str] = []
        self.granted: dict[str, list[str]] = {}
        self.unheard: set[tuple[str, str]] = set()  # task and session: claimed by a verb that was killed
        self.done: set[str] = set()
        self.quieten()

    def step(self) -> None:
        names = ["send"] * 4 + ["broadcast", "append", "append", "append", "set", "request", "request"]
        names += ["claim"] * 4 + ["progress", "finish", "follow", "follow", "follow", "cut", "heal", "die", "die"]
        names += ["look_away", "read", "restore"]
        getattr(self, self.random.choice(names))(*self.random.choice(self.sessions))

    def fresh(self, word: str) -> str:
        self.number += 1
        return f"{word} {self.number}"

    def send(self, machine, session) -> None:
        recipient = self.random.choice(self.sessions)[1]["id"]
        if recipient != session["id"]:
            text = self.fresh("message")
            machine.store.messages.send(session, recipient, text)
            self.sent.append((recipient, text))

    def broadcast(self, machine, session) -> None:
        text = self.fresh("broadcast")
        self.sent += [(peer, text) for peer in machine.store.messages.broadcast(session, text)]

    def append(self, machine, session) -> None:
        # Repeated items: each has to be there. A machine that takes everything cannot tell equal ones apart.
        item = json.dumps(self.random.choice(["tick", self.fresh("item")]) if self.is_told else self.fresh("item"))
        machine.store.kv.append(session, "log", item)
        self.appended.append(item)

    def set(self, machine, session) -> None:
        machine.store.kv.put(session, self.random.choice(["plan", "state"]), self.fresh("value"))

    def request(self, machine, session) -> None:
        machine.store.tasks.request(session, {"type": "fix", "title": self.fresh("task")})

    def claim(self, machine, session) -> None:
        """Claim a task as the verb does."""
        store = machine.store
        found = store.tasks.claimable(session)
        if not found:
            return
        before = self.random.choice(found)
        begun = store.tasks.claim(session, before.id, ignore_unread=True)["task"]
        try:
            answer = machine.following.confirm_documents([("task", begun.id)], clock.now() + 0.5)["answer"]
        except TeamUnreachable:
            answer = "unreachable"
        if answer == "granted":
            self.granted.setdefault(begun.id, []).append(session["id"])
        elif answer == "unreachable":
            if self.random.random() < 0.3:
                self.unheard.add((begun.id, session["id"]))
                return  # the verb is killed as well
            with store.database.writing():
                store.database.change(
                    "UPDATE tasks SET status = ?, assignee = ?, updated_at = ?, changed_at = changed_at + 1"
                    " WHERE id = ? AND assignee = ? AND status = ?",
                    (before.status, before.assignee, before.updated_at, begun.id, begun.assignee, begun.status),
                )

    def progress(self, machine, session) -> None:
        for task in machine.store.tasks.unfinished_of(session)[:1]:
            machine.store.tasks.report_progress(session, task.id, self.fresh("progress"))

    def finish(self, machine, session) -> None:
        for task in machine.store.tasks.unfinished_of(session)[:1]:
            if session["id"] in self.granted.get(task.id, []):
                machine.store.tasks.end(session, task.id, "done", self.fresh("result"))
                self.done.add(task.id)

    def follow(self, machine, _session=None) -> None:
        try:
            machine.follow(self.random.random() < 0.8)
        except TeamUnreachable:
            machine.following.mirror.lose()

    def cut(self, machine, _session) -> None:
        machine.server.cut = True

    def heal(self, machine, _session) -> None:
        machine.server.cut = False

    def die(self, machine, _session) -> None:
        """The agent is killed, before or after it has asked something."""

        def fall() -> None:
            raise TeamUnreachable("killed")

        getattr(machine.server, self.random.choice(["before", "after"]))[self.random.choice(CALLS)] = fall
        self.follow(machine)
        machine.server.before.clear()
        machine.server.after.clear()
        machine.begin()

    def look_away(self, machine, _session) -> None:
        """The log is not kept for so long: later machines take everything."""
        if not self.is_told:
            self.team.kept = self.random.choice([0, 3, 10_000])

    def restore(self, _machine, _session) -> None:
        """Replace the server by one without the latest changes. For a while its earlier members have the first word."""
        if self.is_told or self.random.random() < 0.7:
            return
        repository = self.team.repositories[REPOSITORY]
        kept = max(1, repository.version - self.random.randrange(6))
        self.team.restore(REPOSITORY, kept)
        repository.version += 1000
        self.team.grace = 0.05
        for machine in self.machines:
            machine.server.cut = False
            for _ in range(2):
                self.follow(machine)
        self.team.grace = 0.0

    def read(self, machine, session) -> None:
        taken = machine.store.messages.take(session, limit=1000)
        self.heard[session["id"]] += [message.content for message in taken]
        machine.store.messages.acknowledge([message.id for message in taken])

    def quieten(self) -> None:
        for machine in self.machines:
            machine.server.cut = False
        for _ in range(6):
            for machine in self.machines:
                machine.follow()

    def check(self) -> None:
        self.quieten()
        for machine, session in self.sessions:
            self.read(machine, session)
        for recipient, texts in self.heard.items():
            own = [text for text in texts if text.startswith(("message", "broadcast"))]
            assert sorted(own) == sorted(text for one, text in self.sent if one == recipient)
        known = [self.told_of(machine) for machine in self.machines]
        assert known[0] == known[1] == known[2]
        log = known[0]["values"].get("log")
        assert sorted(json.loads(log or "[]")) == sorted(json.loads(compact_json(f"[{','.join(self.appended)}]")))
        assert all(len(sessions) == 1 for sessions in self.granted.values()), self.granted
        for task_id, (session,) in self.granted.items():
            task = known[0]["tasks"][task_id]
            assert task["assignee"] == session
            assert task["status"] == ("done" if task_id in self.done else "in_progress")
        for task_id, row in known[0]["tasks"].items():  # no machine misses a row that it was told of
            holder = row["assignee"]
            assert not holder or holder in self.granted.get(task_id, []) or (task_id, holder) in self.unheard
        versions = {row["version"] for row in self.machines[0].there("documents")}
        self.quieten()
        assert {row["version"] for row in self.machines[0].there("documents")} == versions  # there is no more to say

    def run(self, steps: int) -> None:
        """Play, and check the result."""
        try:
            for _ in range(steps):
                self.step()
            self.check()
        finally:
            for machine in self.machines:
                machine.close()

    @staticmethod
    def told_of(machine) -> dict:
        tasks = machine.ground.sql("SELECT * FROM tasks")
        values = machine.ground.sql("SELECT key, value, owner_identity, updated_at FROM kv")
        own = ("scope", "changed_at", "files")
        return {
            "tasks": {row["id"]: {name: row[name] for name in row if name not in own} for row in tasks},
            "values": {row["key"]: row["value"] for row in values},
        }
