"""The open documents, and all that is read for them: in one thread, so that the editor never waits for git.

A document is read anew after each commit to the store (its locks), and when the file, its last commit or the traces of
sessions have changed (its lines). The disk is looked at every `POLL_SECONDS` while documents are open.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from swarm_mcp.errors import SwarmError
from swarm_mcp.server.calls import StoreWatcher
from swarm_mcp.view.lsp import facts
from swarm_mcp.view.lsp.facts import Document, is_same, lines_in

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
