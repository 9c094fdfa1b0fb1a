"""The verbs and checks of a team; see ``contributions``."""

from __future__ import annotations

VERBS = {"team": "swarm_mcp.cli.commands.team"}
PLACES = {"team": "watch"}
OTHER_WORDS = {"join": "team"}
CHECKS = {"team": "swarm_mcp.doctor.team:findings"}
