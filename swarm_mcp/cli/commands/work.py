"""work: supervise one worker (dispatch starts this)

Lives as long as the worker: its instance, its locks and its task are held by this process. Exit 0 whatever came of
the task, which says so itself; 1 where the worker could have no place in the swarm.

example: swarm-mcp work < assignment.json
"""

from __future__ import annotations

import os
import sys

from swarm_mcp.cli.arguments import Arguments, Option, Usage
from swarm_mcp.errors import SwarmError

LARGEST = 64 << 20

USAGES = (
    Usage(
        Option("--from PIPE", "where the assignment is read from (default: standard input)"),
        Option("--watch", "print what the worker does as it happens"),
    ),
)


def run(args: Arguments) -> int:
    """Carry out one assignment."""
    from swarm_mcp.dispatch.assignment import read

    given = read(_text(args.value("--from")))
    os.environ.update(given.env)  # before anything asks where the store and the state are
    from swarm_mcp.dispatch.supervision import Supervisor
    from swarm_mcp.store import Store

    live = _live() if args.given("--watch") else None
    try:
        with Store() as store:
            Supervisor(store, given, live and live.show).carry_out()
    finally:
        if live:
            live.close()
    _forget(given.log)
    return 0


def _text(pipe: str) -> str:
    try:
        if not pipe:
            return sys.stdin.buffer.read(LARGEST).decode()
        with open(pipe, "rb") as file:
            return file.read(LARGEST).decode()
    except (OSError, UnicodeDecodeError) as error:
        raise SwarmError(f"the assignment cannot be read: {error}") from None


def _live():
    from swarm_mcp.cli.colour import wanted
    from swarm_mcp.cli.live import Live

    return Live(sys.stdout, colour=wanted(), progress=sys.stdout.isatty())


def _forget(log: str) -> None:
    """Remove the file of our standard error, where nothing was said."""
    try:
        if log and not os.path.getsize(log):
            os.remove(log)
    except OSError:
        pass
