"""Looking at the terminal of another session, without a word to it."""

from __future__ import annotations

from swarm_mcp.domain.session import Session
from swarm_mcp.store import Store
from swarm_mcp.workspace.interface import PaneUnavailable
from swarm_mcp.workspace.reach import Unpublished, facts, reach

SOURCES = ("visible", "recent", "recent-unwrapped")
LINES = 80
MOST_LINES = 300


def peek(store: Store, sender: Session, recipient: Session, source: str = "recent", lines: int = LINES) -> dict:
    """What the pane of `recipient` shows.

    ``{sender, recipient, peeked, source, lines}`` with ``text``, or ``peek_skipped`` (it published no pane),
    or ``peek_error``, and what is known of its pane.
    """
    answer = {"sender": sender.id, "recipient": recipient.id, "peeked": False, "source": source, "lines": lines}
    reached = None
    try:
        reached = reach(store, recipient)
        answer["text"] = reached.backend.read(reached.pane.handle, source, lines, reached.socket)
        answer["peeked"] = True
    except Unpublished as reason:
        return {**answer, "peek_skipped": str(reason)}
    except PaneUnavailable as error:
        answer["peek_error"] = str(error)
    return {**answer, **facts(store, recipient, reached)}
