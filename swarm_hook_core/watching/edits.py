"""Locked files around an edit, compared at the session's next hook: another plugin may run a formatter after edits.

    <state>/watched-edits/<session>    the session's last edit that went ahead beside locks of others

Clients run such a formatter at the same time as our own hook after the edit, so a comparison there would come too
early. These records are not in `watched`: while that folder exists, all sessions' hooks start Python after each call.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

from swarm_hook_core.config import RuntimeConfig
from swarm_hook_core.hooks import SessionEvent, ToolCall
from swarm_hook_core.lookup import HOLD, TERMINAL, Held, Peers, Session
from swarm_hook_core.paths import all_keys, git_root
from swarm_hook_core.state import edited_dir, name_of
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
        breaches, untouched = _settled(config, call.session_id, _NEXT_EDIT)
        held = _near(call, session, peers)
        if held:
            _note(config, call, paths, watch.look_at(held, MOST_FILES, store(), untouched))
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
    return _settled(config, event.session_id, "Stop" if event.source == "compact" else event.name)[0]


def _settled(config: RuntimeConfig, session_id: str, hook: str) -> tuple[list[Breach], object]:
    """Return the breaches since the session's last edit, and the locks in a record without a breach."""
    taken = _taken(session_id)
    if taken is None:
        return [], None
    mine, facts = taken
    try:
        goes_on = hook == "PreToolUse" and time.time_ns() < facts["began"] + watch.EDIT_NS
        is_untouched = watch.are_untouched(facts)  # mostly
        if is_untouched and goes_on:
            os.rename(mine, _path(session_id))
            return [], None
        breaches: list[Breach] = []
        untouched = facts["locks"]
        if not is_untouched:
            facts, untouched = records.facts_in(mine, for_good=True) or {}, None
            breaches = watch.compare(facts, True)
        _remove(mine)
        if goes_on:
            records.write_facts(_path(session_id), facts)
        elif hook != _NEXT_EDIT:  # the next edit makes a record of its own, and needs the holders' marks
            _close()
        return breaches, untouched
    except Exception as error:
        watch.record_fault(config, error)
        _remove(mine)
        _close()
        return [], None


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


def _note(config: RuntimeConfig, call: ToolCall, paths: list[str], look: watch.Look) -> None:
    facts = {
        "runtime": config.runtime_name,
        "tool": call.client_tool or call.tool,
        "command": _edit_of(call, paths),
        "id": call.id,
        "began": time.time_ns(),
        "edit": True,
        "locks": look.locks,
    }
    records.write_facts(_path(call.session_id), facts, look.text)


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
    path = _path(session_id)
    mine = f"{path}.{os.getpid()}.taken"
    try:
        os.rename(path, mine)
    except OSError:
        return None  # no record, or another hook has it
    facts = records.facts_in(mine)
    if facts is not None:
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
