"""PostToolUse: nothing yet; loadable, and wired by no hooks.json."""

import sys

from _common import core

if __name__ == "__main__":
    sys.exit(core.run_post_tool_use_hook(sys.stdin))
