"""A language server for the person at the keyboard: the locks on open files, and the authors of their changes.

It reads the store and the traces, and writes neither: only a save is noted, beside the versions of sessions. The open
documents are read anew after commits to the store and changes on the disk.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import time
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar
from urllib.parse import unquote, urlsplit

from lsprotocol import types
from pygls.lsp.server import LanguageServer

from swarm_hook_core.naming import UNNAMED, agent_name
from swarm_hook_core.repository import Tree, tree_over
from swarm_hook_core.traces.changed_lines import equal_parts
from swarm_hook_core.traces.versions import LIMIT_BYTES
from swarm_hook_core.traces.versions.notes import Content, has_sessions, note_save
from swarm_hook_core.untrusted_text import NOTE, cut
from swarm_hook_core.watching.records import Snapshot, read_resolved
from swarm_mcp import __version__
from swarm_mcp.answers.people import People
from swarm_mcp.answers.timeline import through
from swarm_mcp.changes.dirty import relative_names
from swarm_mcp.changes.owners import Owners
from swarm_mcp.changes.uncommitted import uncommitted
from swarm_mcp.domain import Lock, nobody_in
from swarm_mcp.errors import SwarmError
from swarm_mcp.server.calls import StoreWatcher
from swarm_mcp.sessions.acting import TERMINAL, agents_around, is_marked
from swarm_mcp.store import Store
from swarm_mcp.store.lock_request import reach_of, rule, with_names
from swarm_mcp.view.overview.now import marks_of
from swarm_mcp.view.top.pane import end, started
from swarm_mcp.view.top.pane import lines_of as output_of

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
MOST_OWNED = 20_000  # between the equal ends; in more nothing is placed


class Places:
    """The lines of the disk and their numbers in the editor."""

    def __init__(self, on_disk: Sequence[str], in_editor: Sequence[str]):
        self._parts = equal_parts(on_disk, in_editor, exact_up_to=EXACT_UP_TO, most=MOST_OWNED) or []
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
        found = _content_of(self.path)
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


def _content_of(path: str) -> Content | None:
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


def _lines_in(data: bytes) -> list[str]:
    """Return the lines of a file's content without their ends."""
    return _plain(data.decode("utf-8", "surrogateescape")).split("\n")


def lines_of(text: str) -> list[str]:
    """Return the lines of an editor's text without their ends."""
    return _plain(text).split("\n")


def _plain(text: str) -> str:
    return text.removeprefix("\ufeff").replace("\r\n", "\n")


# Notes of saves: the saved text is known as the person's from then on.


def _is_persons_editor() -> bool:
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


def _of_change(change: Change, first: int, last: int) -> str:
    """Return ``codex 5f0c2f6e changed lines 10 to 14, not committed``. `first`, `last`: indices in the editor."""
    if not change.lines:
        return f"{change.authors} removed {_counted(change.removed)} here, not committed"
    return f"{change.authors} changed {_lines(first, last)}, not committed"


def _of_unread(change: Change) -> str:
    """Return the same of a change that the editor has not read, with its lines on the disk."""
    if not change.lines:
        return f"{change.authors} removed {_counted(change.removed)} here on the disk, not committed"
    lines = _lines(change.first, change.first + change.lines - 1)
    return f"{change.authors} changed {lines} on the disk, not committed"


def _of_save(name: str, lock: Held) -> str:
    """Return the warning before a save over a lock."""
    return f"swarm: {name} is {of_lock(lock)}"


def _of_overwriting(name: str, authors: str) -> str:
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


# The protocol.


SOURCE = "swarm"
LONGEST_TEXT = 1024 * 1024  # characters of the longest document with hints at lines
PAUSE_SECONDS = 0.2  # after a key: a pause in typing
MOST_LINES = 500  # of a command's answer
LONGEST_ERROR = 300  # characters
WHY, BLAME = "swarm.why", "swarm.blame"


