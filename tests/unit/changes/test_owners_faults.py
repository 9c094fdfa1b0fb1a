"""Planted faults of owners: each is found by the machine of ``support.owners_machine``."""

from __future__ import annotations

import pytest
from hypothesis.errors import FlakyFailure
from hypothesis.stateful import run_state_machine_as_test
from support.authors import settings_of
from support.owner_faults import FAULTS, planted
from support.owners_machine import Owners

pytestmark = [pytest.mark.slow, pytest.mark.thorough]

MOST = 120  # runs of the machine; each fault has been found in fewer


@pytest.mark.parametrize("fault", FAULTS)
def test_the_machine_finds_a_planted_fault(fault: str) -> None:
    with planted(fault), pytest.raises((AssertionError, FlakyFailure)):
        run_state_machine_as_test(Owners, settings=settings_of(MOST, 24))
