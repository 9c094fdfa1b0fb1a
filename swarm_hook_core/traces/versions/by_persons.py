"""Writes that are certainly a person's: saves that an editor reports (`swarm-mcp lsp`), and undos.

They are noted beside the versions of sessions, in a journal and a folder of their own:

    <state>/kept/<place>/person.undo/%journal      entries of the kind ``is``
    <state>/kept/<place>/person.undo/<path>...     the content before and after

Two entries tell a save: of the tool `SAVING`, with the content as the editor last read it, and of the tool `SAVED`. The
step between the two is the person's, also if a session's command ran at that time.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from swarm_hook_core.traces import (
    AFTER,
    LOOK,
    append,
    entry,
    first_line,
    journal,
    kept_dir,
    keys_of,
    place_of,
    version_path,
)
from swarm_hook_core.traces.versions import keep_missing, keep_text
from swarm_hook_core.watching.snapshot import Snapshot

PERSONS = "person.undo"  # the journal's name; undos came first
OWNER = ("person", "")  # of that journal
JOURNAL = "%journal"  # its file in the folder of its versions
SAVING, SAVED = "swarm:saving", "swarm:saved"  # the tools of entries about a save


class Content(NamedTuple):
    """The content of a file at the time `at_ns`, with its state then."""

    at_ns: int
    state: Snapshot
    data: bytes


def note_save(path: str, before: Content | None, after: Content) -> None:
    """Note that a person has saved the file at `path`, links resolved. Raises OSError.

    before  the content that the editor last read, None if it is unknown
    """
    place = place_of(os.path.dirname(path))
    lines = []
    for content, mark, tool in ((before, LOOK, SAVING), (after, AFTER, SAVED)):
        if content is None:
            continue
        target = f"{version_path(place, PERSONS, path)}{mark}{content.at_ns}"
        if content.state.exists:
            keep_text(content.data, target, content.at_ns, content.state.mode)
        else:
            keep_missing(target, content.at_ns)
        lines += [entry(content.at_ns, "is", "", tool, key, str(content.state)) for key in keys_of(path)]
    append(journal_path(place), lines, lambda: first_line(*OWNER, os.path.dirname(path)))


def journal_path(place: str) -> str:
    """Return the path of the journal of persons in `place`. It need not exist."""
    return os.path.join(kept_dir(place), PERSONS, JOURNAL)


class Saves:
    """The saves of persons in `place`, read once."""

    def __init__(self, place: str):
        try:
            self._data = journal.read(journal_path(place))
        except OSError:
            self._data = b""  # a person has saved nothing here

    def of(self, path: str) -> set[int]:
        """Return the times of change (ns) that the file at `path`, links resolved, got by saves."""
        states = [one.text.split(" ") for one in journal.newest_first(self._data, path, ("is",)) if one.tool == SAVED]
        return {int(words[3]) for words in states if len(words) > 3 and words[3].isdigit()}


def has_sessions(path: str) -> bool:
    """Return True if a session has been at work in the repository of the file at `path`: a save is noted only then."""
    place = place_of(os.path.dirname(path))
    return os.path.isdir(place) or os.path.isdir(kept_dir(place))
