"""The locks over a file, and its uncommitted changes by sessions, as a person may see them."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from swarm_hook_core.naming import UNNAMED, agent_name
from swarm_hook_core.repository import Tree, tree_over
from swarm_hook_core.traces.changed_lines import equal_parts
from swarm_hook_core.traces.versions import LIMIT_BYTES
from swarm_hook_core.traces.versions.notes import Content, has_sessions, note_save
from swarm_hook_core.untrusted_text import NOTE, cut
from swarm_hook_core.watching.records import Snapshot, read_resolved
from swarm_mcp.answers.incidents import through
from swarm_mcp.answers.people import People
from swarm_mcp.changes.dirty import relative_names
from swarm_mcp.changes.owners import Owners
from swarm_mcp.changes.uncommitted import uncommitted
from swarm_mcp.domain import Lock, nobody_in
from swarm_mcp.errors import SwarmError
from swarm_mcp.sessions.acting import TERMINAL, agents_around, is_marked
from swarm_mcp.store import Store
from swarm_mcp.store.lock_request import reach_of, rule, with_names
from swarm_mcp.view.overview.work import marks_of

MOST_HELD, MOST_CHANGES = 10, 200  # of one file


class Held(NamedTuple):
    """One lock over a file.

    holder      the name of its session
    through     its rule in words, empty for a lock on the file itself
    note        the holder's own words
    is_persons  a person has taken it, in a terminal
    """

    lock_id: str
    holder: str
    through: str
    note: str
    is_persons: bool


class Change(NamedTuple):
    """Lines of the file on the disk that a session may have changed.

    first    index of the first one
    lines    number of lines that are there now, 0 if lines were only removed
    removed  number of lines of the last commit that are gone
    authors  the names of all that may have made the change
    """

    first: int
    lines: int
    removed: int
    authors: str


def held(viewer: str, path: str, top: str) -> tuple[Held, ...]:
    """Return the locks over the file at absolute `path` in the checkout `top`. Raises SwarmError."""
    with Store(read_only=True) as store:
        if not store.exists():
            return ()
        people = People(store, viewer)
        reach = with_names(reach_of(nobody_in(os.path.dirname(path), top), path, as_pattern=False), False)
        return tuple(
            _held(store, people, row, rule(row, reach.file)) for row in store.locks.covering(reach)[:MOST_HELD]
        )


def _held(store: Store, people: People, row: Lock, by_rule: str) -> Held:
    shown = store.locks.listed(row, people.viewer)
    people.learn(shown["instance_id"], shown["owner_label"])
    name = people.called(shown["instance_id"])
    if shown.get("hidden"):
        name = UNNAMED
    elif shown.get("agent"):
        name = f"{agent_name(shown['agent'])} of {name}"
    session = store.instances.get(row.instance_id)
    is_persons = session is not None and session.runtime == TERMINAL
    return Held(shown["id"], name, through({**shown, "rule": by_rule}, str), shown["content"] or "", is_persons)


def changes(viewer: str, path: str, top: str) -> tuple[Change, ...]:
    """Return the uncommitted changes of the file that sessions may have made, by line. Raises SwarmError.

    For a file without lines, such as a binary one, it is one change at its beginning.
    """
    files = uncommitted(top, relative_names(top, [path]))
    if not files:
        return ()
    (one, *_) = files
    with Store(read_only=True) as store:
        owners = Owners(store, People(store, viewer))
        if not one.pieces:
            authors = one.whole_authors
            return (Change(0, 1, 0, owners.names(authors)),) * any(not author.is_person for author in authors)
        return tuple(
            Change(piece.new, len(piece.added), len(piece.removed), owners.names(piece.authors))
            for piece in one.pieces
            if any(not author.is_person for author in piece.authors)
        )[:MOST_CHANGES]


# The places of changes on the disk in the editor's text, also while that is not saved.

EXACT_UP_TO = 500  # lines that are compared exactly, at each pause in typing
MOST_LINES = 20_000  # between the equal ends; in more nothing is placed


class Places:
    """The lines of the disk and their numbers in the editor."""

    def __init__(self, on_disk: Sequence[str], in_editor: Sequence[str]):
        self._parts = equal_parts(on_disk, in_editor, exact_up_to=EXACT_UP_TO, most=MOST_LINES) or []
        self.last = max(len(in_editor) - 1, 0)

    def of(self, change: Change) -> tuple[int, int] | None:
        """Return the first and the last line of a change in the editor, None if all of its lines are gone.

        Removed lines have the place of the line behind them.
        """
        if not change.lines:
            place = self._at(change.first)
            if place is None and change.first:
                place = self._at(change.first - 1)
            return None if place is None else (place, place)
        end = change.first + change.lines
        inside = [
            (max(old, change.first) + new - old, min(old + size, end) + new - old - 1)
            for old, new, size in self._parts
            if old < end and old + size > change.first
        ]
        if not inside:
            return None
        return inside[0][0], inside[-1][1]

    def near(self, change: Change) -> tuple[int, int]:
        """Return the place in the editor where a change belongs that the editor has not read."""
        before = [new + min(size, change.first - old) for old, new, size in self._parts if old < change.first]
        place = min(before[-1] if before else 0, self.last)
        return place, place

    def _at(self, line: int) -> int | None:
        found = (line + new - old for old, new, size in self._parts if old <= line < old + size)
        return next(found, None)


# A file that is open in the editor.


class Document:
    """An open file of a checkout.

    path      absolute, without links
    text      the editor's text
    agreed    the content when it was last seen to be the editor's text; None if it never was
    replaced  the `agreed` content right before the editor writes; None between saves
    on_disk   the lines that `changes` count
    is_unread True if the editor has not read the present content
    held      the locks over it
    changes   the uncommitted changes by sessions
    seen      the `marks` when `changes` were read
    warned    the reasons of warnings that were shown
    """

    def __init__(self, uri: str, path: str, tree: Tree, text: str):
        self.uri = uri
        self.path = path
        self.tree = tree
        self.text = text
        self.agreed: Content | None = None
        self.replaced: Content | None = None
        self.on_disk: list[str] = []
        self.is_unread = False
        self.held: tuple[Held, ...] = ()
        self.changes: tuple[Change, ...] = ()
        self.seen: object = None
        self.warned: set[str] = set()

    def marks(self) -> object:
        """Return a value that differs once the file, its last commit or the traces about it have changed."""
        return marks_of(self.path, self.tree, self.tree.top)

    def compare(self) -> Content | None:
        """Read the file. Remember its content if that is the editor's text. None if it has no text to compare."""
        found = content_of(self.path)
        if found is not None:
            is_agreed = is_same(self.text, found.data)
            if is_agreed or (self.agreed is None and not found.state.exists):
                self.agreed = found
            self.is_unread = self.agreed is None or self.agreed.data != found.data
        return found

    def begin_save(self) -> None:
        """Remember the content that the editor is about to replace: later looks may see the new one."""
        self.compare()
        self.replaced = self.agreed


