"""hook: run one of the plugin's hooks here, on standard input and output

Exactly what the plugin runs: the client's JSON payload on standard input, its answer on standard
output, exit code 0 whatever happens. For debugging, and for clients that have no plugin of ours.

example: swarm-mcp hook pre-tool-use --runtime codex < payload.json
"""

from __future__ import annotations

import os
import runpy
import shlex
import sys

from swarm_mcp.cli.arguments import Arguments, Option, Usage, choice
from swarm_mcp.errors import UsageError
from swarm_mcp.installation import coordinator_command, plugin_source
from swarm_mcp.runtimes import NAMES
from swarm_mcp.runtimes import runtime as runtime_called

HOOKS = ("session-start", "session-end", "pre-tool-use", "post-tool-use", "turn", "subagent")

USAGES = (
    Usage(
        choice(*HOOKS, about="hook"),
        Option("--runtime NAME", "whose hook", choices=tuple(NAMES), required=True),
    ),
)


def run(args: Arguments) -> int:
    """Run the plugin's own entry script; its exit code."""
    hook = args.words[0]
    runtime = args.value("--runtime")
    if hook == "subagent" and not runtime_called(runtime).has_subagents:
        raise UsageError(f"{runtime} has no such hook: {hook}")
    script = plugin_source() / "integrations" / "hook.py"
    # An installed plugin knows its coordinator from its own record; here it is this very installation.
    os.environ.setdefault("SWARM_MCP_BIN", shlex.join(coordinator_command()))
    sys.argv = [str(script), runtime, hook.replace("-", "_")]
    sys.path.insert(0, str(script.parent))
    runpy.run_path(str(script), run_name="__main__")
    return 0
