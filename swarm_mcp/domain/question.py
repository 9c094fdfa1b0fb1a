"""A question of a worker to a person, and the answer."""

from __future__ import annotations

from swarm_mcp.domain.record import Record

WAITS = "a person's answer: "  # how the reason begins for which such a task is blocked


class Question(Record):
    """One question about a task: `answer` is None until a person gives one; times in Unix seconds.

    `told_at`: when the answer reached the worker, in its call or with its next instructions.
    """

    __slots__ = ()

    id: int
    task_id: str
    asked_by: str
    question: str
    asked_at: int
    answer: str | None
    answered_at: int | None
    told_at: int | None
