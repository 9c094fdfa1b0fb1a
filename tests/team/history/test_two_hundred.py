"""200 machines at one server: no two sessions hold the same, no grant is lost, each one ends."""

import contextlib
import random
import time
from collections.abc import Callable
from pathlib import Path

from swarm_mcp.team import protocol
from swarm_mcp.team.protocol import LockRow
from swarm_mcp.team.server import init
from team.machines import Machine
from team.servers import patient

from .crowd import ASKERS, LOST
from .faults import ServerClock, stopped
from .mutants import GRANTS_UNSEEN
from .storm import SEED, Ground, Players
from .test_server_storms import at_end

__all__ = ["at_end"]

PROCESSES, EACH = 5, 40
FEW = 4  # in each process, where a planted fault is to be found
GRANTS = 20  # in all processes together between two faults, and at least one in each
CONNECTIONS = 3  # that a machine has at most


class Machines(Players):
    last_seconds = 500.0  # on a busy machine

    def __init__(self, folder: Path, conninfo: str, each: int = EACH):
        self.over = folder / "over"
        told = {"conninfo": conninfo, "seed": SEED, "machines": each, "over": str(self.over)}
        super().__init__("team.history.crowd", folder, [told] * PROCESSES)

    def grants(self) -> list[int]:
        files = [report.with_suffix(".grants") for report in self.reports]
        return [file.stat().st_size if file.exists() else 0 for file in files]

    def await_grants(self) -> None:
        """Wait until locks are granted to machines of every process, after this moment."""
        before = self.grants()

        def is_enough() -> bool:
            found = [later - earlier for later, earlier in zip(self.grants(), before)]
            return min(found) >= 1 and sum(found) >= GRANTS

        self.until(is_enough)

    def until(self, is_so: Callable[[], object]) -> None:
        while not is_so():
            self.check()
            time.sleep(0.1)

    def end(self) -> None:
        """Switch some machines off that hold a lock each. The others run until no lock is left."""
        self._stop.touch()
        silenced = [report.with_suffix(f".{number}.off") for report in self.reports for number in range(ASKERS)]
        self.until(lambda: all(file.exists() for file in silenced))
        self.over.touch()
        super().end()


def test_no_two_hold_the_same_no_grant_is_lost_and_none_stays(
    tmp_path: Path, at_end: list[Callable[[], object]]
) -> None:
    time_of_day = None if ServerClock.missing() else ServerClock(tmp_path)
    ground = _ground(tmp_path, at_end, time_of_day)
    players = Machines(tmp_path, ground.server.dsn())
    at_end.append(players.close)
    players.await_begun(500.0)
    chance, begun = random.Random(SEED), time.monotonic()
    players.await_grants()
    rate = sum(players.grants()) / (time.monotonic() - begun)
    connections = len(_connections(ground))

    ground.server.restart()
    players.await_grants()
    found = _connections(ground)
    for pid in chance.sample(found, len(found) // 3):  # as a router does after its own restart
        ground.server.ask(f"SELECT pg_terminate_backend({pid})")
    players.await_grants()
    with stopped(chance.choice(players.running).pid):
        time.sleep(protocol.MIRROR_LEASE + 1)  # until its machines are no longer waited for
    players.await_grants()
    if time_of_day:
        time_of_day.move(chance.choice([3600, -3600]))
        players.await_grants()
    players.end()

    outcome = players.judged(3 + bool(time_of_day))
    waits = sorted(wait for seen in players.told() for wait in seen["waits"])
    print(f"{PROCESSES * EACH} machines: {outcome.text()}\n{rate:.1f} locks a second, waits {waits[len(waits) // 2]:.1f} s, "
          f"at most {waits[-1]:.1f} s, {connections} connections")  # fmt: skip
    assert not any(outcome.findings) and not outcome.counts["lost"], f"seed {SEED}: {outcome.text()}"
    assert outcome.counts["settled"] > 0 and outcome.counts["fresh looks"] > PROCESSES * EACH, outcome.text()
    assert _left(ground) == [], f"seed {SEED}"


def test_a_grant_that_is_taken_away_is_found(tmp_path: Path, at_end: list[Callable[[], object]]) -> None:
    ground = _ground(tmp_path, at_end)
    players = Machines(tmp_path, ground.server.dsn(), FEW)
    at_end.append(players.close)
    players.await_begun(500.0)
    thief = Machine(ground.server.dsn(), "thief", "crowd", "thief", mirror=0)
    at_end.append(thief.server.close)

    def has_robbed_a_holder() -> bool:
        thief.beat("thief")
        for row in _left(ground):
            thief.server.steal("crowd", row["lock"], row["fence"], "thief", "planted", force=True)
        thief.server.end("crowd", ["thief"])
        logs = [tmp_path / f"machine{number}.log" for number in range(PROCESSES)]
        return any(LOST in log.read_text() for log in logs)

    players.until(has_robbed_a_holder)
    players.await_grants()
    players.end()
    outcome = players.judged(1)
    assert outcome.counts["lost"], f"seed {SEED}: {outcome.text()}"


def test_a_server_that_grants_what_was_not_looked_at_is_found(
    tmp_path: Path, at_end: list[Callable[[], object]]
) -> None:
    ground = _ground(tmp_path, at_end)
    GRANTS_UNSEEN.plant(ground.server.dsn())
    players = Machines(tmp_path, ground.server.dsn(), FEW)
    at_end.append(players.close)
    players.await_begun(500.0)
    players.until(lambda: sum(players.grants()) > 200)
    players.end()
    assert players.judged(0).findings.doubles, f"seed {SEED}"


def _ground(folder: Path, at_end: list[Callable[[], object]], time_of_day: ServerClock | None = None) -> Ground:
    most = f"max_connections = {CONNECTIONS * PROCESSES * EACH + 20}"
    ground = Ground(folder, 0, clock=time_of_day, settings=(most,))
    at_end.append(ground.close)
    init(ground.server.dsn())
    return ground


def _connections(ground: Ground) -> list[int]:
    """Return the process numbers of the machines' connections on the server."""
    return [
        pid for (pid,) in ground.server.ask("SELECT pid FROM pg_stat_activity WHERE application_name = 'swarm-mcp'")
    ]


def _left(ground: Ground) -> list[LockRow]:
    """Return the server's locks."""
    with contextlib.closing(patient(ground.server.dsn(), "onlooker")) as server:
        found = server.look("crowd")
    assert found
    return found["all"]["locks"]
