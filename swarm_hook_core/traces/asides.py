"""Commits whose hooks put unstaged changes aside, or set the work tree back, while they run (``commit_hooks``).

Such a call notes the top of its work tree (``aside`` in its journal) when it is let pass, and that it is over
(``back``) after it, at the latest when its agent makes the next call. Other sessions meet the note at each write in
that work tree.
"""

import os

from swarm_hook_core.traces import OFF, Trail, journal, journal_name, level, place_of

LONGEST_SECONDS = 120  # for so long a commit may run; what goes on for longer keeps nobody


def open_in(data: bytes, now: float) -> list:
    """The entries of such calls in the journal `data` that are not over yet."""
    if b" aside " not in data:
        return []
    found = []
    for entry in journal.newest_of(data, "aside"):
        if entry.at_ns / 1e9 < now - LONGEST_SECONDS:
            break
        last = journal.newest(data, entry.key, ("aside", "back"))
        if last is not None and last.kind == "aside":
            found.append(entry)
    return found


def note_end(own: bytes, trail, now: float) -> None:
    """Note in `trail` that the calls of its agent are over that the session's journal `own` has as running."""
    for entry in open_in(own, now):
        if entry.agent == trail.call.agent:
            trail.note_at(entry.key, "back")


def end(config, call, now: float) -> None:
    """Note that `call`, which is over, puts nothing aside any more. Raises OSError."""
    place = place_of(call.folder)
    own = journal.read(os.path.join(place, journal_name(config.runtime_name, call.session_id)))
    if open_in(own, now):
        trail = Trail(config, call, level(config.env_prefix, call.folder))
        if trail.level != OFF:
            note_end(own, trail, now)
            trail.leave()
