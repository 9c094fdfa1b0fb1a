"""Notification of the team agent about changes here, instead of waiting for its next beat. Loads next to nothing."""

from __future__ import annotations

from swarm_hook_core.state import is_in_team


def tell_team() -> None:
    """Tell other machines about released and awaited locks, and about sessions that have come or gone. Never fails.

    Costs one look at the disk without a joined clone; with one, a missing team agent is started.
    """
    if is_in_team():
        from swarm_mcp.team.agent_client import poke

        poke()
