"""The contents that one call keeps: of files before it writes them, and of files that it destroys (``versions``)."""

from __future__ import annotations

import os
import time

from swarm_hook_core.json_text import dumps
from swarm_hook_core.state import rotate, write_all
from swarm_hook_core.traces import (
    AFTER,
    FEW,
    INPUTS,
    LATER,
    LIMIT_INPUTS,
    LONGEST_INPUT,
    LOOK,
    LOST,
    escaped,
    has_versions,
    kept_dir,
    plain_word,
    state_of,
    version_path,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_hook_core.traces.trail import Trail

NEAR_NS = 10**8  # a file that changes later after the check of a write is looked at: others may have changed it
_APPEND = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)


def before(trail: Trail, path: str, at_ns: int, keeps_each: bool, is_known: bool) -> None:
    """Keep the content of the file at `path`, before the session's first write of it or if `keeps_each`.

    `is_known`: the call's input tells the content after it. Else the next write keeps a version in any case.
    """
    target = _version_path(trail, path)
    try:
        first = os.lstat(target)
    except OSError:
        _keep(trail, path, target, at_ns)  # the session's first write of the file
        if is_known:
            return
        begun_ns = at_ns
    else:
        begun_ns = first.st_mtime_ns
        if keeps_each or not is_known or not _is_own(path, first.st_atime_ns):
            _keep(trail, path, f"{target}{LATER}{at_ns}", at_ns)
    try:
        os.utime(target, ns=(at_ns * is_known, begun_ns))
    except OSError:
        return  # it could not be kept


def _is_own(path: str, last_ns: int) -> bool:
    """Return True if the file at `path` has not changed after the session's last write, checked at `last_ns`."""
    try:
        return os.lstat(path).st_ctime_ns < last_ns + NEAR_NS
    except OSError:
        return True  # missing: there is nothing to keep


def own_files(trail: Trail, folder: str, at_ns: int) -> None:
    """Keep the session's changed files before a command that may write any of them (``versions.own_files``).

    `folder`: the session's versions in the place of the call.
    """
    from swarm_hook_core.traces.versions.own_files import changed_since_kept

    try:
        paths = changed_since_kept(folder)
    except OSError:
        return  # pruned just now: the command's changes count as doubtful
    if paths is None:
        return
    for path in paths:
        before(trail, path, at_ns, keeps_each=True, is_known=False)
        trail.note("before", path, at_ns=at_ns)
    trail.note_at(trail.call.folder, "kept", at_ns=at_ns)


def redirected(trail: Trail, command: str, at_ns: int) -> None:
    """Keep the files that an unparsed command redirects to, and collect their states."""
    from swarm_hook_core.traces.redirections import redirected_files

    for spelled in redirected_files(command, trail.call.folder)[:FEW]:
        path = trail.resolved("/", spelled)
        if path and (not path.startswith("/dev/") or path.startswith("/dev/shm/")):
            before(trail, path, at_ns, keeps_each=True, is_known=False)
            trail.note("before", path, at_ns=at_ns)


def after(trail: Trail, path: str, text: str, at_end: bool) -> None:
    """Collect the state `text` that the session's own write has left; keep the content as a version.

    `at_end`: right at the end of the call, not at a later one.
    """
    at_ns = time.time_ns()
    _keep(trail, path, f"{_version_path(trail, path)}{AFTER if at_end else LOOK}{at_ns}", at_ns)
    trail.note("is", path, text, at_ns)


def known_input(trail: Trail, given: object) -> str:
    """Return the input `given` to a write tool as JSON; empty if the content after the call cannot be told from it."""
    call = trail.call
    if call.tool not in trail.config.write_tools or call.is_cut:
        return ""

    text = dumps(given)
    if len(text) > LONGEST_INPUT:
        return ""
    return text


def write_input(trail: Trail, written: dict[str, int], given: str) -> None:
    """Append the input `given` to the inputs beside the versions. `written`: path -> time of its entry."""
    kept = {trail.place_of(os.path.dirname(path)) for path in written if has_versions(path)}
    times = f"{min(written.values())} {max(written.values())} {plain_word(trail.call.tool)}".encode("ascii", "replace")
    data = times + b"\0" + escaped(trail.call.folder) + b"\0" + given.encode("utf-8", "surrogateescape") + b"\n"
    for place in kept:
        path = os.path.join(kept_dir(place), trail.own_name, INPUTS)
        try:
            handle = os.open(path, _APPEND, 0o600)
            try:
                is_full = os.fstat(handle).st_size > LIMIT_INPUTS
                write_all(handle, data)
                if is_full:
                    rotate(path, handle)
            finally:
                os.close(handle)
        except OSError as error:  # a full disk: the write itself is noted
            _record(trail, error)


def lost(trail: Trail, path: str) -> str:
    """Keep the content of the file at resolved `path` before this call destroys it; return the copy's path.

    Empty if it cannot be kept. No version: the call may be no write of the file (``versions``).
    """
    if path not in trail.lost:
        state = state_of(path)
        trail.lost[path] = (_lost(trail, path), state)
    return trail.lost[path][0]


def lost_text(trail: Trail, path: str, data: bytes) -> None:
    """Keep `data`, a content of the file at resolved `path` that this call destroys elsewhere. Raises OSError."""
    from swarm_hook_core.traces import versions

    if len(data) <= versions.LIMIT_BYTES:
        at_ns = time.time_ns()
        versions.keep_text(data, f"{_version_path(trail, path)}{LOST}{at_ns}", at_ns)


def _lost(trail: Trail, path: str) -> str:
    from swarm_hook_core.traces import versions

    at_ns = time.time_ns()
    try:
        target = f"{_version_path(trail, path)}{LOST}{at_ns}"
        found = os.lstat(path)
        if found.st_mode & 0o170000 != 0o100000 or found.st_size > versions.LIMIT_BYTES:
            return ""
        versions.keep(path, target, at_ns)
        return target if os.stat(target).st_mode & versions.HALF == versions.CONTENT else ""
    except (OSError, ValueError):
        return ""  # gone, unreadable, or a full disk: the call was judged without it


def _keep(trail: Trail, path: str, target: str, at_ns: int) -> None:
    """Keep the content of the file at `path` as the version `target`."""
    if trail.is_asked or not has_versions(path):
        return
    from swarm_hook_core.traces import versions

    lost, state = trail.lost.get(path, ("", ""))
    try:
        if lost and state == state_of(path) and versions.keep_again(lost, target, at_ns):
            return
        versions.keep(path, target, at_ns)
    except OSError as error:  # a full disk: the write itself is noted
        _record(trail, error)


def _version_path(trail: Trail, path: str) -> str:
    return version_path(trail.place_of(os.path.dirname(path)), trail.own_name, path)


def _record(trail: Trail, error: OSError) -> None:
    from swarm_hook_core import faults

    faults.record_hourly(trail.config.runtime_name, "versions", error)
