"""The worlds of the lock tests: sessions on one machine, and sessions on two of a team.

Each has the folders of ``lock_model``. In a team, all machines hear of each operation at once (`even`): delays are
tested elsewhere (``following_cases``, tests/team/history).
"""

import math
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from support.fixtures import Ground
from support.lock_model import FOLDERS
from support.team_machines import Machine
from swarm_hook_core import clock
from swarm_hook_core.state import state_dir
from swarm_mcp.domain import Lock, Session
from swarm_mcp.locking import acquisition as lock_acquisition
from swarm_mcp.locking.acquisition import LockWait, Taken
from swarm_mcp.store import Store
from swarm_mcp.store.lock_request import request
from swarm_mcp.team import agent_client
from swarm_mcp.team.parts import TeamRows


class OneMachine:
    """Sessions that share one machine's store.

    grounds  of each machine its own, with a checkout
    homes    the machine of each session, by its id
    """

    def __init__(self, grounds: list[Ground], stores: list[Store]):
        self.grounds, self.stores = grounds, stores
        self.homes: dict[str, int] = {}
        for ground in grounds:
            for folder in FOLDERS:
                (ground.repo / folder).mkdir(parents=True)

    def even(self) -> None:
        """Have every machine know all operations of the others."""

    def on(self, home: int) -> Store:
        """Make the next operation one of that machine; return its store."""
        return self.stores[home]

    def number(self, lock: Mapping) -> int:
        """Return the number of a grant, by which a receiver of writes tells late writers from others."""
        return int(lock["fence"])

    def numbers(self, taken: Taken) -> list[int]:
        """Return the numbers of the newly taken locks."""
        return [lock.fence for lock in taken]

    def close(self) -> None:
        for store in self.stores:
            store.close()

    def session(self, name: str, **given: Any) -> Session:
        """Begin a session: each on the next machine."""
        home = len(self.homes) % len(self.grounds)
        self.on(home)
        row = self.grounds[home].session(name, **given)
        self.homes[row.id] = home
        self.even()
        return row

    def ground(self, row: Session) -> Ground:
        self.on(self.homes[row.id])
        return self.grounds[self.homes[row.id]]

    def store(self, row: Session) -> Store:
        return self.on(self.homes[row.id])

    def leave(self, row: Session) -> None:
        self.store(row).instances.remove(row.id)
        self.even()

    def take(self, row: Session, *names: str, **given: Any) -> list[Lock]:
        """Take locks as the verb does; the rows as they are once every machine knows them."""
        taken = lock_acquisition.take(self.store(row), row, request(row, list(names), **given))
        self.even()
        rows = {lock.id: lock for lock in TeamRows(self.store(row)).of_ids([lock.id for lock in taken])}
        return [rows[lock.id] for lock in taken]

    def release(self, row: Session, name: str) -> None:
        self.store(row).locks.release(row, name)
        self.even()

    def waits(self, row: Session, *names: str) -> Callable[[], Taken | None]:
        """A wait that has not begun; each call asks once."""
        wait = LockWait(row, request(row, list(names)), None)

        def advance() -> Taken | None:
            try:
                taken = wait.advance(self.store(row))
                assert wait.left() <= lock_acquisition.LONGEST_NAP < 1  # the pause between two looks without a commit
            finally:
                self.even()
            return taken

        return advance

    def holders(self) -> list[list[str]]:
        """On each machine, the ids of the sessions that hold something."""
        return [[lock["instance_id"] for lock in store.locks.held(None)] for store in self.stores]

    def give_all_back(self) -> None:
        """All locks are released, without any notification."""
        for ground in self.grounds:
            ground.sql("DELETE FROM context")
        self.even()


class TwoMachines(OneMachine):
    """Sessions on two machines of a team, in one process: verbs ask the team agent's part of their own machine."""

    def __init__(self, folder: Path, server: Any, repository: str, patch: pytest.MonkeyPatch):
        self.machines = [Machine(folder / name, name, server, repository) for name in ("laptop", "sandbox")]
        super().__init__([one.ground for one in self.machines], [one.store for one in self.machines])
        for home in range(2):
            self.on(home)
            os.makedirs(os.path.join(state_dir(), "team", "clones"))
        patch.setattr(agent_client, "confirm", self._confirm)
        patch.setattr(agent_client, "poke", lambda: None)
        self.even()

    def close(self) -> None:
        for one in self.machines:
            one.close()

    def even(self) -> None:
        before: list[int] = []
        self._follow()
        while before != (before := self._follow()):
            continue

    def _follow(self) -> list[int]:
        """Have each machine apply news and post its changes. Returns their versions."""
        for home, one in enumerate(self.machines):
            self.on(home)
            one.follow()
        return [one.replica.version for one in self.machines]

    def on(self, home: int) -> Store:
        os.environ["SWARM_STATE_DIR"] = str(self.machines[home].ground.folder / "state")
        return self.stores[home]

    def number(self, lock: Mapping) -> int:
        return int(lock["team_fence"])

    def numbers(self, taken: Taken) -> list[int]:
        assert taken.confirmation and taken.confirmation.is_everywhere
        return [taken.confirmation.fences[lock.id] for lock in taken]

    def give_all_back(self) -> None:
        for ground in self.grounds:
            ground.sql("DELETE FROM context WHERE machine IS NULL")
        self.even()

    def _confirm(self, lock_ids: list[str], seconds: float = math.inf, settle_seconds: float = math.inf) -> dict:
        """Answer as the agent does; a grant counts once the other machine has acknowledged it."""
        one = next(one for one in self.machines if TeamRows(one.store).of_ids(lock_ids))
        answer, version = one.following.confirm(lock_ids, clock.now() + 60)
        if version:
            home = self.machines.index(one)
            self._follow()
            self.on(home)
            answer["settled"] = one.server.settle(one.repository, version, 10.0)
        return dict(answer)
