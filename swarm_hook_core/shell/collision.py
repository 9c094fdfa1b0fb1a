"""Compares the effects of a call with the locks of other sessions."""

from __future__ import annotations

import os
import time

from swarm_hook_core.collisions import all_keys, first_collision
from swarm_hook_core.hooks import Verdict
from swarm_hook_core.labels import token
from swarm_hook_core.paths import NO_CASE, below, git_root, keys_for
from swarm_hook_core.shell.model import Guess
from swarm_hook_core.wording import holder, reason

TYPE_CHECKING = False  # like typing's own; importing typing takes milliseconds
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from swarm_hook_core.lookup import Held, Peers
    from swarm_hook_core.shell.model import Effects, GitCall, Tree


GIT_SECONDS = 0.5  # for all git commands of a call together
TREE_SECONDS = 0.3  # for going through folders with locked patterns, all of a call's together
FIRST_LOCKS = 50  # that are looked at before the others: with many of them mostly one of the first is met
FEW_GIT_CALLS = 4  # the first git commands of a call are looked at however late it is
MOST_PLACES = 8  # in which guesses are looked up; others count as anywhere
MOST_LOCKS = 2000  # below one folder that are looked at; with more of them something may always be met
MOST_FILES = 300  # of a locked folder that are looked at one by one
LONGEST_WHY = 700  # characters of why a call may write
NAMED = 3  # locks that the line for the model names


def judge(
    session: Any, tool: str, effects: Effects, cwd: str, peers: Peers, now: float, strict: bool = False
) -> Verdict:
    """Return the Verdict on `effects` of a call of `tool` in folder `cwd`. Changes nothing.

    A certain collision denies. A possible one denies only if `strict`; otherwise the call goes ahead with a notice, and
    the files are watched.
    """
    identity = token(session.label, "identity")
    certain, possible = _certain(session, effects, peers, effects.budget.part())
    if certain:
        from swarm_hook_core.denial import Denial

        path, lock, by, within = certain
        queue = peers.waiting_for(path)
        words = reason(tool, path, lock, identity, now, by, within, session.instance_id, queue)
        aside = next((call.aside for call in effects.git if call.aside and call.by == by), "")
        if aside:
            from swarm_hook_core.wording import way_past_hooks

            words += " " + way_past_hooks(aside)
        return Verdict(Denial(path, lock, words))
    why = ""
    if possible:
        why = possible[0][1]
    near: dict[tuple[str, str, str], Held] = {_mark(lock): lock for lock, _why in possible}
    roots: dict[str, str] = {}  # many guesses are about one folder
    looked_up: dict[str, Sequence[Held]] = {}
    for guess in effects.guesses:
        folder = guess.folder or cwd
        if folder not in roots:
            roots[folder] = git_root(folder) if len(looked_up) < MOST_PLACES else "/"
        root = roots[folder]
        if root not in looked_up:
            looked_up[root] = _around(session, root, peers)
            near.update({_mark(lock): lock for lock in looked_up[root] if _mark(lock) not in near})
        if looked_up[root]:
            by = guess.by and f"`{guess.by}`: "
            why = why or by + guess.why
    if near:
        locks = list(near.values())
        if strict:
            from swarm_hook_core.denial import Denial

            first = locks[0]
            words = _strictly(tool, why, first, identity, session.instance_id)
            return Verdict(Denial(first.file, first, words, certain=False))
        verdict = Verdict(None, _notice(why, locks, identity, session.instance_id), locks)
        by, also = "", [one.file for one in locks[1:]]
        if why.startswith("`"):
            by = why[1:].partition("`")[0]
        from swarm_hook_core.denial import Loss, Notice

        verdict.noted = [Notice(locks[0].file, Loss("possible", locks[0], "write", by, also=also), verdict.notice)]
        return verdict
    if effects.runs:
        return Verdict(None, "", _around(session, cwd, peers))
    return Verdict(None, "", ())


