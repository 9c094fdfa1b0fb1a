import asyncio
import sys
from pathlib import Path

from swarm_mcp.harness import Session, ToolStart


async def main() -> None:
    async with Session(sys.argv[1], cwd=Path.cwd(), mode="read-only") as session:
        run = session.run("What is slow?")
        async for event in run.events():
            if isinstance(event, ToolStart):
                print(event.tool_name, file=sys.stderr)
        print((await run).output)
        async with session.fork() as other:
            for result in await asyncio.gather(session.ask("And broken?"), other.ask("And ugly?")):
                print(result.output)
        print(session.cost.input_tokens)


asyncio.run(main())
