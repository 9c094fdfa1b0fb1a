"""Reading TOML, for tests of what is written as such."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest


def reader() -> ModuleType:
    """A module with `loads`; the test is skipped where there is none."""
    if sys.version_info >= (3, 11):
        import tomllib

        return tomllib
    return pytest.importorskip("tomli", reason="Python 3.10 has no TOML reader of its own: pip install tomli")
