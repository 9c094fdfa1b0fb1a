"""Tasks and workers of a scope, and the messages between its sessions, as rows to show."""

from __future__ import annotations

from itertools import islice
from typing import NamedTuple

from swarm_mcp.domain.message import Message
from swarm_mcp.domain.run import ENDED, Run
from swarm_mcp.domain.session import onlooker
from swarm_mcp.domain.task import STATUSES, TERMINAL, Task
from swarm_mcp.overview.people import People
from swarm_mcp.store import Store

TASKS, MESSAGES, WORKERS = 50, 50, 50
ORDER = (*(status for status in STATUSES if status not in TERMINAL), *TERMINAL)  # what is still to be done stands first


class TaskRow(NamedTuple):
    """A task, and what those who asked for it and who do it are called; `assignee` is empty for nobody."""

    task: Task
    requester: str
    assignee: str


class Tasks(NamedTuple):
    """Tasks by status, in `ORDER`; `counts` says how many there are of each in all."""

    by_status: dict[str, list[TaskRow]]
    counts: dict[str, int]


class MessageRow(NamedTuple):
    """A message, and what its sender and its recipient are called."""

    message: Message
    sender: str
    recipient: str


class Messages(NamedTuple):
    """Some messages, the newest first; `older` is the cursor behind the last of them, empty where there are no more."""

    rows: list[MessageRow]
    older: str


class Worker(NamedTuple):
    """A run of an agent: how it stands in a few words, what its session is called, how many seconds it took so far."""

    run: Run
    outcome: str
    name: str
    took: float


def tasks(store: Store, scope: str, people: People, limit: int = TASKS) -> Tasks:
    """The most urgent tasks of each status."""
    viewer = onlooker(people.viewer, scope)
    counts = store.tasks.counts(viewer)
    found = {}
    for status in ORDER:
        rows = islice(store.tasks.walk(viewer, status), limit) if counts.get(status) else ()
        if shown := [task_row(row, people) for _, row in rows]:
            found[status] = shown
    return Tasks(found, counts)


def task_row(task: Task, people: People) -> TaskRow:
    """A task with the names of its people."""
    return TaskRow(task, people.called(task.requester), people.called(task.assignee) if task.assignee else "")


def messages(
    store: Store, scope: str, people: People, after: str = "", limit: int = MESSAGES, who: str = ""
) -> Messages:
    """The newest messages of a scope, behind the cursor `after`; `who`: those to that session alone."""
    found = list(islice(store.messages.walk(scope, to=who, viewer=people.viewer, after=after), limit + 1))
    rows = [MessageRow(row, people.called(row.sender), people.called(row.recipient)) for _, row in found[:limit]]
    return Messages(rows, found[limit - 1][0] if len(found) > limit else "")


def workers(store: Store, scope: str, people: People, limit: int = WORKERS) -> list[Worker]:
    """The newest runs of a scope."""
    return [worker(store, row, people) for _, row in islice(store.runs.walk(scope), limit)]


def worker(store: Store, run: Run, people: People) -> Worker:
    """A run as somebody looks at it."""
    until = run.ended_at or (run.updated_at if run.state == ENDED else store.now())
    return Worker(run, outcome(run), people.called(run.instance_id), max(0.0, until - run.started_at))


def outcome(run: Run) -> str:
    """The state of a run; of one that has ended, how it did."""
    if run.state != ENDED:
        return f"{run.state}, {run.control} asked" if run.control else run.state
    result = run.result or {}
    if not result:
        return ENDED
    return f"failed: {result.get('error_category') or 'unknown'}" if result.get("is_error") else "done"
