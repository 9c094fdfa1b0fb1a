"""News for a session about a HEAD that was moved since it last knew it, told once."""

from __future__ import annotations

import os
import time
from typing import Any

from swarm_hook_core.lookup.sqlite import StoreReader
from swarm_hook_core.state import local_store
from swarm_hook_core.traces import head as heads
from swarm_hook_core.traces.head import Head, Note

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_hook_core.lookup import LockReader, Session

SETTLED_SECONDS = 120  # a command that was let pass this long ago has moved HEAD by now, or does not


def words_of(
    runtime: str, session_id: str, session: Session, top: str, note: Note, head: Head, reader: LockReader, now: float
) -> str:
    """Return the words about a HEAD that has moved since the session's `note`, or an empty text.

    Moves by the session itself are no news, nor are ordinary commits on the same branch.
    """
    if not note.at_ns or note.head == head:
        return ""
    move = heads.moved(top)
    if move is not None and (move.at_ns <= note.at_ns or (move.runtime, move.session_id) == (runtime, session_id)):
        move = None
        if not note.head.is_known:
            return ""
    from swarm_hook_core.traces.head import wording

    if move is None:
        if note.head.is_elsewhere(head):
            return wording.was_moved("", "", 0, note.head, head)
        return ""
    before = note.head if note.head.commit else move.before
    if before == head or (move.deed == "switch" and before.branch == head.branch != ""):
        return ""  # the command has failed, and other commits came meanwhile
    found = reader.holder(move.runtime, move.session_id)
    who = "a session that has ended"
    if found is not None:
        from swarm_hook_core.lookup import Held

        who = wording.working([Held(top, found[0], found[1], "")], session.label)
    return wording.was_moved(move.deed, who, now - move.at_ns / 1e9, before, head)


def beside(runtime: str, session_id: str, session: Session, top: str, reader: LockReader, now: float) -> str:
    """Return the words about a moved HEAD for a call that runs no git, and note that they were told."""
    note, head = heads.noted(runtime, session_id, top), heads.read(top)
    if note is None or head is None:
        return ""
    words = words_of(runtime, session_id, session, top, note, head, reader, now)
    if words or is_settled(top, now):
        heads.note(runtime, session_id, top, head, note.told)
    return words


def is_settled(top: str, now: float) -> bool:
    """Return True if no command can still be about to move HEAD of the work tree `top`."""
    move = heads.moved(top)
    return move is None or move.at_ns / 1e9 < now - SETTLED_SECONDS


def at_turn(runtime: str, session_id: str, folder: str, driver: Any) -> str:
    """Return the words for a session that begins, or begins a turn, about a moved HEAD; note the present one."""
    top = heads.top_of(folder)
    if top is None:
        return ""
    head, note = heads.read(top), heads.noted(runtime, session_id, top)
    if head is None:
        return ""
    words, told = _of_lost_tree(runtime, session_id, os.path.realpath(folder), top), set()
    if note is not None:
        told = note.told
    if note is not None and note.head != head:
        reader = StoreReader(local_store(), driver)
        session = reader.session(runtime, session_id)
        if session is not None:
            moved = words_of(runtime, session_id, session, top, note, head, reader, time.time())
            words = "\n".join(filter(None, (words, moved)))
    said, told = _of_local_files(top, told)
    heads.note(runtime, session_id, top, head, told)
    return "\n".join(filter(None, (words, *said)))


def _of_local_files(top: str, told: set[str]) -> tuple[list[str], set[str]]:
    from swarm_hook_core.repository import tree_at
    from swarm_hook_core.traces.head import local_files

    tree = tree_at(top)
    if tree is None:
        return [], told
    return local_files.news(tree, told)


def _of_lost_tree(runtime: str, session_id: str, folder: str, top: str) -> str:
    """Return the words about a work tree of the session that has gone from `folder`, told once; mostly empty.

    top  the work tree that git finds there now
    """
    while folder != top and folder != os.path.dirname(folder):
        if heads.noted(runtime, session_id, folder) is not None:
            from swarm_hook_core.traces.head import wording

            heads.forget_note(runtime, session_id, folder)
            return wording.tree_has_gone(folder, top)
        folder = os.path.dirname(folder)
    return ""
