"""Which session an agent works in that another agent has started, where the client tells no more than the latter.

Seen in GitHub Copilot CLI 1.0: a folder for each session, and in its ``events.jsonl`` the agents that work in it.
"""

import os

_SEARCHED = 8  # sessions, the newest first


def session_of(parent: str, sessions: str) -> str:
    """Return the session, in the folder `sessions`, in which `parent` works: a session itself, or an agent.

    Where that cannot be read, `parent` counts.
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
