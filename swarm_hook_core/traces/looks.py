"""Looks by shell commands: files that a command has shown whole, or as a complete diff.

Showing a part of a file, or searching in it, is no look. Parts shown by several commands together are one if they leave
no gap.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from typing import Any

from swarm_hook_core.git_repository import NoAnswer, Refused, Repository
from swarm_hook_core.repository import tree_over
from swarm_hook_core.shell.model import Read
from swarm_hook_core.shell.spans import are_whole, joined_lines
from swarm_hook_core.traces import NO_FILE, journal, keys_of, state_of
from swarm_hook_core.traces.meetings import Meetings
from swarm_hook_core.traces.trail import Trail
from swarm_hook_core.watching import records

LONGEST = 4 * 1024 * 1024  # bytes of a file: the lines of a larger one are not counted
MOST_PARTS = 40  # parts of one file that are combined
MOST_COMMANDS = 40  # newest unparsed commands that name a file
SECONDS = 0.5  # for git's answers


def note(trail: Trail, meetings: Meetings, reads: list[Read], written: Collection[str]) -> None:
    """Add to `trail` the files that these Reads have shown to the session, except those in `written`.

    `meetings`: the Meetings of the call.
    """
    parts: dict[str, list[tuple[int, int]]] = {}  # path -> [(first, last)] lines shown by this call
    for read in reads:
        file, link = (trail.resolved(read.folder, read.path, of_link=of_link) for of_link in (False, True))
        for path in dict.fromkeys(filter(None, (file, link))):
            if path in written:
                continue  # read before or after the write: unknown
            if read.since:
                if _shows_changes(meetings, path, read.since):
                    trail.note("saw", path)
            elif not read.spans:
                trail.note("saw", path)
            else:
                _note_part(trail, meetings, path, read.spans, parts.setdefault(path, []))


def _note_part(trail: Trail, meetings: Meetings, path: str, spans: Sequence[Any], parts: list[tuple[int, int]]) -> None:
    """Note that some lines of the file at `path` were shown; as a look at the file if they are all of it.

    `parts`: the parts shown before by the same call; this adds to them.
    """
    state = state_of(path)
    lines, size = measured(path)
    if lines is None or size is None:
        return
    if are_whole(spans, lines, size):
        trail.note("saw", path, state)
        return
    if len(spans) != 1 or spans[0][0] == "bytes":
        return
    first, last = spans[0][1:] if spans[0][0] == "lines" else (lines - spans[0][1] + 1, None)
    parts.append((max(first, 1), lines if last is None else last))
    trail.note("part", path, f"{state} {parts[-1][0]} {parts[-1][1]}")
    # ``[(first, last)]`` of lines shown while the file was in this `state`
    own = meetings.journals.own(os.path.dirname(path))
    earlier: list[tuple[int, int]] = []
    for entry in journal.newest_first(own, path, ("part",)):
        words = entry.text.rsplit(" ", 2)
        if words[0] != state or len(words) != 3 or len(earlier) == MOST_PARTS:
            break
        earlier.append((int(words[1]), int(words[2])))
    if any(are_whole([("lines", *one)], lines, size) for one in joined_lines([*earlier, *parts])):
        trail.note("saw", path, state)


def measured(path: str) -> tuple[int, int] | tuple[None, None]:
    """Return ``(lines, bytes)`` of a plain file, ``(None, None)`` for a large file or any other."""
    try:
        data = records.read(path, LONGEST)[1]
    except (OSError, ValueError):
        return None, None  # gone, too large, or not a plain file
    return data.count(b"\n") + (not data.endswith(b"\n") and bool(data)), len(data)


def _shows_changes(meetings: Meetings, path: str, since: str) -> bool:
    """Return True if ``git diff`` of the file shows all uncommitted changes: if some are staged, it must name HEAD."""
    if meetings.unseen(path, path) is None:
        return False  # no unseen change: most looks cost no question to git
    tree = tree_over(os.path.dirname(path))
    if tree is None:
        return False
    name, repository = os.path.relpath(path, tree.top), Repository(tree.top, SECONDS)
    try:
        return name in repository.tracked([name]) and (since == "HEAD" or name not in repository.staged([name]))
    except (NoAnswer, Refused):
        return False  # no answer: it does not count as a look


def has_read(meetings: Meetings, path: str, resolved: str, waits: bool) -> bool:
    """Return True if the session has seen the whole file as it is now. `resolved`: the path without links.

    `waits`: as of ``Transcript.has_shown``.
    """
    own, state = meetings.journals.own(os.path.dirname(resolved)), state_of(resolved)
    for key in keys_of(resolved):
        look = journal.newest(own, key, ("saw",))
        if look is not None and look.text == state:
            return True
    return _shown_by_command(meetings, own, path, resolved, state) or meetings.was_shown(path, resolved, waits)


def _shown_by_command(meetings: Meetings, own: bytes, path: str, resolved: str, state: str) -> bool:
    """Return True if an unparsed command of the session has shown the whole file since its last change."""
    if state == NO_FILE:
        return False
    changed_ns = int(state.partition(" ")[0])
    name = os.path.basename(path).encode("utf-8", "surrogatepass")
    lines = [raw for raw in own.split(b"\n") if b" ran " in raw.partition(b"\0")[0] and name in raw]
    for entry in journal.entries(list(reversed(lines))[:MOST_COMMANDS]):
        if entry.at_ns < changed_ns:
            return False
        effects = meetings.reading.effects_of(entry)
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
