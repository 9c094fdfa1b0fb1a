"""A storm: machines with sessions that fight for few places, while faults of one kind come and go; and its outcome."""

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from support.history import Findings, HandedFindings, Held, Look, judge, judge_handed

from .answers import AnswerFindings, Belief, Freed, Vanished, judge_answers
from .engine import Engine
from .faults import FROM_SERVER, TO_SERVER, Network, ServerClock, SmallDisk, SwallowingProxy, stopped
from .workers import WORLD, begun

TESTS = Path(__file__).resolve().parents[2]
SEED = int(os.environ.get("SWARM_TEAM_SEED", "0")) or random.randrange(1, 10**6)


class Outcome(NamedTuple):
    """The outcome of a storm: `findings` of the checker, the number of each deed, and the number of faults."""

    findings: Findings | HandedFindings | AnswerFindings
    counts: Counter[str]
    faults: int

    def text(self) -> str:
        return f"{self.faults} faults, {', '.join(f'{name} {number}' for name, number in sorted(self.counts.items()))}\n{self.findings.text()}"


class Players:
    """Machines in processes of their own. Each runs `module`, with one JSON text that names it."""

    last_seconds = 120.0  # for a machine to end once nothing is broken

    def __init__(self, module: str, folder: Path, assignments: list[dict], prefixes: list[list[str]] | None = None):
        self.folder, self._stop = folder, folder / "stop"
        self.reports = [folder / f"report{number}.json" for number in range(len(assignments))]
        self.running: list[subprocess.Popen] = []
        for number, assignment in enumerate(assignments):
            told = {**assignment, "number": number, "report": str(self.reports[number]), "stop": str(self._stop)}
            words = [*(prefixes[number] if prefixes else []), sys.executable, "-m", module, json.dumps(told)]
            with (folder / f"machine{number}.log").open("ab") as log:
                paths = os.pathsep.join([str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])])
                environment = {**os.environ, "PYTHONPATH": paths, **assignment.get("environment", {})}
                self.running.append(
                    subprocess.Popen(words, stdout=log, stderr=log, cwd=folder, env=environment, start_new_session=True)
                )

    def check(self) -> None:
        """Raise AssertionError where a machine has ended."""
        for number, one in enumerate(self.running):
            assert one.poll() is None, f"machine {number} ended with {one.returncode}:\n{self.log(number)}"

    def await_begun(self, seconds: float = 120.0) -> None:
        """Until every machine has joined: nothing strikes before."""
        end = time.monotonic() + seconds
        while not all(begun(report).exists() for report in self.reports):
            self.check()
            assert time.monotonic() < end, "a machine does not begin"
            time.sleep(0.05)

    def end(self) -> None:
        """Let every machine finish and write its report."""
        self._stop.touch()
        for number, one in enumerate(self.running):
            try:
                code = one.wait(self.last_seconds)
            except subprocess.TimeoutExpired:
                raise AssertionError(
                    f"machine {number} is not done {self.last_seconds:g} s after the last fault:\n{self.log(number)}"
                ) from None
            assert not code, f"machine {number} ended with {code}:\n{self.log(number)}"

    def close(self) -> None:
        for one in self.running:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(one.pid, signal.SIGKILL)
            one.wait()

    def told(self) -> list[dict]:
        """Return each machine's observations."""
        for number, report in enumerate(self.reports):
            assert report.exists(), f"machine {number} has not told what it saw:\n{self.log(number)}"
        return [json.loads(report.read_text()) for report in self.reports]

    def judged(self, faults: int) -> Outcome:
        history, settled, looks, counts = [], [], [], Counter[str]()
        for seen in self.told():
            history += [Held(*one) for one in seen["history"]]
            settled += [Held(*one) for one in seen["settled"]]
            looks += [Look(*one) for one in seen["looks"]]
            counts.update(seen["counts"])
        counts["settled"] = len(settled)
        return Outcome(judge(history, WORLD, settled, looks), counts, faults)

    def log(self, number: int) -> str:
        return (self.folder / f"machine{number}.log").read_text(errors="replace")[-3000:]


class HandingPlayers(Players):
    """Machines with sessions that hand messages, tasks and values to each other."""

    last_seconds = 400.0  # more than they wait for each other

    def judged(self, faults: int) -> Outcome:
        told = self.told()
        claims = [Held(*one) for seen in told for one in seen["claims"]]
        counts = sum((Counter(seen["counts"]) for seen in told), Counter())
        appended = [item for seen in told for item in seen["appended"]]
        sent = [(recipient, text) for seen in told for recipient, text in seen["sent"]]
        heard = [(recipient, text) for seen in told for recipient, text in seen["heard"]]
        for number, seen in enumerate(told):  # an append to a value is for every machine
            sent += [(f"the value of machine {number}", item) for item in appended]
            heard += [(f"the value of machine {number}", item) for item in seen["value"]]
        return Outcome(judge_handed(claims, sent, heard, [seen["end"] for seen in told]), counts, faults)


class AnsweringPlayers(Players):
    """Machines with sessions that note each answer."""

    last_seconds = 240.0

    def judged(self, faults: int) -> Outcome:
        told = self.told()
        counts = sum((Counter(seen["counts"]) for seen in told), Counter())
        beliefs, freed, vanished = (
            [kind(*one) for seen in told for one in seen[name]]
            for name, kind in (("beliefs", Belief), ("freed", Freed), ("vanished", Vanished))
        )
        return Outcome(judge_answers(beliefs, freed, vanished), counts, faults)


def new_folder(folder: Path) -> Path:
    """Return a new folder in `folder`, for one storm of several."""
    made = folder / str(len(list(folder.iterdir())))
    made.mkdir()
    return made


