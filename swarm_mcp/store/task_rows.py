"""Tasks as they are read: whole rows, lists parsed, and only those that the reader may see."""

from __future__ import annotations

from swarm_hook_core.json_text import loads
from swarm_mcp.domain import task as states
from swarm_mcp.domain.task import COLUMNS, Task
from swarm_mcp.visibility import may_meet

SELECT = f"SELECT {', '.join(COLUMNS)} FROM tasks"
ORDER = "priority DESC, created_at, id"
# A list column as a table; what another program left there and is no JSON counts as empty.
ITEMS = "json_each(CASE WHEN json_valid({0}) THEN {0} ELSE '[]' END)"
# What can be looked up and changed: another program may have left bytes where a name belongs.
SOUND = "typeof(tasks.id) = 'text' AND typeof(tasks.assignee) <> 'blob'"
# The texts of one variable, `as_json` of a list of any length.
AMONG = "(SELECT value FROM json_each(?))"


def find(store, condition: str, values: tuple | list) -> list[Task]:
    """Tasks by an SQL condition (with its ORDER BY), parsed. One without an id, which SQLite allows, is none."""
    return [parsed(row) for row in store.rows(f"{SELECT} WHERE {condition}", values) if row["id"] is not None]


def get(store, scope: str, task_id: str) -> Task | None:
    """One task of a scope, whoever may see it."""
    found = find(store, "id = ? AND scope = ?", (task_id, scope))
    return found[0] if found else None


def seen(store, viewer: dict, task_id: str) -> Task | None:
    """One task of the viewer's scope; None also where another identity hides it.

    What it asked for or works on a session can name from wherever it has moved to.
    """
    found = find(store, "id = ?", (task_id,))
    task = found[0] if found else None
    if task is None or viewer["id"] in (task["requester"], task["assignee"]):
        return task
    return task if task["scope"] == viewer["scope"] and Sight(store, viewer).sees(task) else None


def listed(
    store, viewer: dict, status: str = "", assignee: str = "", requester: str = "", order: str = ORDER
) -> list[Task]:
    """The tasks of the viewer's scope that it may see, most urgent first; empty filters do not filter."""
    condition, values = "scope = ?", [viewer["scope"]]
    for column, wanted in (("status", status), ("assignee", assignee), ("requester", requester)):
        if wanted:
            condition += f" AND {column} = ?"
            values.append(wanted)
    sight = Sight(store, viewer)
    return [task for task in find(store, f"{condition} ORDER BY {order}", values) if sight.sees(task)]


def current(store, viewer: dict, include_terminal: bool = True, terminal_limit: int = 0) -> dict:
    """Tasks by status, and ``terminal_counts`` {done, failed, cancelled}.

    Ended ones are left out unless `include_terminal`, or `terminal_limit` asks for the newest few of each.
    """
    grouped: dict = {status: [] for status in states.STATUSES}
    for task in listed(store, viewer):
        if task["status"] in grouped:
            grouped[task["status"]].append(task)
    counts = {status: len(grouped[status]) for status in states.TERMINAL}
    for status in states.TERMINAL:
        if not include_terminal and terminal_limit <= 0:
            del grouped[status]
        elif not include_terminal:
            newest = sorted(grouped[status], key=lambda task: task["changed_at"], reverse=True)[:terminal_limit]
            ids = {task["id"] for task in newest}
            grouped[status] = [task for task in grouped[status] if task["id"] in ids]
    return {**grouped, "terminal_counts": counts}


def parsed(row: dict) -> Task:
    """A row with its list columns as lists, None where there is none or it cannot be read."""
    return Task({**row, "files": texts_in(row["files"]), "depends_on": texts_in(row["depends_on"])})


def texts_in(text: object) -> list[str] | None:
    """The list of texts behind a JSON column."""
    try:
        value = loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        value = None
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else None


class Sight:
    """What one session (a row of ``instances``; at least ``id`` and ``label``) may see of tasks.

    A task shows the identity of its requester while that is registered, else of its assignee. Where
    both have gone nobody is left to hide it from anyone.
    """

    def __init__(self, store, viewer: dict):
        rows = store.rows("SELECT id, label FROM instances")
        self._viewer = viewer["id"]
        self._registered = {row["id"] for row in rows}
        self.strangers = {
            row["id"] for row in rows if row["id"] != viewer["id"] and not may_meet(viewer["label"], row["label"])
        }

    def sees(self, task: dict) -> bool:
        """Whether the session may know of `task`."""
        if not self.strangers or self._viewer in (task["requester"], task["assignee"]):
            return True
        owner = task["requester"] if task["requester"] in self._registered else task["assignee"]
        return owner not in self.strangers
