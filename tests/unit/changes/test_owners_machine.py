"""Sessions and a person in two files, with calls that last: each line names its owner, and others do not lose it.

SWARM_EXAMPLES: number of runs.
"""

from __future__ import annotations

import pytest
from support.authors import settings_of
from support.owners_machine import Owners

pytestmark = pytest.mark.slow

TestOwners = Owners.TestCase
TestOwners.settings = settings_of(6, 24)
