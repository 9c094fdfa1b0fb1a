"""A subagent has begun or ended in a client: name its peers, or release its locks. JSON on standard input."""

import sys

from launch import end
from runtime import RUNTIME
from swarm_hook_core.core import HookCore

end(HookCore(RUNTIME).run_subagent_hook(sys.stdin))
