"""Wiring the tool groups to the protocol, and the server's end."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from typing import Any

import anyio
import mcp_types as types
from anyio.to_thread import run_sync
from mcp.server import Server
from mcp.server.stdio import stdio_server

from swarm_hook_core.process import gone, host_id
from swarm_mcp import __version__
from swarm_mcp.errors import SwarmError
from swarm_mcp.server import instances, locks
from swarm_mcp.server.session import CallingSession
from swarm_mcp.server.tool import Answer, Tool, complaint
from swarm_mcp.store import Store

TOOLS: dict[str, Tool] = {tool.name: tool for group in (instances, locks) for tool in group.TOOLS}
WATCH_SECONDS = 1.0
INSTRUCTIONS = (
    "Peer locks between coding sessions that share files. Your own writes to a file that another session has"
    " locked are denied; lock_file keeps others from a file of yours."
)


class Call:
    """What a tool works with: the open store, the calling session, the call's metadata."""

    def __init__(self, store: Store, session: CallingSession, meta: dict):
        self.store = store
        self.session = session
        self.meta = meta

    def instance(self) -> dict | None:
        """The instance of the calling session, or None."""
        return self.session.instance(self.store, self.meta)


def run() -> int:
    """Serve on standard input and output; the exit code."""
    session = CallingSession()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: _end(session))
    threading.Thread(target=_watch_client, args=(session,), daemon=True).start()
    anyio.run(_serve, session)
    _leave(session)
    return 0


async def _serve(session: CallingSession) -> None:
    async def list_tools(_context: Any, _params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[tool.described() for tool in TOOLS.values()])

    async def call_tool(_context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        meta = dict(params.meta or {})
        return await run_sync(_answer, session, params.name, params.arguments or {}, meta)

    server: Server = Server(
        "swarm", version=__version__, instructions=INSTRUCTIONS, on_list_tools=list_tools, on_call_tool=call_tool
    )
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


def _answer(session: CallingSession, name: str, arguments: dict, meta: dict) -> types.CallToolResult:
    """Carry out one call. A refusal is an ordinary answer; only wrong calls and faults are errors."""
    tool = TOOLS.get(name)
    wrong = complaint(tool, arguments) if tool else f"there is no tool {name}; there are {', '.join(TOOLS)}"
    if tool is None or wrong:
        return _result(Answer(text=wrong, is_error=True))
    try:
        with Store() as store:
            return _result(tool.call(Call(store, session, meta), arguments))
    except SwarmError as error:
        return _result(Answer({"error": str(error)}, is_error=True))


def _result(answer: Answer) -> types.CallToolResult:
    texts = [answer.text] if answer.value is None else [json.dumps(answer.value, indent=2, ensure_ascii=False)]
    content: list = [types.TextContent(type="text", text=part) for part in (*texts, *answer.notes)]
    return types.CallToolResult(content=content, structured_content=answer.value, is_error=answer.is_error)


def _watch_client(session: CallingSession) -> None:
    """A client that was killed may leave our input open in a sibling; then only its pid tells."""
    pid, started = session.client
    here = host_id()
    while pid:
        time.sleep(WATCH_SECONDS)
        if gone(here, pid, started, here):
            _end(session)


def _end(session: CallingSession) -> None:
    _leave(session)
    sys.stdout.flush()
    # The protocol's reader sits in a thread that cannot be interrupted; there is nothing left to wait for.
    os._exit(0)


def _leave(session: CallingSession) -> None:
    try:
        with Store() as store:
            session.leave(store)
    except SwarmError as error:
        print(f"swarm-mcp serve: {error}", file=sys.stderr)
