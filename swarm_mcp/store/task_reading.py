"""Reading tasks: whole rows, lists parsed, and only those that the reader may see.

A scope may hold 100 000 tasks: `walk` lists all of them; `glance` is an answer that stays small.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from swarm_hook_core.json_text import loads
from swarm_hook_core.untrusted_text import token
from swarm_mcp import domain as states
from swarm_mcp.domain import TASK_COLUMNS, Record, Session, Task
from swarm_mcp.store import cursors
from swarm_mcp.store.database import Transaction
from swarm_mcp.store.messages import may_meet, without_walls

SHOWN = 50  # of each status that is not an end
ENDED_SHOWN = 20
CHANGED_SHOWN = 200
MOST_SHOWN = 100  # of each status, where all of them were asked for: more than an answer has room for
MOST_NEWEST = 1000  # of one that ends a task, among which are those that the viewer may see
MANY = 1000  # of one status; fewer are sorted faster than found among the others by time

SELECT = f"SELECT {', '.join(TASK_COLUMNS)} FROM tasks"
ORDER = "priority DESC, created_at, id"
BY_AGE = "created_at, rowid"
# A list column as a table; another program's text that is no JSON counts as empty.
ITEMS = "json_each(CASE WHEN json_valid({0}) THEN {0} ELSE '[]' END)"
# Rows that can be looked up and changed: another program may have left bytes in the place of a name.
SOUND = "typeof(tasks.id) = 'text' AND typeof(tasks.assignee) <> 'blob'"
# The texts of one variable, `as_json` of a list of any length.
AMONG = "(SELECT value FROM json_each(?))"


def walk(tx: Transaction, viewer: Session, status: str = "", assignee: str = "", requester: str = "",
    after: str = "", by_age: bool = False,
) -> Iterator[tuple[str, Task]]:  # fmt: skip
    """Yield the viewer's scope's tasks that it may see, most urgent first; `by_age`: in order of creation.

    Empty filters do not filter.
    """
    condition, values = _filtered(viewer, status, assignee, requester)
    condition = condition.replace("scope", "scope || ''", 1)  # the indexes for this are on it
    sight = Sight(tx, viewer)
    order: str
    kinds: tuple[type, ...]
    names: tuple[str, ...]
    if by_age:
        order, kinds, names = BY_AGE, (object, int), ("created_at", "rowid")
        behind = "(created_at, rowid) > (?, ?) AND"
    else:
        order, kinds, names = ORDER, (object, object, str), ("priority", "created_at", "id")
        # The first half is for the index, since no index has a mixed order of a row's values.
        behind = "priority <= ?1 AND (priority < ?1 OR (created_at, id) > (?2, ?3)) AND typeof(id) = 'text' AND"

    def read(behind: str, place: list[Any], number: int) -> list[Record]:
        where = f"{behind} {condition}"
        sql = f"SELECT rowid, {', '.join(TASK_COLUMNS)} FROM tasks WHERE {where} ORDER BY {order} LIMIT {number}"
        return tx.rows(sql, (*place, *values))

    for place, row in cursors.rows_after(after, kinds, behind, read, lambda row: [row[name] for name in names]):
        if row.id is not None and sight.sees(row):
            yield place, parsed({name: row[name] for name in TASK_COLUMNS})


def count(tx: Transaction, viewer: Session, status: str = "", assignee: str = "", requester: str = "") -> int:
    """Return how many tasks `walk` has."""
    condition, values = _filtered(viewer, status, assignee, requester)
    sight = Sight(tx, viewer)
    if not sight.has_strangers:
        return tx.count(f"tasks WHERE {condition}", *values)
    sql = f"SELECT requester, assignee, count(*) AS n FROM tasks WHERE {condition} GROUP BY requester, assignee"
    return sum(row.n for row in tx.rows(sql, values) if sight.sees(row))


def beginning(tx: Transaction, viewer: Session, text: str, limit: int) -> list[Task]:
    """Return a few of those tasks, with ids that begin with `text`, in order of creation."""
    condition = f"id >= ? AND id < ? || CAST(x'ff' AS TEXT) AND +scope = ? ORDER BY {BY_AGE} LIMIT {limit}"
    sight = Sight(tx, viewer)
    return [task for task in find(tx, condition, (text, text, viewer.scope)) if sight.sees(task)]


def counts(tx: Transaction, viewer: Session) -> dict[str, int]:
    """Return how many tasks of its scope the viewer may see, by status; every status is there."""
    return _counted(tx, viewer, Sight(tx, viewer))


def current(tx: Transaction, viewer: Session, include_terminal: bool = True, terminal_limit: int = 0) -> dict[str, Any]:
    """Return tasks by status, and ``terminal_counts`` {done, failed, cancelled}.

    Ended ones are left out unless `include_terminal`, or `terminal_limit` asks for the newest few of each. Of each
    status at most 100; how many more there are says ``not_shown``: {status: number}.
    """
    sight = Sight(tx, viewer)
    known = _counted(tx, viewer, sight)
    grouped, left = {}, {}
    for status in states.STATUSES:
        if status not in states.TERMINAL or include_terminal:
            grouped[status] = [task for _, task in islice(walk(tx, viewer, status), MOST_SHOWN)]
            left[status] = known[status] - len(grouped[status])
        elif terminal_limit > 0:
            condition = "scope = ? AND status = ? ORDER BY changed_at DESC"
            newest = [
                task
                for task in find(tx, f"{condition} LIMIT {MOST_NEWEST}", (viewer.scope, status))
                if sight.sees(task)
            ][:terminal_limit]
            grouped[status] = sorted(newest, key=lambda task: (-task.priority, task.created_at, task.id))
    ended = {status: known[status] for status in states.TERMINAL}
    not_shown = {status: number for status, number in left.items() if number > 0}
    return {**grouped, "terminal_counts": ended, **({"not_shown": not_shown} if not_shown else {})}


def glance(tx: Transaction, viewer: Session, changed_after: int | None = None) -> dict[str, Any]:
    """Return tasks by status, as `current` groups them, and ``terminal_counts``.

    Of each status the first 50 (20 of those that end it), besides all changes after `changed_after` (``changed_at``,
    milliseconds). The rest is counted in ``not_shown``: {status: number}.
    """
    sight = Sight(tx, viewer)
    known = _counted(tx, viewer, sight)
    grouped: dict[str, list[Task]] = {status: [] for status in states.STATUSES}
    if changed_after is None:
        changed = []
    else:
        # The same millisecond again: its last changes may not have been seen.
        condition = f"scope = ? AND changed_at >= ? ORDER BY changed_at DESC LIMIT {CHANGED_SHOWN}"
        changed = find(tx, condition, (viewer.scope, changed_after))
    for task in changed:
        if task.status in grouped and sight.sees(task):
            grouped[task.status].append(task)
    for status, listed in grouped.items():
        there = {task.id for task in listed}
        for task in _first(tx, viewer, status, known[status]) if known[status] > len(listed) else ():
            if task.id not in there and sight.sees(task):
                listed.append(task)
        if status in states.TERMINAL:
            listed.sort(key=lambda task: task.changed_at, reverse=True)
        else:
            listed.sort(key=lambda task: (-task.priority, task.created_at, task.id))
    left = {status: known[status] - len(tasks) for status, tasks in grouped.items() if known[status] > len(tasks)}
    ended = {status: known[status] for status in states.TERMINAL}
    return {**grouped, "terminal_counts": ended, **({"not_shown": left} if left else {})}


def unfinished_of(tx: Transaction, session: Session, limit: int = -1) -> list[Task]:
    """Return the tasks of its scope that this session has and that have not ended, most urgent first.

    With a `limit`, that many of each status.
    """
    found = []
    for group in _UNFINISHED:
        for status in group:
            condition = f"{_mine(group)} AND +status = '{status}' ORDER BY {ORDER} LIMIT {limit}"
            found += find(tx, condition, (session.scope, session.id))
    return sorted(found, key=lambda task: (-task.priority, task.created_at, task.id))


def count_unfinished_of(tx: Transaction, session: Session) -> int:
    """Return how many tasks `unfinished_of` has in all."""
    return sum(tx.count(f"tasks WHERE {_mine(group)}", session.scope, session.id) for group in _UNFINISHED)


def at_work_beside(tx: Transaction, session: Session, limit: int) -> list[Task]:
    """Return tasks that other sessions of its scope have begun or are about to, as far as this one may see them."""
    tasks = find(
        tx,
        "scope = ? AND status IN ('claimed', 'in_progress') AND assignee IS NOT NULL AND assignee <> ?"
        f" ORDER BY {ORDER} LIMIT 200",
        (session.scope, session.id),
    )
    sight = Sight(tx, session)
    return [task for task in tasks if sight.sees(task)][:limit]


def _filtered(viewer: Session, status: str, assignee: str, requester: str) -> tuple[str, list[Any]]:
    """Return the condition, and its values, of the tasks in the viewer's scope; empty filters do not filter."""
    condition, values = "scope = ?", [viewer.scope]
    for column, wanted in (("status", status), ("assignee", assignee), ("requester", requester)):
        if wanted:
            condition += f" AND {column} = ?"
            values.append(wanted)
    return condition, values


