import asyncio
import os
import sys

from acp import PROTOCOL_VERSION, Client, spawn_agent_process, text_block


class Watcher(Client):
    async def session_update(self, session_id: str, update: object, **kwargs: object) -> None:
        print(type(update).__name__, flush=True)


async def main() -> None:
    async with spawn_agent_process(Watcher(), sys.argv[1], env=os.environ) as (agent, _process):
        await agent.initialize(PROTOCOL_VERSION)
        session = await agent.new_session(cwd=os.getcwd(), mcp_servers=[])
        await agent.prompt(prompt=[text_block(sys.argv[2])], session_id=session.session_id)


asyncio.run(main())
