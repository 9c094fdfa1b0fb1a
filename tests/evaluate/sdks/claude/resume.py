import asyncio
import shutil
import sys

from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, ResultMessage


async def main() -> None:
    options = ClaudeAgentOptions(cwd=".", cli_path=shutil.which("claude"), permission_mode="acceptEdits")
    async with ClaudeSDKClient(options) as client:
        for prompt in sys.argv[2:]:
            await client.query(prompt)
            async for message in client.receive_response():
                if isinstance(message, ResultMessage):
                    print(message.result)


asyncio.run(main())
