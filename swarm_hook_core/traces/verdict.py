"""What a call comes to that meets what others have written and not committed, by the level in force."""

import time

from swarm_hook_core.change import REMOVE, REPLACE
from swarm_hook_core.decision import Denial
from swarm_hook_core.traces import NOTICE
from swarm_hook_core.traces.meetings import Meetings

MOST_ELSEWHERE = 50  # files of one call of which it is asked whether they were written on other machines


def judge(config, session, call, targets, effects, trail, reader, now: float):
    """``(Denial or None, words for the model)`` of a call that no lock denies; its traces are added to `trail`.

    `targets`: the files that it certainly writes, as ``Trail.targets_of`` has them; `effects`: of a call that does not
    say its files, else None.
    """
    meetings = Meetings(trail, reader, now, effects.budget if effects is not None else None)
    meetings.note_own_files(call.folder)
    cleared = _cleared_by(effects)
    own_at_ns = _note_first(trail, targets, cleared)
    is_guarded = call.tool in config.guards
    lost: list = []
    met: list = []
    loses = (REPLACE, REMOVE) if trail.level != NOTICE else ()
    clearings = [
        clearing
        for _path, resolved, how, _by in targets
        if how != REMOVE and (clearing := meetings.clearing(resolved, own_at_ns, waits=bool(loses)))
    ]
    aside = next((found for target in targets if (found := meetings.aside(target[1], waits=bool(loses)))), None)
    if aside is not None and loses:
        _take_back(trail, targets, cleared)
        return _during_hooks(session, call, aside), ""
    for path, resolved, how, by in targets:
        find = meetings.pending if is_guarded else meetings.unseen
        trace = find(path, resolved)
        if trace is not None and trace.is_pending and loses and how not in loses:
            trace = meetings.once_made(trace, own_at_ns, path, resolved, find)
        if trace is not None:
            (lost if how in loses else met).append((trace, how, by))
    for tree in effects.trees if effects is not None else ():
        for trace in meetings.unseen_below(tree.root, tree.admits):
            (lost if tree.how in loses else met).append((trace, tree.how, tree.by))
    swept = _swept(effects, meetings)
    if loses:
        lost += swept
    if lost:
        for trace, _how, _by in lost:
            trail.note("saw", trace.path)
        _take_back(trail, targets, cleared)
        return _denial(session, call, lost, now), ""
    if effects is not None and effects.git:
        from swarm_hook_core.traces import sweeps

        denial, words = sweeps.judge(session, call, effects, meetings, trail, now)
        if denial is not None:
            _take_back(trail, targets, cleared)
            return denial, ""
    else:
        words = ""
    for path, resolved, how, _by in targets:
        if how in (REPLACE, REMOVE) and meetings.stands(path, resolved):
            keep_content(resolved, now)
    for trace, _how, _by in met:
        trail.note("saw", trace.path)
    written = dict.fromkeys(target[1] for target in targets)
    trail.wrote(dict.fromkeys([*written, *(trace.path for trace, _how, _by in met)]))
    trail.note_unnamed(effects)
    for read in effects.reads if effects is not None else ():
        trail.saw(read.folder, read.path)
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
        words = "\n".join(filter(None, (told, wording.are_cleared(clearings, identity), words)))
    return None, words


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
        from swarm_hook_core import faults

        faults.record(trail.config.runtime_name, "traces", faults.describe(error))
    return at_ns


def _take_back(trail, targets, cleared) -> None:
    """Note that a call that is denied will not write what it was about to, nor clear those places."""
    for path in dict.fromkeys(target[1] for target in targets):
        trail.note("wont", path)
    if cleared:
        from swarm_hook_core.traces import clearing

        clearing.note(trail, "spares", cleared)


def _denial(session, call, lost, now: float):
    """The Denial of a call that would lose what others have changed; `lost`: (Trace, how, by) of each file."""
    from swarm_hook_core.labels import token
    from swarm_hook_core.traces import wording

    trace, how, by = lost[0]
    others = {one.path: one for one, _how, _by in lost if one.path != trace.path}
    identity = token(session.label, "identity")
    words = wording.would_lose(call.client_tool, trace, how, by, list(others.values()), identity, now)
    return Denial(trace.path, None, words)


def _during_hooks(session, call, aside):
    """The Denial of a call that would write where another session's commit has put changes aside."""
    from swarm_hook_core.labels import token
    from swarm_hook_core.traces import wording

    words = wording.during_hooks(aside[0], aside[1], token(session.label, "identity"))
    again = " Wait until that is over, a few seconds mostly, and try again; what you read meanwhile may be older text."
    return Denial(aside[0].path, None, f"swarm: {call.client_tool} was not run: {words}{again}")


def keep_content(path: str, now: float) -> None:
    """Keep what is in the file at `path` for `swarm-mcp restore`, where that can be done."""
    from swarm_hook_core.paths import key_of
    from swarm_hook_core.watching.kept import Kept, NotKept

    try:
        Kept(now).keep(key_of(path), path)
    except (NotKept, OSError, ValueError):
        return  # it is larger than what is kept, or gone
