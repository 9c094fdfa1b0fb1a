"""The decision about a call that would lose a person's uncommitted work, by the level in force.

From `keep` on the call is denied, or the person is asked if the client can ask. Below, it goes ahead: at `notice` its
model is told. Contents that may go, and that are neither in git nor certainly the session's own, are kept first.
"""

from __future__ import annotations

import os

from swarm_hook_core import REMOVE, REPLACE
from swarm_hook_core.denial import Denial, Notice, without_owner
from swarm_hook_core.hooks import Verdict
from swarm_hook_core.persons import wording
from swarm_hook_core.persons.losses import Loss, Losses, top_of
from swarm_hook_core.persons.owners import BUILT, OWN, PERSON, Author, Authors
from swarm_hook_core.traces import NOTICE, OFF, TOLD_ALONG, journal, keeping
from swarm_hook_core.traces.meetings import Meetings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_hook_core.config import RuntimeConfig
    from swarm_hook_core.hooks import ToolCall
    from swarm_hook_core.lookup import LockReader
    from swarm_hook_core.shell.model import Effects
    from swarm_hook_core.traces.trail import Trail

MOST_FILES = 500  # files of one call with an author looked up, and with contents kept
MOST_BYTES = 32 * 1024 * 1024  # contents of one call: older ones are not all pushed out by it


def judge(trail: Trail, effects: Effects | None, reader: LockReader, now: float) -> Verdict | None:
    """Return the Verdict on a call, or None if no work of a person is at stake.

    `effects`: effects of a shell or MCP call; None: the call names its files.
    """
    meetings = Meetings(trail, reader, now, effects.budget if effects is not None else None)
    authors, looks = Authors(meetings), Looks(meetings)
    is_noted = trail.level != OFF  # else the session's own calls are not known, nor kept as versions
    losses = Losses(
        trail, effects, lambda loss: is_noted and authors.is_own(loss.path), lambda loss: is_noted and looks.cover(loss)
    )
    stash = _stash(meetings, authors, effects, now)
    if not (losses.found or losses.free or losses.late or losses.taken):
        return stash
    known = [(loss, authors.of(loss)) for loss in list(losses.found.values())[:MOST_FILES]]
    known = [(loss, author) for loss, author in known if not _is_kept_by(meetings, effects, loss)]
    theirs = [(loss, author) for loss, author in known if author.who == PERSON]
    denied = [one for one in theirs if one[0].is_certain and not looks.cover(one[0])]
    denies = trail.level not in (OFF, NOTICE)
    if denies:
        denied = [one for one in denied if not _is_merged(meetings, effects, one[0])]
    verdict = None
    if denies and (denied or losses.late):
        verdict = Verdict(_denial(trail, meetings, denied, known, losses))
    elif stash is not None and stash.denial is not None:
        return stash
    elif theirs and trail.level == NOTICE:
        deed = _deed(theirs[0][0])
        verdict = _told(theirs, deed, wording.notice(_parts(theirs), deed, trail.call.folder))
    may_pass = verdict is None or verdict.denial is None or can_ask(trail.config, trail.call)
    if verdict is None:
        verdict = _along(trail, meetings, authors, losses, is_noted)
    if may_pass and not trail.is_asked:
        _keep(trail, [loss for loss, author in [*theirs, *known] if author.who in (PERSON, BUILT)], losses.free)
    return verdict or stash


def _stash(meetings: Meetings, authors: Authors, effects: Effects | None, now: float) -> Verdict | None:
    """Return the Verdict on the call's stash commands, or None."""
    if effects is None or not any(one.words[0] == "stash" for one in effects.git):
        return None
    from swarm_hook_core.persons import stash

    denial, words = stash.judge(meetings, authors, effects, now)
    if denial is None and not words:
        return None
    verdict = Verdict(denial, words)
    if denial is None:
        by = effects.git[0].by
        verdict.noted = [Notice(meetings.trail.call.folder, without_owner("person", "take out", by), words)]
    return verdict


class Looks:
    """The looks of the session at the files of one call; each file is looked up once."""

    def __init__(self, meetings: Meetings):
        self._meetings = meetings
        self._covered: dict[str, bool] = {}  # path -> True if the session has read the file

    def cover(self, loss: Loss) -> bool:
        """Return True if the call replaces a whole file that its session has read as it is now."""
        if loss.how != REPLACE or loss.words:
            return False
        if loss.path not in self._covered:
            from swarm_hook_core.persons.looks import has_read

            self._covered[loss.path] = has_read(self._meetings, loss.spelled, loss.path)
        return self._covered[loss.path]


def can_ask(config: RuntimeConfig, call: ToolCall) -> bool:
    """Return True if the client asks its user about a call when a hook wants that."""
    return config.asks is not None and config.asks(call)


def _is_kept_by(meetings: Meetings, effects: Effects | None, loss: Loss) -> bool:
    """Return True if the call's new content of the file keeps all uncommitted lines."""
    if loss.how != REPLACE or loss.words:
        return False
    from swarm_hook_core.traces import new_text

    trail = meetings.trail
    return new_text.keeps(trail.config, trail.call, effects, loss.spelled, loss.path, meetings)


def _is_merged(meetings: Meetings, effects: Effects | None, loss: Loss) -> bool:
    """Return True if the call's new content of the file is merged with the uncommitted lines."""
    if loss.how != REPLACE or loss.words:
        return False
    from swarm_hook_core.traces import merged_writes

    return merged_writes.is_merged(meetings.trail, effects, loss.spelled, loss.path, meetings)


