"""Tasks: work that sessions hand to each other, and the life that one has."""

from __future__ import annotations

from swarm_mcp.domain.record import Record

OPEN, CLAIMED, IN_PROGRESS = "open", "claimed", "in_progress"
BLOCKED, APPROVAL_REQUIRED = "blocked", "approval_required"
DONE, FAILED, CANCELLED = "done", "failed", "cancelled"
STATUSES = (OPEN, CLAIMED, IN_PROGRESS, DONE, FAILED, CANCELLED, BLOCKED, APPROVAL_REQUIRED)
TERMINAL = (DONE, FAILED, CANCELLED)
TYPES = ("review", "implement", "fix", "test", "research", "other")
BATCH_LIMIT = 50  # tasks in one request
UNCHANGED = object()  # an argument that leaves a column as it is; None clears it


class Task(Record):
    """One task: `files` and `depends_on` are lists or None; times in Unix seconds, `changed_at` in milliseconds."""

    __slots__ = ()

    id: str
    scope: str
    type: str
    title: str
    description: str | None
    requester: str
    assignee: str | None
    status: str
    files: list[str] | None
    result: str | None
    created_at: int
    updated_at: int
    changed_at: int
    priority: int
    depends_on: list[str] | None
    idempotency_key: str | None
    parent_task_id: str | None
    review_of_task_id: str | None
    fixes_task_id: str | None
    progress_summary: str | None
    progress_updated_at: int | None
    blocked_reason: str | None
    expected_next_update_at: int | None
    tracker_required: int
    tracker_provider: str | None


# The contract's columns, in its order; a file that others upgraded may have them in another, or more.
COLUMNS = tuple(Task.__annotations__)
