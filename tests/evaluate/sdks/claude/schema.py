import asyncio
import shutil
import sys

from claude_agent_sdk import ClaudeAgentOptions, ResultMessage, query

SCHEMA = {
    "type": "object",
    "properties": {"title": {"type": "string"}},
    "required": ["title"],
    "additionalProperties": False,
}


async def main() -> None:
    wanted = {"type": "json_schema", "schema": SCHEMA}
    options = ClaudeAgentOptions(cwd=".", cli_path=shutil.which("claude"), output_format=wanted)
    async for message in query(prompt=sys.argv[2], options=options):
        if isinstance(message, ResultMessage):
            print(message.structured_output["title"])


asyncio.run(main())
