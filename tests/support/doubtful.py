"""Counts what is doubtful at the end of random runs of ``support.owners_machine``, by reason, and what is wrong.

PYTHONPATH=tests python -m support.doubtful [--runs 1000] [--seed 0]
"""

from __future__ import annotations

import argparse
import os
from collections import Counter

from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from support.owners_machine import Owners

STEPS = 24
FOREIGN = ("SWARM_", "CLAUDE", "CODEX_", "XDG_")  # beginnings of variables of a session around this one


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
    many = settings(
        max_examples=given.runs, stateful_step_count=STEPS, deadline=None, database=None,
        suppress_health_check=list(HealthCheck), phases=[Phase.generate],
    )  # fmt: skip
    for name in [name for name in os.environ if name.startswith(FOREIGN)]:
        del os.environ[name]
    run_state_machine_as_test(seed(given.seed)(lambda: Counted()), settings=many)
    for word, count in Counted.counts.most_common():
        print(f"{count:7} {word}")


if __name__ == "__main__":
    main()
