"""Error codes from what any command line says of its own failure, for harnesses that have nothing better."""

from __future__ import annotations

from swarm_mcp.harness.outcome import Ending


def error_of(ending: Ending) -> tuple[str, str] | None:
    """See ``HarnessAdapter.error_of``."""
    raise NotImplementedError
