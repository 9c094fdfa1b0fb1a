import asyncio
import shutil
import sys

from claude_agent_sdk import AssistantMessage, ClaudeAgentOptions, ClaudeSDKClient, ToolUseBlock


async def main() -> None:
    options = ClaudeAgentOptions(cwd=".", cli_path=shutil.which("claude"), permission_mode="bypassPermissions")
    async with ClaudeSDKClient(options) as client:
        await client.query(sys.argv[2])
        async for message in client.receive_response():
            content = message.content if isinstance(message, AssistantMessage) else []
            if any(isinstance(block, ToolUseBlock) for block in content):
                await client.interrupt()
                break
    print("cancelled")


asyncio.run(main())
