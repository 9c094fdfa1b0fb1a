"""Work handed between sessions of whole machines, under every kind of fault: no task has two sessions at once, no sent
thing is lost or comes twice, and in the end all machines have the same.

SWARM_TEAM_SECONDS is the length of all storms together, 25 by default; SWARM_TEAM_SEED repeats a storm's chances.
"""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from .mutants import CHANGES_UNSEEN, PASSES_OVER, Mutant
from .storm import SEED, HandingPlayers, Outcome, new_folder, until_enough
from .test_agent_storms import storm_of
from .test_server_storms import MISSING, at_end

__all__ = ["at_end"]

KINDS = ("restart", "cut", "kill", "sleep", "failover", "replica", "synchronous")
SECONDS = float(os.environ.get("SWARM_TEAM_SECONDS", "25")) / len(KINDS)


def handing(kind: str, folder: Path, at_end: list[Callable[[], object]], seconds: float, planted: str = "", mutant: Mutant | None = None) -> Outcome:  # fmt: skip
    return storm_of(kind, folder, at_end, seconds, planted, mutant, "handing_machine", HandingPlayers)


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_lost_or_doubled_and_a_task_is_one_sessions(kind: str, tmp_path: Path, at_end: list) -> None:
    if MISSING.get(kind):
        pytest.skip(MISSING[kind])

    def run(seconds: float) -> Outcome:
        return handing(kind, new_folder(tmp_path), at_end, seconds)

    def is_enough(outcome: Outcome, seconds: float) -> bool:
        return outcome.faults > 0 and all(outcome.counts[what] > seconds for what in ("claimed", "sent", "appended"))

    until_enough(run, SECONDS, is_enough)


PLANTED: dict[str, tuple[str, str, Mutant | None, tuple[str, ...]]] = {
    "the server takes what is based on something older": ("none", "", CHANGES_UNSEEN, ("doubles", "lost")),
    "an agent forgets what it has delivered": ("failover", "forgets_deliveries", None, ("doubled",)),
    "the server passes over a change": ("none", "", PASSES_OVER, ("lost",)),
}


@pytest.mark.parametrize("name", PLANTED)
def test_what_is_planted_is_found(name: str, tmp_path: Path, at_end: list) -> None:
    kind, planted, mutant, signs = PLANTED[name]
    for _ in range(4):  # a storm may pass it by
        outcome = handing(kind, new_folder(tmp_path), at_end, 8 if kind == "none" else 14, planted, mutant)
        if any(getattr(outcome.findings, sign) for sign in signs):
            return
    raise AssertionError(f"seed {SEED}: nobody has found it in {outcome.text()}")
