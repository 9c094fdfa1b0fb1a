"""Many machines in one process, each with one session: a fifth of 200 at one server.

Each machine has a team agent's connections, beats and replica. A few threads take locks for the sessions in turn. The
process has its own clock, with another beginning and speed; observations have the kernel's time.
"""

import json
import queue
import random
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from support.history import Held, Look

from swarm_hook_core import clock
from swarm_mcp.errors import SwarmError
from swarm_mcp.team import protocol, server
from swarm_mcp.team.talk import RETRY_SECONDS
from team.servers import PATIENCE, patient

from . import server_machine
from .server_machine import Claim, ServerMachine
from .workers import MODES, PLACES, WORLD, _ends_all, begun

LEASE = 20.0  # seconds of a session's
ASKERS = 3  # threads that take locks in each process
HOLD_SECONDS = 0.2
SPEEDS = (0.985, 0.99, 1.0, 1.01, 1.015)  # within `protocol.MARGIN`
LOST = "has lost"
SILENT = 20  # of so many machines one is switched off in the end, with a lock

now = clock.now


class CrowdMachine(ServerMachine):
    """A machine with one session. Its requests wait for a busy server."""

    def __init__(self, conninfo: str, number: int, is_over: Callable[[], bool]):
        super().__init__(conninfo, "crowd", number, is_over)
        self.sessions = self.sessions[:1]
        self.number, self.lost, self.held = number, 0, 0
        self.is_off = False
        self._server, self._renewed = patient(conninfo, self._name), 0.0

    @property
    def has_joined(self) -> bool:
        return bool(self._joined)

    @property
    def is_clear(self) -> bool:
        """True if its replica has no lock at all."""
        return self.has_joined and not self._own and not self._remote

    def run(self) -> None:
        failures = 0
        while not self.is_off:
            try:
                is_over = self._is_over()  # before the step: it brings all earlier grants
                self.step()
                if is_over and self.is_clear:
                    break
                self._await_news()
                failures = 0
            except SwarmError as error:
                print(f"{now():.3f} {self._name} {type(error).__name__}: {error}", file=sys.stderr, flush=True)
                time.sleep(RETRY_SECONDS[min(failures, len(RETRY_SECONDS) - 1)])
                failures += 1
        self._server.close()

    def _await_news(self) -> None:
        end = clock.now() + protocol.MIRROR_LEASE / 3
        while (left := end - clock.now()) > 0 and not self.is_off:
            if self._server.listen(left).get(self._repository, 0) > self._version:
                return

    def _named(self, at: float) -> list[dict]:
        if self.has_joined and at - self._renewed < LEASE / 4:
            return []
        self._renewed = at
        return [{"session": one, "label": one, "lease": LEASE} for one in self.sessions]

    def _lose(self, claim: Claim) -> None:
        # A session keeps its grants within its lease.
        if claim.fence and clock.now() < self._good_until.get(claim.session, 0.0):
            self.lost += 1
            print(f"{now():.3f} {self._name} {LOST} {claim.place}", file=sys.stderr, flush=True)
        super()._lose(claim)


class Crowd:
    """The machines of one process, and its observations of them."""

    def __init__(self, told: dict):
        self.report, self._stop, self._each = Path(told["report"]), Path(told["stop"]), told["machines"]
        first = self._each * told["number"]
        self._over = Path(told["over"])
        self.machines = [CrowdMachine(told["conninfo"], first + one, self._over.exists) for one in range(self._each)]
        self._seed = told["seed"]
        self._idle: queue.Queue[CrowdMachine] = queue.Queue()
        self._history: list[Held] = []
        self._settled: list[Held] = []
        self._looks: list[Look] = []
        self._waits: list[float] = []
        self._counts: Counter[str] = Counter()

    def run(self) -> None:
        followers = [threading.Thread(target=one.run) for one in self.machines]
        others = [threading.Thread(target=self._ask, args=(number,)) for number in range(ASKERS)]
        others.append(threading.Thread(target=self._look))
        for thread in followers:
            thread.start()
        while not all(one.has_joined for one in self.machines):
            time.sleep(0.1)
        begun(self.report).touch()
        for one in self.machines:
            self._idle.put(one)
        for thread in others:
            thread.start()
        for thread in others:
            thread.join()
        for thread in followers:
            thread.join()
        self._counts["lost"] = sum(one.lost for one in self.machines)
        self._counts["machines that held"] = sum(one.held > 0 for one in self.machines)
        seen = {"history": self._history, "settled": self._settled, "looks": self._looks, "counts": self._counts}
        self.report.write_text(json.dumps({**seen, "waits": self._waits}))

    def _ask(self, number: int) -> None:
        """Take and release locks for one machine after the other. In the end switch some off."""
        chance = random.Random(f"{self._seed} {self.report.name} {number}")
        while not self._stop.exists():
            one = self._idle.get()
            self._take(one, chance.choice(PLACES), chance.choice(MODES), chance.random() * HOLD_SECONDS)
            self._idle.put(one)
            time.sleep(chance.random() * 0.1)
        for one in self.machines[number::ASKERS]:
            while one.number % SILENT == 0 and not one.is_off:
                self._take(one, f"ends/{one.number}.md", "exclusive", 0.0, is_last=True)
        self.report.with_suffix(f".{number}.off").touch()

    def _take(self, one: CrowdMachine, place: str, mode: str, seconds: float, is_last: bool = False) -> None:
        session, asked = one.sessions[0], now()
        taken = one.take(session, place, mode)
        if taken is None:
            self._counts["refused"] += 1
            time.sleep(0.05)
            return
        began = ended = now()
        while (at := now()) and one.holds(session, place, taken.fence):
            ended = at
            if at > began + seconds:
                break
            time.sleep(0.01)
        held = Held(session, place, taken.fence, asked, began, ended, mode)
        one.held += 1
        self._counts["held"] += 1
        self._waits.append(began - asked)
        self._history.append(held)
        if taken.settled:
            self._settled.append(held)
        with self.report.with_suffix(".grants").open("a") as grants:
            grants.write(".")
        if is_last:
            one.is_off = True
        else:
            one.give_back(session, place, taken.fence)

    def _look(self) -> None:
        """Look at every file on every machine, as hooks before a write do."""
        while not self._over.exists():
            for one in self.machines:
                for file in WORLD:
                    began = now()
                    fresh_until, holders = one.look(file)
                    is_fresh, ended = clock.now() < fresh_until, now()
                    self._counts["looks"] += 1
                    self._counts["fresh looks"] += is_fresh
                    if is_fresh and not holders:
                        self._looks.append(
                            Look(f"an onlooker beside {one.sessions[0]}", file, began, ended, True, True)
                        )
            time.sleep(0.2)


def main() -> None:
    told = json.loads(sys.argv[1])
    server_machine.LEASE, server_machine.MIRROR_LEASE = LEASE, protocol.MIRROR_LEASE
    server.CONNECT_SECONDS, server.SECONDS = int(PATIENCE), PATIENCE
    speed, offset = SPEEDS[told["number"] % len(SPEEDS)], 1e5 * told["number"]
    clock.now = lambda: offset + speed * now()
    threading.excepthook = _ends_all
    Crowd(told).run()


if __name__ == "__main__":
    main()
