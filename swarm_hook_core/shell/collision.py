"""Where the effects of a call and the locks of other sessions meet."""

import os
import time

from swarm_hook_core.collisions import all_keys, first_collision
from swarm_hook_core.decision import Denial, Verdict
from swarm_hook_core.labels import token
from swarm_hook_core.paths import NO_CASE, below, git_root, keys_for
from swarm_hook_core.shell.model import Guess
from swarm_hook_core.wording import holder, reason

GIT_SECONDS = 0.5  # for all git commands of a call together
TREE_SECONDS = 0.3  # for going through folders in which patterns are locked, all of a call's together
FIRST_LOCKS = 50  # that are looked at before the others: with many of them mostly one of the first is met
FEW_GIT_CALLS = 4  # of a command, which are all looked at
MOST_PLACES = 8  # in which guesses are looked up; those in more count as anywhere
MOST_LOCKS = 2000  # below one folder that are looked at; with more of them something may always be met
MOST_FILES = 300  # of a locked folder that are looked at one by one
LONGEST_WHY = 700  # characters of why a call may write
NAMED = 3  # locks that the line for the model names


def judge(session, tool: str, effects, cwd: str, peers, now: float, strict: bool = False):
    """The Verdict on `effects` of a call of `tool` in folder `cwd`. Changes nothing.

    What is certain denies. What is only possible does so where `strict`; else it goes ahead with a notice, and
    the files are watched.
    """
    identity = token(session.label, "identity")
    certain, possible = _certain(session, effects, peers, effects.budget.part())
    if certain:
        path, held, by, within = certain
        queue = peers.waiting_for(path)
        words = reason(tool, path, held, identity, now, by, within, session.instance_id, queue)
        aside = next((call.aside for call in effects.git if call.aside and call.by == by), "")
        if aside:
            from swarm_hook_core.wording import way_past_hooks

            words += " " + way_past_hooks(aside)
        return Verdict(Denial(path, held, words))
    why = possible[0][1] if possible else ""
    near: dict = {_mark(held): held for held, _why in possible}
    roots: dict = {}  # many guesses are about one folder
    looked_up: dict = {}
    for guess in effects.guesses:
        folder = guess.folder or cwd
        if folder not in roots:
            roots[folder] = git_root(folder) if len(looked_up) < MOST_PLACES else "/"
        root = roots[folder]
        if root not in looked_up:
            looked_up[root] = _around(session, root, peers)
            near.update({_mark(held): held for held in looked_up[root] if _mark(held) not in near})
        if looked_up[root]:
            why = why or (f"`{guess.by}`: {guess.why}" if guess.by else guess.why)
    if near:
        locks = list(near.values())
        if strict:
            first = locks[0]
            words = _strictly(tool, why, first, identity, session.instance_id)
            return Verdict(Denial(first.file, first, words, certain=False))
        return Verdict(None, _notice(why, locks, identity, session.instance_id), locks)
    return Verdict(None, "", _around(session, cwd, peers) if effects.runs else ())


def _certain(session, effects, peers, last: float):
    """``(path, held, by, within)`` of the first lock that is certainly met, or None; ``[(held, why)]`` that may be.

    What there is no time for until `last` (this thread's processor time) becomes a guess of `effects`.
    """
    possible: list = []

    def is_late(folder: str, by: str) -> bool:
        late = time.thread_time() > last
        if late:
            effects.guesses.append(Guess("more than there is time to look at", folder, by))
        return late

    def late_at(place: int) -> bool:
        return is_late(effects.writes[place].folder, effects.writes[place].by)

    collision = first_collision(session, [(write.folder, write.path) for write in effects.writes], peers, late_at)
    if collision:
        path, held, place, within = collision
        return (path, held, effects.writes[place].by, within), possible
    end = time.monotonic() + TREE_SECONDS
    for tree in effects.trees:
        for number, (path, held) in enumerate(_in_tree(session, tree.root, peers), 1):
            if number % FIRST_LOCKS == 0 and is_late(tree.root, tree.by):  # the first are looked at in any case
                return None, possible
            met = _meets(tree, path, not held.pattern)
            if met:
                return (met, held, tree.by, met != path), possible
            if met is None or number == MOST_LOCKS:
                possible.append((held, f"`{tree.by}`"))
        if is_late(tree.root, tree.by):
            return None, possible
        keys = all_keys(session, tree.root, "/")
        patterns = peers.patterns(keys)
        if patterns:
            met, unsure = _met_by_patterns(tree, patterns, keys, max(0.0, end - time.monotonic()))
            if met:
                return (*met, tree.by, False), possible
            possible += unsure
    end = time.monotonic() + GIT_SECONDS
    around: dict = {}  # (folders, how many at most) -> locks there: git is mostly called more than once
    for number, call in enumerate(effects.git):
        if number >= FEW_GIT_CALLS and is_late(call.folder, call.by):
            break
        for limit in (FIRST_LOCKS, MOST_LOCKS):
            met, unsure, more = _touched_by_git(session, call, peers, limit, max(0.0, end - time.monotonic()), around)
            if met:
                return (*met, False), possible
            if not more or (number and is_late(call.folder, call.by)):
                break
        possible += unsure
    return None, possible


