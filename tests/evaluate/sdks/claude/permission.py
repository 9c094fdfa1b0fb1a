import asyncio
import shutil
import sys

from claude_agent_sdk import (
    ClaudeAgentOptions,
    ClaudeSDKClient,
    PermissionResultAllow,
    PermissionResultDeny,
    ResultMessage,
)


async def decide(tool: str, args: dict, context: object) -> PermissionResultAllow | PermissionResultDeny:
    if "yes.md" in args["command"]:
        return PermissionResultAllow()
    return PermissionResultDeny(message="not today")


async def main() -> None:
    options = ClaudeAgentOptions(cwd=".", cli_path=shutil.which("claude"), can_use_tool=decide)
    async with ClaudeSDKClient(options) as client:
        await client.query(sys.argv[2])
        async for message in client.receive_response():
            if isinstance(message, ResultMessage):
                print(message.result)


asyncio.run(main())
