"""Claude Code has called a tool: compare the files that were watched during the call. JSON on standard input."""

import sys

sys.path[0] += "/../.."
from launch import end  # makes the next two importable
from runtime import RUNTIME
from swarm_hook_core.core import HookCore

end(HookCore(RUNTIME).run_post_tool_use_hook(sys.stdin))
