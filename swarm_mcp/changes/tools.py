"""The MCP tools of this package."""

from __future__ import annotations

import json
import os
import time
from typing import Any

from swarm_mcp.changes.commit import Commit, described
from swarm_mcp.changes.commit.parts import Authorship
from swarm_mcp.changes.undoing import Undoing, patch_of, turn_began
from swarm_mcp.cli.commands.log import since_when
from swarm_mcp.errors import Refused, SwarmError
from swarm_mcp.folders import file_of
from swarm_mcp.installation import coordinator_command
from swarm_mcp.server.tool import Answer, Call, Tool, WaitingCall, flag, number, text, texts

# The tool that commits the calling session's changes alone.


def _commit(call: Call, arguments: dict[str, Any]) -> Answer:
    me = call.member()
    author = Authorship(call.store, me)
    folder = arguments["folder"] or me.directory
    folder = os.path.join(me.directory, folder)
    files = [os.path.join(folder, file) for file in arguments.get("files") or []]
    one = Commit(folder, author.is_own, author.named, [arguments["message"]], files)
    done = one.plan() if arguments["dry_run"] else one.make()
    return Answer({**described(one, done), "dry_run": arguments["dry_run"]})


COMMIT_TOOLS = (
    Tool(
        "commit",
        "Commit this session's own uncommitted lines to git, and nobody else's. Use it instead of `git commit` where"
        " other sessions or a person have uncommitted work in the same checkout, above all in the same file. Runs the"
        " repository's hooks; leaves the work tree and others' staged work alone; names what it leaves out. Refused"
        " where the same lines may be yours and another's.",
        {
            "message": text("The commit message."),
            "files": texts("Only these files and folders. Default: all of your changes."),
            "folder": text("A folder in the work tree. Default: the folder where this session works.", default=""),
            "dry_run": flag("Answer what would be committed, and do nothing."),
        },
        _commit,
        required=("message",),
    ),
)

# The tool that takes back the calling session's uncommitted work.


def _undo(call: Call, arguments: dict[str, Any]) -> Answer:
    row = call.member()
    folder = row.root or row.directory
    undoing = Undoing(call.store, row, folder)
    only = [os.path.realpath(file_of(row, one)) for one in arguments.get("files", ())]
    whose, is_partial, is_dry = (row.runtime or "", row.session_id or ""), arguments["partial"], arguments["dry_run"]
    if "undo_id" in arguments:
        earlier = undoing.record_called(arguments["undo_id"])
        whose = earlier.whose
        plan, record = undoing.run(lambda: undoing.plan_back(earlier, only, is_partial), whose, earlier.id, is_dry)
    else:
        since_ns = since_when(arguments.get("since", ""), time.time()) * 10**9
        if arguments["turn"]:
            since_ns = turn_began(whose, folder)
        plan, record = undoing.run(lambda: undoing.plan(whose, only, since_ns, is_partial), whose, "", is_dry)
    value: dict[str, Any] = {
        "files": [one.path for one in plan.files],
        "left": [os.path.relpath(one.path, folder) + undoing.words_for(one, whose) for one in plan.problems],
    }
    if is_dry:
        return Answer({**value, "patch": patch_of(plan.files, undoing.folder)})
    if record is not None:
        value["undo_id"] = record.id
    return Answer(value)


UNDO_TOOLS = (
    Tool(
        "undo",
        "Take back what this session has changed and not committed, and nothing of others: added lines go, removed"
        " lines come back, in all files or in none. Use it instead of `git checkout` or `git restore`, which also"
        " discard the work of others. If lines of others stand in the way, the answer names them and nothing changes.",
        {
            "files": texts("Only these files, or the files of these folders. Default: all that this session changed."),
            "since": text("Only changes since then: a time of day (8:00), or an age (10m, 2h)."),
            "turn": flag("Only changes of the last turn."),
            "partial": flag("Leave out what would touch lines of others, and undo the rest."),
            "dry_run": flag("Answer with the patch, and change nothing."),
            "undo_id": text("Take back the undo with this id instead; empty for the last one."),
        },
        _undo,
    ),
)

# The tool that runs a command on the calling session's lines alone.

OUTPUT = 30_000  # characters of a command's output in an answer: its end


async def _try_tool(call: WaitingCall, arguments: dict[str, Any]) -> Answer:
    import asyncio

    row = await call.run(lambda now: now.member())
    folder = os.path.join(row.directory, arguments.get("folder", ""))
    words = [*coordinator_command(), "try", "--as", row.id, "--json"]
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


TRY_TOOLS = (
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

TOOLS = (*COMMIT_TOOLS, *UNDO_TOOLS, *TRY_TOOLS)
