"""The checker answers as a hook alone does, and leaves the same files, for calls of every kind in every state.

The nightly form makes SWARM_CHECKER_EXAMPLES calls, with another seed each day.
"""

import os
import time
from pathlib import Path

import pytest
from support.both_ways import BothWays
from support.check_payloads import cases

pytestmark = pytest.mark.slow
SEED, CALLS = 20, 240
MANY = int(os.environ.get("SWARM_CHECKER_EXAMPLES", "50000"))
LONGEST = 25 * 1024 * 1024  # bytes of a checker that it does not share


def test_the_same_answer(tmp_path: Path) -> None:
    assert _differences(tmp_path, SEED, CALLS) == []


@pytest.mark.thorough
def test_the_same_answer_to_many_calls(tmp_path: Path) -> None:
    assert _differences(tmp_path, int(time.time() // 86400), MANY) == []


def _differences(folder: Path, seed: int, count: int) -> list[str]:
    ways = BothWays(folder)
    try:
        found = [difference for case in cases(seed, count) if (difference := ways.difference(case))]
        assert ways.checker.memory() < LONGEST
        assert ways.by_time <= count / 50 + 5  # on a busy machine
        return found
    finally:
        ways.close()
