import asyncio
import sys
from pathlib import Path

from swarm_mcp.harness import Session


async def main() -> None:
    async with Session(sys.argv[1], cwd=Path.cwd()) as session:
        for prompt in sys.argv[2:]:
            print((await session.ask(prompt)).output)


asyncio.run(main())
