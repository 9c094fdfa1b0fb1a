"""Secrets stay out of what a session writes down."""

from __future__ import annotations

from functools import cache


def scrub(text: str) -> str:
    """`text` without the secrets of this process's environment, and without what looks like one."""
    found = _scrubber()
    return found(text) if found else text


@cache
def _scrubber():
    try:
        from swarm_mcp.harness.scrub import scrub as function
    except ImportError:
        return None
    return function
