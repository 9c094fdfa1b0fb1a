"""A subagent has begun or ended in Codex: name its peers, or release its locks. JSON on standard input."""

import sys

sys.path[0] += "/../.."
from launch import end  # makes the next two importable
from runtime import RUNTIME
from swarm_hook_core.core import HookCore

end(HookCore(RUNTIME).run_subagent_hook(sys.stdin))
