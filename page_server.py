import os
import sys
from pathlib import Path

from swarm_mcp.harness import Query, Run, ToolEnd

stock = {"command": sys.executable, "args": ["stock.py"], "env": {"STOCK_TOKEN": os.environ["STOCK_TOKEN"]}}
query = Query("How many lamps are in stock?", cwd=Path.cwd(), mcp_servers={"stock": stock})
with Run(sys.argv[1], query) as run:
    for event in run.events():
        match event:
            case ToolEnd(name, text):
                print(f"{name}: {text}")
print(run.result().output)
