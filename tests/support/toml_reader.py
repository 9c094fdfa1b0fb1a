"""A reader of TOML, for tests of our own TOML."""

import sys
from types import ModuleType

import pytest


def reader() -> ModuleType:
    """Return a module with `loads`; skip the test without one."""
    if sys.version_info >= (3, 11):
        import tomllib

        return tomllib
    return pytest.importorskip("tomli", reason="Python 3.10 has no TOML reader of its own: pip install tomli")
