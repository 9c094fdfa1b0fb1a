"""The words of a verdict about a person's work: a denial, with a question for the person, or a notice for the model.

Few calls have one, and only they load this module.
"""

from __future__ import annotations

import os
from collections.abc import Collection

from swarm_hook_core import REMOVE
from swarm_hook_core.denial import Denial, Notice, without_owner
from swarm_hook_core.hooks import Verdict
from swarm_hook_core.persons import wording
from swarm_hook_core.persons.losses import Loss, Losses, top_of
from swarm_hook_core.persons.owners import OWN, PERSON, Author, Authors
from swarm_hook_core.traces import NOTICE, TOLD_ALONG, TURN, clearing, journal, merged_writes, narrow_forms
from swarm_hook_core.traces.meetings import Meetings
from swarm_hook_core.traces.shared_files import Patience, SharedFiles, also_in
from swarm_hook_core.traces.sweep_wording import changed, joined
from swarm_hook_core.traces.trail import Trail


def denial(
    meetings: Meetings,
    authors: Authors,
    theirs: list[tuple[Loss, Author]],
    known: list[tuple[Loss, Author]],
    losses: Losses,
    identity: str,
    now: float,
) -> Denial:
    """Return the Denial, with a question for the person if the client can ask.

    known     the files with uncommitted content that the call would lose; `theirs`: those with a person's work
    identity  the session's own, for the words about others
    """
    trail = meetings.trail
    call = trail.call
    if not theirs:
        git_call, words = losses.late[0]
        deed = _deed_of_git(words)
        loss = without_owner("person", deed, git_call.by)
        denial = Denial(git_call.folder, None, wording.late(call, git_call.by, deed), loss=loss)
        denial.question = wording.late_question(git_call.by, deed)
        return denial
    authors.show_lines(theirs)
    first = theirs[0][0]
    deed = _deed(first)
    lost = without_owner("person", deed, first.by, [loss.path for loss, _author in theirs[1:]])
    same = [(loss, author) for loss, author in known if loss.words == first.words]
    of_peers, patience, also = authors.peers_in([loss for loss, _author in same]), Patience(trail), ""
    if of_peers:
        also = f"Others' uncommitted changes would go, too: {changed(of_peers, identity, now)}."
        also = joined(also, also_in(of_peers, meetings, patience, identity, names_persons=False))
    way = _way(patience, authors, first, same, {trace.path for trace in of_peers})
    text = wording.denial(call, theirs, deed, also, way, call.reader_folder)
    if trail.unmerged:
        text += merged_writes.way(trail.unmerged)
    denial = Denial(first.path, None, text, loss=lost)
    denial.short = wording.shortly(theirs, deed, call.reader_folder)
    denial.question = wording.question(theirs, _short_deed(first), first.by, call.reader_folder)
    return denial


def along(
    meetings: Meetings, authors: Authors, certain: list[Loss], identity: str, now: float
) -> Verdict | None:  # fmt: skip
    """Return the Verdict on a git command that stages or commits a person's work: denied until its session was told.

    `certain`: the changed files that it takes along. Other sessions' changes among them are told of, too: so the same
    command again goes ahead. `identity`: the session's own.
    """
    theirs = [(loss, author) for loss, author in authors.of_each(certain) if author.who == PERSON]
    untold = [loss.path for loss, _author in theirs if not _was_told(meetings, loss.path)]
    if not untold:
        return None
    trail = meetings.trail
    of_peers, also = authors.peers_in(certain), ""
    if of_peers and trail.level != TURN:  # there it is denied each time
        also = f"So it would others' uncommitted changes: {changed(of_peers, identity, now)}."
        untold += [trace.path for trace in of_peers]
    for path in dict.fromkeys(untold):
        trail.note(TOLD_ALONG, path)
    authors.show_lines(theirs)
    first, call = theirs[0][0], trail.call
    deed = _deed_of_git(first.words)
    if trail.level == NOTICE:
        return _told(theirs, deed, wording.along_notice(theirs, deed, call.reader_folder))
    if not trail.is_asked:
        try:
            trail.leave()
        except OSError:
            return None  # it could not be noted, and would be denied for ever
    lost = without_owner("person", deed, first.by, [loss.path for loss, _author in theirs[1:]])
    own = [loss for loss in certain if loss.path not in {one.path for one, _author in theirs}]
    some = [(loss, Author(OWN)) for loss in own if loss.words == first.words]
    way = _way(Patience(trail), authors, first, some, {trace.path for trace in of_peers})
    text = wording.along(call, theirs, deed, also, way, call.reader_folder)
    return Verdict(Denial(first.path, None, text, loss=lost))


def _was_told(meetings: Meetings, path: str) -> bool:
    """Return True if the session was told that its git command takes this file along."""
    return journal.newest(meetings.journals.own(os.path.dirname(path)), path, (TOLD_ALONG,)) is not None


def notice(trail: Trail, authors: Authors, theirs: list[tuple[Loss, Author]]) -> Verdict:
    """Return the Verdict that lets the call go ahead, and tells its model of these files."""
    authors.show_lines(theirs)
    deed = _deed(theirs[0][0])
    return _told(theirs, deed, wording.notice(theirs, deed, trail.call.reader_folder))


def _told(theirs: list[tuple[Loss, Author]], deed: str, words: str) -> Verdict:
    """Return the Verdict that lets the call go ahead, with these words for its model."""
    first, verdict = theirs[0][0], Verdict(None, words)
    lost = without_owner("person", deed, first.by, [loss.path for loss, _author in theirs[1:]])
    verdict.noted = [Notice(first.path, lost, words)]
    return verdict


def _way(
    patience: Patience, authors: Authors, first: Loss, some: list[tuple[Loss, Author]], of_peers: Collection[str]
) -> str:
    """Return the sentence with a command for the session's own changes alone.

    `some`: the files that the command of `first` affects; `of_peers`: those with changes of other sessions, which the
    rule about those protects (``sweeps``).
    """
    trail = patience.trail
    call = trail.call
    if not first.words:
        return ""

    if top_of(first.path) != top_of(os.path.join(call.folder, "x")):
        some = []  # the files' relative names would be wrong
    own = [loss for loss, author in some if author.who != PERSON and loss.path not in of_peers]
    changed_files = [loss.path for loss in own if not loss.is_new]
    new = [loss.path for loss in own if loss.is_new]
    shared = None
    if narrow_forms.can_be_undone(first.words):
        mixed = [loss.path for loss, author in some if author.is_part or loss.path in of_peers]
        shared = SharedFiles(filter(authors.has_written, mixed), trail.own_name, patience)
    return narrow_forms.way(first.words, changed_files, new, call.folder, shared)


def _deed(loss: Loss) -> str:
    """Return the verb for the call's effect on the file."""
    if loss.words:
        return _deed_of_git(loss.words)
    if loss.how == REMOVE:
        return "remove"
    return "overwrite"


def _deed_of_git(words: list[str]) -> str:
    return clearing.deed_of(words)


def _short_deed(loss: Loss) -> str:
    deed = _deed(loss)
    if deed == "throw away":
        return "discard"
    return deed
