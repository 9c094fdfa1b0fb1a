"""The verbs, those of one family in one module; ``swarm_mcp/cli/verbs.py`` says which is where."""

from __future__ import annotations
