"""The session's reading of a file that it is about to replace: by a shell command, or by the client's own tool."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from swarm_hook_core.shell.spans import are_whole
from swarm_hook_core.traces import NO_FILE, journal, keys_of, state_of
from swarm_hook_core.traces.looks import measured
from swarm_hook_core.traces.meetings import Meetings

MOST_COMMANDS = 40  # newest commands that name the file


def has_read(meetings: Meetings, path: str, resolved: str) -> bool:
    """Return True if the session has seen the whole file as it is now. `resolved`: the path without links."""
    own, state = meetings.journals.own(os.path.dirname(resolved)), state_of(resolved)
    for key in keys_of(resolved):
        look = journal.newest(own, key, ("saw",))
        if look is not None and look.text == state:
            return True
    return _shown_by_command(meetings, own, path, resolved, state) or meetings.was_shown(path, resolved)


def _shown_by_command(meetings: Meetings, own: bytes, path: str, resolved: str, state: str) -> bool:
    """Return True if an unparsed command of the session has shown the whole file since its last change."""
    if state == NO_FILE:
        return False
    changed_ns = int(state.partition(" ")[0])
    name = os.path.basename(path).encode("utf-8", "surrogatepass")
    lines = [raw for raw in own.split(b"\n") if b" ran " in raw.partition(b"\0")[0] and name in raw]
    for raw in list(reversed(lines))[:MOST_COMMANDS]:
        try:
            entry = journal.Entry(raw)
        except ValueError:
            continue  # torn
        if entry.at_ns < changed_ns:
            return False
        effects = meetings.reading().effects_of(entry)
        if effects is None:
            return False  # no time is left
        for read in effects.reads:
            is_it = os.path.realpath(os.path.join(read.folder, read.path)) == resolved
            if is_it and not read.since and (not read.spans or _are_all(read.spans, resolved)):
                return True
    return False


def _are_all(spans: Sequence[Any], path: str) -> bool:
    """Return True if these parts of the file at `path` are all of it."""
    lines, size = measured(path)
    return lines is not None and size is not None and are_whole(spans, lines, size)
