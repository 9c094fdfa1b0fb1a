import sys
from pathlib import Path

from swarm_mcp.harness import HarnessError, Query, Run

PRICES = {"lamp": 35.0, "desk": 210.0}


def price_of(item: str, count: int = 1) -> float:
    """What so many of an item cost, in euros."""
    return PRICES[item] * count


query = Query("How much are two lamps?", cwd=Path.cwd(), client_tools=(price_of,))
try:
    print(Run(sys.argv[1], query).result().output)
except HarnessError as error:
    sys.exit(f"{error.code}: {error}")
