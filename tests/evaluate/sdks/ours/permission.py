import sys
from pathlib import Path

from swarm_mcp.harness import PermissionRequest, Query, Run


def decide(asked: PermissionRequest) -> bool | str:
    return "yes.md" in asked.args["command"] or "not today"


print(Run(sys.argv[1], Query(sys.argv[2], cwd=Path.cwd(), on_permission=decide)).result().output)
