"""Commits with hooks that put unstaged changes aside, or reset the work tree, while they run (``commit_hooks``).

Such a call notes the top of its work tree (``aside``) when it is let pass, and its end (``back``) afterwards, at the
latest with its agent's next call. Writes of other sessions in that work tree meet the entry.
"""

from __future__ import annotations

import os

from swarm_hook_core.config import RuntimeConfig
from swarm_hook_core.hooks import ToolCall
from swarm_hook_core.repository import tree_over
from swarm_hook_core.traces import OFF, journal, journal_name, level, place_of
from swarm_hook_core.traces.journal import Entry
from swarm_hook_core.traces.trail import Trail


def open_in(data: bytes, now: float) -> list[Entry]:
    """Return the ``aside`` entries in the journal `data` without an end."""
    if b" aside " not in data:
        return []
    found = []
    for entry in journal.newest_of(data, "aside"):
        if entry.at_ns / 1e9 < now - journal.ASIDE_SECONDS:
            break
        last = journal.newest(data, entry.key, ("aside", "back"))
        if last is not None and last.kind == "aside":
            found.append(entry)
    return found


def open_around(path: str, data: bytes, now: float) -> list[Entry]:
    """Return the entries of `open_in` about the work tree of the file at `path`."""
    return [entry for entry in open_in(data, now) if _is_in_tree(path, entry)]


def note_end(own: bytes, trail: Trail, now: float) -> None:
    """Note in `trail` the end of the calls that the journal `own` lists as running, for the trail's agent."""
    for entry in open_in(own, now):
        if entry.agent == trail.call.agent:
            trail.note_at(entry.key, "back")


def end(config: RuntimeConfig, call: ToolCall, now: float) -> None:
    """Note the end of `call`: it puts nothing aside any more. Raises OSError."""
    place = place_of(call.folder)
    own = journal.read(os.path.join(place, journal_name(config.runtime_name, call.session_id)))
    if open_in(own, now):
        trail = Trail(config, call, level(config.env_prefix, call.folder))
        if trail.level != OFF:
            note_end(own, trail, now)
            trail.leave()


def _is_in_tree(path: str, entry: Entry) -> bool:
    """Return True if the file at `path` is in the work tree with the top that is the entry's key."""
    if not path.startswith(entry.key + "/"):
        return False

    tree = tree_over(os.path.dirname(path), is_real=True)
    return tree is not None and tree.top == entry.key
