import sys
from dataclasses import dataclass
from pathlib import Path

from swarm_mcp.harness import Query, Run


@dataclass
class Answer:
    title: str


result = Run(sys.argv[1], Query(sys.argv[2], cwd=Path.cwd(), output_schema=Answer)).result()
print(result.structured(Answer).title)
