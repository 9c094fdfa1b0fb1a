"""Our hooks in a client that has them twice: from `swarm-mcp install`, and from Claude Code's settings.

Some clients also run the hooks and plugins in Claude Code's settings. There these are guests, and act as the client's
own. If the client has its own hooks of ours, the guests stand back, and so does a second copy of the plugin. A second
check would cost time, or run for a session of another name, which the locks of the client's own session keep off its
files.
"""

from __future__ import annotations

import os
import re
import sys
from typing import Any

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


# The session of an agent, from the files that a client keeps of its sessions, if its hooks do not tell it.
#
# Seen in GitHub Copilot CLI 1.0: a folder for each session, and in its ``events.jsonl`` the agents that work in it.
# Seen in Grok Build 1.0: a folder for each agent in that of its session.

_SEARCHED = 8  # sessions, the newest first


def session_of(parent: str, sessions: str) -> str:
    """Return the session in the folder `sessions` to which `parent` belongs: a session itself, or an agent.

    If that cannot be read, `parent` counts.
    """
    if os.path.isdir(os.path.join(sessions, parent)):
        return parent
    told = f'"agentId":"{parent}"'.encode()
    try:
        files = [os.path.join(sessions, name, "events.jsonl") for name in os.listdir(sessions)]
        for file in sorted(filter(os.path.isfile, files), key=os.path.getmtime, reverse=True)[:_SEARCHED]:
            with open(file, "rb") as lines:
                if any(told in line for line in lines):
                    return os.path.basename(os.path.dirname(file))
    except OSError:
        pass  # as if it were not found
    return parent


def session_by_folder(child: object, transcript: object) -> str:
    """Return the session that has started the agent `child`, by the folder made for that; empty if there is no such
    folder.

    ``sessions/PROJECT/SESSION/subagents/CHILD``, and `transcript` is ``sessions/PROJECT/CHILD/FILE``, where PROJECT is
    another one if the agent has a worktree of its own.
    """
    if not isinstance(child, str) or not isinstance(transcript, str) or not child:
        return ""
    sessions, own = os.path.split(os.path.dirname(os.path.dirname(transcript)))
    for project in (own, *_entries(sessions)):
        folder = os.path.join(sessions, project)
        # Ids begin with the time: the session is one of the newest that are older.
        for session in sorted((one for one in _entries(folder) if one < child), reverse=True):
            if os.path.isdir(os.path.join(folder, session, "subagents", child)):
                return str(session)
    return ""


def _entries(folder: str) -> list[Any]:
    if os.path.isdir(folder):
        return os.listdir(folder)
    return []
