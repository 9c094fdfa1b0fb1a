"""PostToolUse: tell who needs to know where a watched call has changed a file that a peer has locked."""

import os
import sys

from _common import core

if __name__ == "__main__":
    os._exit(core.run_post_tool_use_hook(sys.stdin))  # tidying up the interpreter would cost as much as the rest
