"""Random lock operations on two machines: both stores and their hooks agree with the model."""

import itertools
import os
from pathlib import Path

from support import lock_machine
from support.worlds import TwoMachines

from team.servers import PostgreSQL

EXAMPLES = int(os.environ.get("SWARM_MACHINE_EXAMPLES", "15"))


def test_both_stores_their_hooks_and_the_model_agree(tmp_path: Path, team: str, repository: str, monkeypatch) -> None:
    numbers = itertools.count()

    def make_world() -> TwoMachines:
        number = next(numbers)
        folder = tmp_path / str(number)
        folder.mkdir()
        return TwoMachines(folder, PostgreSQL(team), f"{repository}-{number}", monkeypatch)

    lock_machine.run(make_world, EXAMPLES, monkeypatch)
