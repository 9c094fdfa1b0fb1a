"""Our hooks in a client that has them twice: from `swarm-mcp install`, and from Claude Code's settings.

Some clients also run the hooks and plugins in Claude Code's settings. There these are guests, and act as the client's
own. If the client has its own hooks of ours, the guests stand back, and so does a second copy of the plugin. A second
check would cost time, or run for a session of another name, which the locks of the client's own session keep off its
files.
"""

import os
import re
import sys

# A variable of the client's hooks, which the shells of its agents lack: a session of another client may start there ->
# our name for the client. hook.sh has the same list.
HOSTS = {"CURSOR_VERSION": "cursor", "COPILOT_PROJECT_DIR": "copilot", "GROK_HOOK_EVENT": "grok"}


def received(client: str) -> str:
    """Return the client that a hook wired for Claude Code acts as; ends this process where it stands back."""
    for variable, host in HOSTS.items():
        if os.environ.get(variable):
            stand_back(host)
            return host
    return client


def stand_back(client: str) -> None:
    """End this process, a guest in `client`, if that has hooks of ours itself."""
    if _OWN[client]():
        sys.stdin.buffer.read()
        os._exit(0)


def _has_cursor() -> bool:
    return '/integrations/hook.sh\\" cursor ' in _text_of("~/.cursor/hooks.json")


def _has_copilot() -> bool:
    """Return True if Copilot has the plugin switched on, from a folder made by `swarm-mcp install`."""
    lines = _text_of(os.path.join(os.environ.get("COPILOT_HOME") or "~/.copilot", "settings.json")).splitlines()
    text = "\n".join(line for line in lines if not line.lstrip().startswith("//"))
    folder = re.search(r'"swarm"\s*:\s*\{\s*"source"\s*:\s*\{[^{}]*"path"\s*:\s*"([^"]*)"', text)
    if not folder or not re.search(r'"swarm@swarm"\s*:\s*true', text):
        return False
    files = ("bin/swarm-mcp", "integrations/copilot/hooks.json")
    return all(os.path.exists(os.path.join(folder.group(1), file)) for file in files)


def _has_grok() -> bool:
    place = os.path.join(os.environ.get("GROK_HOME") or "~/.grok", "hooks", "swarm.json")
    return "/integrations/hook.sh" in _text_of(place)


_OWN = {"cursor": _has_cursor, "copilot": _has_copilot, "grok": _has_grok}


def _text_of(file: str) -> str:
    try:
        with open(os.path.expanduser(file), encoding="utf-8", errors="replace") as told:
            return told.read()
    except OSError:  # the client has no such file
        return ""
