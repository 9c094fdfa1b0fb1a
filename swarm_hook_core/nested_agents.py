"""The session of an agent, from the files that a client keeps of its sessions, if its hooks do not tell it.

Seen in GitHub Copilot CLI 1.0: a folder for each session, and in its ``events.jsonl`` the agents that work in it. Seen
in Grok Build 1.0: a folder for each agent in that of its session.
"""

import os
from typing import Any

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


def _entries(folder: str) -> "list[Any]":
    if os.path.isdir(folder):
        return os.listdir(folder)
    return []
