"""`modes.py CLIENT MODE MODEL`: the findings of `swarm-mcp doctor --play` with a model of this name, a line of JSON each."""

import json
import sys

from swarm_mcp.play.playing import findings
from swarm_mcp.runtimes import runtime
from swarm_mcp.runtimes.base import Steps

client, mode, model = sys.argv[1:]
for found in findings(runtime(client), mode, Steps(), [model] if model else ()):
    print(json.dumps([found.status, found.message, found.details]), flush=True)