class Server(LanguageServer):
    """The language server of one editor."""

    def __init__(self, viewer: str, notes_saves: bool):
        super().__init__("swarm", __version__, text_document_sync_kind=types.TextDocumentSyncKind.Incremental)
        self.desk = Desk(viewer, notes_saves, self.publish_soon)
        self._shown: dict[str, list[types.Diagnostic]] = {}
        self._due: dict[str, asyncio.Task[Any]] = {}  # that wait for a pause
        self._tasks: set[asyncio.Task[Any]] = set()

    def begin(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Run `work` beside other messages, and keep a reference until its end."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def document(self, uri: str) -> Document | None:
        """Return the open document, None for one that is not ours."""
        return self.desk.documents.get(uri)

    def forget(self, uri: str) -> None:
        """Take back all that is shown of a closed document."""
        if self.desk.documents.pop(uri, None) is not None and self._shown.pop(uri, False):
            self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, []))

    def publish_soon(self, document: Document, seconds: float = 0.0) -> None:
        """Show the present facts about a document after a pause; an earlier call that is still waiting is replaced."""
        earlier = self._due.pop(document.uri, None)
        if earlier is not None:
            earlier.cancel()
        self._due[document.uri] = self.begin(self._publish(document, seconds))

    async def _publish(self, document: Document, seconds: float) -> None:
        await asyncio.sleep(seconds)  # no timer: one that began a task while the loop is closed would leave it behind
        self._due.pop(document.uri, None)
        await self.desk.run(document.compare)  # the editor may have read the file anew
        hints = await self.desk.run(self._hints, document)
        if self.document(document.uri) is not document or hints == self._shown.get(document.uri, []):
            return
        self._shown[document.uri] = hints
        self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(document.uri, hints))
        workspace = self.client_capabilities.workspace
        if workspace is not None and workspace.code_lens is not None and workspace.code_lens.refresh_support:
            self.workspace_code_lens_refresh(None)

    def _hints(self, document: Document) -> list[types.Diagnostic]:
        if len(document.text) > LONGEST_TEXT:
            in_editor = [""]
        else:
            in_editor = lines_of(document.text)
        found = [self._hint(in_editor, 0, 0, of_lock(lock)) for lock in document.held]
        places = Places(document.on_disk, in_editor)
        for change in document.changes:
            place = places.of(change)
            if place is not None and (change.lines or not document.is_unread):
                found.append(self._hint(in_editor, *place, _of_change(change, *place)))
            elif document.is_unread:
                found.append(self._hint(in_editor, *places.near(change), _of_unread(change)))
        return found

    def _hint(self, in_editor: list[str], first: int, last: int, said: str) -> types.Diagnostic:
        """Return the hint at these lines, to the end of the last one in the units of this editor."""
        width = self.workspace.position_codec.client_num_units(in_editor[last])
        where = types.Range(types.Position(first, 0), types.Position(last, width))
        return types.Diagnostic(where, said, severity=types.DiagnosticSeverity.Hint, source=SOURCE)

    def say(self, text: str, kind: types.MessageType = types.MessageType.Info) -> None:
        """Show a message to the person."""
        self.window_show_message(types.ShowMessageParams(kind, text))

    def report_server_error(self, error: Exception, source: object) -> None:
        """Print one line for the editor's log: a person cannot do anything about a message that was not understood."""
        print(f"swarm-mcp lsp: {' '.join(str(error).split())[:LONGEST_ERROR]}", file=sys.stderr, flush=True)

    async def answer(self, uri: str, *verb: str) -> str:
        """Return the output of a verb about the file that `uri` names, and show it."""
        path = path_of(uri)
        if not path:
            return f"{uri} is no file"
        process, found = await started([verb[0], path, *verb[1:]]), []
        async for line in output_of(process):
            found.append(line)
            if len(found) == MOST_LINES:
                end(process)
        text = "\n".join(found)
        self.say(text)
        return text


