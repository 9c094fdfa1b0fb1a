"""A whole machine with sessions that hand work to each other: messages, tasks, and one value that all of them append
to.

They act as verbs do, with and without a reachable server. In the end each machine waits until it has all things that
the others have sent, and until these have too.
"""

import json
import os
import random
import sys
import threading
import time
from collections import Counter
from pathlib import Path

from support.history import Held

from swarm_hook_core import clock
from swarm_mcp.domain import IN_PROGRESS, Task
from swarm_mcp.errors import NotConfirmed, SwarmError
from swarm_mcp.locking import acquisition
from swarm_mcp.team import agent_client
from swarm_mcp.team.store_documents import TeamDocuments

from .local_machine import REPOSITORY, LocalMachine, joined_clone
from .test_agent_storms import MACHINES
from .workers import _ends_all, begun

KEY = "log"
EVEN_SECONDS = 60.0  # for everything to arrive once nothing is broken
PLANTED_SECONDS = 10.0  # after that, with a planted fault, missing things are taken for lost
MOST_OPEN = 12  # unassigned tasks


class HandingMachine(LocalMachine):
    """One machine, and its sessions' observations."""

    def __init__(self, name: str, clone: Path):
        super().__init__(name, clone)
        self.name = name
        self.claims: list[Held] = []
        self.sent: list[tuple[str, str]] = []
        self.heard: list[tuple[str, str]] = []
        self.appended: list[str] = []
        self.counts: Counter[str] = Counter()

    def play(self, session: str, is_over, chance: random.Random) -> None:
        """Do one thing after the other as `session`."""
        steps = [self.send, self.request, self.claim, self.claim, self.claim, self.append]
        number = 0
        while not is_over():
            number += 1
            try:
                chance.choice(steps)(session, f"{session} {number}", chance)
                self.read(session)
            except NotConfirmed:
                self.counts["not confirmed"] += 1
            except SwarmError:  # nothing to claim, a busy store
                self.counts["refused"] += 1
            time.sleep(chance.random() * 0.1)

    def send(self, session: str, words: str, _: random.Random) -> None:
        told = self._store.messages.broadcast(self._instances[session], words)
        agent_client.poke()
        self.sent += [(recipient, words) for recipient in told]
        self.counts["sent"] += len(told)

    def read(self, session: str) -> None:
        instance = self._instances[session]
        taken = self._store.messages.take(instance)
        self.heard += [(instance.id, one.content) for one in taken if not one.content.startswith("[")]
        self._store.messages.acknowledge([one.id for one in taken])

    def append(self, session: str, words: str, chance: random.Random) -> None:
        if chance.random() < 0.5:
            self._store.kv.append(self._instances[session], KEY, json.dumps(words))
            agent_client.poke()
            self.appended.append(words)
            self.counts["appended"] += 1

    def request(self, session: str, words: str, _: random.Random) -> None:
        if (
            self._store.database.rows("SELECT count(*) AS number FROM tasks WHERE status = 'open'")[0].number
            < MOST_OPEN
        ):
            self._store.tasks.request(self._instances[session], {"type": "fix", "title": words}, notify=False)
            agent_client.poke()

    def claim(self, session: str, words: str, chance: random.Random) -> None:
        """Have a task for a while, then end it."""
        store, instance, asked = self._store, self._instances[session], clock.now()
        task = acquisition.claim_next(store, instance, ignore_unread=True)["task"]
        began = ended = clock.now()
        until = began + chance.random() * chance.choice((0.2, 1.0, 4.0))
        while self.has(session, task):
            ended = clock.now()
            if ended > until:
                break
            time.sleep(0.003)
        self.counts["claimed"] += 1
        if ended > began:
            self.claims.append(Held(session, task.id, 0, asked, began, ended))
        store.tasks.end(instance, task.id, "done", words)
        agent_client.poke()

    def has(self, session: str, task: Task) -> bool:
        """Return True if the session may still believe that a task is its own, as of the question."""
        found = self._store.database.rows(
            "SELECT 1 FROM tasks t, swarm_team_repositories r WHERE t.id = ? AND t.assignee = ? AND t.status = ?"
            " AND r.fresh_until > ?",
            (task.id, self._instances[session].id, IN_PROGRESS, clock.now()),
        )  # fmt: skip
        return bool(found)

    def is_in(self) -> bool:
        """Return True if this machine has once had all rows of the team."""
        return bool(self._store.database.rows("SELECT 1 FROM swarm_team_repositories WHERE fresh_until > 0"))

    # ----------------------------------------------------------------- in the end

    def version(self) -> int:
        """Return the version of this machine's replica."""
        return int(self._store.database.rows("SELECT version FROM swarm_team_repositories")[0].version)

    def value(self) -> list[str]:
        found = self._store.database.rows("SELECT value FROM kv WHERE key = ?", (KEY,))
        return json.loads(found[0].value) if found else []

    def is_even(self, told: list[dict]) -> bool:
        """Return True if everything `told` by all machines is here, and nothing of ours is left to be told."""
        for session in self.sessions:
            self.read(session)
        mine = {instance.id for instance in self._instances.values()}
        wanted = {(recipient, words) for one in told for recipient, words in one["sent"] if recipient in mine}
        appended = {words for one in told for words in one["appended"]}
        return (
            wanted <= set(self.heard)
            and appended <= set(self.value())
            and not TeamDocuments(self._store).unposted(REPOSITORY)
        )

    def end(self) -> dict[str, str]:
        rows = self._store.database.rows("SELECT id, status, assignee FROM tasks")
        return {row.id: f"{row.status} by {row.assignee}" for row in rows}