def _in_tree(session, root: str, peers):
    """``(path as seen from root, held)`` of each lock on `root`, below it, or on a folder over it."""
    roots = all_keys(session, root, "/")
    seen = set()
    for limit in (FIRST_LOCKS, MOST_LOCKS):
        found, more = peers.first_under(roots, limit)
        for held in found:
            rest = next((found for name in held.names for key in roots if (found := below(name, key))), None)
            if rest is not None and _mark(held) not in seen:
                seen.add(_mark(held))
                yield _one_of(held, root + rest), held
        if not more:
            break
    for held in peers.over(roots):
        if _mark(held) not in seen:
            seen.add(_mark(held))
            yield root, held


def _mark(held) -> tuple:
    """What tells one lock from another: several may share a file."""
    return held.file, held.instance_id, held.agent


def _one_of(held, path: str) -> str:
    # Keys without letter case have lost the spelling, which a predicate may go by; the lock's own text has it.
    tail = held.file[-len(path) :]
    return tail if len(tail) == len(path) and tail.casefold() == path.casefold() else path


def _meets(tree, path: str, whole: bool = True):
    """The path at (with `whole` also below) `path` that `tree` certainly writes; None where that cannot be told.

    Empty where none.
    """
    met = _admits(tree, path)
    if met:
        return path
    unsure = met is None
    if whole and os.path.isdir(path):
        for number, file in enumerate(_files_below(path)):
            if number == MOST_FILES:
                return None
            met = _admits(tree, file)
            if met:
                return file
            unsure = unsure or met is None
    return None if unsure else ""


def _admits(tree, path: str):
    """What `tree` says of `path`. A predicate that fails cannot tell, and must not cost what the others know."""
    try:
        return tree.admits(path)
    except Exception as error:
        _fault(tree.by, error)
        return None


def _fault(by: str, error: BaseException) -> None:
    from swarm_hook_core import faults

    faults.record("effects", "pre_tool_use", f"`{by}`: {faults.describe(error)}")


def _met_by_patterns(tree, patterns, keys, seconds: float):
    """``((path, held) or None, [(held, why)])``: what `tree` certainly writes of what `patterns` (Held) cover, and may.

    `keys` are those of its root; A folder with more than can be looked
    through in `seconds` may hold anything.
    """
    from swarm_hook_core.pattern_match import ENTRIES, Cover, covered_below, start_of

    covers = [cover for cover in map(Cover, patterns) if cover.segments is not None]
    unsure: dict = {}
    starts = [start for cover in covers if (start := start_of(cover, tree.root, keys))]
    for path, cover in covered_below(starts, seconds=seconds):
        told = _admits(tree, path) if path else None
        if told:
            return (path, cover.held), []
        if told is None:
            more = "" if path else ": there is more in that folder than could be looked through"
            unsure[id(cover)] = (cover.held, f"`{tree.by}`{more}")
    arrives = getattr(tree.admits, "arrives", None)
    for number, path in enumerate(arrives() if arrives else ()):
        if number == ENTRIES:
            unsure.update({id(cover): (cover.held, f"`{tree.by}`: it brings very many files") for cover in covers})
            break
        rest = path[len(tree.root) :]
        for cover in covers:
            told = any(cover.has(_joined(key, rest)) for key in keys) and _admits(tree, path)
            if told:
                return (path, cover.held), []
            if told is None:
                unsure.setdefault(id(cover), (cover.held, f"`{tree.by}`"))
    return None, list(unsure.values())


