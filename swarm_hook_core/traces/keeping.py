"""The contents that one call keeps: of files before it writes or destroys them, and the records of undos.

Nothing tells beforehand the files that an unread command writes. So each file with a version of this session is kept
once more right before it, if it has changed since its newest version: its changes are told from a person's then. An
entry ``kept`` with the command's time says that the content of all these files is known as it was then. Of a file
without a version it is not: a person may have changed it before.
"""

from __future__ import annotations

import os
import time
from typing import Any

from swarm_hook_core import state
from swarm_hook_core.json_text import dumps
from swarm_hook_core.state import (
    end_by_mark,
    hook_starter,
    make_private,
    rotate,
    state_dir,
    write_all,
    write_private,
)
from swarm_hook_core.traces import (
    AFTER,
    CUT,
    FEW,
    INPUTS,
    LATER,
    LIMIT_INPUTS,
    LONGEST_INPUT,
    LOOK,
    LOST,
    MERGED,
    escaped,
    has_versions,
    journal,
    kept_dir,
    plain_word,
    state_of,
    versions,
)
from swarm_hook_core.traces.unread import redirected_files
from swarm_hook_core.traces.versions import read_name, split_name

TYPE_CHECKING = False

if TYPE_CHECKING:
    from swarm_hook_core.traces.trail import Trail

MOST_NAMES = 200  # versions of the session that are looked through: 0.2 ms
MOST_FILES = 64  # files of these, with up to two looks at the disk each: the whole stays under 0.5 ms
MOST_COPIES = 20  # files that are kept before one command
_TIMED = (LATER, LOOK, AFTER)  # marks with a time and nothing more behind them
_APPEND = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)


def before(trail: Trail, path: str, at_ns: int, keeps_each: bool, is_known: bool) -> None:
    """Keep the content of the file at `path`, before the session's first write of it or if `keeps_each`.

    `is_known`: the call's input tells the content after it. Else the next write keeps a version in any case.
    """
    target = trail.version_path(path)
    try:
        first = os.lstat(target)
    except OSError:
        _keep(trail, path, target, at_ns)  # the session's first write of the file
        if is_known:
            return
        begun_ns = at_ns
    else:
        begun_ns = first.st_mtime_ns
        if keeps_each or not is_known or not _is_own(trail, path, first.st_atime_ns):
            _keep(trail, path, f"{target}{LATER}{at_ns}", at_ns)
    try:
        os.utime(target, ns=(at_ns * is_known, begun_ns))
    except OSError:
        return  # it could not be kept


def _is_own(trail: Trail, path: str, last_ns: int) -> bool:
    """Return True if the file at `path` is as the session's last write has left it, checked at `last_ns`, 0 if unknown.

    The hook after that call tells its end, if no other call has come since. Without an end, a later change may be
    another's.
    """
    try:
        changed_ns = os.lstat(path).st_ctime_ns
        if changed_ns < last_ns:
            return True
        ended_ns, session_id, _agent = end_by_mark(hook_starter(trail.config.runtime_name))
        if session_id not in ("", trail.call.session_id) or not last_ns <= changed_ns <= ended_ns:
            return False
        own = os.path.join(trail.place_of(os.path.dirname(path)), trail.own_name)
        return last_ns > 0 and os.stat(own).st_mtime_ns <= changed_ns
    except OSError:
        return not os.path.lexists(path)  # a missing file has nothing to keep


def own_files(trail: Trail, folder: str, at_ns: int) -> None:
    """Keep the session's changed files before a command that may write any of them.

    `folder`: the session's versions in the place of the call.
    """
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
    _keep(trail, path, f"{trail.version_path(path)}{AFTER if at_end else LOOK}{at_ns}", at_ns)
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
    if len(data) <= versions.LIMIT_BYTES:
        at_ns = time.time_ns()
        versions.keep_text(data, f"{trail.version_path(path)}{LOST}{at_ns}", at_ns)


def _lost(trail: Trail, path: str) -> str:
    at_ns = time.time_ns()
    try:
        target = f"{trail.version_path(path)}{LOST}{at_ns}"
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
    lost, state = trail.lost.get(path, ("", ""))
    try:
        if lost and state == state_of(path) and versions.keep_again(lost, target, at_ns):
            return
        versions.keep(path, target, at_ns)
    except OSError as error:  # a full disk: the write itself is noted
        _record(trail, error)


