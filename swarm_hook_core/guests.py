"""Hooks of ours that a client runs besides those that `swarm-mcp install` has put into it.

Clients take hooks and plugins of Claude Code's from its settings: there these are guests, which act as the client's
own. Where it has its own, guests stand back, and so does a second copy of the plugin: a check twice would be one for a
session of another name, which the locks of the client's own session keep off its files, or only cost time.
"""

import os
import sys

# A variable that the hooks of a client have and its agents' shells have not, where a session of another client may be
# started -> what the client is called here. hook.sh knows these, too.
HOSTS = {"CURSOR_VERSION": "cursor", "COPILOT_PROJECT_DIR": "copilot", "GROK_HOOK_EVENT": "grok"}


def received(client: str) -> str:
    """Return the client that a hook wired for Claude Code acts as; ends this process where it stands back."""
    for variable, host in HOSTS.items():
        if os.environ.get(variable):
            stand_back(host)
            return host
    return client


def stand_back(client: str) -> None:
    """End this process, which has been started beside `client`'s own hooks, where it has some."""
    if _OWN[client]():
        sys.stdin.buffer.read()
        os._exit(0)


def _has_cursor() -> bool:
    return '/integrations/hook.sh\\" cursor ' in _text_of("~/.cursor/hooks.json")


def _has_copilot() -> bool:
    """Whether Copilot has the plugin, switched on, from a folder that `swarm-mcp install` has made."""
    import re

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
    except OSError:
        return ""