def told_by_all(folder: Path, what: str, number: int, told: dict, seconds: float) -> list[dict]:
    """Tell all machines something, and wait until each has told it; return the texts that came in time."""
    made = folder / f"{what}{number}.new"
    made.write_text(json.dumps(told))
    made.rename(folder / f"{what}{number}.json")
    files = [folder / f"{what}{one}.json" for one in range(MACHINES)]
    end = time.monotonic() + seconds
    while not all(file.exists() for file in files) and time.monotonic() < end:
        time.sleep(0.05)
    return [json.loads(file.read_text()) for file in files if file.exists()]


def version_of(server: str) -> int:
    """Return how far the server's log has come."""
    import psycopg

    with psycopg.connect(server, autocommit=True) as connection:
        row = connection.execute(
            "SELECT version FROM swarm_team.repositories WHERE name = %s", (REPOSITORY,)
        ).fetchone()
    assert row
    return int(row[0])


def play(
    machine: HandingMachine, server: str, stop: Path, report: Path, number: int, seed: int, patience: float
) -> None:
    """Have every session of `machine` play until `stop` is there, wait until all machines are even, and report.

    `patience`: seconds that it waits so.
    """
    threading.excepthook = _ends_all
    threads = [
        threading.Thread(target=machine.play, args=(one, stop.exists, random.Random(f"{seed} {one}")))
        for one in machine.sessions
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    told = told_by_all(
        report.parent, "told", number, {"sent": machine.sent, "appended": machine.appended}, EVEN_SECONDS
    )
    end = time.monotonic() + patience
    while not machine.is_even(told) and time.monotonic() < end:
        time.sleep(0.1)
    told_by_all(report.parent, "even", number, {}, EVEN_SECONDS)
    last = version_of(server)  # by now all have posted their changes
    end = time.monotonic() + patience
    while machine.version() < last and time.monotonic() < end:
        time.sleep(0.1)
    time.sleep(1.0)  # for repeated arrivals
    machine.is_even(told)
    seen = {name: getattr(machine, name) for name in ("claims", "sent", "heard", "appended", "counts")}
    report.write_text(json.dumps({**seen, "value": machine.value(), "end": machine.end()}))
    told_by_all(report.parent, "reported", number, {}, EVEN_SECONDS)


def main() -> None:
    told = json.loads(sys.argv[1])
    number = told["number"]
    with joined_clone(told) as clone:
        machine = HandingMachine(f"M{number}", clone)
        while not machine.is_in():  # before that, a value's own appends do not count
            time.sleep(0.05)
        begun(Path(told["report"])).touch()
        patience = PLANTED_SECONDS if told["is_planted"] else EVEN_SECONDS
        play(machine, told["server"], Path(told["stop"]), Path(told["report"]), number, told["seed"], patience)
    os._exit(0)


if __name__ == "__main__":
    main()
