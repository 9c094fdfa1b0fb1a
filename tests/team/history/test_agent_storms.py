"""Whole machines under every kind of fault: homes, clones, local stores and real team agents, judged as `TeamServer` is.

SWARM_TEAM_SECONDS is how long all storms together last, 72 where it is not said; SWARM_TEAM_SEED repeats a storm's chances.
"""

import contextlib
import os
import random
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from swarm_mcp.team.server import init

from .faults import ServerClock, SmallDisk
from .mutants import Mutant
from .storm import LEASE, SEED, Fault, Ground, Outcome, Players, new_folder, storm, until_enough
from .test_server_storms import MISSING, at_end

__all__ = ["at_end"]

MACHINES = 3
KINDS = ("restart", "cut", "kill", "stop", "sleep", "clock", "failover", "replica", "synchronous", "disk", "all")
SECONDS = float(os.environ.get("SWARM_TEAM_SECONDS", "72")) / len(KINDS)


def storm_of(
    kind: str, folder: Path, at_end: list[Callable[[], object]], seconds: float, planted: str = "",
    mutant: Mutant | None = None, module: str = "local_machine", players_of: type[Players] = Players, lease: float = LEASE,
) -> Outcome:  # fmt: skip
    """Return the outcome of a storm, with a fault `planted` in the agents, or a `mutant` in the server.

    Each machine runs `module`, and `players_of` judges all observations.
    """
    disk = SmallDisk(folder / "disk", 120) if kind == "disk" else None
    if disk:
        at_end.append(disk.close)
    ground = Ground(
        folder, MACHINES, disk, ServerClock(folder) if kind in ("clock", "all") and not MISSING["clock"] else None
    )
    at_end.append(ground.close)
    init(ground.server.dsn())
    if mutant:
        mutant.plant(ground.server.dsn())
    homes = [folder / f"home{number}" for number in range(MACHINES)]
    assignments = []
    for home, link in zip(homes, ground.links):
        home.mkdir()
        places = {
            "HOME": "",
            "SWARM_STATE_DIR": "state",
            "SWARM_DB_PATH": "store/swarm.db",
            "SWARM_CONFIG_DIR": "config",
        }
        environment = {name: str(home / place) for name, place in places.items()}
        environment.update(SWARM_TEAM_MACHINE=home.name, SWARM_STORM_LEASE=str(lease))
        server = f"postgresql://postgres@127.0.0.1:{link.port}/postgres"
        assignments.append(
            {
                "home": str(home),
                "server": server,
                "seed": SEED,
                "planted": planted,
                "is_planted": bool(planted or mutant),
                "environment": environment,
            }
        )
    players = players_of(f"team.history.{module}", folder, assignments)

    def agent(number: int) -> list[int]:
        try:
            return [int((homes[number] / "agent").read_text())]
        except (OSError, ValueError):
            return []  # killed just now

    def end_agents() -> None:
        for number in range(MACHINES):
            for pid in agent(number):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    at_end.append(end_agents)  # those of a machine that did not come to its end

    def one_agent(chance: random.Random) -> list[int]:
        return agent(chance.randrange(MACHINES))

    def one_machine(chance: random.Random) -> list[int]:
        number = chance.randrange(MACHINES)
        return [players.running[number].pid, *agent(number)]

    faults: dict[str, list[Fault]] = {
        "none": [], "restart": [ground.restart()], "cut": [ground.cut()], "long cut": [ground.cut((LEASE + 2,))], "kill": [ground.kill(one_agent)], "stop": [ground.stop(one_agent)],
        "sleep": [ground.stop(one_machine)], "failover": [ground.fall_back()],
        "replica": [ground.lose_primary(False)], "synchronous": [ground.lose_primary(True)],
    }  # fmt: skip
    if ground.clock:
        faults["clock"] = [ground.set_clock()]
    if ground.disk:
        faults["disk"] = [ground.fill_disk()]
    faults["all"] = [
        fault for kind, made in faults.items() if kind not in ("long cut", "synchronous") for fault in made
    ]
    calmer = [fault._replace(calm=fault.calm + 1.5 * (lease - LEASE)) for fault in faults[kind]]
    outcome = storm(players, calmer, seconds, SEED)
    print(f"{kind}: {outcome.text()}")
    return outcome


@pytest.mark.parametrize("kind", KINDS)
def test_nobody_holds_what_another_holds(kind: str, tmp_path: Path, at_end: list[Callable[[], object]]) -> None:
    if MISSING.get(kind):
        pytest.skip(MISSING[kind])

    def run(seconds: float) -> Outcome:
        return storm_of(kind, new_folder(tmp_path), at_end, seconds)

    def is_enough(outcome: Outcome, seconds: float) -> bool:
        return outcome.counts["settled"] > seconds / 3 and outcome.counts["fresh looks"] > 10 * seconds

    until_enough(run, SECONDS, is_enough)


# `test_server_storms` has the faults planted in the server.
PLANTED = {
    "an agent says too early that a grant counts": ("none", "settled_at_once"),
    "an agent's replica is fresh for too long": ("long cut", "fresh_too_long"),
    "an agent passes over a change": ("none", "passes_over_some"),
}


@pytest.mark.parametrize("name", PLANTED)
def test_what_is_planted_is_found(name: str, tmp_path: Path, at_end: list[Callable[[], object]]) -> None:
    kind, planted = PLANTED[name]
    for _ in range(6):  # a storm may pass it by
        outcome = storm_of(kind, new_folder(tmp_path), at_end, 10 if kind == "none" else 14, planted)
        if any(outcome.findings):
            return
    raise AssertionError(f"seed {SEED}: nobody has found it in {outcome.text()}")
