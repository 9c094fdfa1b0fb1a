"""What a call comes to that meets what others have written and not committed, by the level in force."""

import os
import time

from swarm_hook_core.change import REMOVE, REPLACE
from swarm_hook_core.decision import Denial, Loss
from swarm_hook_core.traces import NOTICE, seen
from swarm_hook_core.traces.meetings import Meetings

MOST_ELSEWHERE = 50  # files of one call of which it is asked whether they were written on other machines


def judge(session, trail, effects, reader, now: float):
    """``(Denial or None, words for the model)`` of a call that no lock denies; its traces are added to its `trail`.

    `effects`: of a call that does not say its files, else None.
    """
    call, targets = trail.call, trail.targets_of(effects)
    meetings = Meetings(trail, reader, now, effects.budget if effects is not None else None)
    meetings.note_own_files(call.folder)
    cleared = _cleared_by(effects)
    own_at_ns = _note_first(trail, targets, cleared)
    lost: list = []
    met: list = []
    loses = (REPLACE, REMOVE) if trail.level != NOTICE else ()
    waits = bool(loses) and not trail.is_asked
    clearings = [
        clearing
        for _path, resolved, how, _by in targets
        if how != REMOVE and (clearing := meetings.clearing(resolved, own_at_ns, waits))
    ]
    aside = next((found for target in targets if (found := meetings.aside(target[1], waits))), None)
    if aside is not None and loses:
        _take_back(trail, targets, cleared)
        return _during_hooks(session, call, aside), ""
    for path, resolved, how, by in targets:
        is_lost = how in loses and not _is_folder(resolved)
        trace = meetings.unseen(path, resolved, not is_lost)
        if trace is not None and trace.is_pending and waits and not is_lost:
            trace = meetings.once_made(trace, own_at_ns, path, resolved)
        if trace is None or (is_lost and not trace.is_pending and _keeps(trail, effects, path, resolved, how)):
            continue
        (lost if is_lost else met).append((trace, how, by))
    for tree in effects.trees if effects is not None else ():
        for trace in meetings.unseen_below(tree.root, tree.admits):
            (lost if tree.how in loses else met).append((trace, tree.how, tree.by))
    swept = _swept(effects, meetings)
    if loses:
        lost += swept
    unnoted = ""
    if lost:
        denial = _denial(session, call, lost, meetings, now)
        unnoted = _note_denial(trail, lost, targets, cleared)
        if not unnoted:
            trail.owners += _storms(denial, lost[0])
            return denial, ""
        met += [one for one in lost if one not in swept]
    if effects is not None and effects.git:
        from swarm_hook_core.traces import sweeps

        denial, words = sweeps.judge(session, call, effects, meetings, trail, now)
        if denial is not None:
            _take_back(trail, targets, cleared)
            return denial, ""
    else:
        words = ""
    for path, resolved, how, by in targets:
        if how in (REPLACE, REMOVE) and not trail.is_asked and (trace := meetings.standing(path, resolved)) is not None:
            kept = keep_content(resolved, now)
            if meetings.is_theirs(trace) and not _keeps(trail, effects, path, resolved, how):
                trail.owners.append((trace, how, by, kept, 0))
    for trace, _how, _by in met:
        trail.note("met", trace.path, call.id or seen.NO_ID)
    written = dict.fromkeys(target[1] for target in targets)
    trail.wrote(dict.fromkeys([*written, *(trace.path for trace, _how, _by in met)]))
    trail.note_unnamed(effects)
    if effects is not None and effects.reads:
        from swarm_hook_core.traces import looks

        looks.note(trail, meetings, effects.reads, written)
    far = [trace for resolved in list(written)[:MOST_ELSEWHERE] for trace in meetings.on_other_machines(resolved)]
    if far:
        from swarm_hook_core.traces import machines

        words = "\n".join(filter(None, (machines.words(far, session, meetings, trail, now), words)))
    if met or swept or clearings or aside:
        from swarm_hook_core.labels import token
        from swarm_hook_core.traces import wording

        identity = token(session.label, "identity")
        told = wording.were_changed([trace for trace, _how, _by in met + swept], identity, now)
        if aside is not None:
            told = "\n".join(filter(None, (told, "swarm: " + wording.during_hooks(aside[0], aside[1], identity))))
        words = "\n".join(filter(None, (told, unnoted, wording.are_cleared(clearings, identity), words)))
    return None, words


def _is_folder(path: str) -> bool:
    """Whether a folder is there: to write it, or to remove it while it is empty, loses nothing."""
    return os.path.isdir(path) and not os.path.islink(path)


def _keeps(trail, effects, path: str, resolved: str, how: str) -> bool:
    """Whether what the call puts in the place of the file is known, and has in it what others have changed there."""
    if how != REPLACE:
        return False
    from swarm_hook_core.traces import new_text

    return new_text.keeps(trail.config, trail.call, effects, path, resolved)


