"""SessionEnd: release what the session held."""

import sys

from _common import core

sys.exit(core.run_session_end_hook(sys.stdin))
