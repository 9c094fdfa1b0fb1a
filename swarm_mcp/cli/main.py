"""The entry point of ``swarm-mcp``."""

from __future__ import annotations

import gc
import sys

COMMANDS_GARBAGE = 50_000  # objects, before they are looked through: a command has ended by then


def main(argv: list[str] | None = None) -> int:
    """Run one command; the exit code."""
    if argv is None:
        argv = sys.argv[1:]
    items = list(argv)
    if items[:1] not in ([], ["serve"]):  # a server lives on
        gc.set_threshold(COMMANDS_GARBAGE)
    if items[:1] == ["hook"]:
        from swarm_mcp.hooks.process import as_wired

        status = as_wired(items[1:])
        if status is not None:
            return status
    from swarm_mcp.cli.command import run

    return run(items)
