"""A plugin of pytest that plants the fault of `PLANTED_FAULT` (``support.owner_faults``) for a whole run."""

from __future__ import annotations

import os

from support.owner_faults import planted


def pytest_configure() -> None:
    planted(os.environ["PLANTED_FAULT"]).__enter__()
