"""Secrets stay out of what a run writes down or says: those of its environment and of its servers, known shapes."""

from __future__ import annotations

import os
from collections.abc import Mapping

_known: list[Mapping[str, str]] = []
_made: list = []


def learn(*environments: Mapping[str, str]) -> None:
    """Add variables or headers whose values may be secrets."""
    _known.extend(environments)
    _made.clear()


def scrub(text: str) -> str:
    """Return `text` without secrets."""
    return _scrubber().text(text)


def scrub_data(value):
    """Return the same JSON value without secrets."""
    return _scrubber().data(value)


def _scrubber():
    if not _made:
        from swarm_mcp.harness.scrub import Scrubber

        _made.append(Scrubber(os.environ, *_known))
    return _made[0]
