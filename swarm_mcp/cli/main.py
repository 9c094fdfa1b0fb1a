"""The entry point of ``swarm-mcp``."""

from __future__ import annotations

import gc
import os
import sys

from swarm_mcp import __version__

COMMANDS_GARBAGE = 50_000  # objects, before they are looked through: a command has ended by then


def main(argv: list[str] | None = None) -> int:
    """Run one command; the exit code."""
    if argv is None:
        argv = sys.argv[1:]
    items = list(argv)
    if items[:1] not in ([], ["serve"]):  # a server lives on
        gc.set_threshold(COMMANDS_GARBAGE)
    if items[:1] == ["hook"]:
        from swarm_mcp.hooks.session_hooks import as_wired

        status = as_wired(items[1:])
        if status is not None:
            return status
    if items[:1] in (["--version"], ["-v"], ["-V"], ["version"]) and _said_version():
        return 0
    from swarm_mcp.cli.command import run

    return run(items)


def _said_version() -> bool:
    """Print the version, with few modules loaded; return False if `run` has to do it instead."""
    from swarm_hook_core.coordinator import WORD

    if os.environ.get(WORD) or sys.stdout is None:
        return False
    try:
        print("swarm-mcp", __version__, flush=True)
    except OSError:  # `run` meets the same, and knows each case
        return False
    return True