def until_enough(run: Callable[[float], Outcome], seconds: float, is_enough: Callable[[Outcome, float], bool]) -> None:
    """Run a storm, of `seconds`, and longer ones while a busy machine has seen too little. No one finds anything."""
    for longer in (1, 2, 4):
        outcome = run(longer * seconds)
        assert not any(outcome.findings), f"seed {SEED}: {outcome.text()}"
        if is_enough(outcome, seconds):
            return
    raise AssertionError(f"seed {SEED}: too little was seen: {outcome.text()}")


class Fault(NamedTuple):
    """Something that breaks: `strike` does it, waits, and undoes it. `calm`: seconds until it may strike again."""

    name: str
    strike: Callable[[random.Random], None]
    calm: float = 1.5


def storm(players: Players, faults: list[Fault], seconds: float, seed: int) -> Outcome:
    """Let `players` fight for `seconds`, with one of `faults` after the other, and judge their observations."""
    chance, struck = random.Random(seed), 0
    try:
        players.await_begun()
        end = time.monotonic() + seconds
        _rest(players, min(faults[0].calm if faults else 2.0, seconds / 4))
        while time.monotonic() < end and faults:
            fault = faults[struck % len(faults)]
            fault.strike(chance)
            struck += 1
            _rest(players, fault.calm)
        _rest(players, end - time.monotonic())
        players.end()
        return players.judged(struck)
    finally:
        players.close()


def _rest(players: Players, seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        players.check()
        time.sleep(0.05)


# Seconds, short so that a storm sees many end. A storm may give its machines a longer lease.
LEASE, MIRROR_LEASE = float(os.environ.get("SWARM_STORM_LEASE", "3")), 2.0


class Ground:
    """A server in `folder`, and the links of so many machines to it: the targets of faults."""

    def __init__(
        self, folder: Path, machines: int, disk: SmallDisk | None = None, clock: ServerClock | None = None,
        settings: tuple[str, ...] = (),
    ):  # fmt: skip
        self.folder, self.disk, self.clock = folder, disk, clock
        self.server = (
            Engine(
                (disk.folder if disk else folder / "server0") / "data", environment=clock.environment if clock else None
            )
            .create(*settings)
            .start()
        )
        self.links = [SwallowingProxy("127.0.0.1", self.server.port) for _ in range(machines)]
        self._copies = 0
        self._replica: Engine | None = None

    def close(self) -> None:
        for link in self.links:
            link.close()
        self.server.kill()
        if self._replica:
            self._replica.kill()

    def restart(self) -> Fault:
        return Fault("immediate restart of the server", lambda _: self.server.restart(), 2.5)

    def cut(self, seconds: tuple[float, ...] = (0.5, 2.0, LEASE + 2)) -> Fault:
        def strike(chance: random.Random) -> None:
            link = chance.choice(self.links)
            link.cut(*chance.choice([(), (), (TO_SERVER,), (FROM_SERVER,)]))
            time.sleep(chance.choice(seconds))
            link.heal()

        return Fault("silent cut", strike)

    def stop(self, pids: Callable[[random.Random], list[int]]) -> Fault:
        def strike(chance: random.Random) -> None:
            with stopped(*pids(chance)):
                time.sleep(chance.choice([1.0, LEASE + 1, LEASE + 3]))

        return Fault("stop past the lease", strike)

    def kill(self, pids: Callable[[random.Random], list[int]]) -> Fault:
        def strike(chance: random.Random) -> None:
            for pid in pids(chance):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

        return Fault("kill -9", strike)

    def set_clock(self) -> Fault:
        assert self.clock
        clock = self.clock
        return Fault(
            "the server's time of day is set", lambda chance: clock.move(chance.choice([20, 20, -20, 3600, -3600])), 2.5
        )

    def fall_back(self) -> Fault:
        """Replace the server by one with an older state: a copy, or a standby that lagged."""

        def strike(chance: random.Random) -> None:
            self._copies += 1
            copy = self.server.copy(self.folder / f"server{self._copies}" / "data")
            time.sleep(chance.choice([0.3, 1.5, LEASE]))
            self.server.kill()
            copy.promote() if self._copies % 2 else copy.start()
            shutil.rmtree(self.server.data)
            self.server = copy

        return Fault("failover to an older copy", strike, LEASE + 4)

    def lose_primary(self, is_synchronous: bool) -> Fault:
        """Lose the server, and promote a replica. One that is not synchronous has been away before, and lacks something."""

        def strike(chance: random.Random) -> None:
            self._copies += 1
            replica = self._replica = self.server.standby(self.folder / f"server{self._copies}" / "data")
            self.server.await_replica(is_synchronous)
            time.sleep(chance.choice([0.3, 1.0]))
            if not is_synchronous:
                replica.stop()
                time.sleep(chance.choice([0.3, 1.5]))
            self.server.kill()
            if not is_synchronous:
                replica.start()
            replica.lead()
            shutil.rmtree(self.server.data)
            self.server = replica
            for link in self.links:
                link.lead_to(replica.port)

        return Fault("primary lost, replica promoted", strike, LEASE + 4)

    def fill_disk(self) -> Fault:
        assert self.disk
        disk = self.disk

        def strike(chance: random.Random) -> None:
            disk.fill()
            time.sleep(chance.choice([1.0, LEASE + 1]))
            disk.empty()
            if not self.server.is_running() or not self.server.is_ready():
                self.server.restart()

        return Fault("full disk", strike, 2.5)

    @staticmethod
    def pull_plug(network: Network, machines: int) -> Fault:
        def strike(chance: random.Random) -> None:
            number = chance.randrange(machines)
            network.pull(number)
            time.sleep(chance.choice([0.5, 2.0, LEASE + 2]))
            network.plug_in(number)

        return Fault("pulled plug", strike, 2.5)
