"""Sessions that write the same files without locks, against a model: the machine of ``support.traces_machine``."""

from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from support.traces_machine import Traces

pytestmark = pytest.mark.slow


class TracesThatAreNoticed(Traces):
    level = "notice"


_SETTINGS: Any = settings(
    max_examples=25, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
)
TestKeep = Traces.TestCase
TestKeep.settings = _SETTINGS
TestNotice = TracesThatAreNoticed.TestCase
TestNotice.settings = settings(_SETTINGS, max_examples=10)


@pytest.mark.thorough
class TestKeepAtLength(Traces.TestCase):
    settings = settings(_SETTINGS, max_examples=400)
