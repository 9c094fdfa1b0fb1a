"""Tasks, workers, messages, and changed files of a scope, as rows to show."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from contextlib import closing
from itertools import islice
from typing import NamedTuple

from swarm_hook_core.clock import Budget
from swarm_hook_core.traces import level, others_in, place_of
from swarm_hook_core.traces.file_changes import Patience
from swarm_hook_core.traces.meetings import Meetings
from swarm_hook_core.traces.trail import OnlookersTrail
from swarm_mcp import contributions
from swarm_mcp.answers.people import People, short
from swarm_mcp.answers.timeline import Happening, timeline
from swarm_mcp.domain import ENDED, STATUSES, TERMINAL, Message, Run, Session, Task, onlooker, task_and_text
from swarm_mcp.errors import SwarmError, UsageError
from swarm_mcp.store import Store

TASKS, MESSAGES, WORKERS = 50, 50, 50
MOST_READ = 1000  # messages of a scope that are looked through for those about a task, the newest first
MOST_NAMED = 5  # tasks with the same beginning of their ids
RUNS = 20  # of one task, the newest
EVERYBODY = "all"
ORDER = (*(status for status in STATUSES if status not in TERMINAL), *TERMINAL)  # open tasks stand first


class TaskRow(NamedTuple):
    """A task with the names of its requester and its assignee; `assignee` is empty for an unassigned task."""

    task: Task
    requester: str
    assignee: str


class Tasks(NamedTuple):
    """Tasks by status, in `ORDER`; `counts` says how many there are of each in all."""

    by_status: dict[str, list[TaskRow]]
    counts: dict[str, int]


class MessageRow(NamedTuple):
    """A message: the names of sender and recipient, the task in its mark (or empty), its text."""

    message: Message
    sender: str
    recipient: str
    task_id: str
    text: str


class About(NamedTuple):
    """The surroundings of a task: its newest runs first, and the messages that name it, newest first."""

    runs: list[Run]
    messages: list[Message]


class Messages(NamedTuple):
    """Some messages, the newest first; `older` is the cursor behind the last of them, empty where there are no more."""

    rows: list[MessageRow]
    older: str


class Worker(NamedTuple):
    """A run of an agent: its state in a few words, its session's name, its seconds so far."""

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
        if not counts.get(status):
            continue
        rows = islice(store.tasks.walk(viewer, status), limit)
        if shown := [task_row(row, people) for _, row in rows]:
            found[status] = shown
    return Tasks(found, counts)


def task_row(task: Task, people: People) -> TaskRow:
    """A task with the names of its people."""
    return TaskRow(task, people.called(task.requester), people.called(task.assignee) if task.assignee else "")


def find_task(store: Store, viewer: Session, reference: str) -> Task:
    """Return the task with this id, or the only visible one whose id begins so. Raises SwarmError."""
    exact = store.tasks.seen(viewer, reference)
    if exact:
        return exact
    rows = store.tasks.beginning(viewer, reference, MOST_NAMED + 1)
    if len(rows) == 1:
        return rows[0]
    if not rows:
        raise SwarmError(f"no task of this scope has {reference[:60]!r} for its id; swarm-mcp task list lists them")
    names = ", ".join(short(row.id) for row in rows[:MOST_NAMED])
    raise UsageError(f"{reference[:60]!r} is how several ids begin: {names}")


def about(store: Store, task: Task, viewer: str, read: int = MOST_READ) -> About:
    """The runs of a task, and the messages about it that are still kept, as identity `viewer` may see them.

    For those the newest `read` messages of its scope are looked through.
    """
    newest = (row for _, row in islice(store.messages.walk(task.scope, viewer=viewer), read))
    named = [message for message in newest if task.id in (message.content or "")]
    return About(store.runs.of_task(task.scope, task.id)[:RUNS], named)


def messages(
    store: Store, scope: str, people: People, after: str = "", limit: int = MESSAGES, to: str = "", sender: str = ""
) -> Messages:
    """The newest messages of a scope, behind the cursor `after`; of one `sender`, `to` one session, where given."""
    walk = store.messages.walk(scope, to=to, sender=sender, viewer=people.viewer, after=after)
    found = list(islice(walk, limit + 1))
    rows = [message_row(row, people) for _, row in found[:limit]]
    return Messages(rows, found[limit - 1][0] if len(found) > limit else "")


def unread(store: Store, scope: str, people: People, limit: int) -> list[MessageRow]:
    """Return the newest messages of a scope that their recipients have not read."""
    walk = store.messages.walk(scope, viewer=people.viewer, unread=True)
    return [message_row(row, people) for _, row in islice(walk, limit)]


def message_row(message: Message, people: People) -> MessageRow:
    """Return a message with the names of its sender and its recipient."""
    if message.recipient:
        to = people.called(message.recipient)
    else:
        to = EVERYBODY
    return MessageRow(message, people.called(message.sender), to, *task_and_text(message.content or ""))


def workers(store: Store, scope: str, people: People, limit: int = WORKERS) -> list[Worker]:
    """The newest runs of a scope."""
    return [worker(store, row, people) for _, row in islice(store.runs.walk(scope), limit)]


