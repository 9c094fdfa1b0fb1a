"""Random lock operations, and many processes killed at random: store, hooks and model agree, no two hold the same."""

import itertools
import os
from pathlib import Path

import pytest
from support import lock_machine, lock_stress
from support.fixtures import Ground
from support.lock_model import FOLDERS, NAMES
from support.worlds import OneMachine

pytestmark = pytest.mark.slow


EXAMPLES = int(os.environ.get("SWARM_MACHINE_EXAMPLES", "10"))


def test_the_store_the_hooks_and_the_model_agree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    numbers = itertools.count()

    def make_world() -> OneMachine:
        ground = Ground(tmp_path / str(next(numbers)))
        return OneMachine([ground], [ground.store()])

    lock_machine.run(make_world, EXAMPLES, monkeypatch)


SECONDS = 6.0  # is enough


@pytest.mark.thorough
def test_no_two_processes_hold_what_overlaps_whatever_is_killed(ground: Ground, tmp_path: Path):
    for folder in FOLDERS:
        (ground.repo / folder).mkdir(parents=True)
    ground.store().close()
    lock_stress.run([lock_stress.Place(ground.scope)], tmp_path / "stress", SECONDS)
    # The leftovers of the dead are in no session's way.
    last = ground.session("last")
    for name in NAMES:
        ground.lock(last, name)
    assert ground.sql("SELECT DISTINCT instance_id FROM context") == [{"instance_id": last["id"]}]
    assert ground.integrity() == "ok"
