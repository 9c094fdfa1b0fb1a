"""The server itself: tool groups on a connection, and its end."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time

from swarm_hook_core.process import gone, host_id
from swarm_mcp import __version__
from swarm_mcp.errors import SwarmError
from swarm_mcp.server.protocol import INVALID_PARAMS, Connection, RequestError
from swarm_mcp.server.session import CallingSession
from swarm_mcp.server.tool import Answer, Call, NotRegistered, Tool
from swarm_mcp.server.tools import all_tools
from swarm_mcp.store import Store

TOOLS: dict[str, Tool] = all_tools()
WATCH_SECONDS = 1.0
LEAVE_SECONDS = 1.0
INSTRUCTIONS = (
    "Peer locks between coding sessions that share files. Your own writes to a file that another session has"
    " locked are denied; lock_file keeps others from a file of yours."
)


def run() -> int:
    """Serve on standard input and output; the exit code."""
    session = CallingSession()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: _end(session))
    threading.Thread(target=_watch_client, args=(session,), daemon=True).start()
    about = {
        "capabilities": {"tools": {"listChanged": False}},
        "serverInfo": {"name": "swarm", "version": __version__},
        "instructions": INSTRUCTIONS,
    }
    methods = {
        "tools/list": lambda _params: {"tools": [tool.described() for tool in TOOLS.values()]},
        "tools/call": lambda params: _call_tool(session, params),
    }
    # Protocol text only: nothing that runs in this process may print into the client's input.
    outgoing, sys.stdout = sys.stdout, sys.stderr
    Connection(about, methods, sys.stdin, outgoing).serve()
    _leave(session)
    return 0


def _call_tool(session: CallingSession, params: dict) -> dict:
    """Carry out one call. A refusal is an ordinary answer; only wrong calls and faults are errors."""
    name, arguments, meta = params.get("name"), params.get("arguments") or {}, params.get("_meta") or {}
    tool = TOOLS.get(name) if isinstance(name, str) else None
    if tool is None:
        raise RequestError(INVALID_PARAMS, f"there is no tool {name!r}; there are {', '.join(TOOLS)}")
    if not isinstance(arguments, dict) or not isinstance(meta, dict):
        raise RequestError(INVALID_PARAMS, "arguments and _meta must be objects")
    defaults = {name: spec["default"] for name, spec in tool.properties.items() if "default" in spec}
    arguments = {**defaults, **arguments}
    outcome: list = []
    worker = threading.Thread(target=lambda: outcome.append(_use(tool, session, meta, arguments)), daemon=True)
    worker.start()
    # Signals are taken between steps of the main thread, and waiting for a busy store is one long step.
    worker.join()
    return _result(outcome[0])


def _use(tool: Tool, session: CallingSession, meta: dict, arguments: dict) -> Answer:
    try:
        with Store() as store:
            answer = tool.call(Call(store, session, meta), arguments)
            if answer.on_sent:
                answer.on_sent(store)
            return answer
    except NotRegistered as error:
        return Answer(text=str(error))
    except SwarmError as error:
        return Answer({"error": str(error)}, is_error=True)
    except Exception as error:  # noqa: BLE001 - a bug in one tool must not end the session's server
        print(f"swarm-mcp serve: {tool.name}: {type(error).__name__}: {error}", file=sys.stderr)
        return Answer(text=f"{tool.name} failed: {type(error).__name__}: {error}", is_error=True)


def _result(answer: Answer) -> dict:
    texts = [answer.text] if answer.value is None else [json.dumps(answer.value, indent=2)]
    result: dict = {"content": [{"type": "text", "text": part} for part in (*texts, *answer.notes)]}
    if answer.value is not None:
        result["structuredContent"] = answer.value if isinstance(answer.value, dict) else {"items": answer.value}
    return {**result, "isError": True} if answer.is_error else result


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
    # The main thread waits in a read that nothing interrupts; there is nothing left to wait for.
    os._exit(0)


def _leave(session: CallingSession) -> None:
    try:
        with Store(busy_seconds=LEAVE_SECONDS) as store:
            session.leave(store)
    except SwarmError as error:
        print(f"swarm-mcp serve: {error}", file=sys.stderr)