def _record(trail: Trail, error: OSError) -> None:
    state.record_hourly(trail.config.runtime_name, "versions", error)


# -------------------------------------------------------------------------------- changed files


def changed_since_kept(folder: str) -> list[str] | None:
    """Return the paths of the files that have changed since their newest version in `folder`.

    `folder`: the versions of one session in one place. None if they are too many, or if a version's name is too long
    to hold the path of its file. Raises OSError.
    """
    names = os.listdir(folder)
    if len(names) > MOST_NAMES:
        return None
    newest: dict[str, tuple[int, str]] = {}  # name of the first version -> time and name of the newest; 0 of the first
    for name in names:
        first, at_ns = _first_and_time(name)
        if at_ns >= newest.get(first, (0, ""))[0]:
            newest[first] = at_ns, name
    newest.pop("", None)
    if len(newest) > MOST_FILES:
        return None
    found = []
    for first, (at_ns, name) in newest.items():
        path = first.replace("%2F", "/")
        if "%" in path:
            path = read_name(first)[0]
        if path[:1] != "/" and not os.path.isabs(path):
            if CUT in first:
                return None
            continue
        copy = f"{folder}/{name}"
        if _differs(path, at_ns or os.lstat(copy).st_mtime_ns, copy):
            found.append(path)
    if len(found) > MOST_COPIES:
        return None
    return found


def _first_and_time(name: str) -> tuple[str, int]:
    """Return the name of the first version of the file, and the version's time, 0 for the first one.

    The name is empty for a content that was never the file's, or was kept for `swarm-mcp restore` alone.
    """
    at = name.rfind("%")
    mark, rest = name[at : at + 2], name[at + 2 :]
    if mark in _TIMED and rest.isdigit():
        return name[:at], int(rest)
    if mark == "%2":  # the last slash of the path: most names are first versions
        return name, 0
    first, mark, at_ns = split_name(name)
    if mark in (LOST, MERGED):
        return "", 0
    return first, at_ns


def _differs(path: str, at_ns: int, copy: str) -> bool:
    """Return True if the file at `path` may differ from its `copy` of that time."""
    try:
        return os.lstat(path).st_ctime_ns > at_ns - journal.SLACK_NS
    except OSError:
        return bool(os.lstat(copy).st_mode & versions.CONTENT)  # the file is missing


# The form of an undo's record, for both programs that write one: `swarm-mcp undo`, and the note of a rewind.
#
# A record is a JSON object in `<state>/undos/<id>.json`, with the facts of `RECORD` and a list of `files`, each with
# the facts of `FILE`. A fact has the type of its default here. `swarm_mcp.changes.records` says what each of them
# means.

RECORD: dict[str, Any] = {
    "id": "", "whose": ["", ""], "by": ["", ""], "undoes": "", "at": 0.0, "pid": 0, "started": "",
}  # fmt: skip
FILE: dict[str, Any] = {
    "path": "", "before": False, "after": False, "mode_before": 0, "mode_after": 0, "is_whole": False, "state": "",
    "at_ns": 0, "taken": [],
}  # fmt: skip


def undos_dir() -> str:
    """Return the folder of all undos. It need not exist."""
    return os.path.join(state_dir(), "undos")


def record_of(files: list[dict[str, Any]], **facts: Any) -> dict[str, Any]:
    """Return the record of an undo of these `files`. Raises TypeError as `file_of`."""
    return {**_filled(RECORD, facts), "files": files}


def file_of(**facts: Any) -> dict[str, Any]:
    """Return the facts of one file; missing ones have their defaults. Raises TypeError for a wrong name or type."""
    return _filled(FILE, facts)


def _filled(defaults: dict[str, Any], facts: dict[str, Any]) -> dict[str, Any]:
    for name, value in facts.items():
        checked(value, defaults.get(name))
    return {**defaults, **facts}


def checked(value: Any, like: Any) -> Any:
    """Return `value` if it is of the same type as `like`. Raises TypeError."""
    if type(value) is not type(like):
        raise TypeError(f"{value!r:.60} is not like {like!r:.60}")
    return value


def write(record: dict[str, Any]) -> None:
    """Write down an undo that is over. Raises OSError."""
    make_private(undos_dir())
    write_private(os.path.join(undos_dir(), f"{record['id']}.json"), dumps(record))
