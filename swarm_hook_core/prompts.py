"""The first words of each session's last prompt, for people who look on: the page shows them as the session's work.

    <state folder>/swarm-prompts/<runtime>.<session>

Each file is readable by this user alone. It goes with its session, or with the cleanup a day after its last prompt.
"""

import os

from swarm_hook_core.state import name_of, read_private, state_dir, write_private

LONGEST = 120  # characters
DAY_SECONDS = 86400
_FOLDER = "swarm-prompts"


def note(runtime: str, session_id: str, prompt: str) -> None:
    """Keep the first words of a prompt in place of those before. Raises OSError."""
    words = " ".join(prompt[: 8 * LONGEST].split())[:LONGEST]
    write_private(_path(runtime, session_id), words)


def prune(now: float) -> None:
    """Remove words that are older than a day; `now` in Unix seconds."""
    folder = os.path.join(state_dir(), _FOLDER)
    for name in kept():
        path = os.path.join(folder, name)
        try:
            if os.stat(path).st_mtime < now - DAY_SECONDS:
                os.remove(path)
        except OSError:  # removed just now
            continue


def kept() -> "frozenset[str]":
    """Return the names of all kept files; see `name_in`."""
    try:
        return frozenset(os.listdir(os.path.join(state_dir(), _FOLDER)))
    except OSError:  # none are kept
        return frozenset()


def name_in(runtime: str, session_id: str) -> str:
    """Return the file name of a session's words."""
    return f"{name_of(runtime)}.{name_of(session_id)}"


def first_words(runtime: str, session_id: str) -> str:
    """Return the kept words, empty if there are none."""
    try:
        return read_private(_path(runtime, session_id), 8 * LONGEST).decode("utf-8", "replace")
    except OSError:  # none are kept
        return ""


def forget(runtime: str, session_id: str) -> None:
    """Remove the words of a session that ends."""
    try:
        os.remove(_path(runtime, session_id))
    except OSError:  # none are kept
        pass


def _path(runtime: str, session_id: str) -> str:
    return os.path.join(state_dir(), _FOLDER, name_in(runtime, session_id))