def opened(uri: str, text: str) -> Document | None:
    """Return the document for `uri`, None outside of any checkout, for git's own files, and for other schemes."""
    path = path_of(uri)
    if not path:
        return None
    try:
        path = os.path.realpath(path)
        tree = tree_over(os.path.dirname(path))
    except (OSError, ValueError):
        return None  # a path that cannot exist
    if tree is None or path.startswith((tree.own + os.sep, tree.common + os.sep)) or os.path.isdir(path):
        return None
    document = Document(uri, path, tree, text)
    document.compare()  # before any key changes the text
    return document


def path_of(uri: str) -> str:
    """Return the absolute path that a ``file:`` URI names, empty for any other one."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return ""  # not a URI
    if parts.scheme != "file" or parts.netloc not in ("", "localhost"):
        return ""
    # A ? or # that an editor has not escaped belongs to the name.
    written = uri.partition(":")[2].removeprefix("//" + parts.netloc)
    path = unquote(written, errors="surrogateescape")
    if os.name == "nt":
        path = path.removeprefix("/").replace("/", os.sep)
    if not os.path.isabs(path) or "\0" in path:
        return ""
    return path


def content_of(path: str) -> Content | None:
    """Return the present content of a file, or of a missing one; None for one over 1 MiB, or without plain content."""
    now_ns = time.time_ns()
    try:
        return Content(now_ns, *read_resolved(path, LIMIT_BYTES))
    except (FileNotFoundError, NotADirectoryError):
        return Content(now_ns, Snapshot(), b"")  # a missing file
    except OSError:
        return None  # large, unreadable, or being written


def is_same(text: str, data: bytes) -> bool:
    """Return True if `data` on the disk is the editor's `text`: line ends and a byte order mark do not count."""
    try:
        return _plain(text) == _plain(data.decode("utf-8"))
    except UnicodeDecodeError:
        return False  # another encoding: it cannot be compared


