"""A whole machine: a private home with a clone that has joined, the local store, and the real team agent.

Its sessions lock as verbs do; its onlooker looks as hooks do. The agent is a process of its own, started again whenever
it has been killed; its process number stands in the file `agent` of the home, for faults to find it.
"""

import json
import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from support.fixtures import put_empty_store

from swarm_hook_core import clock
from swarm_hook_core.lookup import Peers
from swarm_hook_core.lookup.sqlite import StoreReader
from swarm_hook_core.state import store_path
from swarm_mcp.domain import Lock, Session
from swarm_mcp.errors import SwarmError
from swarm_mcp.locking import acquisition as lock_acquisition
from swarm_mcp.store import Store, driver
from swarm_mcp.store.sessions import Registration
from swarm_mcp.team import agent_client, verb

from .workers import Taken, work

REPOSITORY = "storm"
LEFT_SECONDS = 90.0  # for the server to lose all rows that are gone here, once nothing is broken
LATER_SECONDS = 1.5  # seconds that a session keeps a lock of this machine only, hoping for the team


class LocalMachine:
    """One machine: `clone` has joined, and each of the `sessions` works in it."""

    pause = 0.01

    def __init__(self, name: str, clone: Path):
        self._clone = clone
        self._of_thread = threading.local()
        self._instances: dict[str, Session] = {}
        self._rows: dict[tuple[str, str], Lock] = {}
        for number in range(3):
            session = f"{name}-{number}"
            asked = Registration(
                str(clone), label=f"session:{session}", runtime="claude-code", session_id=session, lease_seconds=86400
            )
            self._instances[session] = self._store.instances.register(asked)
        self.sessions = list(self._instances)

    @property
    def _store(self) -> Store:
        if not hasattr(self._of_thread, "store"):
            self._of_thread.store = Store()
        store = self._of_thread.store
        assert isinstance(store, Store)
        return store

    def take(self, session: str, place: str, mode: str) -> Taken | None:
        store, instance = self._store, self._instances[session]
        try:
            wanted = lock_acquisition.requested(store, instance, [self._named(place)], "*" in place, None, mode=mode)
            taken = lock_acquisition.take(store, instance, wanted)
        except SwarmError:
            return None
        (row,) = taken
        self._rows[session, place] = row
        team = taken.confirmation
        if team is not None and team.state in (agent_client.SETTLED, agent_client.GRANTED) and team.fences.get(row.id):
            return Taken(team.fences[row.id], team.is_everywhere)
        end = clock.now() + LATER_SECONDS
        while clock.now() < end:
            if fence := self._fence(row):
                return Taken(fence, False)
            time.sleep(0.02)
        self.give_back(session, place, 0)
        return None

    def holds(self, session: str, place: str, fence: int) -> bool:
        return self._fence(self._rows[session, place]) == fence

    def give_back(self, session: str, place: str, fence: int) -> None:
        while True:
            try:
                self._store.locks.release(self._instances[session], self._named(place))
                break
            except SwarmError as error:  # a busy store
                print(f"{clock.now():.3f} {error}", file=sys.stderr, flush=True)
        agent_client.poke()

    def look(self, file: str) -> tuple[float, set[str]]:
        if not hasattr(self._of_thread, "reader"):
            self._of_thread.reader = StoreReader(
                store_path(), driver.load()
            )  # two SQLites in one process undo each other's locks
        reader = self._of_thread.reader
        fresh_until = min(
            (until or 0.0 for _, _, until, *_ in reader.shared_trees()), default=0.0
        )  # first, as hooks do
        found = Peers(reader, "", time.time()).over([str(self._clone / file)])
        return fresh_until, {held.instance_id for held in found}

    def _fence(self, row: Lock) -> int:
        """Return the team's number of a lock, as far as this machine may believe in it; 0 where it may not."""
        found = self._store.database.rows(
            "SELECT c.team_fence FROM context c, swarm_team_repositories r WHERE c.id = ? AND c.instance_id = ?"
            " AND c.machine IS NULL AND c.mode IS ? AND r.fresh_until > ?",
            (row.id, row.instance_id, row.mode, clock.now()),
        )
        return int(found[0].team_fence or 0) if found else 0

    def _named(self, place: str) -> str:
        return place if "*" in place else str(self._clone / place)


def keep_agent(home: Path, planted: str, is_over, chance: random.Random) -> None:
    """Keep a team agent running; one that is killed is missed for a while."""
    while not is_over():
        with (home / "agent.log").open("ab") as log:
            words = [sys.executable, "-m", "team.history.agent_process", planted]
            agent = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        (home / "agent").write_text(str(agent.pid))
        while agent.poll() is None and not is_over():
            time.sleep(0.05)
        if agent.poll() is None:
            agent.terminate()
        agent.wait()
        (home / "agent").unlink()
        if not is_over():
            time.sleep(chance.random())


def locks_left(conninfo: str, machine: str) -> str:
    """Return this machine's locks on the server, or its error, else an empty text."""
    import psycopg

    asked = (
        "SELECT l.place || l.pattern, l.session, l.fence FROM swarm_team.locks l"
        " JOIN swarm_team.sessions s USING (repository, session) WHERE s.machine = %s"
    )
    try:
        with psycopg.connect(conninfo, autocommit=True, connect_timeout=2) as connection:
            return ", ".join(map(str, connection.execute(asked, (machine,)).fetchall()))
    except psycopg.OperationalError as error:  # the last fault may be just over
        return str(error)


@contextmanager
def joined_clone(told: dict[str, Any]) -> Iterator[Path]:
    """Yield a clone in this machine's home that has joined, with an agent kept by the test.

    `told`: the storm's orders to a machine; used are home, number, server, seed and planted.
    """
    home = Path(told["home"])
    clone = home / "clone"
    subprocess.run(["git", "init", "-q", str(clone)], check=True)
    put_empty_store(store_path())
    agent_client.start = lambda: None  # only `keep_agent` starts it here
    verb.join(verb.tree_in(str(clone)), told["server"], REPOSITORY)
    done = threading.Event()
    chance = random.Random(f"{told['seed']} {told['number']}")
    keeper = threading.Thread(target=keep_agent, args=(home, told["planted"], done.is_set, chance))
    keeper.start()
    try:
        yield clone
    finally:
        done.set()
        keeper.join()


def main() -> None:
    told = json.loads(sys.argv[1])
    stop = Path(told["stop"])
    with joined_clone(told) as clone:
        for folder in ("src/deep", "docs"):
            (clone / folder).mkdir(parents=True)
        work(LocalMachine(f"M{told['number']}", clone), stop.exists, Path(told["report"]), told["seed"])
        from swarm_mcp.team.memberships import machine

        end = time.monotonic() + LEFT_SECONDS
        while (left := locks_left(told["server"], machine())) and time.monotonic() < end:
            time.sleep(0.2)
        assert not left, f"left on the server, and nobody here has it: {left}"
    os._exit(0)


if __name__ == "__main__":
    main()
