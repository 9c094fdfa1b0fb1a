"""Many processes on one machine, killed at random, over names that overlap: no two ever hold the same."""

from pathlib import Path

import pytest
from support import lock_stress
from support.fixtures import Ground
from support.lock_model import FOLDERS, NAMES

pytestmark = pytest.mark.slow

SECONDS = 6.0  # is enough


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
