"""UserPromptSubmit and Stop: renew the session, working or idle."""

import os
import sys

from _common import core

if __name__ == "__main__":
    os._exit(core.run_turn_hook(sys.stdin))  # tidying up the interpreter would cost as much as the check
