"""The public Python interface to agents: ``from swarm_mcp.harness import Query, Run``; see docs/dev/python.md.

The names are those of ``swarm_mcp.agents.harness``, each loaded at its first use. Other modules may move.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from swarm_mcp.agents import harness as _harness

if TYPE_CHECKING:
    from swarm_mcp.agents.harness import *  # noqa: F403

__all__ = _harness.__all__


def __getattr__(name: str) -> Any:
    return getattr(_harness, name)


def __dir__() -> list[str]:
    return [*__all__]
