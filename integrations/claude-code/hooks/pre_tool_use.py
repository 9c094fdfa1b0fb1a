"""Claude Code is about to call a tool: deny a write to a file that another session has locked. JSON on stdin."""

import sys

sys.path[0] += "/../.."
from launch import end  # makes the next two importable
from runtime import RUNTIME
from swarm_hook_core.core import HookCore

end(HookCore(RUNTIME).run_pre_tool_use_hook(sys.stdin))
