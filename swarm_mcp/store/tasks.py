"""Tasks: work that sessions hand to each other.

This is the whole face of tasks; what it promises is kept in the modules beside it: ``task_life`` (the life of a
task, as a table, and what waits for what), ``task_reading``, ``task_requests``, ``task_holders`` (taking one, letting
go), ``task_endings`` and ``task_notices``.

`instance` and `viewer` are sessions, of which ``id``, ``label`` and ``scope`` count. Whatever the rules
forbid raises ``Refused``, whose `answer` is ``{"error", ...}``. Messages to others are stored in the
change's own transaction and returned as ``[(recipient id, text)]``, for the caller to wake them with.
"""

from __future__ import annotations

from swarm_mcp.domain.session import Session
from swarm_mcp.domain.task import UNCHANGED, Task
from swarm_mcp.store import task_endings, task_holders, task_requests
from swarm_mcp.store import task_life as states
from swarm_mcp.store import task_reading as rows
from swarm_mcp.store.task_life import TaskParts


class Tasks:
    """Tasks, as callers ask for them."""

    def __init__(self, parts: TaskParts):
        self._parts = parts
        self._db = parts.db

    # ------------------------------------------------------------------ read

    def get(self, scope: str, task_id: str) -> Task | None:
        """One task, whoever may see it."""
        return rows.get(self._db, scope, task_id)

    def seen(self, viewer: Session, task_id: str) -> Task | None:
        """One task of the viewer's scope, or that it asked for or works on; None where another identity hides it."""
        return rows.seen(self._db, viewer, task_id)

    def listed(self, viewer: Session, status: str = "", assignee: str = "", requester: str = "") -> list[Task]:
        """The viewer's scope's tasks that it may see, most urgent first; empty filters do not filter."""
        return rows.listed(self._db, viewer, status, assignee, requester)

    def in_order(self, viewer: Session, status: str = "") -> list[Task]:
        """The same, in order of creation."""
        return rows.listed(self._db, viewer, status, order="created_at, rowid")

    def counts(self, viewer: Session) -> dict[str, int]:
        """How many tasks of its scope the viewer may see, by status; every status is there."""
        return rows.counts(self._db, viewer, rows.Sight(self._db, viewer))

    def current(self, viewer: Session, include_terminal: bool = True, terminal_limit: int = 0) -> dict:
        """Tasks by status: ``{open: [...], ..., terminal_counts: {done, failed, cancelled}}``.

        Ended ones are left out unless `include_terminal`, or `terminal_limit` asks for the newest few of each.
        """
        return rows.current(self._db, viewer, include_terminal, terminal_limit)

    def claimable(self, instance: Session, limit: int = 10) -> list[Task]:
        """The next few tasks that `claim_next` would choose from, in its order."""
        return task_holders.claimable(self._parts, instance, limit)

    def glance(self, viewer: Session, changed_after: int | None = None) -> dict:
        """Return a few tasks by status, the most urgent and what has just changed; see ``task_reading.glance``."""
        return rows.glance(self._db, viewer, changed_after)

    def unfinished_of(self, session: Session) -> list[Task]:
        """Return the tasks of its scope that this session has and that have not ended, most urgent first."""
        return rows.unfinished_of(self._db, session)

    def at_work_beside(self, session: Session, limit: int) -> list[Task]:
        """Return tasks that other sessions of its scope have begun or are about to, as far as this one may see them."""
        return rows.at_work_beside(self._db, session, limit)

    # --------------------------------------------------------------- request

    def request(self, requester: Session, spec: dict, notify: bool = True) -> dict:
        """Create a task from the arguments of ``request_task``: ``{task, existing, notices}``.

        `existing`: the idempotency key was taken, and this is the untouched task that has it. Without
        `notify` the assignee is told nothing, for a caller that has more to say.
        """
        return task_requests.request(self._parts, requester, spec, notify)

    def request_batch(self, requester: Session, specs: list[dict]) -> dict:
        """Create all or none: ``{tasks: [{id, status, [idempotency_key], new}], notices}``, one notice an assignee.

        ``$N`` means the Nth item. A refusal's `answer` has ``details`` [{task_index, field, message}].
        """
        return task_requests.request_batch(self._parts, requester, specs)

    # ----------------------------------------------------------------- claim

    def claim(self, instance: Session, task_id: str, ignore_unread: bool = False) -> dict:
        """Begin one task: ``{task, prior_status}``. A refusal over unread mail counts it in `answer`."""
        return task_holders.claim(self._parts, instance, task_id, ignore_unread)

    def claim_next(
        self,
        instance: Session,
        types: list[str] | None = None,
        files: list[str] | None = None,
        ignore_unread: bool = False,
    ) -> dict:
        """Begin the most urgent task that fits, one's own first: ``{task, prior_status}``."""
        return task_holders.claim_next(self._parts, instance, types, files, ignore_unread)

    def reserve(self, task_id: str, worker: Session) -> Task:
        """Keep an open task for a worker that a dispatch has found or started; the task, claimed by it."""
        return task_holders.reserve(self._parts, task_id, worker)

    # ------------------------------------------------------------- go on, end

    def report_progress(
        self, actor: Session, task_id: str, summary: str, blocked_reason=UNCHANGED, expected_next_update_at=UNCHANGED,
        begun: bool = True,
    ) -> dict:  # fmt: skip
        """Say how far a task is; its four progress columns. What is not given stays, None clears it.

        Without `begun` also of a task that its assignee has yet to begin.
        """
        return task_endings.report_progress(
            self._parts, actor, task_id, summary, blocked_reason, expected_next_update_at, begun
        )

    def approve(self, actor: Session, task_id: str) -> dict:
        """Let a task that waits for approval begin, or wait for its dependencies: ``{task, notices}``."""
        return task_endings.approve(self._parts, actor, task_id)

    def end(self, actor: Session, task_id: str, status: str, result: str | None = None) -> dict:
        """Done, failed or cancelled: ``{task, notices, unblocked}``.

        `notices` go to the requester, `unblocked` to those whose tasks may begin now.
        """
        return task_endings.end(self._parts, actor, task_id, status, result)

    def complete(self, actor: Session, task_id: str, record: dict, status: str = states.DONE) -> dict:
        """`end` with a structured result from the arguments of ``complete_task``, and that as ``result`` besides."""
        return task_endings.complete(self._parts, actor, task_id, record, status)

    # -------------------------------------------------------------- departure

    def release_all(self, session: Session, reason: str) -> None:
        """Inside a transaction: free the tasks of a session that is being removed for `reason`."""
        task_holders.leave(self._parts, session, reason)

    def vacate(self, session: Session) -> None:
        """Inside a transaction: a session works in another scope now, and leaves its tasks of this one behind."""
        task_holders.vacate(self._parts, session)

    # --------------------------------------------------------------- cleanup

    def settle_vanished(self, scope: str | None = None) -> list[tuple[str, str]]:
        """Inside a transaction: let go of tasks that nothing keeps blocked any more; the notices to assignees.

        For upkeep, right after it has deleted ended tasks (`scope` None: everywhere). It also mends what
        another program has left: dependencies that ended without their dependents hearing of it.
        """
        return task_endings.settle_vanished(self._parts, scope)
