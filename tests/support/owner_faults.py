"""Defects of owners that are planted into the product, in this process alone. Each has to be found."""

import contextlib
import os
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

from swarm_hook_core import paths
from swarm_hook_core.stakes import owners
from swarm_hook_core.traces import transcript
from swarm_hook_core.traces.versions import lines, notes, steps
from swarm_mcp.changes.commit import parts
from swarm_mcp.locking import restore

GRACE_NS = 2 * 10**9


def _grace() -> list[Any]:
    """A change within two seconds after the end of a call counts as the call's."""
    act_of = notes._act

    def later(*given: Any) -> notes.Act:
        act = act_of(*given)
        if act.is_ended:
            act.end_ns, act.late_ns = act.end_ns + GRACE_NS, act.late_ns + GRACE_NS
        return act

    return [mock.patch.object(notes, "_act", later)]


def _unseen_end() -> list[Any]:
    """The command line does not see an end that only the client's mark tells."""
    return [mock.patch.object(transcript, "with_mark", lambda _name, data: data)]


def _pause() -> list[Any]:
    """A call lasts until its session's next call, while its model thinks."""
    act_of = notes._act

    def longer(noted: notes.JournalNotes, entry: Any, *given: Any) -> notes.Act:
        act = act_of(noted, entry, *given)
        act.end_ns = act.late_ns = noted.ends.next_of(entry)
        return act

    def is_open(calls: owners._Calls, agent: str, path: str, at_ns: int) -> bool:
        ends = (owners.ENDED, owners.TURN, owners.LOOKS)
        begun = [one for one in calls._events[agent] if one.kind not in ends and one.from_ns <= at_ns]
        return bool(begun) and calls._may_write(begun[-1], path)

    return [mock.patch.object(notes, "_act", longer), mock.patch.object(owners._Calls, "_is_open", is_open)]


def _refused_goes_on() -> list[Any]:
    """A call that the client has refused goes on: no hook runs after it, its log alone tells."""
    return [
        mock.patch.object(transcript, "logs_of", lambda *_given: transcript.Logs("", "", "")),
        mock.patch.object(owners.Authors, "_end_of", lambda *_given: 0),
    ]


def _follows_links() -> list[Any]:
    """An undo follows a link in the place of a folder."""
    return [mock.patch.object(paths, "_FOLDER", paths._FOLDER & ~os.O_NOFOLLOW)]


def _ownerless_removal() -> list[Any]:
    """A removed line has no owner."""
    return [mock.patch.object(lines.Fold, "removed_line", lambda fold, index: lines.Line(fold.head[index], ()))]


def _doubtful_is_own() -> list[Any]:
    """A commit takes what may be the author's."""
    make = parts.Group.__init__

    def begins(group: parts.Group, pieces: Any, is_own: Any) -> None:
        make(group, pieces, is_own)
        group.is_own = any(map(is_own, group.authors))

    return [mock.patch.object(parts.Group, "__init__", begins)]


def _takes_removals() -> list[Any]:
    """A commit takes others' removals."""
    make = parts.Group.__init__

    def begins(group: parts.Group, pieces: Any, is_own: Any) -> None:
        make(group, pieces, is_own)
        group.is_own = group.is_own or not any(piece.added for piece in pieces)
        group.is_others = group.is_others and not group.is_own

    return [mock.patch.object(parts.Group, "__init__", begins)]


def _layout_is_a_persons() -> list[Any]:
    """A formatter's changes count as a person's."""
    return [mock.patch.object(steps, "laid_out", lambda old, new: list(old))] + [
        mock.patch.object(steps, "brings_words", lambda old, new: True),
        mock.patch("swarm_hook_core.traces.versions.layout.laid_out", lambda old, new, own: list(old)),
        mock.patch("swarm_hook_core.traces.versions.layout._is_laid_out", lambda *_given: False),
    ]


def _restore_keeps_nothing() -> list[Any]:
    """A restore replaces others' later lines without a copy, in its row or as the step before it."""
    note = restore.Restoring._note

    def notes_after(restoring: restore.Restoring, mark: str, at_ns: int) -> None:
        if mark != restore.LOOK:
            note(restoring, mark, at_ns)

    return [
        mock.patch.object(restore.Restoring, "_keep_present", lambda _restoring, _force: ""),
        mock.patch.object(restore.Restoring, "_note", notes_after),
    ]


FAULTS: dict[str, Callable[[], list[Any]]] = {
    "grace": _grace,
    "unseen_end": _unseen_end,
    "ownerless_removal": _ownerless_removal,
    "doubtful_is_own": _doubtful_is_own,
    "takes_removals": _takes_removals,
    "layout_is_a_persons": _layout_is_a_persons,
    "restore_keeps_nothing": _restore_keeps_nothing,
    "pause": _pause,
    "refused_goes_on": _refused_goes_on,
    "follows_links": _follows_links,
}


@contextlib.contextmanager
def planted(name: str) -> Iterator[None]:
    """Plant a fault for a while."""
    with contextlib.ExitStack() as stack:
        for patch in FAULTS[name]():
            stack.enter_context(patch)
        yield
