"""The state of a run, as its stages and tools see it."""

from __future__ import annotations

from typing import Any, Protocol

from swarm_mcp.agents.loop.settings import LoopSettings
from swarm_mcp.processes.reaper import Reaper


class Run(Protocol):
    """One run.

    `session` is a Session, once there is one. `report`, `provider`, `swarm` and `servers` are a Report, a Provider, a
    SwarmSession and Servers; their modules take a Run themselves.
    `early` has results of calls that began before their answer was whole, `asked` counts the model's answers,
    `corrections` the answers that did not fit a schema.
    """

    settings: LoopSettings
    report: Any
    cwd: str
    session: Any
    provider: Any
    sources: list[str]
    reaper: Reaper
    swarm: Any
    servers: Any
    greeting: str
    early: dict[str, tuple[str, bool]]
    asked: int
    corrections: int

    def refresh(self) -> None:
        """Look for plugins anew."""

    def environment(self, stage: str = "") -> dict[str, str]:
        """Return the environment of everything that the run starts."""

    def log(self, text: str) -> None:
        """Write a text of plugins to the log."""
