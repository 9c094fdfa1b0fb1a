"""Workspaces that sessions can be seen and woken in. A backend is a module here, named in `BACKENDS`."""

from __future__ import annotations

import sys

from swarm_mcp.errors import SwarmError
from swarm_mcp.workspace.interface import Backend

# Name -> (module here, class). Each class is a `Backend`.
BACKENDS = {"herdr": ("herdr", "Herdr")}


def backend(name: str) -> Backend:
    """The backend of this name. Raises SwarmError where there is none."""
    if name not in BACKENDS:
        known = ", ".join(BACKENDS)
        raise SwarmError(f'Unsupported workspace backend "{name}"; there is: {known}')
    module, kind = BACKENDS[name]
    full = f"swarm_mcp.workspace.{module}"
    __import__(full)
    return getattr(sys.modules[full], kind)()
