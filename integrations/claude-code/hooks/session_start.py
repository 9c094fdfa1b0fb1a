"""SessionStart: register the session and tell it where it stands."""

import sys

from _common import core

sys.exit(core.run_session_start_hook(sys.stdin))