def _counted(tx: Transaction, viewer: Session, sight: Sight) -> dict[str, int]:
    """Return the number of tasks of each status, those left out that another identity hides."""
    whose, groups = "'' AS requester, '' AS assignee", "status"
    if sight.has_strangers:
        whose, groups = "requester, assignee", "status, requester, assignee"
    groups_of = tx.rows(
        f"SELECT status, {whose}, count(*) AS n FROM tasks WHERE scope = ? GROUP BY {groups}", (viewer.scope,)
    )
    found = dict.fromkeys(states.STATUSES, 0)
    for row in groups_of:
        if row.status in found and sight.sees(row):
            found[row.status] += row.n
    return found


def _first(tx: Transaction, viewer: Session, status: str, count: int) -> list[Task]:
    # As a literal, so that the index on open tasks alone serves too. It is one of our own words.
    condition = f"scope = ? AND status = '{status}'"
    if status not in states.TERMINAL:
        return find(tx, f"{condition} ORDER BY {ORDER} LIMIT {SHOWN}", (viewer.scope,))
    if count > MANY:
        condition = f"scope = ? AND +status = '{status}'"  # through the index on changed_at
    return find(tx, f"{condition} ORDER BY changed_at DESC LIMIT {ENDED_SHOWN}", (viewer.scope,))


