"""Removal of journals, of sessions that have ended and old ones; and of versions.

A session's versions outlive it, and its journal with them, in another folder (``versions``). Versions have bounds;
those of files that git ignores are removed, and equal contents share one file. The coordinator runs that, never a
check. A session's first version of a file stays as a marker without content (``w``) as long as its journal is in use:
without it, the session's next write would pass for its first one.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from swarm_hook_core.git_repository import MOST_PATHS, NoAnswer, Refused, Repository
from swarm_hook_core.repository import tree_over
from swarm_hook_core.state import NotOrdinary, clear_place, ended_mark, state_dir
from swarm_hook_core.traces import (
    AGENTS,
    INPUTS,
    PATH,
    head,
    journal,
    journal_name,
    names_in,
    others_in,
    traces_dir,
    transcript,
)
from swarm_hook_core.traces.versions import AGE_SECONDS, HALF, NO_FILE, NOT_KEPT
from swarm_hook_core.traces.versions.stored import ENDED, Version, store_ended

UNKNOWN_SECONDS = 600  # time after its last entry at which the journal of an unknown session is removed
TOTAL_BYTES = 256 * 1024 * 1024  # of all versions
TOTAL_FILES = 20_000
HALF_SECONDS = 3600  # age of a half copy left by a process that is gone
GIT_SECONDS = 0.5  # for the question about ignored files, once a place
STAMP = "%pruned"  # its mtime is the time of the last pruning of a place


def forget(runtime: str, session_id: str) -> None:
    """Remove all journals of a session that has ended, and its notes about HEAD. Never raises."""

    head.forget(runtime, session_id)
    name = journal_name(runtime, session_id)
    for place in _places():
        path = os.path.join(place, name)
        if os.path.exists(path):
            transcript.note_last_end(path, name)
        _remove(path)
        _close(place)
    transcript.forget_client(name)


def prune_journals(is_known: Callable[[str, str], bool], now: float) -> int:
    """Remove journals without a new entry for a day, and those of unknown sessions; return their number.

    `is_known(runtime, session id)`: True if the store has that session. `now` in Unix seconds. Raises OSError. Notes
    about HEAD without a change for a day go, too.
    """
    head.prune(now)
    gone = 0
    for place in _places():
        for path in others_in(place, ""):
            age = now - journal.changed_at(path)
            if age > journal.DAY_SECONDS or (
                age > UNKNOWN_SECONDS and not is_known(*journal.owner_of(_entries_of(path)))
            ):
                _remove(path)
                gone += 1
        # The files of agents in `place` without a journal beside them
        try:
            names = set(os.listdir(place))
        except OSError:
            left_agents = []  # removed just now
        else:
            left_agents = [
                os.path.join(place, name)
                for name in names
                if name.endswith(AGENTS) and name[: -len(AGENTS)] not in names
            ]
        for path in left_agents:
            if now - journal.changed_at(path) > UNKNOWN_SECONDS:
                _remove(path)
        _close(place)
    _forget_ends(now)
    return gone


def _forget_ends(now: float) -> None:
    """Remove marks of calls' ends that no session has noted within a day."""
    folder = os.path.dirname(ended_mark())
    for name in names_in(folder):
        path = os.path.join(folder, name)
        if journal.changed_at(path) < now - journal.DAY_SECONDS:
            _remove(path)


def _places() -> list[str]:
    return [os.path.join(traces_dir(), name) for name in names_in(traces_dir())]


def _entries_of(path: str) -> bytes:
    try:
        return journal.read(path)
    except NotOrdinary:
        return b""  # not a journal: it has no owner


def _remove(path: str) -> None:
    for file in (path + AGENTS,) if store_ended(path) else (path, path + ".1", path + AGENTS):
        try:
            clear_place(file)
            os.remove(file)
        except OSError:
            continue  # missing, or removed by another process


def _close(place: str) -> None:
    try:
        os.rmdir(place)
    except OSError:
        return  # it has other journals


# ------------------------------------------------------------------------------------------------ versions


def prune_versions(now: float) -> int:
    """Remove versions that are too old, over the bounds, or of ignored files; return their number.

    `now` in Unix seconds. Raises OSError.
    """
    gone, left = 0, list[Version]()
    for place in _folders(os.path.join(state_dir(), "kept")):
        copies = []
        for session in _folders(place):
            is_used = os.path.lexists(os.path.join(traces_dir(), *session.split(os.sep)[-2:]))
            old = [one for one in _copies(session) if _is_over(one, now)]
            gone += sum(_drop(one, is_used) for one in old)
            copies += [one for one in _copies(session) if one.has_content or not is_used]
            _drop_old_parts(session, now)
            _close_versions(session, is_used, now)
        ignored = _ignored(place, copies)
        dropped = [one for one in copies if one.file in ignored and not one.is_lost]
        gone += sum(_drop(one, is_used=True) for one in dropped)
        copies = [one for one in copies if one not in dropped]
        _fold(copies)
        left += copies
        if not _folders(place):
            _remove_copy(os.path.join(place, STAMP))
            try:
                os.rmdir(place)
            except OSError:
                continue  # a session came just now
    left.sort(key=lambda one: one.kept_at)
    total, count = sum(_share_of(one) for one in left), len(left)
    for one in left:
        if total <= TOTAL_BYTES and count <= TOTAL_FILES:
            break
        total, count = total - _share_of(one), count - 1
        gone += _drop(one, is_used=True)
    return gone


