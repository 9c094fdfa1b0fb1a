"""HEAD is shared: sessions in one work tree have one branch, one history, one index.

A command that moves HEAD or a branch under other live sessions is denied once, with the names of those sessions; having
been told, its session may run it. The others are told at their next call, and a commit to another branch than the one
that its session last knew is denied once.

Files, in ``<state folder>/heads/<place>/`` (a *place*: ``traces``):

    <runtime>.<session>.<tree>   the HEAD that the session last knew, and the sessions that it was told of
    moved.<tree>                 the last command that was let pass and moves HEAD
    moved                        empty: a session has moved HEAD in a work tree of this repository

`tree` stands for the top folder of a work tree. HEAD is read from git's own small files; git is not started.

    movement   git commands that move HEAD or a branch: a table; commits that are lost, also by a forced push
    shared     the decision about a command beside other sessions
    news       denials, notices; a moved HEAD, told to the others
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import NamedTuple

from swarm_hook_core.lookup import Held, LockReader
from swarm_hook_core.paths import real_path
from swarm_hook_core.process import departed, host_id
from swarm_hook_core.repository import Tree, small_text, tree_at, tree_over
from swarm_hook_core.state import read_private, state_dir, write_private
from swarm_hook_core.traces import journal_name, place_of

UNKNOWN = "?"  # the branch after the session's own command: it is looked up at its next call
MOVED = "moved"
LONGEST = 16 * 1024  # bytes of a note
LARGEST_REFS = 64 << 20  # bytes of all packed refs
DAY_SECONDS = 86400
MOST_LOST = 100  # commits that no other ref has, that are counted
LATELY_SECONDS = 2 * 3600  # a session without a sign of life for longer is not disturbed


class Head(NamedTuple):
    """A work tree's HEAD: `branch` (empty: detached) and `commit` (empty: no commit yet, or unknown)."""

    branch: str
    commit: str

    @property
    def is_known(self) -> bool:
        """False after the session's own command that moved it."""
        return self.branch != UNKNOWN

    def is_elsewhere(self, other: Head) -> bool:
        """Return True if the two are different branches, or one is detached and the other is not."""
        return self.is_known and other.is_known and self.branch != other.branch


class Note(NamedTuple):
    """The `head` that a session knew at `at_ns`; `told`: ids of the sessions, and facts, that it was told of."""

    head: Head
    at_ns: int
    told: set[str]


class Move(NamedTuple):
    """The last command that was let pass and moves HEAD: the session that ran it, its `deed`, and HEAD before it."""

    at_ns: int
    runtime: str
    session_id: str
    deed: str
    before: Head


# ------------------------------------------------------------------------------------------------ git's files


def top_of(folder: str) -> str | None:
    """Return the resolved top of the work tree around absolute `folder`, or None."""
    tree = tree_over(real_path(folder), is_real=True)
    if tree is None:
        return None
    return tree.top


def read(top: str) -> Head | None:
    """Return the Head of the work tree with the resolved folder `top`; None if it cannot be read from git's files."""
    tree = tree_at(top, is_real=True)
    if tree is None:
        return None
    text = small_text(os.path.join(tree.own, "HEAD")).strip()
    if not text.startswith("ref: "):
        if text:
            return Head("", text)
        return None  # torn
    ref = text[5:].strip()
    if ref == "refs/heads/.invalid":
        return None  # another format of refs
    return Head(ref.removeprefix("refs/heads/"), commit_of(tree, ref))


def commit_of(tree: Tree, ref: str) -> str:
    """Return the commit of a whole ref (``refs/heads/main``), or an empty text."""
    if "\0" in ref:
        return ""
    found = small_text(os.path.join(tree.common, ref)).strip()
    if found:
        return found
    try:
        packed = os.fsdecode(read_private(os.path.join(tree.common, "packed-refs"), LARGEST_REFS, follows=True))
    except OSError:
        return ""  # no packed refs
    return next((line.partition(" ")[0] for line in packed.split("\n") if line.partition(" ")[2] == ref), "")


# ------------------------------------------------------------------------------------------------ sessions


def neighbours(reader: LockReader, runtime: str, session_id: str, now: float) -> dict[str, list[Held]]:
    """Return ``{resolved folder: [Held of each other session there]}`` of the sessions that have shown life lately.

    The folder is the session's own root. The Held has no note.
    """

    found: dict[str, list[Held]] = {}
    for row in reader.other_sessions(runtime, session_id, now - LATELY_SECONDS):
        root = row["root"]
        if isinstance(root, str) and root and not departed(row, now, host_id()):
            held = Held(root, row["id"], row["label"], "", row["last_seen"])
            found.setdefault(real_path(root), []).append(held)
    return found


