"""A file that is open in the editor."""

from __future__ import annotations

import os
import time
from urllib.parse import unquote, urlsplit

from swarm_hook_core.repository import tree_over
from swarm_hook_core.traces.versions import LIMIT_BYTES
from swarm_hook_core.traces.versions.by_persons import Content
from swarm_hook_core.watching.snapshot import Snapshot, read_resolved
from swarm_mcp.view.overview.owned import marks_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_hook_core.repository import Tree
    from swarm_mcp.view.lsp.facts import Change, Held


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