def _folders(base: str) -> list[str]:
    try:
        with os.scandir(base) as entries:
            return [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
    except FileNotFoundError:
        return []  # nothing was ever kept


def _copies(session: str) -> list[Version]:
    found = []
    for name in names_in(session):
        path = os.path.join(session, name)
        try:
            if not name.startswith((ENDED, INPUTS)) and not name.endswith(PATH):
                found.append(Version(path, os.lstat(path)))
        except FileNotFoundError:
            continue  # removed by another process just now
    return found


def _is_over(one: Version, now: float) -> bool:
    if one.mode & HALF == HALF:
        return one.kept_at < now - HALF_SECONDS
    return one.kept_at < now - AGE_SECONDS


def _drop(one: Version, is_used: bool) -> int:
    """Remove a copy; of a first version leave a marker if its session `is_used`. Return 1 if anything has changed."""
    if one.mark or not is_used:
        return _remove_copy(one.path)
    if one.mode in (NOT_KEPT, NO_FILE):
        return 0
    # Another file in its place: its inode may be that of other versions as well.
    scratch = _scratch(one.path)
    os.close(os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL, NOT_KEPT))
    os.chmod(scratch, NOT_KEPT)
    os.utime(scratch, ns=(one.found.st_atime_ns, one.found.st_mtime_ns))
    os.replace(scratch, one.path)
    return 1


def _scratch(path: str) -> str:
    """Return the path of a new file beside the version at `path`, of a name that no version has."""
    return os.path.join(os.path.dirname(path), f"%tmp{os.urandom(6).hex()}")


def _remove_copy(path: str) -> int:
    try:
        os.remove(path)
    except FileNotFoundError:
        return 0  # another process was faster
    return 1


def _share_of(one: Version) -> int:
    return one.size // max(one.found.st_nlink, 1)


def _close_versions(session: str, is_used: bool, now: float) -> None:
    """Remove the folder of a session that has ended, if it has no version left, with its journal."""
    ended = os.path.join(session, ENDED)
    is_young = os.path.lexists(ended) and os.lstat(ended).st_ctime > now - AGE_SECONDS
    if is_used or is_young or _copies(session):
        return
    for name in (ENDED, ENDED + ".1", *_parts(session)):
        _remove_copy(os.path.join(session, name))
    try:
        os.rmdir(session)
    except OSError:
        return  # a version came just now


def _drop_old_parts(session: str, now: float) -> None:
    """Remove inputs and noted paths that are as old as the oldest versions."""
    for name in _parts(session):
        path = os.path.join(session, name)
        try:
            if os.lstat(path).st_mtime < now - AGE_SECONDS:
                _remove_copy(path)
        except FileNotFoundError:
            continue  # removed by another process just now


def _parts(session: str) -> list[str]:
    """Return the names of files beside versions: inputs, two at most, and the paths of cut names."""
    return [name for name in names_in(session) if name in (INPUTS, INPUTS + ".1") or name.endswith(PATH)]


# ------------------------------------------------------------------------------------------------ ignored files


def _ignored(place: str, copies: list[Version]) -> set[str]:
    """Return the files among those of `copies` that git ignores, asked since the last pruning of this place."""
    stamp = os.path.join(place, STAMP)
    try:
        since = os.stat(stamp).st_mtime - 60
    except FileNotFoundError:
        since = 0.0
    files = {one.file for one in copies if one.file and one.has_content and not one.is_lost and one.kept_at > since}
    if not files:
        return set()
    handle = os.open(stamp, os.O_WRONLY | os.O_CREAT, 0o600)
    os.close(handle)
    os.utime(stamp)
    tops: dict[str, dict[str, str]] = {}
    for file in sorted(files):
        tree = tree_over(os.path.dirname(file))
        if tree is not None and os.path.lexists(file):  # git does not list a missing file
            tops.setdefault(tree.top, {})[os.path.relpath(file, tree.top)] = file
    found: set[str] = set()
    for top, names in tops.items():
        some = list(names)[:MOST_PATHS]
        try:
            repository = Repository(top, GIT_SECONDS)
            known = {*repository.tracked(some), *repository.untracked(some)}
        except (NoAnswer, Refused):
            continue  # asked about again with the next version in this place
        unknown = {names[name] for name in some if name not in known}
        found |= {file for file in unknown if os.path.lexists(file)}  # one may have been removed meanwhile
    return found


# ------------------------------------------------------------------------------------------------ equal contents


def _fold(copies: list[Version]) -> None:
    """Have equal versions of one file share one inode. Its times are those of the first of them.

    Later versions have their time in their names; a session's first version keeps an inode of its own.
    """
    groups: dict[tuple[str, int, int], list[Version]] = {}
    for one in copies:
        if one.has_content and one.size and one.mark:
            groups.setdefault((one.file or one.path, one.size, one.mode), []).append(one)
    for group in groups.values():
        if len({one.found.st_ino for one in group}) < 2:
            continue
        by_content: dict[bytes, Version] = {}
        for one in group:
            first = by_content.setdefault(_content_of(one), one)
            if first.found.st_ino != one.found.st_ino:
                _share(first.path, one.path)


def _share(first: str, path: str) -> None:
    scratch = _scratch(path)
    try:
        os.link(first, scratch)
        os.replace(scratch, path)
    except OSError:
        return  # a file system without links, or a version that is gone by now


def _content_of(one: Version) -> bytes:
    try:
        return one.content()
    except OSError:
        return one.path.encode("utf-8", "surrogateescape")  # gone: equal to nothing else
