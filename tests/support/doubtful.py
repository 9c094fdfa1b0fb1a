"""Counts the owners of lines at the end of random runs of ``support.owners_machine``: doubtful ones by reason, wrong ones.

PYTHONPATH=tests python -m support.doubtful [--runs 1000] [--seed 0]
"""

import argparse
import os
from collections import Counter

from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.errors import FlakyFailure
from hypothesis.stateful import run_state_machine_as_test

from support.owners_machine import Owners

STEPS, AT_ONCE = 24, 20  # of a run, and runs: a violation ends these
FOREIGN = ("SWARM_", "CLAUDE", "CODEX_", "XDG_")  # beginnings of variables of a session around this one
SETTINGS = settings(
    max_examples=AT_ONCE, stateful_step_count=STEPS, deadline=None, database=None,
    suppress_health_check=list(HealthCheck), phases=[Phase.generate],
)  # fmt: skip


class Counted(Owners):
    """Runs that are counted at their end, without a look at each step."""

    counts: Counter[str] = Counter()

    def teardown(self) -> None:
        before = self.counts["wrong"]
        super().teardown()
        self.counts["runs"] += 1
        self.counts["runs with a wrong author"] += self.counts["wrong"] > before

    def all_owners_together_are_the_diff(self) -> None:
        """Pass this over."""

    def each_line_names_its_author(self) -> None:
        """Pass this over."""


def main() -> None:
    """Run the command line; print the counts, the largest first."""
    parser = argparse.ArgumentParser(prog="support.doubtful", description=__doc__)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    for name in [name for name in os.environ if name.startswith(FOREIGN)]:
        del os.environ[name]
    counts, number = Counted.counts, given.seed
    while counts["runs"] < given.runs:
        try:
            run_state_machine_as_test(seed(number)(lambda: Counted()), settings=SETTINGS)
        except (AssertionError, KeyError, FlakyFailure) as error:  # the model knows no such line
            counts[f"violation, seed {number}: {type(error).__name__} {error}"] += 1
        number += 1
    for word, count in counts.most_common():
        print(f"{count:7} {word}")


if __name__ == "__main__":
    main()
