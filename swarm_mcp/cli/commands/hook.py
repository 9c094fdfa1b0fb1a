"""hook: run one of the plugin's hooks here, on standard input and output

Exactly what the plugin runs: the client's JSON payload on standard input, its answer on standard
output, exit code 0 whatever happens. For debugging, and for clients that have no plugin of ours.

example: swarm-mcp hook pre-tool-use --runtime codex < payload.json
"""

from __future__ import annotations

import os
import shlex
import sys

from swarm_hook_core.core import HookCore
from swarm_mcp.cli.arguments import Arguments, Option, Usage, choice
from swarm_mcp.errors import UsageError
from swarm_mcp.installation import coordinator_command
from swarm_mcp.runtimes import NAMES, hook_config
from swarm_mcp.runtimes import runtime as runtime_called

HOOKS = ("session-start", "session-end", "pre-tool-use", "post-tool-use", "turn", "subagent")

USAGES = (
    Usage(
        choice(*HOOKS, about="hook"),
        Option("--runtime NAME", "whose hook", choices=tuple(NAMES), required=True),
    ),
)


def run(args: Arguments) -> int:
    """Do what the plugin's hook does, as its runtime is configured; return the hook's exit status."""
    hook, runtime = args.words[0], args.value("--runtime")
    if hook == "subagent" and not runtime_called(runtime).has_subagents:
        raise UsageError(f"{runtime} has no such hook: {hook}")
    # An installed plugin knows its coordinator from its own record; here it is this very installation.
    os.environ.setdefault("SWARM_MCP_BIN", shlex.join(coordinator_command()))
    core = HookCore(hook_config(runtime))
    status: int = getattr(core, f"run_{hook.replace('-', '_')}_hook")(sys.stdin)
    return status
