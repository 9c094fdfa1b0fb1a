import asyncio
import shutil
import sys

from claude_agent_sdk import ClaudeAgentOptions, query


async def main() -> None:
    options = ClaudeAgentOptions(cwd=".", cli_path=shutil.which("claude"), permission_mode="acceptEdits")
    async for message in query(prompt=sys.argv[2], options=options):
        print(type(message).__name__, flush=True)


asyncio.run(main())
