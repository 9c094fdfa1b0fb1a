"""Rewinds: a client has put files back to an earlier content, and has dropped others' lines with its own.

Clients restore whole files (`/rewind`, `/undo`, `/restore`), as they were before a call of the session. No hook tells
of that. So each turn begins with a look at the files that the session has written, if they have changed since its last
turn. (``rewound`` has what follows for a file that has.) It is rewound if it has a content from before one of the
session's own writes. The lines of others that it had meanwhile are found in its last kept content:

- the end of a turn keeps the contents of the files written in it;
- a file that has changed since then is kept as the next turn begins, as a content for `swarm-mcp restore`.

Then the rewind is noted as an undo by the session, with a record: `swarm-mcp undo --undo ID` brings back others' lines.
The session's own lines stay rewound. Files that others wrote count too, if they went back at the same time.
"""

from __future__ import annotations

import os

from swarm_hook_core.paths import git_root
from swarm_hook_core.traces import OWN_NS, journal, seen
from swarm_hook_core.traces.seen import CALLS
from swarm_hook_core.traces.trail import Trail

MOST = 50  # files of one session, the newest


def changed_since_turn(data: bytes, root: str) -> list[str]:
    """Return the files at and below `root`, written by the session with the journal `data`, that have changed since
    its last turn ended. Costs one look at the disk a file.
    """
    since_ns = _turn_ended(data)
    if not since_ns:
        return []
    entries = journal.newest_below(data, root, ("wrote",), MOST)
    return [entry.key for entry in entries if changed_ns(entry.key) > since_ns]


def _turn_ended(data: bytes) -> int:
    """Return the end of the last turn; of an interrupted one, the time until which its last call may have written."""
    for words, _raw in journal.heads(data[-journal.TAIL :], newest_first=True):
        if words[1] == b"over" and words[3] == b"-":
            return int(words[0])
        if words[1] in CALLS:
            return int(words[0]) + OWN_NS
    return 0


def changed_ns(path: str) -> int:
    """Return the file's time of change; of a missing file its folder's, 0 if that is missing too."""
    for place in (path, os.path.dirname(path)):
        try:
            return os.lstat(place).st_ctime_ns
        except OSError:
            continue  # missing
    return 0


def changed_at_turn(trail: Trail) -> tuple[list[str], str]:
    """Return the files of `changed_since_turn` in the session's work tree, and its root. Raises OSError."""
    root = os.path.realpath(git_root(trail.call.folder))
    return changed_since_turn(journal.read(trail.journal), root), root


def keep_at_end(trail: Trail) -> None:
    """Keep the contents that the turn's writes have left: so changes after it are told from them. Raises OSError."""
    seen.note_what_was_left(journal.read(trail.journal), trail)
    trail.leave()
