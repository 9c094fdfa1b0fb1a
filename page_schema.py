import sys
from dataclasses import dataclass
from pathlib import Path

from swarm_mcp.harness import Query, Run


@dataclass
class Item:
    name: str
    price: float


query = Query("Which item is the cheapest?", cwd=Path.cwd(), output_schema=Item)
item = Run(sys.argv[1], query).result().structured(Item)
print(f"{item.name} for {item.price:.2f}")
