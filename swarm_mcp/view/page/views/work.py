"""The tasks and messages between sessions, and one task whole."""

from __future__ import annotations

from swarm_mcp.answers.work import (
    MESSAGES,
    TASKS,
    about,
    find_task,
    message_row,
    messages,
    task_row,
    tasks,
    worker,
)
from swarm_mcp.domain.session import onlooker
from swarm_mcp.view.page.view import MOST_CHECKOUTS, Look, Page, View

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

TASKS_OF_MANY, MESSAGES_OF_MANY = 10, 10  # of each checkout, where there are several; of tasks, in each status
ABOUT, READ = 50, 200  # messages about one task that are shown; of its checkout, that are looked through for them


def _make(look: Look) -> Page:
    if look.scope:
        scopes = [look.scope]
    else:
        scopes = look.store.instances.scopes(MOST_CHECKOUTS)
    found = [_checkout(look, scope, len(scopes) > 1) for scope in scopes]
    found = [one for one in found if look.scope or one["tasks"].by_status or one["messages"].rows]
    return Page("work.html", "Tasks and messages", {"checkouts": found})


def _checkout(look: Look, scope: str, is_one_of_many: bool) -> dict[str, Any]:
    some_tasks, some_messages = (TASKS_OF_MANY, MESSAGES_OF_MANY) if is_one_of_many else (TASKS, MESSAGES)
    if look.scope:
        after = look.asked.get("after")
    else:
        after = ""
    return {
        "scope": scope,
        "tasks": tasks(look.store, scope, look.people, some_tasks),
        "messages": messages(look.store, scope, look.people, after, some_messages),
        "is_older": bool(after),
    }


def _make_task(look: Look) -> Page:
    task = find_task(look.store, onlooker(look.people.viewer, look.scope), look.asked.get("id"))
    found = about(look.store, task, look.people.viewer, READ)
    related = (
        ("Waits for", task.depends_on or []), ("Part of", [task.parent_task_id]),
        ("Review of", [task.review_of_task_id]), ("Fixes", [task.fixes_task_id]),
    )  # fmt: skip
    shown = {
        "row": task_row(task, look.people),
        "runs": [worker(look.store, run, look.people) for run in found.runs],
        "messages": [message_row(message, look.people) for message in found.messages[:ABOUT]],
        "message_count": len(found.messages),
        "related": [(words, [one for one in ids if one]) for words, ids in related if any(ids)],
    }
    return Page("task.html", f"Task {task.title}", shown)


WORK = View("/work", "Tasks and messages", _make)
TASK = View("/task", "", _make_task)
