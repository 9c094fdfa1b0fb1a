"""Workspaces that sessions can be seen and woken in. A backend is a module here and a line in `BACKENDS`."""

from __future__ import annotations

from swarm_mcp.errors import SwarmError
from swarm_mcp.workspace.herdr import Herdr
from swarm_mcp.workspace.interface import Backend

BACKENDS: dict[str, Backend] = {"herdr": Herdr()}


def backend(name: str) -> Backend:
    """Return the backend of this name. Raises SwarmError without any."""
    if name not in BACKENDS:
        known = ", ".join(BACKENDS)
        raise SwarmError(f'Unsupported workspace backend "{name}"; there is: {known}')
    return BACKENDS[name]
