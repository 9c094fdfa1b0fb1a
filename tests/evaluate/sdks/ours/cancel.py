import sys
from pathlib import Path

from swarm_mcp.harness import Query, Run, ToolStart

with Run(sys.argv[1], Query(sys.argv[2], cwd=Path.cwd())) as run:
    for event in run.events():
        if isinstance(event, ToolStart):
            break
print("cancelled")
