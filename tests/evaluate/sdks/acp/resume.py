import asyncio
import os
import sys

from acp import PROTOCOL_VERSION, Client, spawn_agent_process, text_block
from acp.schema import AgentMessageChunk


class Listener(Client):
    async def session_update(self, session_id: str, update: object, **kwargs: object) -> None:
        if isinstance(update, AgentMessageChunk):
            print(update.content.text, end="")


async def main() -> None:
    async with spawn_agent_process(Listener(), sys.argv[1], env=os.environ) as (agent, _process):
        await agent.initialize(PROTOCOL_VERSION)
        session = await agent.new_session(cwd=os.getcwd(), mcp_servers=[])
        for prompt in sys.argv[2:]:
            await agent.prompt(prompt=[text_block(prompt)], session_id=session.session_id)
            print()


asyncio.run(main())
