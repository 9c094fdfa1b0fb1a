"""A client has ended a session: deregister it, and release its locks. JSON on standard input."""

import sys

from launch import end
from runtime import RUNTIME
from swarm_hook_core.core import HookCore

end(HookCore(RUNTIME).run_session_end_hook(sys.stdin))