def _cleared_by(effects) -> dict:
    """The places that a call with these Effects clears, as ``clearing.places_of`` has them; nearly always none."""
    if effects is None or not (effects.trees or effects.git):
        return {}
    from swarm_hook_core.traces import clearing

    return clearing.places_of(effects)


def _swept(effects, meetings) -> list:
    """``(Trace, how, by)`` of others' writes that are still to come where git commands of the call lose them."""
    if effects is None or not effects.git:
        return []
    from swarm_hook_core.traces import clearing

    return clearing.endangered(effects, meetings)


def _note_first(trail, targets, cleared) -> int:
    """Note what the call is about to write before it looks at what others do.

    Of two calls that are checked at the same moment one at least sees the other then, whose write is still to come.
    Returns the time that stands in the notes (ns).
    """
    at_ns = time.time_ns()
    for path in dict.fromkeys(target[1] for target in targets):
        trail.note("will", path, at_ns=at_ns)
    if cleared:
        from swarm_hook_core.traces import clearing

        clearing.note(trail, "clears", cleared, at_ns)
    try:
        trail.leave()
    except OSError as error:  # a full disk: what others do can be looked at all the same
        _record(trail, error)
    return at_ns


def _note_denial(trail, lost, targets, cleared) -> str:
    """Note that the call is denied for the Traces in `lost`: what the model is told where that cannot be noted.

    Then no look at the file could be noted either, and it would be denied for ever. Raises NotChecked where a person
    wants what cannot be checked to be denied.
    """
    for trace, _how, _by in lost:
        trail.note("met", trace.path, trail.call.id or seen.NO_ID)
        if trace.is_pending and not trace.is_checked and trace.journal and not trail.is_asked:
            _await(trail, trace.journal)
    _take_back(trail, targets, cleared)
    try:
        trail.leave()
    except OSError as error:
        _record(trail, error)
        from swarm_hook_core import fail_closed, faults
        from swarm_hook_core.traces import wording

        fail_closed.demand(trail.config, trail.call, f"what others have changed: {faults.describe(error)}")
        trail.drop()
        return wording.cannot_be_noted(error)
    return ""


def _await(trail, name: str) -> None:
    from swarm_hook_core.traces import endings

    try:
        endings.await_end(name)
    except OSError as error:  # the session's next call says it as well
        _record(trail, error)


def _record(trail, error: OSError) -> None:
    from swarm_hook_core import faults

    faults.record(trail.config.runtime_name, "traces", faults.describe(error))


def _take_back(trail, targets, cleared) -> None:
    """Note that a call that is denied will not write what it was about to, nor clear those places."""
    for path in dict.fromkeys(target[1] for target in targets):
        trail.note("wont", path)
    if cleared:
        from swarm_hook_core.traces import clearing

        clearing.note(trail, "spares", cleared)


def _denial(session, call, lost, meetings, now: float):
    """The Denial of a call that would lose what others have changed; `lost`: (Trace, how, by) of each file."""
    from swarm_hook_core.labels import token
    from swarm_hook_core.traces import wording

    trace, how, by = lost[0]
    others = {one.path: one for one, _how, _by in lost if one.path != trace.path}
    identity, times = token(session.label, "identity"), meetings.times_denied(trace.path, call.id) + 1
    words = wording.would_lose(call, trace, how, by, list(others.values()), identity, now, times)
    why = "moment" if trace.is_pending else "uncommitted"
    deed = "remove" if how == REMOVE else "overwrite"
    denial = Denial(trace.path, None, words, loss=Loss(why, trace.held, deed, by, trace.at_ns / 1e9, others))
    denial.times = times
    denial.short = wording.would_lose_shortly(call, trace, how, identity)
    return denial


def _during_hooks(session, call, aside):
    """The Denial of a call that would write where another session's commit has put changes aside."""
    from swarm_hook_core.labels import token
    from swarm_hook_core.traces import wording

    words = wording.during_hooks(aside[0], aside[1], token(session.label, "identity"))
    again = " Wait until that is over, a few seconds mostly, and try again; what you read meanwhile may be older text."
    loss = Loss("moment", aside[0].held, "overwrite", at=aside[0].at_ns / 1e9)
    return Denial(aside[0].path, None, f"swarm: {call.client_tool} was not run: {words}{again}", loss=loss)


def _storms(denial, first) -> list:
    """What the owner of the file, and at last a person, is to hear of a session that is denied again and again."""
    from swarm_hook_core.storms import MANY, PERSON

    trace, how, by = first
    return [(trace, how, by, "", denial.times)] if denial.times in (MANY, PERSON) else []


def keep_content(path: str, now: float) -> str:
    """Keep what is in the file at `path` for `swarm-mcp restore`; where that is kept, empty where it cannot be."""
    from swarm_hook_core.paths import key_of
    from swarm_hook_core.watching.kept import Kept, NotKept

    try:
        return Kept(now).keep(key_of(path), path).path
    except (NotKept, OSError, ValueError):
        return ""  # it is larger than what is kept, or gone