def find(tx: Transaction, condition: str, values: tuple[Any, ...] | list[Any]) -> list[Task]:
    """Return tasks by an SQL condition (with its ORDER BY), parsed; without rows without an id, which SQLite allows."""
    return [parsed(row) for row in tx.rows(f"{SELECT} WHERE {condition}", values) if row.id is not None]


def get(tx: Transaction, scope: str, task_id: str) -> Task | None:
    """Return one task of a scope, visible or not."""
    found = find(tx, "id = ? AND scope = ?", (task_id, scope))
    if found:
        return found[0]
    return None


def seen(tx: Transaction, viewer: Session, task_id: str) -> Task | None:
    """Return one task of the viewer's scope; None also for a task hidden by another identity.

    A session can name tasks that it asked for or works on from any scope that it has moved to.
    """
    found = find(tx, "id = ?", (task_id,))
    if found:
        task = found[0]
    else:
        task = None
    if task is None or viewer.id in (task.requester, task.assignee):
        return task
    if task.scope == viewer.scope and Sight(tx, viewer).sees(task):
        return task
    return None


def parsed(row: dict[str, Any]) -> Task:
    """Return a row with its list columns as lists; None for an empty or unreadable column."""
    return Task({**row, "files": texts_in(row["files"]), "depends_on": texts_in(row["depends_on"])})


def texts_in(text: object) -> list[str] | None:
    """Return the list of texts behind a JSON column."""
    try:
        if isinstance(text, str):
            value = loads(text)
        else:
            value = None
    except (ValueError, RecursionError):  # another program's text
        value = None
    if isinstance(value, list):
        return [item for item in value if isinstance(item, str)]
    return None


class Sight:
    """The tasks that one session (a row of ``sessions``; at least ``id`` and ``label``) may see.

    A task shows the identity of its requester while that is registered, else of its assignee. After both have gone no
    session is left to hide it. Sessions are looked up as tasks name them: there may be many more sessions.
    """

    def __init__(self, tx: Transaction, viewer: Session):
        self._tx = tx
        self._viewer = viewer
        if without_walls():
            self._identity = ""
        else:
            self._identity = token(viewer.label or "", "identity")
        self._labels: dict[str, tuple[Any, ...]] = {}  # of a session, in a tuple: empty where it is not registered
        self._has_strangers: bool | None = None

    @property
    def has_strangers(self) -> bool:
        """True if there is a session whose tasks this one may not know of."""
        if self._has_strangers is None:
            sql = (
                "SELECT 1 FROM instances WHERE instr(label, 'identity:')"
                " AND NOT instr(' ' || label || ' ', ' ' || ? || ' ') LIMIT 1"
            )
            mine = f"identity:{self._identity}"
            self._has_strangers = bool(self._identity) and self._tx.row(sql, (mine,)) is not None
        return self._has_strangers

    @property
    def strangers(self) -> set[str]:
        """The ids of all sessions whose tasks this one may not know of."""
        if not self.has_strangers:
            return set()
        rows = self._tx.rows("SELECT id, label FROM instances WHERE instr(label, 'identity:')")
        mine = self._viewer
        return {row.id for row in rows if row.id != mine.id and not may_meet(mine.label, row.label)}

    def sees(self, task: dict[str, Any]) -> bool:
        """Return True if the session may know of `task`."""
        if not self.has_strangers or self._viewer.id in (task["requester"], task["assignee"]):
            return True
        label = self._label_of(task["requester"]) or self._label_of(task["assignee"])
        return not label or may_meet(self._viewer.label, label[0])

    def _label_of(self, instance_id: str | None) -> tuple[Any, ...]:
        """Return a session's label, in a tuple that is empty where that is not registered."""
        if instance_id is None:
            return ()
        if instance_id not in self._labels:
            rows = self._tx.rows("SELECT label FROM instances WHERE id = ?", (instance_id,))
            self._labels[instance_id] = tuple(row.label for row in rows)
        return self._labels[instance_id]


# Statuses before an end, grouped by index: each index is on some statuses, and a question has to name them as it does.
_UNFINISHED = ((states.CLAIMED, states.IN_PROGRESS), (states.BLOCKED, states.APPROVAL_REQUIRED), (states.OPEN,))


def _mine(group: tuple[str, ...]) -> str:
    """Return the condition for a session's tasks with one of these statuses."""
    return f"scope = ? AND assignee = ? AND status IN ({', '.join(map(repr, group))})"
