"""Telling a session that mail has come: its pane is woken, where it published one and is not at work.

The message itself is stored first and is what counts; a pane only gets a fixed line that says so. What
another session wrote is never typed: the pane may be at a shell by now, and would carry it out.
"""

from __future__ import annotations

from swarm_mcp.domain.session import Session
from swarm_mcp.store import Store
from swarm_mcp.views import short
from swarm_mcp.visibility import may_meet
from swarm_mcp.workspace.interface import PaneUnavailable
from swarm_mcp.workspace.reach import Unpublished, facts, reach

# In a working pane the line lands amid a turn; in a blocked one Enter answers a question, such as
# whether the agent may run a command.
BUSY = {"working": "its agent is working", "blocked": "its agent waits for an answer in that pane"}
_TASK_MARK = "[task:"


def prompt(
    store: Store,
    sender: Session,
    recipient_id: str,
    message: str,
    task_id: str = "",
    nudge: bool = True,
    force: bool = False,
) -> dict:
    """Store `message` for its recipient, marked ``[task:<id>] `` where one is named, and `deliver` it.

    Raises what ``store.messages.send`` raises; the rest never fails.
    """
    content = f"{_TASK_MARK}{task_id.strip()}] {message}" if task_id.strip() and message.strip() else message
    store.messages.send(sender, recipient_id, content)
    return deliver(store, sender, recipient_id, content, nudge, force)


def deliver(
    store: Store, sender: Session, recipient_id: str, message: str, nudge: bool = True, force: bool = False
) -> dict:
    """Wake the recipient of a message that has been stored; not inside a transaction.

    ``{message_sent, sender, recipient, nudged}`` with ``nudge_skipped`` or ``nudge_error`` where it was not
    woken, and what is known of its pane. Takes up to 15 s where the workspace hangs. `force` wakes also
    a session that is at work.
    """
    answer = {"message_sent": True, "sender": sender.id, "recipient": recipient_id, "nudged": False}
    if not nudge:
        return {**answer, "nudge_skipped": "nudge=false"}
    row = store.instances.live(recipient_id)
    if row is None or not may_meet(sender.label, row.label):
        return {**answer, "nudge_skipped": "that instance is not active"}
    reached = None
    try:
        reached = reach(store, row)
        if not force and reached.pane.status in BUSY:
            answer["nudge_skipped"] = f"{BUSY[reached.pane.status]}; force=true wakes it all the same"
        else:
            reached.backend.wake(reached.pane.handle, _line(sender, message), reached.socket)
            answer["nudged"] = True
    except Unpublished as reason:
        return {**answer, "nudge_skipped": str(reason)}
    except PaneUnavailable as error:
        answer["nudge_error"] = str(error)
    return {**answer, **facts(store, row, reached)}


def _line(sender: Session, message: str) -> str:
    """What is typed: nothing of the message but the task it is about, and nothing a shell would act on."""
    mark, _, _ = message.removeprefix(_TASK_MARK).partition("]")
    task = f" about task {_harmless(mark)}" if message.startswith(_TASK_MARK) and _harmless(mark) else ""
    return f"Swarm message from session {_harmless(short(sender.id))}{task}. Call poll_messages to read it."


def _harmless(text: str) -> str:
    return "".join(c for c in text[:64] if c.isascii() and (c.isalnum() or c in "-_"))
