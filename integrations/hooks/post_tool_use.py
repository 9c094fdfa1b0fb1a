"""A client has called a tool: compare the files that were watched during the call. JSON on standard input."""

import sys

from launch import end
from runtime import RUNTIME
from swarm_hook_core.core import HookCore

end(HookCore(RUNTIME).run_post_tool_use_hook(sys.stdin))
