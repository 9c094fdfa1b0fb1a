"""The checks of `swarm-mcp doctor`: this installation, its store, and each client's enforcement."""

from __future__ import annotations
