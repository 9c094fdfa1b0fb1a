"""The decision about a call that meets uncommitted changes of other sessions, by the level in force."""

import os
import time

from swarm_hook_core.change import REMOVE, REPLACE
from swarm_hook_core.decision import Denial, Loss
from swarm_hook_core.traces import NOTICE, seen
from swarm_hook_core.traces.meetings import Meetings

MOST_ELSEWHERE = 50  # files of one call that are looked up among writes on other machines


def judge(config, session, call, targets, effects, trail, reader, now: float):
    """Return ``(Denial or None, words for the model)`` for a call that no lock denies; its traces go to `trail`.

    `targets`: its certain writes, from ``Trail.targets_of``; `effects`: effects of a shell or MCP call, or None.
    """
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
    """Return True for a folder: creating it, or removing it while empty, loses nothing."""
    return os.path.isdir(path) and not os.path.islink(path)


def _keeps(trail, effects, path: str, resolved: str, how: str) -> bool:
    """Return True if the new content of the file is known and keeps the other session's changes."""
    if how != REPLACE:
        return False
    from swarm_hook_core.traces import new_text

    return new_text.keeps(trail.config, trail.call, effects, path, resolved)


def _cleared_by(effects) -> dict:
    """Return the result of ``clearing.places_of`` for these Effects; mostly empty."""
    if effects is None or not (effects.trees or effects.git):
        return {}
    from swarm_hook_core.traces import clearing

    return clearing.places_of(effects)


def _swept(effects, meetings) -> list:
    """Return ``[(Trace, how, by)]`` of others' pending writes that git commands of the call would discard."""
    if effects is None or not effects.git:
        return []
    from swarm_hook_core.traces import clearing

    return clearing.endangered(effects, meetings)


def _note_first(trail, targets, cleared) -> int:
    """Note the intended writes before looking at others' traces; return the time of these entries (ns).

    So, of two calls checked at the same moment, at least one sees the other's pending write.
    """
    at_ns = time.time_ns()
    for path in dict.fromkeys(target[1] for target in targets):
        trail.note("will", path, at_ns=at_ns)
    if cleared:
        from swarm_hook_core.traces import clearing

        clearing.note(trail, "clears", cleared, at_ns)
    try:
        trail.leave()
    except OSError as error:  # a full disk: others' traces can be read all the same
        _record(trail, error)
    return at_ns


def _note_denial(trail, lost, targets, cleared) -> str:
    """Note that the call is denied for the Traces in `lost`. Return a notice if that cannot be noted, else "".

    Without notes a look at the file could not be noted either, and the call would be denied for ever: so it goes ahead.
    Raises NotChecked if the user's settings deny what cannot be checked.
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
    except OSError as error:  # the other session's next call notes its end anyway
        _record(trail, error)


def _record(trail, error: OSError) -> None:
    from swarm_hook_core import faults

    faults.record(trail.config.runtime_name, "traces", faults.describe(error))


def _take_back(trail, targets, cleared) -> None:
    """Note that a denied call will not make its writes, nor clear folders."""
    for path in dict.fromkeys(target[1] for target in targets):
        trail.note("wont", path)
    if cleared:
        from swarm_hook_core.traces import clearing

        clearing.note(trail, "spares", cleared)


def _denial(session, call, lost, meetings, now: float):
    """Return the Denial of a call that would destroy others' changes; `lost`: (Trace, how, by) of each file."""
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
    """Return the Denial of a write during another session's commit whose hook puts changes aside."""
    from swarm_hook_core.labels import token
    from swarm_hook_core.traces import wording

    words = wording.during_hooks(aside[0], aside[1], token(session.label, "identity"))
    again = " Wait until that is over, mostly a few seconds, and try again; until then, files you read may have older text."
    loss = Loss("moment", aside[0].held, "overwrite", at=aside[0].at_ns / 1e9)
    return Denial(aside[0].path, None, f"swarm: {call.client_tool} was not run: {words}{again}", loss=loss)


def _storms(denial, first) -> list:
    """Return the facts for the owner, and later a person, about a session that is denied again and again."""
    from swarm_hook_core.storms import MANY, PERSON

    trace, how, by = first
    return [(trace, how, by, "", denial.times)] if denial.times in (MANY, PERSON) else []


def keep_content(path: str, now: float) -> str:
    """Keep a copy of the file at `path` for `swarm-mcp restore`; return the copy's path, or ""."""
    from swarm_hook_core.paths import key_of
    from swarm_hook_core.watching.kept import Kept, NotKept

    try:
        return Kept(now).keep(key_of(path), path).path
    except (NotKept, OSError, ValueError):
        return ""  # too large to keep, or gone
