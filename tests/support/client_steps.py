"""Reports of work on an agent client."""

from collections.abc import Callable
from pathlib import Path

from swarm_mcp.runtimes.base import Steps


def done(work: Callable[..., object], *about: Path) -> list[str]:
    """The steps that a runtime's `install` or `uninstall` has done."""
    steps = Steps()
    work(*about, steps)
    return steps.done
