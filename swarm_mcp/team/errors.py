"""Errors of a team's server, beside those of ``swarm_mcp.errors``."""

from __future__ import annotations

from swarm_mcp.errors import Refused, SwarmError


class TeamRefused(Refused):
    """The team's server says no: the request is not allowed, or impossible."""


class TeamUnreachable(SwarmError):
    """The team's server cannot be asked now. The request may have been carried out."""
