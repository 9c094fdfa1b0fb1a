"""A whole machine. Its sessions note every answer: of `lock`, of checks, and in messages.

A session believes in its lock from the answer until it releases it, or is told that it is lost.
"""

import json
import os
import random
import sys
import threading
import time
from collections import Counter
from pathlib import Path

from swarm_hook_core import clock
from swarm_mcp.errors import LockRefused, SwarmError
from swarm_mcp.locking import acquisition
from swarm_mcp.team import agent_client, protocol

from .answers import Belief, Freed, Vanished
from .local_machine import LEFT_SECONDS, LocalMachine, joined_clone, locks_left
from .storm import LEASE
from .workers import _ends_all, begun

FILES = [f"g{number}" for number in range(8)]
HOLD_SECONDS = (0.3, 1.0, 1.0, 40.0)  # a hold lasts up to one of these: the last ones outlive a failover
TOLD_SECONDS = 30.0  # until a session has heard that its lock is lost, on a busy machine


class AnsweringMachine(LocalMachine):
    """One machine, and the observations of its sessions."""

    def __init__(self, name: str, clone: Path):
        super().__init__(name, clone)
        self.beliefs: list[Belief] = []
        self.freed: list[Freed] = []
        self.vanished: list[Vanished] = []
        self.counts: Counter[str] = Counter()
        self._beaten = 0.0  # when the server was last told that the sessions live
        self._refused: dict[tuple[str, str], float] = {}  # since when a session waits to hear of a file

    def watch_agent(self, is_over) -> None:
        while not is_over():
            told = agent_client.status() or {}
            for server in told.get("servers", ()):
                for one in server["repositories"]:
                    self._beaten = max(self._beaten, one["beaten"])
            time.sleep(0.1)

    def look_around(self, is_over) -> None:
        """Note each lock that is there no longer, as checks of this machine see it."""
        seen: dict[tuple[str, str], float] = {}
        while not is_over():
            for file in FILES:
                began = clock.now()
                holders = self.look(file)[1]
                ended = clock.now()
                gone = [one for one in seen if one[0] == file and one[1] not in holders]
                self.vanished += [Vanished(file, one[1], seen.pop(one), ended) for one in gone]
                seen.update({(file, holder): began for holder in holders})
                self.counts["looks"] += 1
            time.sleep(0.02)

    def act(self, session: str, is_over, chance: random.Random) -> None:
        """Take and release locks, one after the other."""
        store, me = self._store, self._instances[session]
        while not is_over():
            file = chance.choice(FILES)
            self._hear(session)
            try:
                wanted = acquisition.requested(store, me, [self._named(file)], False, None)
                (row,) = acquisition.take(store, me, wanted)
            except LockRefused:
                self.counts["refused"] += 1
                self._refused.setdefault((session, file), clock.now())
                time.sleep(chance.random() * 0.2)
                continue
            except SwarmError:
                self.counts["failed"] += 1
                continue
            self._refused.pop((session, file), None)
            self._hold(session, file, row.id, clock.now() + chance.random() * chance.choice(HOLD_SECONDS), is_over)
            time.sleep(chance.random() * 0.05)

    def _hold(self, session: str, file: str, lock_id: str, until: float, is_over) -> None:
        me, began, good = self._instances[session], 0.0, 0.0
        is_good = True
        while True:
            at = clock.now()
            asked = "SELECT team_fence FROM context WHERE id = ? AND instance_id = ? AND machine IS NULL"
            found = self._store.database.rows(asked, (lock_id, me.id))
            if found and found[0].team_fence and not began:
                began, at = clock.now(), clock.now()
                self.counts["grants"] += 1
            is_good = is_good and at < self._beaten + LEASE * (1 - protocol.MARGIN)
            if began and is_good and found:
                good = at
            if not found:
                how = "told" if self._is_told(session, file) else "untold"
                break
            if at > until or is_over():
                how = "released"
                self.give_back(session, file, 0)
                break
            time.sleep(0.02)
        self.counts[how] += 1
        self.counts["lapsed"] += not is_good
        self.beliefs.append(Belief(me.id, file, began, good, at, clock.now(), how))

    def _is_told(self, session: str, file: str) -> bool:
        end = time.monotonic() + TOLD_SECONDS
        while time.monotonic() < end:
            if any("Your lock on" in text and f"/{file}" in text for text in self._hear(session)):
                return True
            time.sleep(0.05)
        return False

    def _hear(self, session: str) -> list[str]:
        """Return new messages; note those about files that are free."""
        taken = self._store.messages.take(self._instances[session])
        self._store.messages.acknowledge([message.id for message in taken])  # else they come again in two minutes
        texts, at = [message.content for message in taken], clock.now()
        for text in texts:
            for file in FILES if " is free" in text or " are free" in text else ():
                known = self._refused.pop((session, file), None) if f"/{file}" in text else None
                if known:
                    self.counts["told of a free file"] += 1
                    self.freed.append(Freed(self._instances[session].id, file, known, at, text))
        return texts


def main() -> None:
    told = json.loads(sys.argv[1])
    stop, report = Path(told["stop"]), Path(told["report"])
    threading.excepthook = _ends_all
    with joined_clone(told) as clone:
        for file in FILES:
            (clone / file).touch()
        me = AnsweringMachine(f"M{told['number']}", clone)
        threads = [threading.Thread(target=act, args=(stop.exists,)) for act in (me.watch_agent, me.look_around)]
        for one in me.sessions:
            threads.append(
                threading.Thread(target=me.act, args=(one, stop.exists, random.Random(f"{told['seed']} {one}")))
            )
        begun(report).touch()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        from swarm_mcp.team.memberships import machine

        end = time.monotonic() + LEFT_SECONDS
        while (left := locks_left(told["server"], machine())) and time.monotonic() < end:
            time.sleep(0.2)
        assert not left, f"left on the server, and no session here has it: {left}"
        seen = {"beliefs": me.beliefs, "freed": me.freed, "vanished": me.vanished, "counts": me.counts}
        report.write_text(json.dumps(seen))
    os._exit(0)


if __name__ == "__main__":
    main()
