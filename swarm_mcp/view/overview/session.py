"""One session whole: its place, locks, waits, tasks, messages and events."""

from __future__ import annotations

from itertools import islice
from typing import NamedTuple

from swarm_mcp.answers.edits import Edit
from swarm_mcp.answers.people import People
from swarm_mcp.answers.timeline import Happening, timeline
from swarm_mcp.answers.work import MessageRow, TaskRow, messages, task_row
from swarm_mcp.domain.run import Run
from swarm_mcp.domain.session import Session, onlooker
from swarm_mcp.errors import UnknownInstance
from swarm_mcp.store import Store
from swarm_mcp.view.overview.lines import Line, lines
from swarm_mcp.view.overview.now import COUNTED, FileNow, files_of

FILES, TASKS, MESSAGES, HAPPENINGS = 100, 20, 10, 50  # that are shown


class SessionWhole(NamedTuple):
    """A session called `name`. `row` is None for a departed session, `run` for one that is no running worker.

    `files`: its locked, awaited and changed files; `lock_count` counts its locks up to `COUNTED`. `tasks` are assigned
    to it, `asked` were requested by it; `told` and `said` are messages to and from it; `happened` are its events,
    newest first.
    """

    id: str
    scope: str
    name: str
    row: Session | None
    run: Run | None
    files: list[FileNow]
    lock_count: int
    waits: list[Line]
    tasks: list[TaskRow]
    asked: list[TaskRow]
    told: list[MessageRow]
    said: list[MessageRow]
    happened: list[Happening]


def session_whole(
    store: Store, instance_id: str, scope: str, people: People, since: int, edited: list[Edit]
) -> SessionWhole:
    """Return all about a session; about a departed one, its events in `scope` since then.

    `edited` is the result of ``edits.edits`` in its scope. Raises UnknownInstance for an unknown id.
    """
    row = store.instances.with_evidence(instance_id)
    if row:
        scope = row.scope
    happened = [
        one for one in timeline(store, scope, people, since, store.now()).happenings[::-1]
        if instance_id in (one.instance_id, one.other)
    ][:HAPPENINGS]  # fmt: skip
    if row is None and not happened:
        raise UnknownInstance("that session is unknown (events are kept for about a day)")
    # the events of a departed session still have its name
    name = people.name(row) if row else people.called(instance_id)
    waits = [line for line in lines(store, scope, people).waiting if line.instance_id == instance_id]
    held = store.locks.recent_of([instance_id], people.viewer, FILES, ())
    lock_count = store.locks.counts_of([instance_id], COUNTED)[instance_id]
    changed = [one for one in edited if one.instance_id == instance_id]
    viewer = onlooker(people.viewer, scope)
    told = messages(store, scope, people, limit=MESSAGES, to=instance_id)
    said = messages(store, scope, people, limit=MESSAGES, sender=instance_id)

    def tasks(assignee: str = "", requester: str = "") -> list[TaskRow]:
        found = store.tasks.walk(viewer, assignee=assignee, requester=requester)
        return [task_row(task, people) for _, task in islice(found, TASKS)]

    return SessionWhole(
        instance_id, scope, name, row, store.runs.of_instance(instance_id),
        files_of(held, waits, changed, people, FILES), lock_count, waits,
        tasks(assignee=instance_id), tasks(requester=instance_id), told.rows, said.rows, happened,
    )  # fmt: skip
