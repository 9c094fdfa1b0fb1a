"""Where what is promised of locks is put to the test: sessions on one machine, and sessions on two of a team.

Each has the folders of ``lock_model``. What is done in a team is told to all of its machines at once (`even`): what
comes of it where they are late is for others to test (``following_cases``, tests/team/history).
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.fixtures import Ground
from support.lock_model import FOLDERS
from support.team_machines import Machine
from swarm_hook_core import clock
from swarm_hook_core.state import state_dir
from swarm_mcp import lock_acquisition
from swarm_mcp.domain.lock import Lock
from swarm_mcp.domain.session import Session
from swarm_mcp.lock_acquisition import LockWait, Taken
from swarm_mcp.store import Store
from swarm_mcp.store.lock_request import request
from swarm_mcp.team import agent_client


class OneMachine:
    """Sessions that share one machine's store.

    grounds  of each machine its own, with a checkout
    homes    of each session, by its id, which of them it works on
    """

    def __init__(self, grounds: list[Ground], stores: list[Store]):
        self.grounds, self.stores = grounds, stores
        self.homes: dict[str, int] = {}
        for ground in grounds:
            for folder in FOLDERS:
                (ground.repo / folder).mkdir(parents=True)

    def even(self) -> None:
        """Have every machine know what all the others have done."""

    def number(self, lock: Lock) -> int:
        """The number of a grant, by which whoever is written to tells late writers from others."""
        return int(lock.fence)

    # ------------------------------------------------------------------ sessions

    def session(self, name: str, **given: Any) -> Session:
        """Begin a session: each on the next machine."""
        home = len(self.homes) % len(self.grounds)
        row = self.grounds[home].session(name, **given)
        self.homes[row.id] = home
        self.even()
        return row

    def ground(self, row: Session) -> Ground:
        return self.grounds[self.homes[row.id]]

    def store(self, row: Session) -> Store:
        return self.stores[self.homes[row.id]]

    def leave(self, row: Session) -> None:
        self.store(row).instances.remove(row.id)
        self.even()

    # --------------------------------------------------------------------- locks

    def take(self, row: Session, *names: str, **given: Any) -> list[Lock]:
        """Take locks as the verb does; the rows as they are once every machine knows them."""
        taken = lock_acquisition.take(self.store(row), row, request(row, list(names), **given))
        self.even()
        rows = {lock.id: lock for lock in self.store(row).team.of_ids([lock.id for lock in taken])}
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
                assert wait.left() <= lock_acquisition.LONGEST_NAP < 1  # so often is asked what nobody commits
            finally:
                self.even()
            return taken

        return advance

    def holders(self) -> list[list[str]]:
        """On each machine, the ids of the sessions that hold something."""
        return [[lock["instance_id"] for lock in store.locks.held(None)] for store in self.stores]

    def give_all_back(self) -> None:
        """Nobody holds anything any more, and nothing is told of it."""
        for ground in self.grounds:
            ground.sql("DELETE FROM context")
        self.even()


class TwoMachines(OneMachine):
    """Sessions on two machines of a team, in one process: verbs ask the team agent's part of their own machine."""

    def __init__(self, folder: Path, server: Any, repository: str, patch: pytest.MonkeyPatch):
        self.machines = [Machine(folder / name, name, server, repository) for name in ("laptop", "sandbox")]
        super().__init__([one.ground for one in self.machines], [one.store for one in self.machines])
        os.makedirs(os.path.join(state_dir(), "team", "clones"), exist_ok=True)
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
        """Have each machine take in what is new, and post what it has done; the versions that they have then."""
        for one in self.machines:
            one.follow()
        return [one.replica.version for one in self.machines]

    def number(self, lock: Lock) -> int:
        return int(lock.team_fence)

    def give_all_back(self) -> None:
        for ground in self.grounds:
            ground.sql("DELETE FROM context WHERE machine IS NULL")
        self.even()

    def _confirm(self, lock_ids: list[str], seconds: float = math.inf, settle_seconds: float = math.inf) -> dict:
        """What the agent answers; it counts once the other machine has said that it knows."""
        one = next(one for one in self.machines if one.store.team.of_ids(lock_ids))
        answer, version = one.following.confirm(lock_ids, clock.now() + 60)
        if version:
            self._follow()
            answer["settled"] = one.server.settle(one.repository, version, 10.0)
        return dict(answer)
