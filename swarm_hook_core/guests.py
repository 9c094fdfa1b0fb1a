"""Hooks of ours that another client runs besides its own: a guest of it must not check a call once more.

It would do that for a session of another name, which the locks of the client's own session keep off its files.
"""

import os
import sys

# A variable that only the hooks of a client have -> what it is called here, and the file that names its own hooks.
# Cursor takes the hooks of Claude Code's settings and plugins.
HOSTS = {"CURSOR_VERSION": ("cursor", "~/.cursor/hooks.json")}


def leave_it_to_the_host() -> None:
    """End this process, a hook of Claude Code's, where it is a guest of a client with hooks of its own."""
    if any(variable in os.environ and _has_hooks(*host) for variable, host in HOSTS.items()):
        sys.stdin.buffer.read()
        os._exit(0)


def _has_hooks(client: str, file: str) -> bool:
    """Whether the client runs hooks of ours that are its own."""
    try:
        with open(os.path.expanduser(file), encoding="utf-8", errors="replace") as wired:
            return f'/integrations/hook.sh\\" {client} ' in wired.read()
    except OSError:
        return False
