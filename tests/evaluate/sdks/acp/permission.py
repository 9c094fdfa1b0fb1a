import asyncio
import os
import sys

from acp import PROTOCOL_VERSION, Client, spawn_agent_process, text_block
from acp.schema import AgentMessageChunk, ToolCallUpdate


class Decider(Client):
    async def request_permission(self, session_id: str, tool_call: ToolCallUpdate, options: list, **_: object) -> dict:
        wanted = "allow_once" if "yes.md" in str(tool_call.raw_input) else "reject_once"
        for option in options:
            if option.kind == wanted:
                return {"outcome": {"outcome": "selected", "optionId": option.option_id}}
        return {"outcome": {"outcome": "cancelled"}}

    async def session_update(self, session_id: str, update: object, **kwargs: object) -> None:
        if isinstance(update, AgentMessageChunk):
            print(update.content.text, end="")


async def main() -> None:
    async with spawn_agent_process(Decider(), sys.argv[1], env=os.environ) as (agent, _process):
        await agent.initialize(PROTOCOL_VERSION)
        session = await agent.new_session(cwd=os.getcwd(), mcp_servers=[])
        mode = "default" if "claude" in sys.argv[1] else "workspace-write"
        await agent.set_session_mode(mode_id=mode, session_id=session.session_id)
        await agent.prompt(prompt=[text_block(sys.argv[2])], session_id=session.session_id)


asyncio.run(main())
