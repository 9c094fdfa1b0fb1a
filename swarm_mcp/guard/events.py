"""The record of a commit or push that the guard has refused, or warned of: one event for people."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from swarm_hook_core import coordinator, faults, spawn
from swarm_mcp.errors import SwarmError
from swarm_mcp.folders import scope_of
from swarm_mcp.guard.check import BUSY_SECONDS, committer
from swarm_mcp.installation import coordinator_command
from swarm_mcp.store import Store
from swarm_mcp.store.attempts import MOST_NAMED, Attempt

if TYPE_CHECKING:
    from swarm_mcp.guard.changes import Changes
    from swarm_mcp.guard.check import Refusal


def record(hook: str, folder: str, who: str, found: list[Refusal], changes: Changes | None) -> None:
    """Have the refusal of a commit or push written down, or the notice about it. Raises nothing.

    A command in the background does it: the guard has little time before git goes on without its answer.

    hook     of ``check.HOOKS``
    folder   of the commit
    who      names the committing session, as in ``check.refusals``
    found    locked files, and `changes`: changes of other sessions to staged files
    """
    made = _of_locks(hook, folder, found) if found else _of_changes(folder, changes)
    if made is None:
        return
    file, holder_id, attempt = made
    try:
        with Store(read_only=True, busy_seconds=BUSY_SECONDS) as store:
            me = committer(store, who)
        words = ["--runtime", "git", "--session-id", me.id if me else "-", "--scope", scope_of(folder)]
        spawn.start_detached(
            [
                *(coordinator.command() or coordinator_command()),
                "denied",
                *words,
                *_options(holder_id, attempt),
                "--",
                file,
            ]
        )
    except (SwarmError, OSError) as error:  # the commit itself is judged
        faults.record("guard", hook, faults.describe(error))


def _options(holder_id: str, attempt: Attempt) -> list[str]:
    facts = {
        "--holder": holder_id, "--tool": attempt.tool, "--why": attempt.why, "--deed": attempt.deed,
        "--command": attempt.command, "--changed": str(attempt.changed_at or ""),
    }  # fmt: skip
    words = [f"{flag}={value}" for flag, value in facts.items() if value]
    return [*words, *(f"--also={path}" for path in attempt.also), *["--notice"] * attempt.is_notice]


def _of_locks(hook: str, folder: str, found: list[Refusal]) -> tuple[str, str, Attempt]:
    lock, why = found[0].lock, "lock"
    if lock.get("lapsed"):
        why = "lapsed"
    paths = [os.path.join(folder, one.file or ".git") for one in found[: MOST_NAMED + 1]]
    attempt = Attempt(_command(hook), paths[0], folder, why=why, deed="commit", also=tuple(paths[1:]))
    return paths[0], str(lock["instance_id"] or ""), attempt


def _of_changes(folder: str, changes: Changes | None) -> tuple[str, str, Attempt] | None:
    if changes is None or not changes.traces:
        return None
    first, by = changes.traces[0], _command("pre-commit")
    also = tuple(trace.path for trace in changes.traces[1 : MOST_NAMED + 1])
    attempt = Attempt(
        by, first.path, folder, why="sweep", deed="commit", command=by, changed_at=int(first.at_ns / 1e9),
        also=also, is_notice=not changes.refused,
    )  # fmt: skip
    return first.path, first.held.instance_id, attempt


def _command(hook: str) -> str:
    return f"git {hook.removeprefix('pre-')}"