# ------------------------------------------------------------------------------------------------ notes


def noted(runtime: str, session_id: str, top: str) -> Note | None:
    """Return the session's Note about the work tree `top`, or None."""
    lines = _lines(_own_path(runtime, session_id, top))
    if len(lines) < 4 or not lines[0].isdigit():
        return None
    return Note(Head(lines[1], lines[2]), int(lines[0]), set(lines[3].split(" ")) - {""})


def known_branches(beside: str, top: str) -> set[str]:
    """Return the branches that sessions last knew in the work tree `top`, which need not exist any more.

    beside  a work tree of the same repository that exists
    """
    folder, end = heads_dir(beside), f".{_mark(top)}"
    names = [name for name in names_in(folder) if name.endswith(end) and not name.startswith(f"{MOVED}.")]
    return {line for name in names for line in _lines(os.path.join(folder, name))[1:2]} - {"", UNKNOWN}


def note(runtime: str, session_id: str, top: str, head: Head, told: set[str]) -> None:
    """Note the HEAD that a session knows, and the sessions and facts that it was `told` of. Raises OSError."""
    lines = (str(time.time_ns()), head.branch, head.commit, " ".join(sorted(told)), "")
    write_private(_own_path(runtime, session_id, top), "\n".join(lines))


def forget_note(runtime: str, session_id: str, top: str) -> None:
    """Remove the session's note about one work tree: it has moved HEAD by a command that was not read."""
    try:
        os.remove(_own_path(runtime, session_id, top))
    except OSError:
        return  # no such note


def moved(top: str) -> Move | None:
    """Return the last Move in the work tree `top`, or None."""
    lines = _lines(os.path.join(heads_dir(top), f"{MOVED}.{_mark(top)}"))
    if len(lines) < 6 or not lines[0].isdigit():
        return None
    return Move(int(lines[0]), lines[1], lines[2], lines[3], Head(lines[4], lines[5]))


def note_move(runtime: str, session_id: str, top: str, deed: str, before: Head) -> None:
    """Note that a session moves HEAD; `deed` as in ``movement.Movement``. Raises OSError."""
    words = (str(time.time_ns()), runtime, session_id.replace("\n", " "), deed, before.branch, before.commit, "")
    write_private(os.path.join(heads_dir(top), f"{MOVED}.{_mark(top)}"), "\n".join(words))
    write_private(os.path.join(heads_dir(top), MOVED), "")


def is_news(runtime: str, session_id: str, top: str) -> bool:
    """Return True if HEAD was moved since the session's note. Costs two looks at the disk."""
    try:
        at_ns = os.stat(os.path.join(heads_dir(top), f"{MOVED}.{_mark(top)}")).st_mtime_ns
    except OSError:
        return False  # no session has moved it
    try:
        return os.stat(_own_path(runtime, session_id, top)).st_mtime_ns <= at_ns
    except OSError:
        return False  # it knows no HEAD yet


def heads_dir(top: str) -> str:
    """Return the folder of the notes about work trees of one repository. It need not exist."""
    return os.path.join(state_dir(), "heads", os.path.basename(place_of(top)))


def forget(runtime: str, session_id: str) -> None:
    """Remove the notes of a session that has ended. Never raises."""
    _remove(lambda name, _path: name.startswith(f"{journal_name(runtime, session_id)}."))


def prune(now: float) -> None:
    """Remove notes older than a day; `now` in Unix seconds."""
    _remove(lambda _name, path: os.lstat(path).st_mtime < now - DAY_SECONDS)


def _remove(is_due: Callable[[str, str], bool]) -> None:
    over = os.path.join(state_dir(), "heads")
    for folder in names_in(over):
        place = os.path.join(over, folder)
        for name in names_in(place):
            path = os.path.join(place, name)
            try:
                if is_due(name, path):
                    os.remove(path)
            except OSError:
                continue  # removed by another process
        try:
            os.rmdir(place)
        except OSError:
            continue  # it has other notes


def names_in(folder: str) -> list[str]:
    """Return the names in a folder; none if it is missing or cannot be listed."""
    try:
        return os.listdir(folder)
    except OSError:
        return []  # nothing was noted, or it has gone


def _own_path(runtime: str, session_id: str, top: str) -> str:
    return os.path.join(heads_dir(top), f"{journal_name(runtime, session_id)}.{_mark(top)}")


def _mark(top: str) -> str:
    """Return a short name of a folder, as part of a file's name."""
    from binascii import crc32

    return f"{crc32(os.fsencode(top)):08x}"


def _lines(path: str) -> list[str]:
    try:
        return read_private(path, LONGEST).decode("utf-8", "surrogateescape").split("\n")
    except OSError:
        return []  # nothing was noted
