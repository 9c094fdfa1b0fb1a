import asyncio
import os
import sys

from acp import PROTOCOL_VERSION, Agent, Client, spawn_agent_process, text_block
from acp.schema import ToolCallStart, ToolCallUpdate


class Watcher(Client):
    def on_connect(self, conn: Agent) -> None:
        self.agent = conn

    async def request_permission(self, session_id: str, tool_call: ToolCallUpdate, options: list, **_: object) -> dict:
        return {"outcome": {"outcome": "cancelled"}}

    async def session_update(self, session_id: str, update: object, **kwargs: object) -> None:
        if isinstance(update, ToolCallStart):
            await self.agent.cancel(session_id)


async def main() -> None:
    async with spawn_agent_process(Watcher(), sys.argv[1], env=os.environ) as (agent, _process):
        await agent.initialize(PROTOCOL_VERSION)
        session = await agent.new_session(cwd=os.getcwd(), mcp_servers=[])
        answer = await agent.prompt(prompt=[text_block(sys.argv[2])], session_id=session.session_id)
        await agent.close_session(session_id=session.session_id)
    print(answer.stop_reason)


asyncio.run(main())
