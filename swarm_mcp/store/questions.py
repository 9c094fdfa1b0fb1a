"""Questions of workers to a person: they and their answers are kept as long as their tasks.

They stay on this machine: a team shares the task, whose ``blocked_reason`` has the question, but not the answer.
"""

from __future__ import annotations

from swarm_hook_core.untrusted_text import quoted
from swarm_mcp.domain.question import WAITS, Question
from swarm_mcp.domain.session import Session
from swarm_mcp.domain.task import IN_PROGRESS, TERMINAL, Task
from swarm_mcp.errors import Refused
from swarm_mcp.store import task_life as states
from swarm_mcp.store import task_notices, task_reading, tasks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_mcp.store.database import Database, Transaction

LONGEST = 10_000  # characters of a question, or of an answer
_COLUMNS = ", ".join(Question.__annotations__)


def ask(db: Database, actor: Session, task_id: str, text: str) -> tuple[Question, list[tuple[str, str]]]:
    """Ask a person about the task of `actor`; return the question, and the notice to the task's requester.

    The same text again is the same question, answered or not. Raises Refused while another one is not answered.
    """
    text = _checked(text, "question")
    with db.writing() as tx:
        task = tasks.known(tx, actor, task_id)
        if task.assignee != actor.id:
            raise Refused("Only the assignee can ask about this task")
        if task.status != IN_PROGRESS:
            raise Refused(f"Task is {task.status}, not in_progress")
        before = of_task(tx, task.id)
        for one in before:
            if one.question == text:
                return one, []
            if one.answer is None:
                raise Refused(f"Your question {quoted(one.question)} is not answered yet: ask one at a time")
        tx.change(
            "INSERT INTO swarm_questions (task_id, asked_by, question, asked_at) VALUES (?, ?, ?, ?)",
            (task.id, actor.id, text, tx.now()),
        )
        _block(tx, task, "asks a person", WAITS + text, actor.id)
        return of_task(tx, task.id)[-1], task_notices.tell_asked(tx, actor, task, text)


def answer(db: Database, actor: Session, task_id: str, text: str) -> Question:
    """Give a person's answer to the open question of a task; return it. Raises Refused without an open question."""
    text = _checked(text, "answer")
    with db.writing() as tx:
        task = task_reading.seen(tx, actor, task_id)
        if task is None:
            raise Refused("Task not found")
        if task.status in TERMINAL:
            raise Refused(f"Task is {task.status}: nobody waits for the answer")
        asked = open_of(tx, task.id)
        if asked is None:
            raise Refused("Task waits for no answer")
        now = tx.now()
        tx.change("UPDATE swarm_questions SET answer = ?, answered_at = ? WHERE id = ?", (text, now, asked.id))
        _block(tx, task, "a person has answered", None, actor.id)
        return asked.replace(answer=text, answered_at=now)


def of_task(db: Database | Transaction, task_id: str) -> list[Question]:
    """Return the questions about a task, the oldest first."""
    return db.rows(f"SELECT {_COLUMNS} FROM swarm_questions WHERE task_id = ? ORDER BY id", (task_id,), Question)


def open_of(db: Database | Transaction, task_id: str) -> Question | None:
    """Return the question about a task that is not answered, or None."""
    return next((one for one in of_task(db, task_id) if one.answer is None), None)


def untold(db: Database | Transaction, task_id: str) -> list[Question]:
    """Return the questions about a task whose answer its worker does not know."""
    return [one for one in of_task(db, task_id) if one.told_at is None]


def told(tx: Transaction, ids: list[int]) -> None:
    """Inside a transaction: note that the worker knows the answers to these questions."""
    for one in ids:
        tx.change(
            "UPDATE swarm_questions SET told_at = ? WHERE id = ? AND answer IS NOT NULL AND told_at IS NULL",
            (tx.now(), one),
        )


def waiting(db: Database | Transaction, viewer: Session) -> list[tuple[Task, Question]]:
    """Return the unfinished tasks of `viewer`'s scope that wait for an answer, in the order of the questions."""
    found = []
    for row in db.rows(f"SELECT {_COLUMNS} FROM swarm_questions WHERE answer IS NULL ORDER BY id", (), Question):
        task = task_reading.seen(db, viewer, row.task_id)
        if task and task.status not in TERMINAL:
            found.append((task, row))
    return found


def _checked(text: str, what: str) -> str:
    text = text.strip()
    if not text:
        raise Refused(f"the {what} is empty")
    if len(text) > LONGEST:
        raise Refused(f"the {what} has {len(text)} characters, more than {LONGEST}")
    return text


def _block(tx: Transaction, task: Task, summary: str, reason: str | None, actor: str) -> None:
    """Inside a transaction: say why a task is blocked, or that it is not any more."""
    now = tx.now()
    if reason is None and not (task.blocked_reason or "").startswith(WAITS):
        reason = task.blocked_reason  # the worker's own
    tx.change(
        "UPDATE tasks SET blocked_reason = ?, updated_at = ?, changed_at = ? WHERE id = ?",
        (reason, now, states.stamp(tx, task.scope), task.id),
    )
    payload = {"summary": summary, "progress_updated_at": task.progress_updated_at, "blocked_reason": reason}
    payload["expected_next_update_at"] = task.expected_next_update_at
    tx.add_event(task.scope, "task.progress", actor, task.id, payload)
