"""The verbs, one module for each family; ``swarm_mcp/cli/verbs.py`` maps verbs to modules."""

from __future__ import annotations
