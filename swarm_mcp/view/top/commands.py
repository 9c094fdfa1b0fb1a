"""Other commands of swarm-mcp, each in a process of its own, for keys that ask or change the store.

So `why`, transcripts and unlocking exist once, and a reading process never blocks a writer.
"""

from __future__ import annotations

import asyncio
import os
import sys

from swarm_hook_core.untrusted_text import one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator

LAST_SECONDS = 3.0  # that a command is given to end by itself
LONGEST = 64 * 1024  # bytes of a line that are kept together
_running: set[asyncio.subprocess.Process] = set()  # those that may not have ended yet


def command_line(words: list[str]) -> list[str]:
    """Return the command line that starts this very copy of swarm-mcp with `words`."""
    code = f"import sys; sys.path[:] = {sys.path!r}; from swarm_mcp.cli.main import main; sys.exit(main())"
    return [sys.executable, "-c", code, *words]


async def started(words: list[str]) -> asyncio.subprocess.Process:
    """Start a command: it reads nothing, and prints without colours, errors among the rest."""
    environment = {**os.environ, "NO_COLOR": "1", "PYTHONIOENCODING": "utf-8:backslashreplace"}
    process = await asyncio.create_subprocess_exec(
        *command_line(words), env=environment, limit=LONGEST,
        stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    _running.difference_update([one for one in _running if one.returncode is not None])
    _running.add(process)
    return process


async def lines_of(process: asyncio.subprocess.Process) -> AsyncIterator[str]:
    """Yield a command's output line by line as it comes, made harmless to a terminal."""
    assert process.stdout is not None
    while True:
        try:
            line = await process.stdout.readuntil(b"\n")
        except asyncio.LimitOverrunError as error:
            line = await process.stdout.readexactly(error.consumed)
        except asyncio.IncompleteReadError as error:
            if error.partial:
                yield _shown(error.partial)
            return
        yield _shown(line)


async def done(words: list[str]) -> tuple[int, str]:
    """Run a command to its end: its exit code, and the last line that it printed."""
    process, last = await started(words), ""
    async for line in lines_of(process):
        last = line or last
    return await process.wait(), last


def end(process: asyncio.subprocess.Process) -> None:
    """End a command whose output is not read any more."""
    if process.returncode is None:
        try:
            process.terminate()
        except ProcessLookupError:  # it has ended
            pass


async def all_gone() -> None:
    """Wait for the end of each command, so that its change is complete; kill it after `LAST_SECONDS`."""
    while _running:
        process = _running.pop()
        try:
            await asyncio.wait_for(process.wait(), LAST_SECONDS)
        except asyncio.TimeoutError:
            process.kill()
            await process.wait()


def _shown(line: bytes) -> str:
    return "    ".join(map(one_line, line.decode("utf-8", "replace").rstrip("\n").split("\t")))
