"""Ends of calls and turns: a write that was let pass but not made by then is no longer pending.

A session's next call notes the end of its earlier calls (``seen.note_what_was_left``). This module notes the end of a
turn, and the end of a call for which another session was denied. Such a call is *awaited*: a file in the awaited folder
says so. The folder exists only while a call is awaited, so most calls load nothing at their end.

A commit with hooks that put unstaged changes aside, or reset the work tree (``commit_hooks``), notes the top of its
work tree (``aside``) when it is let pass, and its end (``back``) afterwards, at the latest with its agent's next call.
Writes of other sessions in that work tree meet the entry.
"""

from __future__ import annotations

import os
import time

from swarm_hook_core.config import RuntimeConfig
from swarm_hook_core.hooks import SessionEvent, ToolCall
from swarm_hook_core.state import awaited_dir, open_in_private, open_private, write_all
from swarm_hook_core.traces import (
    OFF,
    journal,
    journal_name,
    level,
    names_in,
    place_of,
    traces_dir,
    version_path,
)
from swarm_hook_core.traces import entry as new_entry
from swarm_hook_core.traces.journal import Entry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_hook_core.core import HookCore
    from swarm_hook_core.traces.trail import Trail

TAIL = 8192  # bytes at a journal's end that are searched for open calls
AGE_SECONDS = 3600  # age at which an awaited end is given up


def await_end(name: str) -> None:
    """Have the ends of calls noted for the session with the journal `name`. Raises OSError."""
    os.close(open_in_private(os.path.join(awaited_dir(), name), os.O_WRONLY | os.O_CREAT))


def call_is_over(core: HookCore, call: ToolCall) -> None:
    """Note the files of a call that has ended as it left them, if another session awaits its end."""
    if not call.session_id or call.goes_on:
        return
    awaited = os.path.join(awaited_dir(), journal_name(core.config.runtime_name, call.session_id))
    if not os.path.lexists(awaited):
        _forget_old(time.time())
        return
    from swarm_hook_core.traces import seen
    from swarm_hook_core.traces.trail import trail_of

    trail = trail_of(core.config, call)
    if trail is None:
        return
    from swarm_hook_core.opaque_calls import effects_of

    if call.tool in core.config.write_tools:
        effects = None
    else:
        effects = effects_of(call)
    paths = {target[1] for target in trail.targets_of(effects)}
    places = {trail.place_of(os.path.dirname(path)) for path in paths}
    noted = [
        seen.note_what_was_left(journal.read_own(os.path.join(place, trail.own_name)), trail, paths) for place in places
    ]
    if effects is not None and not any(noted):
        trail.note_at(call.folder, "over")  # the command was never parsed: end it as a whole
    trail.leave()
    forget(awaited)


def turn_is_over(core: HookCore, event: SessionEvent) -> None:
    """Note the end of all calls of a session, or of its sub-agent, if one was let pass lately."""
    if not event.session_id:
        return
    name, at_ns = journal_name(core.config.runtime_name, event.session_id), time.time_ns()
    for place in names_in(traces_dir()):
        path = os.path.join(traces_dir(), place, name)
        if event.agent and event.name == "SubagentStop":
            from swarm_hook_core.traces import others

            others.end(os.path.dirname(path), name, event.agent)
        try:
            handle = open_private(path, os.O_RDWR | os.O_APPEND)
        except (FileNotFoundError, NotADirectoryError):
            continue  # the session has no journal there
        try:
            size = os.fstat(handle).st_size
            os.lseek(handle, max(size - TAIL, 0), os.SEEK_SET)
            calls = _calls_since_end(os.read(handle, TAIL), event.agent)
            if calls:
                write_all(handle, b"\n" + new_entry(at_ns, "over", event.agent, "", event.cwd or "/"))
                _begin_versions_anew(os.path.dirname(path), name, calls)
        finally:
            os.close(handle)
    for awaited in names_in(awaited_dir()):
        if awaited == name or awaited.startswith(f"{name}."):
            forget(os.path.join(awaited_dir(), awaited))


def _calls_since_end(data: bytes, agent: str) -> list[bytes]:
    """Return the agent's entries about writes and commands since the last entry that all its calls are over."""
    found = []
    for words, raw in journal.heads(data, newest_first=True):
        if words[2] != (agent or "-").encode():
            continue
        if words[1] == b"over" and words[3] == b"-":
            break
        if words[1] in (b"wrote", b"ran", b"runs", b"will", b"takes"):
            found.append(raw)
    return found


def _begin_versions_anew(place: str, name: str, calls: list[bytes]) -> None:
    """Have the next turn's first write of each file written in this one keep a version: so an undo can take back a
    turn.
    """
    for raw in calls:
        try:
            entry = Entry(raw)
            first = version_path(place, name, entry.key)
            os.utime(first, ns=(0, os.lstat(first).st_mtime_ns))
        except (OSError, ValueError):
            continue  # a command, a torn line, or a file without a version


def forget(path: str) -> None:
    """Remove a file of the awaited folder, and the folder if it was the last one."""
    try:
        os.remove(path)
        os.rmdir(awaited_dir())
    except OSError:
        return  # missing, or others are still awaited


def _forget_old(now: float) -> None:
    try:
        names = os.listdir(awaited_dir())
    except OSError:
        return  # no end is awaited
    for name in names:
        path = os.path.join(awaited_dir(), name)
        try:
            if os.lstat(path).st_mtime < now - AGE_SECONDS:
                forget(path)
        except OSError:
            continue  # removed by another hook just now


# -------------------------------------------------------------------------------- commits with hooks


def open_commits(data: bytes, now: float) -> list[Entry]:
    """Return the ``aside`` entries in the journal `data` without an end."""
    if not journal.has_kind(data, b"aside"):
        return []
    found = []
    for entry in journal.newest_of(data, "aside"):
        if entry.at_ns / 1e9 < now - journal.ASIDE_SECONDS:
            break
        last = journal.newest(data, entry.key, ("aside", "back"))
        if last is not None and last.kind == "aside":
            found.append(entry)
    return found


def commits_around(path: str, data: bytes, now: float) -> list[Entry]:
    """Return the entries of `open_commits` about the work tree of the file at `path`."""
    return [entry for entry in open_commits(data, now) if _is_in_tree(path, entry)]


def note_commits_over(own: bytes, trail: Trail, now: float) -> None:
    """Note in `trail` the end of the calls that the journal `own` lists as running, for the trail's agent."""
    for entry in open_commits(own, now):
        if entry.agent == trail.call.agent:
            trail.note_at(entry.key, "back")


def commit_is_over(config: RuntimeConfig, call: ToolCall, now: float) -> None:
    """Note the end of `call`: it puts nothing aside any more. Raises OSError."""
    place = place_of(call.folder)
    own = journal.read_own(os.path.join(place, journal_name(config.runtime_name, call.session_id)))
    if open_commits(own, now):
        from swarm_hook_core.traces.trail import Trail

        trail = Trail(config, call, level(config.env_prefix, call.folder))
        if trail.level != OFF:
            note_commits_over(own, trail, now)
            trail.leave()


def _is_in_tree(path: str, entry: Entry) -> bool:
    """Return True if the file at `path` is in the work tree with the top that is the entry's key."""
    if not path.startswith(entry.key + "/"):
        return False
    from swarm_hook_core.repository import tree_over

    tree = tree_over(os.path.dirname(path), is_real=True)
    return tree is not None and tree.top == entry.key
