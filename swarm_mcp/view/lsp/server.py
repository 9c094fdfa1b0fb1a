"""The protocol: the requests and notifications of an editor, over standard input and output."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Coroutine
from typing import Any

from lsprotocol import types
from pygls.lsp.server import LanguageServer

from swarm_mcp import __version__
from swarm_mcp.view.lsp import facts
from swarm_mcp.view.lsp.desk import Desk
from swarm_mcp.view.lsp.facts import Document, Places, lines_of, opened, path_of
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
