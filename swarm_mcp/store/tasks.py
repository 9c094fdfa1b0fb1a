"""Tasks: work that sessions hand to each other.

This is the whole face of tasks; what it promises is kept in the modules beside it: ``task_states`` (the
life of a task, as a table), ``task_rows`` and ``task_glance`` (reading), ``task_requests``, ``task_claims``,
``task_endings``, ``task_locks``, ``task_dependencies``, ``task_departures`` and ``task_notices``.

A task is a dict with the contract's columns, ``files`` and ``depends_on`` as lists or None. `instance`
and `viewer` are rows of ``instances``, of which ``id``, ``label`` and ``scope`` count. Whatever the rules
forbid raises ``Refused``, whose `answer` is ``{"error", ...}``. Messages to others are stored in the
change's own transaction and returned as ``[(recipient id, text)]``, for the caller to wake them with.
"""

from __future__ import annotations

from swarm_mcp.domain.task import UNCHANGED
from swarm_mcp.store import task_claims, task_endings, task_glance, task_requests, task_rows, task_states


class Tasks:
    """The embedded store's tasks."""

    def __init__(self, store):
        self.store = store

    # ------------------------------------------------------------------ read

    def get(self, scope: str, task_id: str) -> dict | None:
        """One task, whoever may see it."""
        return task_rows.get(self.store, scope, task_id)

    def seen(self, viewer: dict, task_id: str) -> dict | None:
        """One task of the viewer's scope, or that it asked for or works on; None where another identity hides it."""
        return task_rows.seen(self.store, viewer, task_id)

    def listed(self, viewer: dict, status: str = "", assignee: str = "", requester: str = "") -> list[dict]:
        """The viewer's scope's tasks that it may see, most urgent first; empty filters do not filter."""
        return task_rows.listed(self.store, viewer, status, assignee, requester)

    def in_order(self, viewer: dict, status: str = "") -> list[dict]:
        """The same, in order of creation."""
        return task_rows.listed(self.store, viewer, status, order="created_at, rowid")

    def counts(self, viewer: dict) -> dict[str, int]:
        """How many tasks of its scope the viewer may see, by status; every status is there."""
        return task_glance.counts(self.store, viewer, task_rows.Sight(self.store, viewer))

    def current(self, viewer: dict, include_terminal: bool = True, terminal_limit: int = 0) -> dict:
        """Tasks by status: ``{open: [...], ..., terminal_counts: {done, failed, cancelled}}``.

        Ended ones are left out unless `include_terminal`, or `terminal_limit` asks for the newest few of each.
        """
        return task_rows.current(self.store, viewer, include_terminal, terminal_limit)

    def claimable(self, instance: dict, limit: int = 10) -> list[dict]:
        """The next few tasks that `claim_next` would choose from, in its order."""
        return task_claims.claimable(self.store, instance, limit)

    # --------------------------------------------------------------- request

    def request(self, requester: dict, spec: dict, notify: bool = True) -> dict:
        """Create a task from the arguments of ``request_task``: ``{task, existing, notices}``.

        `existing`: the idempotency key was taken, and this is the untouched task that has it. Without
        `notify` the assignee is told nothing, for a caller that has more to say.
        """
        return task_requests.request(self.store, requester, spec, notify)

    def request_batch(self, requester: dict, specs: list[dict]) -> dict:
        """Create all or none: ``{tasks: [{id, status, [idempotency_key], new}], notices}``, one notice an assignee.

        ``$N`` means the Nth item. A refusal's `answer` has ``details`` [{task_index, field, message}].
        """
        return task_requests.request_batch(self.store, requester, specs)

    # ----------------------------------------------------------------- claim

    def claim(self, instance: dict, task_id: str, ignore_unread: bool = False) -> dict:
        """Begin one task: ``{task, prior_status}``. A refusal over unread mail counts it in `answer`."""
        return task_claims.claim(self.store, instance, task_id, ignore_unread)

    def claim_next(
        self,
        instance: dict,
        types: list[str] | None = None,
        files: list[str] | None = None,
        ignore_unread: bool = False,
    ) -> dict:
        """Begin the most urgent task that fits, one's own first: ``{task, prior_status}``."""
        return task_claims.claim_next(self.store, instance, types, files, ignore_unread)

    def reserve(self, task_id: str, worker: dict) -> dict:
        """Keep an open task for a worker that a dispatch has found or started; the task, claimed by it."""
        return task_claims.reserve(self.store, task_id, worker)

    # ------------------------------------------------------------- go on, end

    def report_progress(
        self, actor: dict, task_id: str, summary: str, blocked_reason=UNCHANGED, expected_next_update_at=UNCHANGED,
        begun: bool = True,
    ) -> dict:  # fmt: skip
        """Say how far a task is; its four progress columns. What is not given stays, None clears it.

        Without `begun` also of a task that its assignee has yet to begin.
        """
        return task_endings.report_progress(
            self.store, actor, task_id, summary, blocked_reason, expected_next_update_at, begun
        )

    def approve(self, actor: dict, task_id: str) -> dict:
        """Let a task that waits for approval begin, or wait for its dependencies: ``{task, notices}``."""
        return task_endings.approve(self.store, actor, task_id)

    def end(self, actor: dict, task_id: str, status: str, result: str | None = None) -> dict:
        """Done, failed or cancelled: ``{task, notices, unblocked}``.

        `notices` go to the requester, `unblocked` to those whose tasks may begin now.
        """
        return task_endings.end(self.store, actor, task_id, status, result)

    def complete(self, actor: dict, task_id: str, record: dict, status: str = task_states.DONE) -> dict:
        """`end` with a structured result from the arguments of ``complete_task``, and that as ``result`` besides."""
        return task_endings.complete(self.store, actor, task_id, record, status)

    # ---------------------------------------------------------------- upkeep

    def settle_vanished(self, scope: str | None = None) -> list[tuple[str, str]]:
        """Inside a transaction: let go of tasks that nothing keeps blocked any more; the notices to assignees.

        For upkeep, right after it has deleted ended tasks (`scope` None: everywhere). It also mends what
        another program has left: dependencies that ended without their dependents hearing of it.
        """
        return task_endings.settle_vanished(self.store, scope)
