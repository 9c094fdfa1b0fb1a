"""The summary of a session's own state: peers, mail, locks and tasks, obstacles, and the next step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from swarm_hook_core.paths import key_of
from swarm_hook_core.untrusted_text import quoted, token
from swarm_hook_core.wording import duration
from swarm_mcp import domain as states
from swarm_mcp.answers.people import registration, veiled
from swarm_mcp.answers.size import PARTS, ROWS_BYTES, Measure, fitted, page, sent
from swarm_mcp.domain import Message, Page, Session, Task
from swarm_mcp.store import Store
from swarm_mcp.store.messages import may_meet, without_walls

# Messages that go along with an answer, as many as fit. The rest waits for the next answer.

AT_ONCE = 50  # messages of one answer if the caller names no number


def mail_page(
    store: Store,
    me: Session,
    messages: list[Message],
    limit: int = AT_ONCE,
    taken: bool = True,
    most: float = ROWS_BYTES,
    measure: Measure = sent,
) -> Page:
    """Return the unread `messages` of session `me` that fit; the total counts all unread ones.

    They are the first `limit`. A caller who asks for few is not told that there are more. Messages `taken` for this
    answer that do not fit are put back.
    """
    found = page((("", one) for one in messages), lambda one: one, lambda: 0, most=most, measure=measure)
    rest = [message.id for message in messages[len(found.rows) :]]
    if taken:
        store.messages.put_back(rest)
    if not rest and (len(messages) < limit or limit < AT_ONCE):
        return Page(found.rows)
    waiting = store.messages.unread_count(me) + (len(found.rows) if taken else 0)
    return Page(found.rows, waiting if waiting > len(found.rows) else None)


def with_mail(
    store: Store,
    me: Session,
    value: dict[str, Any],
    name: str,
    messages: list[Message],
    taken: bool = True,
    most: int = ROWS_BYTES,
    measure: Measure = sent,
) -> dict[str, Any]:
    """Return `value` with unread `messages` under `name`, in an answer of at most `most` bytes.

    The messages get the room that the rest leaves, and at least a fixed part; the rest is cut to what remains. `taken`
    as in `mail_page`.
    """
    room = max(most // PARTS, most - measure({**value, name: []}))
    mail = mail_page(store, me, messages, taken=taken, most=room, measure=measure)
    shown = fitted({**value, name: []}, most - measure(mail.rows), measure)
    shown = {**shown, name: mail.rows}
    if mail.total is None:
        return shown
    return {**shown, "not_shown": {**shown.get("not_shown", {}), name: mail.total - len(mail.rows)}}


MOST_CLAIMABLE = 10
MOST_PEER_TASKS = 20
MOST_ASSIGNED = 100  # of one's own tasks of each status
MOST_FILES = 50  # own tasks whose files are looked up
_OF_PEERS = (
    "id", "scope", "directory", "root", "file_root", "pid", "label", "registered_at", "heartbeat", "adopted",
    "lease_until",
)  # fmt: skip
_BRIEF = (
    "id", "type", "title", "status", "assignee", "requester", "priority", "files", "depends_on", "parent_task_id",
    "review_of_task_id", "fixes_task_id", "progress_summary", "progress_updated_at", "blocked_reason",
    "expected_next_update_at",
)  # fmt: skip


def shown_peer(store: Store, row: Session) -> dict[str, Any]:
    """An instance in the shape that ``list_instances`` and ``bootstrap`` show: `adopted` is a number there."""
    return store.panes.with_session({name: row[name] for name in _OF_PEERS})


def sessions_page(
    store: Store, me: Session, words: str = "", *, others: bool = False, after: str = "", limit: int | None = None
) -> Page:
    """A page of the live sessions of this session's scope that it may meet, as `shown_peer` shows them.

    `words`: only those with this text in their label; `others`: without `me`; the rest as in ``size.page``.
    """
    viewer = ""
    if not without_walls():
        viewer = token(me.label or "", "identity")

    def shown(row: Session) -> dict[str, Any] | None:
        is_meant = words in (row.label or "") and may_meet(me.label, row.label) and not (others and row.id == me.id)
        if is_meant:
            return shown_peer(store, row)
        return None

    def total() -> int:
        return store.instances.count(me.scope, words, viewer) - others

    return page(store.instances.walk(me.scope, after), shown, total, after=after, limit=limit)


def neighbours_of(store: Store, me: Session, measure: Measure) -> Page:
    """The other live sessions of the scope, as `shown_peer` shows them; those of another identity without a label."""
    viewer = token(me.label or "", "identity")

    def shown(row: Session) -> dict[str, Any] | None:
        if row.id == me.id:
            return None
        return shown_peer(store, veiled([row], viewer)[0])

    return page(store.instances.walk(me.scope), shown, lambda: store.instances.count(me.scope) - 1, measure=measure)


def locks_held_by(store: Store, me: Session) -> Page:
    """The files this session has locked, first come first: ``{id, file, content, task_id, created_at}``."""
    names = ("id", "file", "content", "task_id", "created_at")
    return page(
        store.locks.walk_of(me.id),
        lambda lock: {name: lock[name] for name in names},
        lambda: store.locks.count_of(me.id),
    )


def beside(**pages: Page) -> dict[str, Any]:
    """Return the remarks on rows that did not fit into these pages; empty if all did."""
    left = {name: one.total - len(one.rows) for name, one in pages.items() if one.total is not None}
    if left:
        return {"not_shown": left}
    return {}


def bootstrap_summary(
    store: Store, me: Session, peers: Page, tasks: dict[str, Any], held: Page | None = None, **more: object
) -> dict[str, Any]:
    """Return the answer of ``bootstrap``, all but the mail, with `more` in between.

    ``{instance, peers, unread_messages, ..., tasks, work_tracker}``.
    """
    return {
        "instance": registration(me),
        "peers": peers.rows,
        "unread_messages": [],
        **({"held_locks": held.rows} if held else {}),
        **more,
        "tasks": tasks,
        "work_tracker": store.tracker.of(me),
        **beside(peers=peers, **({"held_locks": held} if held else {})),
    }


def status_summary(store: Store, me: Session) -> dict[str, Any]:
    """Return the answer of ``swarm_status``; mark and change nothing."""
    assigned = store.tasks.unfinished_of(me, MOST_ASSIGNED)
    mine = Page(assigned, store.tasks.count_unfinished_of(me) if len(assigned) >= MOST_ASSIGNED else None)
    others = store.tasks.at_work_beside(me, MOST_PEER_TASKS)
    peers, locks = sessions_page(store, me, others=True), locks_held_by(store, me)
    held = locks.rows
    active = [task for task in assigned if task.status in (states.CLAIMED, states.IN_PROGRESS)]
    blocking, kept = _on_files_of(store, me, active)
    counts = store.tasks.counts(me)
    unread = store.messages.peek(me)
    claimable = store.tasks.claimable(me, MOST_CLAIMABLE)
    owner = store.planner.owner(me.scope)
    value = {
        "instance": {
            "id": me.id,
            "label": me.label,
            "role": token(me.label or "", "role") or None,
            "scope": me.scope,
            "directory": me.directory,
            "file_root": me.file_root,
        },
        "peers": peers.rows,
        "planner_owner": {**owner, "is_me": owner["instance_id"] == me.id} if owner else None,
        "unread_messages": [],
        "task_counts": counts,
        "assigned_tasks": [_brief(task) for task in assigned],
        "claimable_tasks": [_brief(task) for task in claimable],
        "active_peer_tasks": [_brief(task) for task in others],
        "held_locks": held,
        "blocking_locks": blocking,
        "warnings": _warnings(store.now(), active, others, held, kept, blocking),
        "next_action": _next_action(me, unread, assigned, claimable, counts),
        **beside(peers=peers, held_locks=locks, assigned_tasks=mine),
    }
    return with_mail(store, me, value, "unread_messages", unread, taken=False)


def _brief(task: Task) -> dict[str, Any]:
    shown = {name: task[name] for name in _BRIEF}
    return {**shown, "files": shown["files"] or [], "depends_on": shown["depends_on"] or []}


def _on_files_of(store: Store, me: Session, active: list[Task]) -> tuple[list[dict[str, Any]], set[str]]:
    """Return the locks of others on files of this session's tasks and refusals, and the keys of its own locks.

    The locks have the shape of those in a refusal.
    """
    files = [file for task in active for file in task.files or ()][:MOST_FILES]
    refused = store.denials.files(me.id, MOST_FILES)
    viewer, found, kept = token(me.label or "", "identity"), dict[str, "Any"](), set()
    for file in [*files, *refused]:
        for lock in store.locks.on(file)[:MOST_FILES]:
            if lock.instance_id == me.id:
                kept.add(key_of(file))
            elif lock.id not in found:
                found[lock.id] = store.locks.describe(lock, viewer)
    return list(found.values()), kept


# ------------------------------------------------------------------------ what is amiss


def _warnings(
    now: int,
    active: list[Task],
    others: list[Task],
    held: list[dict[str, Any]],
    kept: set[str],
    blocking: list[dict[str, Any]],
) -> list[dict[str, Any]]:
    mine = kept.union(key_of(lock["file"]) for lock in held)  # of many locks `held` is only a part
    theirs = {key_of(lock["file"]): lock for lock in blocking}
    theirs_at_work = {key_of(file): task for task in others for file in task.files or ()}
    found: list[dict[str, Any]] = []
    for task in active:
        found += _about_task(task, now)
        for file in task.files or ():
            key = key_of(file)
            found += _about_file(file, task, key in mine, theirs.get(key), theirs_at_work.get(key))
    for task in others:
        found += _about_peers_task(task, now)
    wanted, working_on = {key_of(file) for task in active for file in task.files or ()}, {task.id for task in active}
    for lock in held:
        if key_of(lock["file"]) not in wanted and lock["task_id"] not in working_on:
            found.append(_warning(
                "held_lock_without_active_task_file", "info",
                "You hold this lock for none of your active tasks: unlock_file, unless you still need it.",
                file=lock["file"],
            ))  # fmt: skip
    return found


def _warning(code: str, severity: str, message: str, **about: object) -> dict[str, Any]:
    return {"code": code, "severity": severity, **about, "message": message}


def _about_task(task: Task, now: int) -> Iterator[dict[str, Any]]:
    """Yield the warnings about a task of this session as a whole."""
    if task.blocked_reason:
        yield _warning(
            "task_reported_blocked", "warning",
            f"You reported it blocked: {quoted(task.blocked_reason)}", task_id=task.id,
        )  # fmt: skip
    late = _seconds_late(task, now)
    if late:
        yield _warning(
            "expected_progress_update_overdue", "info",
            f"Your next report on it is {duration(late)} overdue: call report_progress, or complete_task.",
            task_id=task.id,
        )  # fmt: skip
    if task.status == states.IN_PROGRESS and not task.files:
        yield _warning(
            "in_progress_task_without_files", "info",
            "It names no files, so peers cannot see what it touches; lock what must be kept still.", task_id=task.id,
        )  # fmt: skip


def _about_file(
    file: str, task: Task, is_locked: bool, lock: dict[str, Any] | None, rival: Task | None
) -> Iterator[dict[str, Any]]:
    """Yield the warnings about one file of a task of this session.

    `is_locked`: by this session; `lock` is another session's on the file, `rival` another session's task that names it.
    """
    about = {"task_id": task.id, "file": file}
    if lock:
        who = lock.get("instance_id")
        yield _warning(
            "file_locked_by_peer", "warning",
            "Another session has locked this file of your task; writing it will be denied.",
            **about, **({"instance_id": who} if who else {}),
        )  # fmt: skip
    elif task.status == states.IN_PROGRESS and not is_locked:
        yield _warning(
            "missing_lock_for_in_progress_task", "warning",
            "Your task is to change this file, and you have not locked it: peers may write it meanwhile.", **about,
        )  # fmt: skip
    if rival:
        yield _warning(
            "active_task_file_overlap", "warning",
            f"A peer works on this file too, for its task {quoted(rival.title)}: agree who goes first.",
            **about, instance_id=rival.assignee,
        )  # fmt: skip


def _about_peers_task(task: Task, now: int) -> Iterator[dict[str, Any]]:
    late = _seconds_late(task, now)
    if late:
        yield _warning(
            "peer_progress_update_overdue", "info",
            f"The next report on a peer's task {quoted(task.title)} is {duration(late)} overdue.",
            task_id=task.id, instance_id=task.assignee,
        )  # fmt: skip


def _seconds_late(task: Task, now: int) -> int:
    """Return how long the next report on a task is overdue; 0 where it is not."""
    due = task.expected_next_update_at
    if isinstance(due, (int, float)):
        return max(0, now - due)
    return 0


# ------------------------------------------------------------------------- what to do now


def _next_action(
    me: Session, unread: list[Message], assigned: list[Task], claimable: list[Task], counts: dict[str, int]
) -> dict[str, Any]:
    by_status = {task.status: task for task in reversed(assigned)}
    if unread:
        return _do("poll_messages", "Messages are waiting; they may change what is worth doing.")
    if states.IN_PROGRESS in by_status:
        return _do(
            "complete_task", "You are in the middle of this task: go on with it, report_progress if it takes long or"
            " is stuck, and complete_task when it is done.", by_status[states.IN_PROGRESS],
        )  # fmt: skip
    if states.CLAIMED in by_status:
        return _do("claim_task", "This task was given to you; claim it to begin.", by_status[states.CLAIMED])
    if claimable:
        return _do("claim_next_task", "Tasks are open that you could do.")
    plans = token(me.label or "", "role") == "planner"
    if plans and any(counts[status] for status in (states.FAILED, states.CANCELLED, states.APPROVAL_REQUIRED)):
        return _do("list_tasks", "Tasks have failed, were cancelled or wait for approval: as planner, see to them.")
    return _do(
        "wait_for_activity",
        "Nothing is ready for you. Wait if you expect a reply, a result or a released file; else end the turn.",
    )


def _do(tool: str, reason: str, task: Task | None = None) -> dict[str, Any]:
    return {"tool": tool, **({"task_id": task.id} if task else {}), "reason": reason}
