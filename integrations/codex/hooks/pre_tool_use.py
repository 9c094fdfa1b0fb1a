"""PreToolUse: deny a write to a file that another session has locked."""

import sys

from _common import core

sys.exit(core.run_pre_tool_use_hook(sys.stdin))
