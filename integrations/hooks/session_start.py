"""A client has begun or resumed a session: register it, and greet its model. JSON on standard input."""

import sys

from launch import end
from runtime import RUNTIME
from swarm_hook_core.core import HookCore

end(HookCore(RUNTIME).run_session_start_hook(sys.stdin))
