"""``python -m swarm_mcp``: the same as the ``swarm-mcp`` command."""

from __future__ import annotations

import sys

from swarm_mcp.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
