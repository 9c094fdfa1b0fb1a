"""Messages that go along with an answer, as many as fit. The rest waits for the next answer."""

from __future__ import annotations

from swarm_mcp.answers.paging import page
from swarm_mcp.answers.size import PARTS, ROWS_BYTES, fitted, sent
from swarm_mcp.domain.message import Message
from swarm_mcp.domain.page import Page
from swarm_mcp.domain.session import Session
from swarm_mcp.store import Store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from swarm_mcp.answers.size import Measure

AT_ONCE = 50  # messages of one answer if the caller names no number


def mail_page(
    store: Store,
    me: Session,
    messages: list[Message],
    limit: int = AT_ONCE,
    taken: bool = True,
    most: float = ROWS_BYTES,
    measure: Measure = sent,
) -> Page:
    """Return the unread `messages` of session `me` that fit; the total counts all unread ones.

    They are the first `limit`. A caller who asks for few is not told that there are more. Messages `taken` for this
    answer that do not fit are put back.
    """
    found = page((("", one) for one in messages), lambda one: one, lambda: 0, most=most, measure=measure)
    rest = [message.id for message in messages[len(found.rows) :]]
    if taken:
        store.messages.put_back(rest)
    if not rest and (len(messages) < limit or limit < AT_ONCE):
        return Page(found.rows)
    waiting = store.messages.unread_count(me) + (len(found.rows) if taken else 0)
    return Page(found.rows, waiting if waiting > len(found.rows) else None)


def with_mail(
    store: Store,
    me: Session,
    value: dict[str, Any],
    name: str,
    messages: list[Message],
    taken: bool = True,
    most: int = ROWS_BYTES,
    measure: Measure = sent,
) -> dict[str, Any]:
    """Return `value` with unread `messages` under `name`, in an answer of at most `most` bytes.

    The messages get the room that the rest leaves, and at least a fixed part; the rest is cut to what remains. `taken`
    as in `mail_page`.
    """
    room = max(most // PARTS, most - measure({**value, name: []}))
    mail = mail_page(store, me, messages, taken=taken, most=room, measure=measure)
    shown = fitted({**value, name: []}, most - measure(mail.rows), measure)
    shown = {**shown, name: mail.rows}
    if mail.total is None:
        return shown
    return {**shown, "not_shown": {**shown.get("not_shown", {}), name: mail.total - len(mail.rows)}}
