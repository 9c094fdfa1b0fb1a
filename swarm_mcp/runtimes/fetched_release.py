"""This copy of swarm-mcp, where uv has fetched it for plugins that have no command: how they start it."""

from __future__ import annotations

import os
import shlex
from contextlib import suppress

from swarm_hook_core.own_release import launcher
from swarm_hook_core.state import write_private
from swarm_mcp import __file__ as ours
from swarm_mcp.installation import coordinator_command
from swarm_mcp.runtimes.claude_code import forget_failed_server


def leave_launcher() -> str:
    """Write the launcher that plugins of this release start; return its path. Raises OSError."""
    path, copy = launcher(), shlex.quote(os.path.abspath(ours))
    lines = [
        "#!/bin/sh",
        "# Made by `swarm-mcp fetched`. uv may remove its copy at any time; then this goes too, and is made anew.",
        f'[ -e {copy} ] || {{ rm -f "$0"; echo "swarm: uv has removed its copy of swarm-mcp" >&2; exit 1; }}',
        f'exec {shlex.join(coordinator_command())} "$@"',
    ]
    write_private(path, "\n".join(lines) + "\n")
    os.chmod(path, 0o700)
    _have_server_tried_again()
    return path


def is_launched(folder: str) -> bool:
    """Return True if the launcher starts the copy of swarm-mcp in this folder of packages."""
    try:
        with open(launcher(), encoding="utf-8", errors="replace") as file:
            return f"{folder}{os.sep}" in file.read(65536)
    except OSError:  # no launcher
        return False


def _have_server_tried_again() -> None:
    """Make Claude Code forget that the first session of the plugin had no server."""
    with suppress(Exception):
        forget_failed_server()
