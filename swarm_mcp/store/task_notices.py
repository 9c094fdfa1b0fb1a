"""What sessions are told about tasks, stored with the change that it is about.

A message is stored in the scope in which its recipient is now, for that is where its inbox is; nobody
writes to a session that is not registered. Each function returns ``[(recipient id, text)]``, for whoever
then wakes the recipients. All texts begin with ``[auto] `` and name their tasks as ``(task_id: ...)``; by
that the unread gate knows that a notice is about the very task that is being claimed.
"""

from __future__ import annotations

from swarm_hook_core.untrusted_text import named, quoted
from swarm_mcp.domain.session import Session
from swarm_mcp.domain.task import APPROVAL_REQUIRED, BLOCKED, CANCELLED, CLAIMED, DONE, TERMINAL, Task
from swarm_mcp.store.task_life import TaskParts

AUTO = "[auto] "
LONGEST_QUOTE = 2000


def assigned(parts: TaskParts, requester: Session, task: Task) -> list[tuple[str, str]]:
    """Inside a transaction: tell the assignee of a new task."""
    if task["assignee"] in (None, requester["id"]) or task["status"] in TERMINAL:
        return []
    when = {
        BLOCKED: "It is blocked by other tasks; you will be told when it may begin.",
        APPROVAL_REQUIRED: "It waits for approval; you will be told when it may begin.",
    }.get(task["status"], "Begin with claim_task.")
    return _post(
        parts, requester, task["assignee"], f"New {named(task['type'])} task for you: {_named(task)}. {when}", task
    )


def assigned_together(parts: TaskParts, requester: Session, tasks: list[Task]) -> list[tuple[str, str]]:
    """Inside a transaction: tell each assignee of a batch, in one message each."""
    mine: dict[str, list[Task]] = {}
    for task in tasks:
        if task["assignee"] not in (None, requester["id"]) and task["status"] not in TERMINAL:
            mine.setdefault(task["assignee"], []).append(task)
    told = []
    for assignee, some in mine.items():
        listed = "; ".join(f"{_named(task)} [{named(task['type'])}, {task['status']}]" for task in some)
        waiting = any(task["status"] != CLAIMED for task in some)
        later = " those that are claimed; you will be told when the others may begin" if waiting else ""
        text = f"{len(some)} new task{'s' if len(some) > 1 else ''} for you: {listed}. Begin with claim_task{later}."
        told += _post(parts, requester, assignee, text, None)
    return told


def approved(parts: TaskParts, approver: Session, task: Task) -> list[tuple[str, str]]:
    """Inside a transaction: tell the assignee that an approved task may begin."""
    if task["status"] != CLAIMED or task["assignee"] == approver["id"]:
        return []
    text = f"Approved: {_named(task)}. Begin with claim_task."
    return _post(parts, approver, task["assignee"], text, task)


def ended(parts: TaskParts, actor: Session, task: Task, summary: str | None) -> list[tuple[str, str]]:
    """Inside a transaction: tell the requester that a task is done or has failed. Cancelling is silent."""
    requester = task["requester"]
    if task["status"] == CANCELLED or requester == actor["id"]:
        return []
    outcome = f": {quoted(summary, LONGEST_QUOTE)}" if summary and summary.strip() else ""
    text = f"{'Done' if task['status'] == DONE else 'Failed'}: {_named(task)}{outcome}"
    return _post(parts, actor, requester, text, task)


def unblocked(parts: TaskParts, actor: Session, tasks: list[Task]) -> list[tuple[str, str]]:
    """Inside a transaction: tell assignees that their tasks may begin now. `actor` may be the system itself."""
    told = []
    for task in tasks:
        if task["status"] == CLAIMED and task["assignee"] != actor["id"]:
            text = f"No longer blocked: {_named(task)}. Begin with claim_task."
            told += _post(parts, actor, task["assignee"], text, task)
    return told


def about(content: str, task_id: str) -> bool:
    """Whether a message is nothing but such a notice about this task."""
    own = f"[task:{task_id}] {AUTO}"
    return content.startswith(own) or (content.startswith(AUTO) and f"task_id: {task_id})" in content)


def _named(task: Task) -> str:
    return f"{quoted(task['title'])} (task_id: {task['id']})"


def _post(parts: TaskParts, sender: Session, recipient: str, text: str, task: Task | None) -> list[tuple[str, str]]:
    row = parts.sessions.get(recipient)
    if row is None:
        return []
    content = f"[task:{task['id']}] {AUTO}{text}" if task else AUTO + text
    parts.messages.post(row["scope"], sender["id"], recipient, content)
    return [(recipient, content)]