def made(viewer: str, notes_saves: bool) -> Server:
    """Return the server with all that it answers."""
    server = Server(viewer, notes_saves)

    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    def did_open(params: types.DidOpenTextDocumentParams) -> None:
        uri = params.text_document.uri
        server.forget(uri)
        document = opened(uri, params.text_document.text)
        if document is not None:
            server.begin(server.desk.opened(document))

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    def did_change(params: types.DidChangeTextDocumentParams) -> None:
        document = server.document(params.text_document.uri)
        if document is not None:
            document.text = server.workspace.get_text_document(document.uri).source
            server.publish_soon(document, PAUSE_SECONDS)

    @server.feature(types.TEXT_DOCUMENT_DID_SAVE, types.SaveOptions(include_text=False))
    def did_save(params: types.DidSaveTextDocumentParams) -> None:
        document = server.document(params.text_document.uri)
        if document is not None:
            server.begin(server.desk.saved(document))

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def did_close(params: types.DidCloseTextDocumentParams) -> None:
        server.forget(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_WILL_SAVE_WAIT_UNTIL)
    async def will_save(params: types.WillSaveTextDocumentParams) -> None:
        document = server.document(params.text_document.uri)
        if document is not None:
            document.begin_save()  # here, not in the reading thread: the editor writes after this answer
            for warning in await server.desk.warnings(document):
                server.say(warning, types.MessageType.Warning)

    @server.feature(types.TEXT_DOCUMENT_CODE_LENS)
    def code_lens(params: types.CodeLensParams) -> list[types.CodeLens]:
        document = server.document(params.text_document.uri)
        if document is None:
            return []
        top, given = types.Range(types.Position(0, 0), types.Position(0, 0)), [document.uri]
        lenses = [types.CodeLens(top, types.Command("swarm: why", command=WHY, arguments=given))] * bool(document.held)
        lenses += [types.CodeLens(top, types.Command("swarm: blame", command=BLAME, arguments=given))] * bool(
            document.changes
        )
        return lenses

    @server.command(WHY)
    async def why(uri: str) -> str:
        return await server.answer(uri, "why")

    @server.command(BLAME)
    async def blame(uri: str) -> str:
        return await server.answer(uri, "blame", "--uncommitted")

    @server.feature(types.SHUTDOWN)
    def shutdown(*_given: object) -> None:
        server.desk.close()

    return server


def serve(viewer: str) -> int:
    """Serve one editor until it says `exit`, or is gone. Return 0 if it has said `shutdown` before."""
    server = made(viewer, _is_persons_editor())
    logging.getLogger("pygls").setLevel(logging.CRITICAL)  # `report_server_error` has a line for each error
    # A handle of its own: pygls closes it at the end, and no other text may come between the messages.
    with os.fdopen(os.dup(sys.stdout.fileno()), "wb") as out:
        sys.stdout = sys.stderr
        server.start_io(stdout=out)
    server.desk.close()
    return int(not server.protocol._shutdown)


# The open documents, and all that is read for them: in one thread, so that the editor never waits for git.
#
# A document is read anew after each commit to the store (its locks), and when the file, its last commit or the traces
# of sessions have changed (its lines). The disk is looked at every `POLL_SECONDS` while documents are open.

Answer = TypeVar("Answer")

POLL_SECONDS = 0.5  # between looks at the disk: an edit there is no commit to the store
REST_SECONDS = 10.0  # between readings of locks without a commit: sessions die and leases lapse without one
LEAST_PAUSE, PAUSE_FACTOR = 0.1, 4  # at most a fifth of the time goes into readings
WARN_SECONDS = 1.0  # of a save that waits for warnings, at most
MOST_NAMES = 3  # authors in one warning