def worker(store: Store, run: Run, people: People) -> Worker:
    """Return a run in the form of the views."""
    people.learn_worker(run)
    until = run.ended_at or (run.updated_at if run.state == ENDED else store.now())
    return Worker(run, outcome(run), people.called(run.instance_id), max(0.0, until - run.started_at))


def outcome(run: Run) -> str:
    """The state of a run; of one that has ended, how it did."""
    if run.state != ENDED:
        if run.control:
            return f"{run.state}, {run.control} asked"
        return run.state
    result = run.result or {}
    if not result:
        return ENDED
    if result.get("is_error"):
        return f"failed: {result.get('error_category') or 'unknown'}"
    return "done"


# Marks that change when a file grows or is replaced, without reading it.

Marks = dict[str, tuple[int, int]]  # path -> size in bytes, time of its last change in ns


def file_marks(paths: Iterable[str]) -> Marks:
    """The marks of those files that are there: they differ from earlier ones once a file has changed."""
    found = {}
    for path in paths:
        try:
            there = os.stat(path)
        except OSError:  # not there
            continue
        found[path] = there.st_size, there.st_mtime_ns
    return found


# Changed and uncommitted files, from the sessions' traces (``swarm_hook_core.traces``).
#
# Traces are in no store: their journals are read, and git is asked, for about 10 ms if there are any. `journal_marks`
# tells if a new look is worthwhile.

SECONDS = 0.3  # seconds of processor time for commands that have not been analysed yet
MOST = 100  # files
PREFIX = "MCP"  # of variables that are about no client


class Edit(NamedTuple):
    """One uncommitted change of the file at `path`: its author, its time in Unix seconds, and the tool.

    The tool of a change on another machine is unknown: ``-``. `has_ended`: the session has; its client's id for it is
    then the `instance_id`.
    """

    path: str
    instance_id: str
    name: str
    at: int
    tool: str
    has_ended: bool = False


def journal_marks(scope: str) -> Marks:
    """The marks of the journals that `edits` of a scope reads: they differ once one has grown."""
    return file_marks(_journals(scope))


def edits(store: Store, scope: str, people: People, limit: int = MOST) -> list[Edit]:
    """Return the newest uncommitted changes in a scope by sessions that are still there, newest first.

    A session that has taken its change back has none, as `blame` says.

    For sessions on other machines these are their unpushed changes. Raises nothing: unreadable journals or
    folders count as empty.
    """
    if not store.exists() or not _journals(scope):
        return []
    trail = OnlookersTrail("swarm", "edits", scope, level(PREFIX, scope))
    try:
        with closing(store.as_hooks_read_it()) as reader:
            meetings = Meetings(trail, reader, time.time(), Budget(SECONDS))
            patience = Patience(trail.changes)
            fresh = meetings.fresh_of_each_below(scope)
            trail.changes.prepare(dict.fromkeys(one.path for one in fresh), patience.left())
            traces = [one for one in fresh if patience.has_part(one.path, one.journal) is not False]
            traces += meetings.on_other_machines_below(scope)
    except (OSError, ValueError):  # unreadable journals count as empty
        return []
    traces.sort(key=lambda trace: -trace.at_ns)
    shown = []
    for trace in traces[:limit]:
        people.learn(trace.held.instance_id, trace.held.label)
        name = people.called(trace.held.instance_id)
        shown.append(Edit(trace.path, trace.held.instance_id, name, int(trace.at_ns / 1e9), trace.tool))
    return shown


def _journals(scope: str) -> list[str]:
    try:
        return others_in(place_of(scope), "")
    except (OSError, ValueError):  # no journals
        return []


# The history of a checkout: its timeline, its tasks, and its uncommitted changes.

COUNTED = 2000  # events of one answer
CHANGED = "changed"


class CheckoutHistory(NamedTuple):
    """The newest `happenings` of a checkout, oldest first; `before`: how many there are besides, before these.

    `counts`: how often each kind happened in all. `is_cut`: there were more than are counted.
    """

    happenings: list[Happening]
    before: int
    counts: dict[str, int]
    is_cut: bool


def checkout_history(store: Store, scope: str, people: People, since: int, limit: int) -> CheckoutHistory:
    """Return the newest `limit` events in `scope` since then.

    An uncommitted change is one event for each file: the last change of it.
    """
    found = timeline(store, scope, people, since, store.now() + 1, COUNTED, with_tasks=True)
    changed = [
        Happening(0, scope, one.at, CHANGED, one.instance_id, one.name, one.path, "", "", 0.0, "", {"tool": one.tool})
        for one in contributions.uncommitted(store, scope, people)
        if one.at >= since
    ]
    every = sorted([*found.happenings, *changed], key=lambda one: one.at)
    counts: dict[str, int] = {}
    for one in every:
        counts[one.what] = counts.get(one.what, 0) + 1
    shown = every[-limit:]
    return CheckoutHistory(shown, len(every) - len(shown), counts, found.is_cut)
