"""Notes of saves: the saved text is known as the person's from then on."""

from __future__ import annotations

from swarm_hook_core.traces.versions.by_persons import has_sessions, note_save
from swarm_mcp.errors import SwarmError
from swarm_mcp.sessions.agents_shell import agents_around, is_marked
from swarm_mcp.store import Store
from swarm_mcp.view.lsp.document import is_same

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_mcp.view.lsp.document import Document


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