def lines_in(data: bytes) -> list[str]:
    """Return the lines of a file's content without their ends."""
    return _plain(data.decode("utf-8", "surrogateescape")).split("\n")


def lines_of(text: str) -> list[str]:
    """Return the lines of an editor's text without their ends."""
    return _plain(text).split("\n")


def _plain(text: str) -> str:
    return text.removeprefix("\ufeff").replace("\r\n", "\n")


# Notes of saves: the saved text is known as the person's from then on.


def is_persons_editor() -> bool:
    """Return True unless an agent has started this editor: saves of that are the agent's."""
    if is_marked():
        return False
    try:
        with Store(read_only=True) as store:
            return not (store.exists() and agents_around(store))
    except SwarmError:
        return False  # a store that cannot be read tells nothing: a save then counts as without an editor's word


def note(document: Document) -> bool:
    """Note that the editor has saved this document. Return False if there is nothing to note. Raises OSError.

    Nothing is noted if the file is not the editor's text any more, and in repositories where no session was at work.
    """
    # A poll between the write and the editor's word has seen the new content as agreed.
    before, document.replaced = document.replaced or document.agreed, None
    found = document.compare()
    if found is None or found is not document.agreed or not is_same(document.text, found.data):
        return False
    if before is not None and before.state.exists and before.data == found.data:
        return False
    if not has_sessions(document.path):
        return False
    note_save(document.path, before, found)
    return True


# The words that an editor shows: one line each.


def of_lock(lock: Held) -> str:
    """Return ``held by codex 5f0c2f6e: renumbering migrations``."""
    words = f"held by {lock.holder}{lock.through}"
    note = cut(" ".join(lock.note[: 4 * NOTE].split()), NOTE)
    if note:
        words += f": {note}"
    return words


def of_change(change: Change, first: int, last: int) -> str:
    """Return ``codex 5f0c2f6e changed lines 10 to 14, not committed``. `first`, `last`: indices in the editor."""
    if not change.lines:
        return f"{change.authors} removed {_counted(change.removed)} here, not committed"
    return f"{change.authors} changed {_lines(first, last)}, not committed"


def of_unread(change: Change) -> str:
    """Return the same of a change that the editor has not read, with its lines on the disk."""
    if not change.lines:
        return f"{change.authors} removed {_counted(change.removed)} here on the disk, not committed"
    lines = _lines(change.first, change.first + change.lines - 1)
    return f"{change.authors} changed {lines} on the disk, not committed"


def of_save(name: str, lock: Held) -> str:
    """Return the warning before a save over a lock."""
    return f"swarm: {name} is {of_lock(lock)}"


def of_overwriting(name: str, authors: str) -> str:
    """Return the warning before a save over a content that the editor has not read."""
    by = authors or "another program"
    return f"swarm: {name} was changed on the disk by {by} since this editor read it: saving replaces that"


def _lines(first: int, last: int) -> str:
    if first == last:
        return f"line {first + 1}"
    return f"lines {first + 1} to {last + 1}"


def _counted(lines: int) -> str:
    if lines == 1:
        return "1 line"
    return f"{lines} lines"
