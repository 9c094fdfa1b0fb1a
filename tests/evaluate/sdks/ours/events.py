import sys
from pathlib import Path

from swarm_mcp.harness import Query, Run

for event in Run(sys.argv[1], Query(sys.argv[2], cwd=Path.cwd())).events():
    print(type(event).__name__, flush=True)