class Desk:
    """The open documents. `changed` is called with one after new facts about it, in the event loop.

    viewer       the identity of the person
    notes_saves  False for an editor that an agent has started
    """

    def __init__(self, viewer: str, notes_saves: bool, changed: Callable[[Document], object]):
        self.documents: dict[str, Document] = {}
        self._viewer = viewer
        self._notes_saves = notes_saves
        self._changed = changed
        self._pool = ThreadPoolExecutor(1, "swarm lsp")
        self._watching: asyncio.Task[None] | None = None
        self._is_closed = False

    async def run(self, function: Callable[..., Answer], *given: object) -> Answer:
        """Call `function` in the reading thread. After `close`, the asking task is cancelled."""
        if self._is_closed:
            raise asyncio.CancelledError
        return await asyncio.get_running_loop().run_in_executor(self._pool, function, *given)

    async def opened(self, document: Document) -> None:
        """Read a document that was opened, and begin to watch."""
        self.documents[document.uri] = document
        if self._watching is None:
            self._watching = asyncio.create_task(self._watch())
        await self.run(self._read, document, True)
        self._tell([document])

    async def saved(self, document: Document) -> None:
        """Note a save, and read the document anew."""
        await self.run(self._note, document)
        if await self.run(self._read, document, False):
            self._tell([document])

    async def warnings(self, document: Document) -> list[str]:
        """Return the words that a person should read before a save, each reason once."""
        try:
            found = await asyncio.wait_for(self.run(self._obstacles, document), WARN_SECONDS)
        except asyncio.TimeoutError:
            found = self._known_obstacles(document)  # a busy machine: the locks as they were last read
        new = [said for reason, said in found.items() if reason not in document.warned]
        document.warned = set(found)
        return new

    def close(self) -> None:
        """End watching. A reading that has begun is not waited for."""
        self._is_closed = True
        if self._watching is not None:
            self._watching.cancel()
        self._pool.shutdown(wait=False, cancel_futures=True)

    # ------------------------------------------------------------------------------------------- watching

    async def _watch(self) -> None:
        watcher = StoreWatcher()
        with watcher.listening():
            commits, read_at = watcher.commits, time.monotonic()
            while True:
                await watcher.wait_beyond(commits, POLL_SECONDS)
                is_new = watcher.commits != commits or time.monotonic() - read_at > REST_SECONDS
                commits = watcher.commits
                if is_new:
                    read_at = time.monotonic()
                begun = time.monotonic()
                try:
                    self._tell(await self.run(self._look, list(self.documents.values()), is_new))
                except Exception as error:  # a bug must not end the watch: the next look may go well
                    print(f"swarm-mcp lsp: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
                await asyncio.sleep(max(LEAST_PAUSE, PAUSE_FACTOR * (time.monotonic() - begun)))

    def _tell(self, documents: list[Document]) -> None:
        for document in documents:
            if self.documents.get(document.uri) is document:  # else it was closed meanwhile
                self._changed(document)

    # ------------------------------------------------------------------------------------------- the reading thread

    def _look(self, documents: list[Document], has_commits: bool) -> list[Document]:
        """Return the documents with other facts than before."""
        return [document for document in documents if self._read(document, has_commits)]

    def _read(self, document: Document, with_locks: bool) -> bool:
        before = (document.held, document.changes, document.on_disk)
        try:
            if with_locks:
                document.held = held(self._viewer, document.path, document.tree.top)
            marks = document.marks()
            if marks != document.seen:
                document.changes = changes(self._viewer, document.path, document.tree.top)
                found = document.compare()
                document.on_disk = _lines_in(found.data) if found is not None else []
                document.seen = marks
        except (SwarmError, OSError):
            return False  # a store or a repository that does not answer: the last facts stay, the next look asks again
        return before != (document.held, document.changes, document.on_disk)

    def _note(self, document: Document) -> None:
        try:
            if self._notes_saves:
                note(document)
            else:
                document.compare()
        except OSError as error:
            print(f"swarm-mcp lsp: a save was not noted: {error}", file=sys.stderr, flush=True)

    def _obstacles(self, document: Document) -> dict[str, str]:
        agreed = document.agreed
        self._read(document, True)
        found = self._known_obstacles(document)
        there = document.compare()
        if there is None or agreed is None or there.data == agreed.data or is_same(document.text, there.data):
            return found
        authors = dict.fromkeys(one.authors for one in document.changes)
        said = _of_overwriting(self._name(document), " and ".join([*authors][:MOST_NAMES]))
        return {**found, str(there.state): said}

    def _known_obstacles(self, document: Document) -> dict[str, str]:
        held = [lock for lock in document.held if not lock.is_persons]
        return {lock.lock_id: _of_save(self._name(document), lock) for lock in held}

    @staticmethod
    def _name(document: Document) -> str:
        return os.path.relpath(document.path, document.tree.top)
