"""UserPromptSubmit and Stop: renew the session, working or idle."""

import sys

from _common import core

sys.exit(core.run_turn_hook(sys.stdin))
