"""Locked files around an edit, compared at the session's next hook: another plugin may run a formatter after edits.

    <state>/watched-edits/<session>    the session's last edit that went ahead beside locks of others

Clients run such a formatter at the same time as our own hook after the edit, so a comparison there would come too
early. These records are not in `watched`: while that folder exists, all sessions' hooks start Python after each call.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from swarm_hook_core import process
from swarm_hook_core.config import RuntimeConfig
from swarm_hook_core.hooks import SessionEvent, ToolCall
from swarm_hook_core.json_text import dumps, loads
from swarm_hook_core.lookup import HOLD, TERMINAL, Held, Peers, Session
from swarm_hook_core.paths import all_keys, git_root
from swarm_hook_core.state import edited_dir, name_of, read_private, write_private
from swarm_hook_core.watching import records, watch
from swarm_hook_core.watching.watch import Breach

MOST_LOCKS = 40
MOST_FILES = 60
_NEXT_EDIT = "edit"
# Holders without hooks: a person's terminal, and a command that holds a lock while it runs.
_UNMARKED = (TERMINAL, HOLD)


def begin(
    config: RuntimeConfig, call: ToolCall, paths: list[str], session: Session, peers: Peers, store: Callable[[], Any]
) -> list[Breach]:
    """Note the locked files around an edit of `paths` that goes ahead; return the breaches since the session's last.

    `store`: as for ``watch.begin``.
    """
    try:
        if not call.session_id:
            return []
        breaches = _settled(config, call.session_id, _NEXT_EDIT)
        held = _near(call, session, peers)
        if held:
            _note(config, call, paths, held, store())
            call.is_edit_watched = True
        elif os.path.isdir(edited_dir()):
            _close()
        return breaches
    except Exception as error:
        watch.record_fault(config, error)
        return []


def settle(config: RuntimeConfig, event: SessionEvent) -> list[Breach]:
    """Return the breaches since the session's last edit. The record goes, unless this is a PreToolUse soon after."""
    if isinstance(event, ToolCall) and event.is_edit_watched:
        return []  # the record is of this very moment
    # A compacted session goes on.
    return _settled(config, event.session_id, "Stop" if event.source == "compact" else event.name)


def _settled(config: RuntimeConfig, session_id: str, hook: str) -> list[Breach]:
    global _last
    taken = _taken(session_id)
    if taken is None:
        return []
    mine, facts = taken
    try:
        goes_on = hook == "PreToolUse" and time.time_ns() < facts["began"] + watch.EDIT_NS
        is_untouched = watch.are_untouched(facts)  # mostly
        if is_untouched and goes_on:
            os.rename(mine, _path(session_id))
            return []
        breaches: list[Breach] = []
        if not is_untouched:
            _last, breaches = None, watch.compare(facts, True)
        _remove(mine)
        if goes_on:
            _write(session_id, facts)
        elif hook != _NEXT_EDIT:  # the next edit makes a record of its own, and needs the holders' marks
            _close()
        return breaches
    except Exception as error:
        watch.record_fault(config, error)
        _remove(mine)
        _close()
        return []


def _near(call: ToolCall, session: Session, peers: Peers) -> list[Held]:
    """Return locks of others in the same checkout, without those on patterns and those of holders without hooks.

    A report leaves out the locks of sessions that have gone: to ask for each session would cost more than all else.
    """

    found = peers.all_under(all_keys(session, git_root(call.folder), "/"), MOST_LOCKS)
    return [
        held
        for held in found[:MOST_LOCKS]
        if not held.pattern and not (held.agent or "").startswith("hold:")
        and (held.evidence is None or held.evidence["runtime"] not in _UNMARKED)
    ]  # fmt: skip


def _note(config: RuntimeConfig, call: ToolCall, paths: list[str], held: list[Held], kept: Any) -> None:
    if _last is not None and _last.held == held and watch.are_kept(_last.facts):
        locks, text = _last.facts["locks"], _last.locks  # `_settled` has just found them untouched
    else:
        locks, text = watch.locks_as_they_are(held, MOST_FILES, kept), ""
    facts = {
        "runtime": config.runtime_name,
        "tool": call.client_tool or call.tool,
        "command": _edit_of(call, paths),
        "id": call.id,
        "began": time.time_ns(),
        "edit": True,
        "locks": locks,
    }
    _write(call.session_id, facts, held, text)


class _Last(NamedTuple):
    """The record that this process has written last: a checker does not read it again, nor look for `held` anew.

    `locks`: their JSON, most of the record.
    """

    path: str
    mark: tuple[int, ...]
    facts: dict[str, Any]
    held: Sequence[Held]
    locks: str


_last: _Last | None = None


def _write(session_id: str, facts: dict[str, Any], held: Sequence[Held] = (), locks: str = "") -> None:
    global _last
    path, _last = _path(session_id), None
    locks = locks or dumps(facts["locks"])
    others = dumps({name: value for name, value in facts.items() if name != "locks"})
    write_private(path, f'{others.removesuffix("}")}, "locks": {locks}}}')
    try:
        _last = _Last(path, _mark(path), facts, held, locks)
    except FileNotFoundError:
        pass  # another hook has taken it


def _mark(path: str) -> tuple[int, ...]:
    """Return a mark that a record keeps while it is renamed, and that no other record has."""
    found = os.lstat(path)
    return (found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size)


def _edit_of(call: ToolCall, paths: list[str]) -> str:
    """Return the edit in a few words: the tool and its first file."""
    name = ""
    if paths:
        name = os.path.relpath(paths[0], call.folder)
    more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
    return f"{call.client_tool or call.tool} {name}{more}".strip()[: watch.COMMAND_LENGTH]


def _path(session_id: str) -> str:
    return os.path.join(edited_dir(), name_of(session_id))


def _taken(session_id: str) -> tuple[str, dict[str, Any]] | None:
    """Take the record of a session's last edit: its path from now on, and its facts; None if there is no record."""
    global _last
    path = _path(session_id)
    mine = f"{path}.{os.getpid()}.taken"
    last, _last = _last, None
    try:
        os.rename(path, mine)
    except OSError:
        return None  # no record, or another hook has it
    try:
        if last is not None and process.is_answering() and last[:2] == (path, _mark(mine)):
            _last = last
            return mine, last.facts
        facts = loads(os.fsdecode(read_private(mine, records.LARGEST_RECORD)))
    except (OSError, ValueError, RecursionError):
        facts = None
    if isinstance(facts, dict):
        return mine, facts
    _remove(mine)
    _close()
    return None


def _remove(path: str) -> None:
    try:
        os.remove(path)
    except FileNotFoundError:
        pass  # it was a day old, and another session's hook has removed it


def _close() -> None:
    """Remove the folder if it is empty, and then the holders' marks."""
    try:
        os.rmdir(edited_dir())
    except OSError:
        _drop_old()
        return
    records.close()


def _drop_old() -> None:
    """Remove the records of killed sessions."""
    end = time.time() - records.DROPPED_SECONDS
    try:
        for entry in os.scandir(edited_dir()):
            if entry.stat(follow_symlinks=False).st_mtime < end:
                os.remove(entry.path)
    except OSError:
        return  # no records, or another hook removes them