def _certain(
    session: Any, effects: Effects, peers: Peers, last: float
) -> tuple[tuple[str, Held, str, bool] | None, list[tuple[Held, str]]]:
    """Return ``(path, lock, by, within)`` of the first certain collision or None, and ``[(lock, why)]`` of possible
    ones.

    Effects not looked at by `last` (this thread's processor time) become a guess of `effects`.
    """
    possible: list[tuple[Held, str]] = []

    def is_late(folder: str, by: str) -> bool:
        late = time.thread_time() > last
        if late:
            effects.guesses.append(Guess("more than there is time to look at", folder, by))
        return late

    def late_at(place: int) -> bool:
        return is_late(effects.writes[place].folder, effects.writes[place].by)

    collision = first_collision(session, [(write.folder, write.path) for write in effects.writes], peers, late_at)
    if collision:
        path, lock, place, within = collision
        return (path, lock, effects.writes[place].by, within), possible
    end = time.monotonic() + TREE_SECONDS
    for tree in effects.trees:
        for number, (path, lock) in enumerate(_in_tree(session, tree.root, peers), 1):
            if number % FIRST_LOCKS == 0 and is_late(tree.root, tree.by):  # the first are looked at in any case
                return None, possible
            met = _meets(tree, path, not lock.pattern)
            if met:
                return (met, lock, tree.by, met != path), possible
            if met is None or number == MOST_LOCKS:
                possible.append((lock, f"`{tree.by}`"))
        if is_late(tree.root, tree.by):
            return None, possible
        keys = all_keys(session, tree.root, "/")
        patterns = peers.patterns(keys)
        if patterns:
            covered, unsure = _met_by_patterns(tree, patterns, keys, max(0.0, end - time.monotonic()))
            if covered:
                return (*covered, tree.by, False), possible
            possible += unsure
    end = time.monotonic() + GIT_SECONDS
    nearby: dict[Any, Any] = {}  # (folders, how many at most) -> locks there: git is mostly called more than once
    for number, call in enumerate(effects.git):
        if number >= FEW_GIT_CALLS and is_late(call.folder, call.by):
            break
        for limit in (FIRST_LOCKS, MOST_LOCKS):
            left = max(0.0, end - time.monotonic())
            touched, unsure, more = _touched_by_git(session, call, peers, limit, left, nearby)
            if touched:
                return (*touched, False), possible
            if not more or (number and is_late(call.folder, call.by)):
                break
        possible += unsure
    return None, possible


def _in_tree(session: Any, root: str, peers: Peers) -> Iterator[tuple[str, Held]]:
    """``(path as seen from root, held)`` of each lock on `root`, below it, or on a folder over it."""
    roots = all_keys(session, root, "/")
    seen = set()
    for limit in (FIRST_LOCKS, MOST_LOCKS):
        found, more = peers.first_under(roots, limit)
        for lock in found:
            rest = next((found for name in lock.names for key in roots if (found := below(name, key))), None)
            if rest is not None and _mark(lock) not in seen:
                seen.add(_mark(lock))
                yield _one_of(lock, root + rest), lock
        if not more:
            break
    for lock in peers.over(roots):
        if _mark(lock) not in seen:
            seen.add(_mark(lock))
            yield root, lock


def _mark(lock: Held) -> tuple[str, str, str]:
    """Return the lock's identity: several locks may share a file."""
    return lock.file, lock.instance_id, lock.agent


def _one_of(lock: Held, path: str) -> str:
    # Keys without letter case have lost the spelling. A predicate may need it; the lock's own text has it.
    tail: str = lock.file[-len(path) :]
    if len(tail) == len(path) and tail.casefold() == path.casefold():
        return tail
    return path


