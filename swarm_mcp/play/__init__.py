"""`swarm-mcp doctor --play`: the real clients, started on scripted models, write files that a peer has locked.

The tests of real clients use the same models, and the same calls of each client's tools.
"""

from __future__ import annotations
