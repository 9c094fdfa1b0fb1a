"""SessionStart: register the session and tell it where it stands."""

import os
import sys

from _common import core

if __name__ == "__main__":
    os._exit(core.run_session_start_hook(sys.stdin))  # tidying up the interpreter would cost as much as the check
