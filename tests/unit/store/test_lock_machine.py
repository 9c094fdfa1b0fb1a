"""Random lock operations on one machine: store and hooks agree with a model without common code."""

import itertools
import os
from pathlib import Path

import pytest
from support import lock_machine
from support.fixtures import Ground
from support.worlds import OneMachine

pytestmark = pytest.mark.slow

EXAMPLES = int(os.environ.get("SWARM_MACHINE_EXAMPLES", "10"))


def test_the_store_the_hooks_and_the_model_agree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    numbers = itertools.count()

    def make_world() -> OneMachine:
        ground = Ground(tmp_path / str(next(numbers)))
        return OneMachine([ground], [ground.store()])

    lock_machine.run(make_world, EXAMPLES, monkeypatch)
