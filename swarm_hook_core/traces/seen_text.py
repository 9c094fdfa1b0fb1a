"""The text of a file as its session last saw it: the base for changes that others have made since.

Known from the versions that are kept before each write (``versions``): another session's next write kept the text that
this session had seen, or left. Where no version is known, the last commit's text stands for it: then all that is not
committed counts as others' changes.
"""

from __future__ import annotations

import os

from swarm_hook_core.git_repository import NoAnswer, Refused, committed_text
from swarm_hook_core.traces import LATER, LOOK, MERGED, journal, keys_of, seen, state_of, version_path
from swarm_hook_core.traces.journal import Entry
from swarm_hook_core.traces.versions.stored import version_at
from swarm_hook_core.watching.snapshot import digest_of, parse, read_resolved

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_hook_core.traces.meetings import Meetings

SECONDS = 0.5  # for git's answer
LONGEST = 1024 * 1024  # bytes


class Known:
    """The text that a session knows of a file; `is_seen`: it has seen that very text, else it is the last commit's.

    `text` is empty for a file that is neither seen nor committed.
    """

    __slots__ = ("text", "is_seen")

    def __init__(self, text: str, is_seen: bool):
        self.text = text
        self.is_seen = is_seen


def known(meetings: Meetings | None, path: str) -> Known:
    """Return the Known text of the file at resolved `path` for the session of the call, else the last commit's."""
    data = None
    if meetings is not None:
        data = _seen(meetings, path)
    if data is not None:
        return Known(_decoded(data), True)
    return Known(_committed(path) or "", False)


def present(path: str) -> str | None:
    """Return the present text of the file at resolved `path`; None if it is gone, too large, or no plain file."""
    try:
        return _decoded(read_resolved(path, LONGEST)[1])
    except (OSError, ValueError):
        return None  # gone, too large, or not a plain file


def _seen(meetings: Meetings, path: str) -> bytes | None:
    """Return the content that the session has seen or left last, or None if no version of it is known."""
    own = meetings.journals.own(os.path.dirname(path))
    last = seen.last_known(own, keys_of(path), state_of(path))
    if last is None:
        return None
    place = meetings.trail.place_of(os.path.dirname(path))
    merged = seen.was_merged(own, keys_of(path), 0)
    if merged is not None:
        return _content(place, meetings.trail.own_name, path, merged.at_ns, MERGED)
    for name, entry in sorted(_writes_of_others(meetings, place, path), key=lambda one: one[1].at_ns):
        if last.kind == "saw" and entry.text == last.text:
            return _content(place, name, path, entry.at_ns, LATER)
        if last.kind == "wrote" and entry.at_ns > last.at_ns:
            left = _left_between(own, path, last.at_ns, entry.at_ns)
            data = _content(place, name, path, entry.at_ns, LATER)
            if left is None or (data is not None and _is_as_left(left, data)):
                return data
            return _content(place, meetings.trail.own_name, path, left.at_ns, LOOK)
    return None


def _left_between(own: bytes, path: str, since_ns: int, until_ns: int) -> Entry | None:
    """Return the entry about the text that the session's own write left, made between these times, or None."""
    entries = (one for key in keys_of(path) for one in journal.newest_first(own, key, ("is",)))
    return next((one for one in entries if since_ns < one.at_ns < until_ns), None)


def _writes_of_others(meetings: Meetings, place: str, path: str) -> list[tuple[str, Entry]]:
    """Return ``[(name of the journal, entry)]`` of others' writes of the file."""
    return [
        (theirs.name, entry)
        for theirs in meetings.journals.of_others(place)
        for key in keys_of(path)
        for entry in journal.newest_first(theirs.data, key, ("wrote",))
    ]


def _content(place: str, name: str, path: str, at_ns: int, mark: str) -> bytes | None:
    """Return the version that a session kept of the file with its entry of the time `at_ns`, or None.

    `name`: that of its journal; `mark`: the kind of version, as in its file name.
    """
    first = version_path(place, name, path)
    version = version_at(f"{first}{mark}{at_ns}")
    if version is None and mark == LATER:
        version = version_at(first)
    if version is None or version.at_ns != at_ns:
        return None
    try:
        return version.content()
    except OSError:
        return None  # removed just now


def _is_as_left(left: Entry, data: bytes) -> bool:
    """Return True if `data` is the content that the session's own write left, by its entry `left`."""
    found = parse(left.text)
    return found.size == len(data) and found.digest in ("", digest_of(data))


def _decoded(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _committed(path: str) -> str | None:
    """Return the file's text in the last commit, or None."""
    try:
        return committed_text(path, SECONDS)
    except (NoAnswer, Refused):
        return None  # no answer, or not in the last commit
