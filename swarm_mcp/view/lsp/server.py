"""The protocol: the requests and notifications of an editor, over standard input and output."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from lsprotocol import types
from pygls.lsp.server import LanguageServer

from swarm_mcp import __version__
from swarm_mcp.errors import SwarmError
from swarm_mcp.server.calls import StoreWatcher
from swarm_mcp.view.lsp import facts
from swarm_mcp.view.lsp.facts import Document, Places, is_same, lines_in, lines_of, opened, path_of
from swarm_mcp.view.top.pane import end, started
from swarm_mcp.view.top.pane import lines_of as output_of

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
        found = [self._hint(in_editor, 0, 0, facts.of_lock(lock)) for lock in document.held]
        places = Places(document.on_disk, in_editor)
        for change in document.changes:
            place = places.of(change)
            if place is not None and (change.lines or not document.is_unread):
                found.append(self._hint(in_editor, *place, facts.of_change(change, *place)))
            elif document.is_unread:
                found.append(self._hint(in_editor, *places.near(change), facts.of_unread(change)))
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
    server = made(viewer, facts.is_persons_editor())
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
                document.held = facts.held(self._viewer, document.path, document.tree.top)
            marks = document.marks()
            if marks != document.seen:
                document.changes = facts.changes(self._viewer, document.path, document.tree.top)
                found = document.compare()
                document.on_disk = lines_in(found.data) if found is not None else []
                document.seen = marks
        except (SwarmError, OSError):
            return False  # a store or a repository that does not answer: the last facts stay, the next look asks again
        return before != (document.held, document.changes, document.on_disk)

    def _note(self, document: Document) -> None:
        try:
            if self._notes_saves:
                facts.note(document)
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
        said = facts.of_overwriting(self._name(document), " and ".join([*authors][:MOST_NAMES]))
        return {**found, str(there.state): said}

    def _known_obstacles(self, document: Document) -> dict[str, str]:
        held = [lock for lock in document.held if not lock.is_persons]
        return {lock.lock_id: facts.of_save(self._name(document), lock) for lock in held}

    @staticmethod
    def _name(document: Document) -> str:
        return os.path.relpath(document.path, document.tree.top)
