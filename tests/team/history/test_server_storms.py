"""`TeamServer` under every kind of fault, with replicas in memory: no two sessions hold the same.

SWARM_TEAM_SECONDS is the length of all storms together, 48 by default; SWARM_TEAM_SEED repeats a storm's chances.
"""

import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from swarm_mcp.team.server import init

from .faults import Network, ServerClock, SmallDisk
from .mutants import COUNTS_AT_ONCE, GRANTS_UNSEEN, Mutant
from .storm import LEASE, SEED, Fault, Ground, Outcome, Players, new_folder, storm, until_enough

MACHINES = 3
KINDS = ("restart", "cut", "stop", "clock", "failover", "replica", "synchronous", "disk", "plug", "all")
SECONDS = float(os.environ.get("SWARM_TEAM_SECONDS", "48")) / len(KINDS)
MISSING = {"clock": ServerClock.missing(), "disk": SmallDisk.missing(), "plug": Network.missing()}


@pytest.fixture
def at_end() -> Iterator[list[Callable[[], object]]]:
    """Yield a list of functions to call at the end, last first."""
    left: list[Callable[[], object]] = []
    yield left
    for one in reversed(left):
        one()


def ground_for(kind: str, folder: Path, at_end: list[Callable[[], object]]) -> Ground:
    disk = SmallDisk(folder / "disk", 120) if kind == "disk" else None
    if disk:
        at_end.append(disk.close)
    ground = Ground(
        folder, MACHINES, disk, ServerClock(folder) if kind in ("clock", "all") and not MISSING["clock"] else None
    )
    at_end.append(ground.close)
    init(ground.server.dsn())
    return ground


def storm_of(
    kind: str,
    folder: Path,
    at_end: list[Callable[[], object]],
    seconds: float,
    mutant: Mutant | None = None,
    planted: str = "",
) -> Outcome:
    """Return the outcome of a storm, with a `mutant` in the server, or a fault `planted` in the machines."""
    ground = ground_for(kind, folder, at_end)
    if mutant:
        mutant.plant(ground.server.dsn())
    network = Network(MACHINES) if kind == "plug" else None
    if network:
        at_end.append(network.close)
    hosts = [
        f"{ground.server.dsn(host=network.host)} sslmode=disable" if network else ground.server.dsn(port=link.port)
        for link in ground.links
    ]
    assignments = [{"conninfo": host, "repository": "storm", "seed": SEED, "planted": planted} for host in hosts]
    players = Players(
        "team.history.server_machine",
        folder,
        assignments,
        [network.inside(number) for number in range(MACHINES)] if network else None,
    )

    def one(chance: random.Random) -> list[int]:
        return [chance.choice(players.running).pid]

    faults: dict[str, list[Fault]] = {
        "none": [], "restart": [ground.restart()], "cut": [ground.cut()], "long cut": [ground.cut((LEASE + 2,))], "stop": [ground.stop(one)], "failover": [ground.fall_back()],
        "replica": [ground.lose_primary(False)], "synchronous": [ground.lose_primary(True)],
    }  # fmt: skip
    if ground.clock:
        faults["clock"] = [ground.set_clock()]
    if ground.disk:
        faults["disk"] = [ground.fill_disk()]
    if network:
        faults["plug"] = [Ground.pull_plug(network, MACHINES)]
    faults["all"] = [
        fault for kind, made in faults.items() if kind not in ("long cut", "synchronous") for fault in made
    ]
    outcome = storm(players, faults[kind], seconds, SEED)
    print(f"{kind}: {outcome.text()}")
    return outcome


@pytest.mark.parametrize("kind", KINDS)
def test_nobody_holds_what_another_holds(kind: str, tmp_path: Path, at_end: list[Callable[[], object]]) -> None:
    if MISSING.get(kind):
        pytest.skip(MISSING[kind])

    def run(seconds: float) -> Outcome:
        return storm_of(kind, new_folder(tmp_path), at_end, seconds)

    def is_enough(outcome: Outcome, seconds: float) -> bool:
        return outcome.counts["settled"] > seconds / 2 and outcome.counts["fresh looks"] > 50 * seconds

    until_enough(run, SECONDS, is_enough)


PLANTED: dict[str, tuple[str, Mutant | None, str]] = {
    "the server grants what was not looked at": ("none", GRANTS_UNSEEN, ""),
    "the server counts a grant at once": ("none", COUNTS_AT_ONCE, ""),
    "a machine's replica is fresh for too long": ("long cut", None, "is_fresh_too_long"),
}


@pytest.mark.parametrize("name", PLANTED)
def test_what_is_planted_is_found(name: str, tmp_path: Path, at_end: list[Callable[[], object]]) -> None:
    kind, mutant, planted = PLANTED[name]
    if MISSING.get(kind):
        pytest.skip(MISSING[kind])
    for _ in range(5):  # a storm may pass it by
        outcome = storm_of(kind, new_folder(tmp_path), at_end, 8 if kind == "none" else 12, mutant, planted)
        if any(outcome.findings):
            return
    raise AssertionError(f"seed {SEED}: nobody has found it in {outcome.text()}")
