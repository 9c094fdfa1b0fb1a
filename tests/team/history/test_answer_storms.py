"""The answers to sessions of whole machines, under every kind of fault: each is true of one history.

SWARM_TEAM_SECONDS is the length of all storms together, 60 by default; SWARM_TEAM_GRANTS: the least number of grants.
"""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from .storm import SEED, AnsweringPlayers, Outcome, new_folder, until_enough
from .test_agent_storms import storm_of
from .test_server_storms import at_end

__all__ = ["at_end"]

LEASE = 20.0  # seconds: a server that is lost is away for some of them, on a busy machine
KINDS = ("cut", "kill", "sleep", "failover", "replica", "synchronous", "all")
SECONDS = float(os.environ.get("SWARM_TEAM_SECONDS", "60")) / len(KINDS)
GRANTS = int(os.environ.get("SWARM_TEAM_GRANTS", "70")) / len(KINDS)


def answering(
    kind: str, folder: Path, at_end: list[Callable[[], object]], seconds: float, planted: str = ""
) -> Outcome:
    return storm_of(kind, folder, at_end, seconds, planted, None, "answering_machine", AnsweringPlayers, LEASE)


@pytest.mark.parametrize("kind", KINDS)
def test_every_answer_is_true(kind: str, tmp_path: Path, at_end: list) -> None:
    until_enough(
        lambda seconds: answering(kind, new_folder(tmp_path), at_end, seconds),
        SECONDS,
        lambda outcome, seconds: outcome.faults > 0 and outcome.counts["grants"] >= GRANTS,
    )


PLANTED = {
    "a lock that a new server lacks counts as released": ("replica", "voided_is_released", ("passed", "not_released")),
    "the holder of a lost lock hears nothing": ("cut", "loses_in_silence", ("untold",)),
}


@pytest.mark.parametrize("name", PLANTED)
def test_what_is_planted_is_found(name: str, tmp_path: Path, at_end: list) -> None:
    kind, planted, signs = PLANTED[name]
    for _ in range(4):  # a storm may pass it by
        outcome = answering(kind, new_folder(tmp_path), at_end, 14, planted)
        if any(getattr(outcome.findings, sign) for sign in signs):
            return
    raise AssertionError(f"seed {SEED}: it was not found in {outcome.text()}")