def _denial(
    trail: Trail,
    meetings: Meetings,
    theirs: list[tuple[Loss, Author]],
    known: list[tuple[Loss, Author]],
    losses: Losses,
) -> Denial:
    """Return the Denial, with a question for the person if the client can ask."""
    call = trail.call
    if not theirs:
        git_call, words = losses.late[0]
        deed = _deed_of_git(words)
        loss = without_owner("person", deed, git_call.by)
        denial = Denial(git_call.folder, None, wording.late(call, git_call.by, deed), loss=loss)
        denial.question = wording.late_question(git_call.by, deed)
        return denial
    parts, first = _parts(theirs), theirs[0][0]
    deed = _deed(first)
    lost = without_owner("person", deed, first.by, [loss.path for loss, _author in theirs[1:]])
    text = wording.denial(call, parts, deed, _way(trail, first, known), call.folder)
    if trail.unmerged:
        from swarm_hook_core.traces import merged_writes

        text += merged_writes.way(trail.unmerged)
    denial = Denial(first.path, None, text, loss=lost)
    denial.short = wording.shortly(parts, deed, call.folder)
    denial.question = wording.question(parts, _short_deed(first), first.by, call.folder)
    return denial


def _along(trail: Trail, meetings: Meetings, authors: Authors, losses: Losses, is_noted: bool) -> Verdict | None:
    """Return the Verdict on a git command that stages or commits a person's work: denied until its session was told."""
    if not is_noted:
        return None
    certain = [loss for loss in list(losses.taken.values())[:MOST_FILES] if loss.is_certain]
    theirs = [(loss, author) for loss in certain if (author := authors.of(loss)).who == PERSON]
    untold = [loss.path for loss, _author in theirs if not _was_told(meetings, loss.path)]
    if not untold:
        return None
    for path in untold:
        trail.note(TOLD_ALONG, path)
    parts, first, call = _parts(theirs), theirs[0][0], trail.call
    deed = _deed_of_git(first.words)
    if trail.level == NOTICE:
        return _told(theirs, deed, wording.along_notice(parts, deed, call.folder))
    if not trail.is_asked:
        try:
            trail.leave()
        except OSError:
            return None  # it could not be noted, and would be denied for ever
    lost = without_owner("person", deed, first.by, [loss.path for loss, _author in theirs[1:]])
    own = [(loss, Author(OWN)) for loss in certain if loss.path not in {one.path for one, _author in theirs}]
    return Verdict(
        Denial(first.path, None, wording.along(call, parts, deed, _way(trail, first, own), call.folder), loss=lost)
    )


def _was_told(meetings: Meetings, path: str) -> bool:
    """Return True if the session was told that its git command takes this file along."""
    return journal.newest(meetings.journals.own(os.path.dirname(path)), path, (TOLD_ALONG,)) is not None


def _told(theirs: list[tuple[Loss, Author]], deed: str, words: str) -> Verdict:
    """Return the Verdict that lets the call go ahead, with these words for its model."""
    first, verdict = theirs[0][0], Verdict(None, words)
    lost = without_owner("person", deed, first.by, [loss.path for loss, _author in theirs[1:]])
    verdict.noted = [Notice(first.path, lost, words)]
    return verdict


def _parts(theirs: list[tuple[Loss, Author]]) -> list[wording.Part]:
    """Return each file with its uncommitted lines; only a person's lines of a file with others."""
    from swarm_hook_core.persons.lines import Extent, extents

    found = extents([loss.path for loss, _author in theirs], [loss.path for loss, _author in theirs if loss.is_new])
    for loss, author in theirs:
        if author.lines:
            found[loss.path] = Extent(author.lines, 0, False)
    return [(loss, found.get(loss.path)) for loss, _author in theirs]


def _way(trail: Trail, first: Loss, known: list[tuple[Loss, Author]]) -> str:
    """Return the sentence with a command for the session's own changes alone."""
    call = trail.call
    if not first.words:
        return ""
    from swarm_hook_core.traces import narrow_forms
    from swarm_hook_core.traces.shared_files import Patience, SharedFiles

    own = [loss for loss, author in known if author.who != PERSON and loss.words == first.words]
    is_here = top_of(first.path) == top_of(os.path.join(call.folder, "x"))
    changed = [loss.path for loss in own if is_here and not loss.is_new]
    new = [loss.path for loss in own if is_here and loss.is_new]
    shared = None
    if is_here and narrow_forms.can_be_undone(first.words):
        mixed = [loss.path for loss, author in known if author.lines and loss.words == first.words]
        shared = SharedFiles(mixed, trail.own_name, Patience())
    return narrow_forms.way(first.words, changed, new, call.folder, shared)


def _deed(loss: Loss) -> str:
    """Return the verb for the call's effect on the file."""
    if loss.words:
        return _deed_of_git(loss.words)
    if loss.how == REMOVE:
        return "remove"
    return "overwrite"


def _deed_of_git(words: list[str]) -> str:
    from swarm_hook_core.traces.clearing import deed_of

    return deed_of(words)


def _short_deed(loss: Loss) -> str:
    deed = _deed(loss)
    if deed == "throw away":
        return "discard"
    return deed


def _keep(trail: Trail, losses: list[Loss], free: list[Loss]) -> None:
    """Keep the contents of these files for `swarm-mcp restore`, up to the limits."""
    left = MOST_BYTES
    for path in list(dict.fromkeys(loss.path for loss in [*losses, *free]))[:MOST_FILES]:
        try:
            size = os.lstat(path).st_size
        except (OSError, ValueError):
            continue  # gone
        if size <= left and keeping.lost(trail, path):
            left -= size
