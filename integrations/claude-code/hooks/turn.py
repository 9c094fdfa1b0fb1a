"""A turn has begun or ended in Claude Code: renew the session, and tell its model the news. JSON on standard input."""

import sys

sys.path[0] += "/../.."
from launch import end  # makes the next two importable
from runtime import RUNTIME
from swarm_hook_core.core import HookCore

end(HookCore(RUNTIME).run_turn_hook(sys.stdin))
