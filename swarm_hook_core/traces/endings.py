"""Calls that are over: what they have not written by then they will not write, and nobody is kept from it any more.

A session's next call says so of the ones before it (``seen.note_what_was_left``); here are the end of a turn, and the
end of a call where another session was denied for a write of it that was still to come. Such an end is *awaited*: a
file says so, in a folder that is there only while one is, so that the ends of most calls start nothing.
"""

import os
import time

from swarm_hook_core.state import awaited_dir, make_private, open_private
from swarm_hook_core.traces import journal_name, seen, traces_dir, trail_of
from swarm_hook_core.traces import line as entry_line

TAIL = 8192  # bytes at the end of a journal in which calls are looked for
AGE_SECONDS = 3600  # a meeting that is older is awaited by nobody


def await_end(name: str) -> None:
    """Have the end of calls told of the session whose journal has this `name`. Raises OSError."""
    make_private(awaited_dir())
    os.close(open_private(os.path.join(awaited_dir(), name), os.O_WRONLY | os.O_CREAT))


def call_is_over(core, call) -> None:
    """Note what a call that has ended has left of the files that it was let write, where others await that."""
    if not call.session_id or call.goes_on:
        return
    awaited = os.path.join(awaited_dir(), journal_name(core.config.runtime_name, call.session_id))
    if not os.path.lexists(awaited):
        _forget_old(time.time())
        return
    trail = trail_of(core.config, call)
    if trail is None:
        return
    from swarm_hook_core.opaque_calls import effects_of
    from swarm_hook_core.traces import journal

    effects = None if call.tool in core.config.write_tools else effects_of(call)
    paths = {target[1] for target in trail.targets_of(effects)}
    places = {trail.place_of(os.path.dirname(path)) for path in paths}
    noted = [
        seen.note_what_was_left(journal.read(os.path.join(place, trail.own_name)), trail, paths) for place in places
    ]
    if effects is not None and not any(noted):
        trail.note_at(call.folder, "over")  # nobody had read it: its files are not noted one by one
    trail.leave()
    _forget(awaited)


def turn_is_over(core, event) -> None:
    """Note that all calls of a session, or of its subagent, are over, where one has been let write lately."""
    if not event.session_id:
        return
    name, at_ns = journal_name(core.config.runtime_name, event.session_id), time.time_ns()
    try:
        places = os.listdir(traces_dir())
    except (FileNotFoundError, NotADirectoryError):
        return
    for place in places:
        path = os.path.join(traces_dir(), place, name)
        try:
            handle = open_private(path, os.O_RDWR | os.O_APPEND)
        except (FileNotFoundError, NotADirectoryError):
            continue
        try:
            size = os.fstat(handle).st_size
            os.lseek(handle, max(size - TAIL, 0), os.SEEK_SET)
            if _has_open_calls(os.read(handle, TAIL), event.agent, at_ns):
                os.write(handle, b"\n" + entry_line("over", event.cwd or "/", _Ending(event.agent)))
        finally:
            os.close(handle)
    _forget(os.path.join(awaited_dir(), name))


class _Ending:
    """What an entry about the end of a turn says of the call that it is about."""

    tool = ""

    def __init__(self, agent: str):
        self.agent = agent


def _has_open_calls(data: bytes, agent: str, at_ns: int) -> bool:
    """Whether the agent has begun a call in the last minutes, and nothing has said since that all are over."""
    from swarm_hook_core.traces.others import OVERDUE_SECONDS

    for raw in reversed(data.split(b"\n")):
        words = raw.partition(b"\0")[0].split(b" ")
        if len(words) != 4 or not words[0].isdigit() or words[2] != (agent or "-").encode():
            continue
        if words[1] == b"over" or int(words[0]) < at_ns - OVERDUE_SECONDS * 10**9:
            return False
        if words[1] in (b"wrote", b"ran", b"will"):
            return True
    return False


def _forget(path: str) -> None:
    try:
        os.remove(path)
        os.rmdir(awaited_dir())
    except OSError:
        return  # it is not there, or others are awaited


def _forget_old(now: float) -> None:
    try:
        names = os.listdir(awaited_dir())
    except OSError:
        return
    for name in names:
        path = os.path.join(awaited_dir(), name)
        try:
            if os.lstat(path).st_mtime < now - AGE_SECONDS:
                _forget(path)
        except OSError:
            continue