def _joined(key: str, rest: str) -> str:
    from swarm_hook_core.wildmatch import folded

    return key + (folded(rest) if key.startswith(NO_CASE) else rest)


def _files_below(folder: str):
    waiting = [folder]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    else:
                        yield entry.path
        except OSError:
            continue


def _touched_by_git(session, call, peers, limit: int, seconds: float, around: dict):
    """``((path, held, by) or None, [(held, why)], more)`` of one git command, and of so many locks.

    `more`: whether there may be other locks, and it is worth asking about them.
    """
    from swarm_hook_core.shell.programs.git import command_line, named_places, touched_files

    top = command_line.tree_of(call)
    if not top:
        return None, [], False
    # The first locks are looked up once for all commands; of many more only those that this one can mean.
    roots = (() if limit == FIRST_LOCKS else tuple(named_places.places(call, top))) or (top,)
    if (roots, limit) not in around:
        keys = dict.fromkeys(key for root in roots for key in all_keys(session, root, "/"))
        around[roots, limit] = peers.first_around(list(keys), limit)
    found, more = around[roots, limit]
    patterns = [held for held in found if held.pattern]
    # Git knows files by their resolved names: the key, where it has not lost its letter case.
    plain = [held for held in found if not held.pattern]
    locked = {next((name for name in reversed(held.names) if name[:1] == "/"), held.file): held for held in plain}
    for root in session.mounts:
        locked = {_moved(file, root, session.root): held for file, held in locked.items()}
    if not found:
        return None, [], more
    covers: list = []
    if patterns:
        from swarm_hook_core.pattern_match import Cover

        covers = [cover for cover in map(Cover, patterns) if cover.segments is not None]
    try:
        touch = touched_files.touched(call, list(locked), seconds, covers)
    except Exception as error:
        _fault(call.by, error)
        return None, [(held, f"`{call.by}`") for held in found], False
    repository = keys_for(os.path.join(top, ".git"), "/")
    certain = [
        (file, held)
        for file, held in locked.items()
        if touch.changes_repository and any(name in repository for name in held.names)
    ]
    certain += [(file, locked[file]) for file in touch.certain]
    certain += [(file, cover.held) for file, cover in touch.covered]
    if certain and not call.in_doubt:
        return (*certain[0], call.by), [], False
    near = found if touch.unsure else [held for _file, held in certain]
    return None, [(held, f"`{call.by}`") for held in near], more and not touch.unsure and touch.changes_repository


def _moved(file: str, old: str, new: str) -> str:
    """`file` as it is called in folder `new`, where it is in `old`."""
    rest = below(file, old)
    return file if rest is None else new + rest


def _around(session, folder: str, peers):
    """Locks of others in the work tree around `folder`, and on folders over it."""
    return peers.around(all_keys(session, git_root(folder), "/"))


def named(locks: list, identity: str, own_id: str) -> str:
    """What is locked and by whom, for a line that the model reads; of many locks some."""
    from swarm_hook_core import untrusted_text

    some = []
    for held in locks[:NAMED]:
        who, note, _ask = holder(held, identity, own_id)
        still = ", who reads it and keeps it still" if held.mode == "shared" else ""
        some.append(
            f"{untrusted_text.named(held.file)} (held by {who}{still}{'; ' + note.removesuffix('; ') if note else ''})"
        )
    more = f" and {len(locks) - NAMED} more" if len(locks) > NAMED else ""
    return ", ".join(some) + more


def _notice(why: str, locks: list, identity: str, own_id: str) -> str:
    """One line for the model: what is locked nearby, by whom."""
    from swarm_hook_core import untrusted_text

    return (
        f"swarm: other sessions hold {named(locks, identity, own_id)}. What this call writes cannot be told beforehand"
        f" ({untrusted_text.cut(why, LONGEST_WHY)}); it may go on, but it must leave those files alone, and they are"
        " compared afterwards."
    )


def _strictly(tool: str, why: str, held, identity: str, own_id: str) -> str:
    from swarm_hook_core import untrusted_text

    who, note, ask = holder(held, identity, own_id)
    return (
        f"swarm lock blocked {tool}: it may write {untrusted_text.named(held.file)}"
        f" ({untrusted_text.cut(why, LONGEST_WHY)}), held by {who} ({note}nothing uncertain may run"
        f" here while it is locked: SWARM_STRICT). Name the files that are to be written, work on something else,"
        f" or {ask}."
    )