def _meets(tree: Tree, path: str, whole: bool = True) -> str | None:
    """Return the path at (with `whole` also below) `path` that `tree` certainly writes; None if unsure; empty if it
    writes nothing there.
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
    if unsure:
        return None
    return ""


def _admits(tree: Tree, path: str) -> bool | None:
    """Ask `tree` about `path`. A failing predicate counts as unsure, so that the other effects are still judged."""
    try:
        return tree.admits(path)
    except Exception as error:
        _fault(tree.by, error)
        return None


def _fault(by: str, error: BaseException) -> None:
    from swarm_hook_core import faults

    faults.record("effects", "pre_tool_use", f"`{by}`: {faults.describe(error)}")


def _met_by_patterns(
    tree: Tree, patterns: list[Held], keys: list[str], seconds: float
) -> tuple[tuple[str, Held] | None, list[tuple[Held, str]]]:
    """Return ``((path, lock) or None, [(lock, why)])``: a file that `tree` certainly writes and that one of `patterns`
    covers, and the locks it may meet.

    `keys` are those of its root. A folder too large to look through in `seconds` may hold anything.
    """
    from swarm_hook_core.pattern_match import ENTRIES, Cover, covered_below, start_of

    covers = [cover for cover in map(Cover, patterns) if cover.segments is not None]
    unsure: dict[int, tuple[Held, str]] = {}
    starts = [start for cover in covers if (start := start_of(cover, tree.root, keys))]
    for path, cover in covered_below(starts, seconds):
        verdict = None
        if path:
            verdict = _admits(tree, path)
        if verdict:
            return (path, cover.held), []
        if verdict is None:
            more = ""
            if not path:
                more = ": there is more in that folder than could be looked through"
            unsure[id(cover)] = (cover.held, f"`{tree.by}`{more}")
    arrives = getattr(tree.admits, "arrives", None)
    for number, path in enumerate(arrives() if arrives else ()):
        if number == ENTRIES:
            unsure.update({id(cover): (cover.held, f"`{tree.by}`: it brings very many files") for cover in covers})
            break
        rest = path[len(tree.root) :]
        for cover in covers:
            verdict = any(cover.has(_joined(key, rest)) for key in keys) and _admits(tree, path)
            if verdict:
                return (path, cover.held), []
            if verdict is None:
                unsure.setdefault(id(cover), (cover.held, f"`{tree.by}`"))
    return None, list(unsure.values())


def _joined(key: str, rest: str) -> str:
    from swarm_hook_core.wildmatch import folded

    if key.startswith(NO_CASE):
        rest = folded(rest)
    return key + rest


def _files_below(folder: str) -> Iterator[str]:
    waiting = [folder]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    else:
                        yield entry.path
        except OSError:  # gone or unreadable: it holds no file to ask about
            continue


def _touched_by_git(
    session: Any, call: GitCall, peers: Peers, limit: int, seconds: float, nearby: dict[Any, Any]
) -> tuple[tuple[str, Held, str] | None, list[tuple[Held, str]], bool]:
    """Return ``((path, lock, by) or None, [(lock, why)], more)`` of one git command and at most `limit` locks.

    `more`: there may be other locks, and asking about them is worthwhile.
    """
    from swarm_hook_core.shell.programs.git import command_line, named_places, touched_files

    top = command_line.tree_of(call)
    if not top:
        return None, [], False
    # The first locks are looked up once for all commands; of many more only those that this one can mean.
    roots = (() if limit == FIRST_LOCKS else tuple(named_places.places(call, top))) or (top,)
    if (roots, limit) not in nearby:
        keys = dict.fromkeys(key for root in roots for key in all_keys(session, root, "/"))
        nearby[roots, limit] = peers.first_around(list(keys), limit)
    found, more = nearby[roots, limit]
    patterns = [lock for lock in found if lock.pattern]
    # Git knows files by their resolved names: the key, where it has not lost its letter case.
    plain = [lock for lock in found if not lock.pattern]
    locked = {next((name for name in reversed(lock.names) if name[:1] == "/"), lock.file): lock for lock in plain}
    for root in session.mounts:
        locked = {_moved(file, root, session.root): lock for file, lock in locked.items()}
    if not found:
        return None, [], more
    covers: list[Cover] = []
    if patterns:
        from swarm_hook_core.pattern_match import Cover

        covers = [cover for cover in map(Cover, patterns) if cover.segments is not None]
    try:
        touch = touched_files.touched(call, list(locked), seconds, covers)
    except Exception as error:
        _fault(call.by, error)
        return None, [(lock, f"`{call.by}`") for lock in found], False
    repository = keys_for(os.path.join(top, ".git"), "/")
    certain = [
        (file, lock)
        for file, lock in locked.items()
        if touch.changes_repository and any(name in repository for name in lock.names)
    ]
    certain += [(file, locked[file]) for file in touch.certain]
    certain += [(file, cover.held) for file, cover in touch.covered]
    if certain and not call.in_doubt:
        return (*certain[0], call.by), [], False
    near = found
    if not touch.unsure:
        near = [lock for _file, lock in certain]
    return None, [(lock, f"`{call.by}`") for lock in near], more and not touch.unsure and touch.changes_repository


def _moved(file: str, old: str, new: str) -> str:
    """`file` as it is called in folder `new`, where it is in `old`."""
    rest = below(file, old)
    if rest is None:
        return file
    return new + rest


def _around(session: Any, folder: str, peers: Any) -> Sequence[Held]:
    """Locks of others in the work tree around `folder`, and on folders over it."""
    locks: Sequence[Held] = peers.around(all_keys(session, git_root(folder), "/"))
    return locks


def named(locks: Sequence[Held], identity: str, own_id: str) -> str:
    """Name the locks and their holders in a line for the model; of many locks only some."""
    from swarm_hook_core import untrusted_text

    some = []
    for lock in locks[:NAMED]:
        who, note, _ask = holder(lock, identity, own_id)
        if lock.mode == "shared":
            who += ", who reads it and keeps it still"
        if note:
            who += "; " + note.removesuffix("; ")
        some.append(f"{untrusted_text.named(lock.file)} (held by {who})")
    more = ""
    if len(locks) > NAMED:
        more = f" and {len(locks) - NAMED} more"
    return ", ".join(some) + more


def _notice(why: str, locks: Sequence[Held], identity: str, own_id: str) -> str:
    """Return one line for the model that names the locks nearby and their holders."""
    from swarm_hook_core import untrusted_text

    return (
        f"swarm: other sessions hold {named(locks, identity, own_id)}. What this call writes cannot be told beforehand"
        f" ({untrusted_text.cut(why, LONGEST_WHY)}); it may go on, but it must leave those files alone, and they are"
        " compared afterwards."
    )


def _strictly(tool: str, why: str, lock: Held, identity: str, own_id: str) -> str:
    from swarm_hook_core import untrusted_text

    who, note, ask = holder(lock, identity, own_id)
    return (
        f"swarm lock blocked {tool}: it may write {untrusted_text.named(lock.file)}"
        f" ({untrusted_text.cut(why, LONGEST_WHY)}), held by {who} ({note}nothing uncertain may run"
        f" here while it is locked: SWARM_STRICT). Name the files that are to be written, work on something else,"
        f" or {ask}."
    )
