"""Kilo CLI, a fork of OpenCode: its plugin, in a folder of its own."""

from __future__ import annotations

from swarm_mcp.runtimes.coverage import YES, Coverage, Verified
from swarm_mcp.runtimes.opencode import OpenCode


class Kilo(OpenCode):
    """The ``kilo`` command."""

    name = executable = harness = "kilo"
    title = "Kilo"
    coverage = Coverage(
        edits=YES, patches=YES, shell=YES, other_tools=YES, subagents=YES, told_before=YES, told_after=YES, ends=YES,
        verified=Verified("7.7.7", "2026-11-27"),
    )  # fmt: skip
    needed = "integrations/kilo/index.ts"
    npm_package = "@kilocode/plugin"
    settings_files = ("config.json", "kilo.json", "kilo.jsonc", "opencode.json", "opencode.jsonc")
    session_variables = ("KILO", "KILO_PID", "KILO_SESSION_ID", "OPENCODE", "AGENT")
