"""Two hundred machines on one server, and its restart among them: none holds what another holds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from swarm_mcp.team.migrations import init

from .storm import SEED, Ground, Players, storm
from .test_server_storms import at_end

__all__ = ["at_end"]

PROCESSES, EACH = 8, 25
SECONDS = 40.0


class Crowd(Players):
    last_seconds = 600.0  # two hundred machines on a busy one

    def await_begun(self, seconds: float = 600.0) -> None:
        super().await_begun(seconds)


def test_nobody_holds_what_another_holds(tmp_path: Path, at_end: list[Callable[[], object]]) -> None:
    ground = Ground(tmp_path, 0, connections=3 * PROCESSES * EACH)
    at_end.append(ground.close)
    init(ground.server.dsn())
    told = {"conninfo": ground.server.dsn(), "repository": "storm", "seed": SEED, "machines": EACH}
    players = Crowd("team.history.crowd", tmp_path, [told] * PROCESSES)
    outcome = storm(players, [ground.restart()._replace(calm=SECONDS / 2)], SECONDS, SEED)
    print(f"{PROCESSES * EACH} machines: {outcome.text()}")
    assert not any(outcome.findings), f"seed {SEED}: {outcome.text()}"
    assert outcome.counts["held"] > 20 and outcome.counts["looks"] > PROCESSES * EACH
