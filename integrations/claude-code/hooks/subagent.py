"""SubagentStart and SubagentStop: tell a subagent who it is, release what it held."""

import os
import sys

from _common import core

if __name__ == "__main__":
    os._exit(core.run_subagent_hook(sys.stdin))  # tidying up the interpreter would cost as much as the check
