"""The MCP tool `try`."""

from __future__ import annotations

import json
import os
import sys

from swarm_mcp.errors import Refused, SwarmError
from swarm_mcp.server.tool import Answer, Tool, WaitingCall, flag, number, text, texts

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

OUTPUT = 30_000  # characters of a command's output in an answer: its end


async def _try_tool(call: WaitingCall, arguments: dict[str, Any]) -> Answer:
    import asyncio

    row = await call.run(lambda now: now.member())
    folder = os.path.join(row.directory, arguments.get("folder", ""))
    words = [sys.executable, "-m", "swarm_mcp", "try", "--as", row.id, "--json"]
    if arguments["whose"]:
        words.append("--whose")
    else:
        words += [word for name in arguments.get("sessions", ()) for word in ("--session", name)]
        words += [word for name in arguments.get("without", ()) for word in ("--without", name)]
        words += [f"--{name}" for name in ("person", "head", "keep") if arguments[name]]
        words += ["--mine"] * (bool(arguments.get("sessions", ())) and arguments["mine"])
    shell = ["--", "/bin/sh", "-c", arguments["command"]]
    pipe = asyncio.subprocess.PIPE
    child = await asyncio.create_subprocess_exec(
        *words, *shell, cwd=folder, stdin=asyncio.subprocess.DEVNULL, stdout=pipe, stderr=pipe
    )
    try:
        out, err = await asyncio.wait_for(child.communicate(), arguments["seconds"])
    except asyncio.TimeoutError:
        raise Refused(f"the command was ended after {arguments['seconds']} seconds") from None
    finally:
        if child.returncode is None:
            child.terminate()  # it ends the command and all its processes
            await child.wait()
    try:
        value = json.loads(out)
    except (ValueError, RecursionError):
        raise SwarmError(err.decode(errors="replace").strip()[-1000:] or "it could not be tried") from None
    if len(value.get("output", "")) > OUTPUT:
        value["output"] = f"[...]{value['output'][-OUTPUT:]}"
    return Answer(value)


TOOLS = (
    Tool(
        "try",
        "Run a command (tests, a build) on the last commit with this session's uncommitted lines alone, at the"
        " checkout's own path, as if the other agents had written nothing. Use it when something fails beside others'"
        " uncommitted lines, before you mend it; with `whose` it says whose lines make it fail. Nothing in the checkout"
        " changes.",
        {
            "command": text("A shell command."),
            "whose": flag("Find the authors whose lines make it fail. It runs several times."),
            "sessions": texts("The lines of these sessions instead of your own."),
            "mine": flag("Your own lines beside those of `sessions`."),
            "person": flag("The lines that no session has written."),
            "without": texts("All lines but those of these sessions (or `person`)."),
            "head": flag("The last commit alone."),
            "keep": flag("Keep what it writes: `swarm-mcp try --diff` and `--apply FILE`."),
            "folder": text("A folder in the work tree. Default: the folder where this session works.", default=""),
            "seconds": number("End it after so many seconds.", minimum=1, maximum=3600, default=600),
        },
        _try_tool,
        required=("command",),
        destructive=True,
    ),
)
