"""The commands that a person can run from the page: each is shown with its effect, and runs after a second click."""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import sys
from collections.abc import Callable, Mapping
from typing import NamedTuple

from swarm_mcp.errors import SwarmError, UsageError

SECONDS = 60.0  # for a command
LONGEST = 20_000  # characters of its output, and bytes of a text in a form
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@-]{0,199}")  # of a session, a task, a kept content


class Deed(NamedTuple):
    """A command, as a page asks about it.

    title   the question
    effect  the change that it makes, in a sentence
    argv    the words behind ``swarm-mcp``
    scope   the folder in which it runs
    tries   True if ``--dry-run`` shows the effect first
    text    the label of a text that the person adds; empty for none
    """

    title: str
    effect: str
    argv: list[str]
    scope: str
    tries: bool = False
    text: str = ""

    @property
    def command(self) -> str:
        """Return the command as a person types it."""
        return shlex.join(["swarm-mcp", *(one or "TEXT" for one in self.argv)])


def deed_of(given: Mapping[str, str], name_of: Callable[[str], str]) -> Deed:
    """Return the command that the parameters of a request ask for. Raises UsageError, SwarmError.

    `name_of`: the name of the session with this id.
    """
    kind, scope, text = given.get("deed", ""), given.get("scope", ""), given.get("text", "").strip()
    if not os.path.isabs(scope) or not os.path.isdir(scope):
        raise SwarmError("it names no checkout of this machine")
    path, name = given.get("path", ""), given.get("path", "").removeprefix(scope.rstrip("/") + "/")
    if kind in ("restore", "unlock", "ask") and (not os.path.isabs(path) or "\0" in path):
        raise UsageError("it names no file")

    def named(field: str) -> str:
        if not _NAME.fullmatch(given.get(field, "")):
            raise UsageError(f"it has no {field}")
        return given[field]

    if kind == "undo":
        who = named("session")
        effect = (
            "The lines that this session wrote in its last turn go. Lines of others stay. `undo --undo` takes it back."
        )
        return Deed(f"Undo the last turn of {name_of(who)}?", effect, ["undo", "--turn", "--session", who], scope, True)
    if kind == "restore":
        effect = "The file gets this content. Its present content is kept, and the same list has it then."
        return Deed(f"Restore {name}?", effect, ["restore", "--id", named("id"), "--", path], scope, True)
    if kind == "unlock":
        who = named("session")
        effect = (
            f"The lock of {name_of(who)} ends, and the next session in the queue gets the file. The session is told."
        )
        return Deed(f"Release the lock on {name}?", effect, ["unlock", "--as", who, "--", path], scope)
    if kind == "ask":
        effect = "The holder of the lock gets a message with your reason, and its next hook shows it."
        argv = ["request-lock", *(["--reason", text] if text else []), "--", path]
        return Deed(f"Ask for {name}?", effect, argv, scope, text="Reason")
    if kind == "answer":
        effect = "The worker gets this answer at once, or with its instructions."
        return Deed("Answer the question?", effect, ["task", "answer", named("task"), "--", text], scope, text="Answer")
    raise UsageError("there is no such command")


async def outcome(deed: Deed, is_persons: bool, *more: str) -> tuple[bool, str]:
    """Run the command with `more` options. Return True if it succeeded, and its output.

    `is_persons`: a person has started the page at a terminal, and its commands count as typed there.
    """
    environment = {**os.environ, "NO_COLOR": "1", "PYTHONIOENCODING": "utf-8:backslashreplace"}
    if is_persons:
        environment["SWARM_MCP_ALLOW_SPAWN"] = "1"
    code = f"import sys; sys.path[:] = {sys.path!r}; from swarm_mcp.cli.main import main; sys.exit(main())"
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", code, deed.argv[0], *more, *deed.argv[1:]), cwd=deed.scope,
        env=environment, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    try:
        output, _ = await asyncio.wait_for(process.communicate(), SECONDS)
    except asyncio.TimeoutError:
        process.kill()
        await process.wait()
        return False, f"it was ended after {SECONDS:.0f} seconds"
    return process.returncode == 0, output.decode("utf-8", "replace").strip()[:LONGEST]
