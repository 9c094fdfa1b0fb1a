"""PreToolUse: deny a write to a file that another session has locked."""

import os
import sys

from _common import core

if __name__ == "__main__":
    os._exit(core.run_pre_tool_use_hook(sys.stdin))  # tidying up the interpreter would cost as much as the check
