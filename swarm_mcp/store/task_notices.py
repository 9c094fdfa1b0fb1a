"""Notices about tasks, to their requesters and assignees.

A notice is stored with the change that it is about, in the present scope of its recipient, since its inbox is there.
Unregistered sessions get no notices. Functions that tell return ``[(recipient id, text)]``, for the caller to wake the
recipients. All texts begin with ``[auto] `` and name their tasks as ``(task_id: ...)``; by that the unread gate knows a
notice about the very task that is being claimed.
"""

from __future__ import annotations

from swarm_hook_core.untrusted_text import named, quoted
from swarm_mcp.domain.message import of_task
from swarm_mcp.domain.task import APPROVAL_REQUIRED, BLOCKED, CANCELLED, CLAIMED, DONE, TERMINAL, Task
from swarm_mcp.store import messages, session_table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_mcp.domain.session import Session
    from swarm_mcp.store.database import Transaction

AUTO = "[auto] "
LONGEST_QUOTE = 2000


def tell_assigned(tx: Transaction, requester: Session, task: Task) -> list[tuple[str, str]]:
    """Inside a transaction: tell the assignee of a new task."""
    if task.assignee in (None, requester.id) or task.status in TERMINAL:
        return []
    when = {
        BLOCKED: "It is blocked by other tasks; you will be told when it may begin.",
        APPROVAL_REQUIRED: "It waits for approval; you will be told when it may begin.",
    }.get(task.status, "Begin with claim_task.")
    return _post(tx, requester, task.assignee, f"New {named(task.type)} task for you: {_title(task)}. {when}", task)


def tell_assigned_together(tx: Transaction, requester: Session, tasks: list[Task]) -> list[tuple[str, str]]:
    """Inside a transaction: tell each assignee of a batch, in one message each."""
    mine: dict[str, list[Task]] = {}
    for task in tasks:
        if task.assignee not in (None, requester.id) and task.status not in TERMINAL:
            mine.setdefault(task.assignee, []).append(task)
    told = []
    for assignee, some in mine.items():
        listed = "; ".join(f"{_title(task)} [{named(task.type)}, {task.status}]" for task in some)
        later = ""
        if any(task.status != CLAIMED for task in some):
            later = " those that are claimed; you will be told when the others may begin"
        text = f"{len(some)} new task{'s' if len(some) > 1 else ''} for you: {listed}. Begin with claim_task{later}."
        told += _post(tx, requester, assignee, text, None)
    return told


def tell_approved(tx: Transaction, approver: Session, task: Task) -> list[tuple[str, str]]:
    """Inside a transaction: tell the assignee that an approved task may begin."""
    if task.status != CLAIMED or task.assignee == approver.id:
        return []
    text = f"Approved: {_title(task)}. Begin with claim_task."
    return _post(tx, approver, task.assignee, text, task)


def tell_ended(tx: Transaction, actor: Session, task: Task, summary: str | None) -> list[tuple[str, str]]:
    """Inside a transaction: tell the requester that a task is done or has failed. Cancelling is silent."""
    requester = task.requester
    if task.status == CANCELLED or requester == actor.id:
        return []
    outcome = ""
    if summary and summary.strip():
        outcome = f": {quoted(summary, LONGEST_QUOTE)}"
    text = f"{'Done' if task.status == DONE else 'Failed'}: {_title(task)}{outcome}"
    return _post(tx, actor, requester, text, task)


def tell_asked(tx: Transaction, actor: Session, task: Task, question: str) -> list[tuple[str, str]]:
    """Inside a transaction: tell the requester that the task waits for a person's answer."""
    if task.requester == actor.id:
        return []
    text = f"A question to a person: {_title(task)}: {quoted(question, LONGEST_QUOTE)}."
    text += f" They answer in a terminal of their own: swarm-mcp task answer {task.id} TEXT"
    return _post(tx, actor, task.requester, text, task)


def tell_unblocked(tx: Transaction, actor: Session, tasks: list[Task]) -> list[tuple[str, str]]:
    """Inside a transaction: tell assignees that their tasks may begin now. `actor` may be the system itself."""
    told = []
    for task in tasks:
        if task.status == CLAIMED and task.assignee != actor.id:
            text = f"No longer blocked: {_title(task)}. Begin with claim_task."
            told += _post(tx, actor, task.assignee, text, task)
    return told


def is_about(content: str, task_id: str) -> bool:
    """Return True if a message is nothing but such a notice about this task."""
    own = of_task(task_id, AUTO)
    return content.startswith(own) or (content.startswith(AUTO) and f"task_id: {task_id})" in content)


def _title(task: Task) -> str:
    return f"{quoted(task.title)} (task_id: {task.id})"


def _post(
    tx: Transaction, sender: Session, recipient: str | None, text: str, task: Task | None
) -> list[tuple[str, str]]:
    row = session_table.get(tx, recipient) if recipient else None
    if row is None:
        return []
    content = AUTO + text
    if task:
        content = of_task(task.id, content)
    messages.post(tx, row.scope, sender.id, row.id, content)
    return [(row.id, content)]
