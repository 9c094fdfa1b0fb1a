"""News for a session about a HEAD that was moved since it last knew it, told once."""

from __future__ import annotations

import os
import time
import zlib
from typing import Any

from swarm_hook_core.git_repository import NoAnswer, Refused, Repository
from swarm_hook_core.lookup import Held, LockReader, Session
from swarm_hook_core.lookup.sqlite import StoreReader
from swarm_hook_core.repository import Tree, tree_at
from swarm_hook_core.state import local_store
from swarm_hook_core.traces import head as heads
from swarm_hook_core.traces.head import Head, Note
from swarm_hook_core.untrusted_text import named
from swarm_hook_core.wording import and_more

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
    said, tree = list[str](), tree_at(top)
    if tree is not None:
        said, told = _of_settings(tree, told)
    heads.note(runtime, session_id, top, head, told)
    return "\n".join(filter(None, (words, *said)))


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


# The settings of a repository that are part of no commit: a change of them is told once, as a turn begins.
#
# ``info/exclude`` hides files from ``git status``, ``info/attributes`` has git convert or merge contents in another
# way, and ``core.worktree`` has git act on another folder. No hook of git's tells of a change, and no diff shows it.

SECONDS = 0.5  # for git's answers
NAMED = 3  # files in the words


def _of_settings(tree: Tree, told: set[str]) -> tuple[list[str], set[str]]:
    """Return sentences about changes since the session's facts `told`, and its facts from now on.

    Without facts of these kinds in `told` there is no news: the session learns them here.
    """
    now = {f"{name}={_state(tree, name)}" for name in ("info/exclude", "info/attributes", "config")}
    known = {fact for fact in told if fact.partition("=")[0] in _WORDS}
    place = {fact for fact in known if fact.startswith("core.worktree=")}
    if any(fact.startswith("config=") for fact in now - known):
        place = {f"core.worktree={zlib.crc32(_worktree(tree).encode())}"}
    now |= place
    words: list[str] = []
    if known:
        words = [_WORDS[fact.partition("=")[0]](tree) for fact in sorted(now - known)]
    return [one for one in words if one], (told - known) | now


def _state(tree: Tree, name: str) -> int:
    try:
        return os.stat(os.path.join(tree.common, name)).st_mtime_ns
    except OSError:
        return 0  # missing


def _worktree(tree: Tree) -> str:
    try:
        return Repository(tree.top, SECONDS).setting("core.worktree")
    except (NoAnswer, Refused):
        return ""  # as if it were not set


def _excluded(tree: Tree) -> str:
    try:
        files = Repository(tree.top, SECONDS).hidden([""])
    except (NoAnswer, Refused):
        return ""  # git was too slow: the files are protected all the same
    if not files:
        return ""
    shown = ", ".join(named(one) for one in files[:NAMED]) + and_more(len(files) - NAMED)
    return (
        f"swarm: .git/info/exclude has changed, and hides from `git status`: {shown}. No commit has them: they stay the"
        " work of who made them."
    )


def _attributes(_tree: Tree) -> str:
    return "swarm: .git/info/attributes has changed: git may merge or convert files of this repository in another way."


def _moved(tree: Tree) -> str:
    place = _worktree(tree)
    if not place:
        return ""
    return f"swarm: core.worktree of this repository is {named(place)} now: git commands here act on that folder."


_WORDS = {
    "info/exclude": _excluded,
    "info/attributes": _attributes,
    "config": lambda _tree: "",
    "core.worktree": _moved,
}
