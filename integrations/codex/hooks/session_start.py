"""Codex has begun or resumed a session: register it, and greet its model. JSON on standard input."""

import sys

sys.path[0] += "/../.."
from launch import end  # makes the next two importable
from runtime import RUNTIME
from swarm_hook_core.core import HookCore

end(HookCore(RUNTIME).run_session_start_hook(sys.stdin))
