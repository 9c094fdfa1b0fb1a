"""What `swarm-mcp doctor` looks at: this installation, its store, and each client's enforcement."""

from __future__ import annotations
