"""Runs swarm-mcp with these words, for a plugin without an installation. It fetches nothing."""

import os
import sys

sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
from swarm_hook_core.coordinator import fetched_command, find_on_path  # noqa: E402

HELP = """\
swarm: {why}
swarm: the start of a session says whether it is being fetched (with uv); or install it yourself
swarm: (pipx install swarm-locks), then start a new session
"""

if __name__ == "__main__":
    ours, other = find_on_path()
    found = [ours] if ours else fetched_command()
    if found:
        os.execv(found[0], [*found, *sys.argv[1:]])
    why = f"{other} is another program of that name, and ours is not on PATH" if other else "swarm-mcp is not on PATH"
    sys.exit(HELP.format(why=why).rstrip())
