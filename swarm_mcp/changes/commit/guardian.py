"""The process that clears up behind a killed commit: ``python -m swarm_mcp.changes.commit.guardian TOP GIT-FOLDER``."""

from __future__ import annotations

import sys

from swarm_mcp.changes.commit.landing import guard

if __name__ == "__main__":
    guard(sys.argv[1], sys.argv[2])
