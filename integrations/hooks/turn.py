"""A turn has begun or ended in a client: renew the session, and tell its model the news. JSON on standard input."""

import sys

from launch import end
from runtime import RUNTIME
from swarm_hook_core.core import HookCore

end(HookCore(RUNTIME).run_turn_hook(sys.stdin))
