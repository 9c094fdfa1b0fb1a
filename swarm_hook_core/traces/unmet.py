"""The first look at the journals of others: most calls beside other sessions meet no change of theirs.

Such a call names its files, or none, and no other journal has a word of them, nor a command to be read. It leaves the
entries that ``verdict`` would leave, in the same order, without the modules that compare changes. ``verdict`` goes on
where this look finds anything.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable

from swarm_hook_core.state import NotOrdinary
from swarm_hook_core.traces import AGENTS, IGNORES_CASE, escaped, journal, named_files, others_in, seen
from swarm_hook_core.traces.trail import Trail

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_hook_core.shell.model import Effects

FEW = 16  # files of a call


def is_settled(trail: Trail, effects: Effects | None) -> bool:
    """Collect the entries of a call that meets nothing, and return True; else leave them to ``verdict``.

    `effects`: effects of a shell or MCP call, or None. After False the trail has `noted_ns` if the call's intended
    writes were noted already. Raises ValueError for unreadable input.
    """
    targets = trail.targets_of(effects)
    if not _is_simple(trail, effects) or not _are_plain(trail, targets):
        return False
    folder, paths = trail.call.folder, list(dict.fromkeys(target[1] for target in targets))
    place = trail.place_of(folder)
    try:
        own = journal.as_seen_in(trail.top_of(place), journal.read(os.path.join(place, trail.own_name)))
    except NotOrdinary:
        return False  # verdict records it
    if b" aside " in own:
        return False
    note_own(trail, own, folder)
    trail.noted_ns = time.time_ns()
    note_intended(trail, paths, trail.noted_ns)
    trail.leave_or_record()
    trail.names = frozenset(each for path in paths for each in _names_of(path))
    if any(_are_named(trail, path) for path in paths):
        return False
    trail.wrote(paths, is_beside_others=True)
    trail.note_unnamed(effects)
    return True


def note_own(trail: Trail, own: bytes, folder: str) -> None:
    """Collect the states that the session's last writes have left, and the end of its last command.

    `own`: the session's journal in the place of absolute `folder`.
    """
    seen.note_what_was_left(own, trail)
    if seen.has_open_command(own, trail.call.agent):
        trail.note_at(folder, "over")


def note_intended(trail: Trail, paths: Iterable[str], at_ns: int) -> None:
    """Collect the intended writes of the files at resolved `paths`, before others' traces are looked at.

    So, of two calls checked at the same moment, at least one sees the other's pending write.
    """
    for path in paths:
        trail.note("will", path, at_ns=at_ns)


def _is_simple(trail: Trail, effects: Effects | None) -> bool:
    """Return True if nothing but the call's files can meet a change of others."""
    if effects is not None and (effects.trees or effects.git or effects.reads):
        return False
    # Agents of one session meet each other in its journal; a HEAD that has moved is told.
    return not trail.is_asked and not trail.call.agent and not trail.is_head_moved()


def _are_plain(trail: Trail, targets: list[tuple[str, str, str, str]]) -> bool:
    """Return True if the files have one spelling and one key each, and their session has no agents at work."""
    if len(targets) > FEW:
        return False
    places = {trail.place_of(os.path.dirname(target[1])) for target in targets} | {trail.place_of(trail.call.folder)}
    if any(os.path.lexists(os.path.join(place, trail.own_name + AGENTS)) for place in places):
        return False
    return all(
        path == resolved and path.isascii() and path == path.strip() and not IGNORES_CASE
        for path, resolved, _how, _by in targets
    )


def _are_named(trail: Trail, path: str) -> bool:
    """Return True if another journal in the file's place names it, or has an entry about many files."""
    place, names = trail.place_of(os.path.dirname(path)), _names_of(path)
    try:
        return any(named_files.may_concern(other, names) for other in others_in(place, trail.own_name))
    except NotOrdinary:
        return True  # verdict records it


def _names_of(path: str) -> tuple[bytes, bytes]:
    """Return the names under which a journal may have the file at `path`."""
    name = os.path.basename(path)
    return escaped(name), escaped(name.casefold())
