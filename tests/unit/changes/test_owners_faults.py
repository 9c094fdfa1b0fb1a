"""Planted faults of owners: each is found by the machine of ``support.owners_machine``, or by a test that is named here."""

from __future__ import annotations

from unittest import mock

import pytest
from hypothesis.stateful import run_state_machine_as_test
from support.authors import settings_of
from support.owner_faults import FAULTS, planted
from support.owners_machine import Owners

pytestmark = [pytest.mark.slow, pytest.mark.thorough]

MOST = 120  # runs of the machine; each fault has been found in fewer


@pytest.mark.parametrize("fault", FAULTS)
def test_the_machine_finds_a_planted_fault(fault: str) -> None:
    with planted(fault), mock.patch.dict("os.environ"), pytest.raises(BaseException) as found:  # noqa: PT011
        run_state_machine_as_test(Owners, settings=settings_of(MOST, 24))
    assert "AssertionError" in f"{found.typename} {found.value!r}" or found.type is AssertionError
